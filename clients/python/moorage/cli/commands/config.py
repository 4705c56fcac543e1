"""`moorage config`: show or change a cluster's settings."""

from typing import Annotated

import msgspec
import typer

from moorage.cli.input.settings import read_setting
from moorage.cli.session.options import DryRun, Session, connected


@connected
def config(
    session: Session,
    *,
    settings: Annotated[
        list[str] | None, typer.Argument(help="name=value, the value as YAML; null resets it.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Show a cluster's configuration, or change some of its settings."""
    session = session.trying(dry_run)
    path = session.client.path()
    if settings:
        changes = dict(read_setting(text) for text in settings)
        answer = session.client.patch(path, {"config": changes})
    else:
        answer = session.client.get(path)
    if session.output.for_people:
        rows = (
            (name, msgspec.json.encode(value).decode()) for name, value in answer["config"].items()
        )
        session.output.table(("setting", "value"), rows)
    else:
        session.output.document(answer["config"])
