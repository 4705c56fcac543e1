"""`moorage bindings`: follow committed pod placements and removals, one per line."""

from typing import Annotated

import msgspec
import typer

from moorage.cli.progress.follower import WatchFollower
from moorage.cli.session.options import Session, connected
from moorage.events import ServerSentEvent


@connected
def bindings(
    session: Session,
    *,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Only this namespace.")
    ] = None,
    node: Annotated[str | None, typer.Option("--node", help="Only pods on this node.")] = None,
    since: Annotated[
        int | None, typer.Option("--since", help="From after this revision on (default: now).")
    ] = None,
) -> None:
    """Follow which pods get and lose which nodes until Ctrl-C, even if the server restarts meanwhile."""
    filters = {"namespace": namespace, "nodeName": node}
    last = None if since is None else str(since)
    WatchFollower(session, filters, last, show, path="bindings").follow_until_stopped()


def show(session: Session, event: ServerSentEvent) -> None:
    """Print one record, as a line for people or as raw data."""
    if not session.output.for_people:
        session.output.line(event.data)
        return
    record = msgspec.json.decode(event.data)
    was = record.get("previousNodeName")
    about = " ".join(
        part for part in (record["nodeName"], was and f"(from {was})", record.get("reason")) if part
    )
    pod = f"{record['namespace']}/{record['name']}"
    session.output.line(f"{record['revision']:>8}  {record['action']:<11}  {pod}  {about}")
