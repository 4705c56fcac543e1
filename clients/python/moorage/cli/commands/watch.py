"""`moorage watch`: follow a cluster's committed changes, one per line."""

from typing import Annotated

import typer

from moorage.cli.progress.follower import WatchFollower
from moorage.cli.session.options import Session, connected


@connected
def watch(
    session: Session,
    *,
    kind: Annotated[str | None, typer.Argument(help="Only this kind, such as Pod.")] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Only this namespace.")
    ] = None,
    selector: Annotated[
        str | None, typer.Option("--selector", "-l", help="Label selector.")
    ] = None,
    since: Annotated[
        int | None, typer.Option("--since", help="From after this revision on (default: now).")
    ] = None,
) -> None:
    """Follow the changes of a cluster until Ctrl-C, even if the server restarts meanwhile."""
    filters = {"kind": kind, "namespace": namespace, "labelSelector": selector}
    follower = WatchFollower(session, filters, None if since is None else str(since))
    follower.follow_until_stopped()
