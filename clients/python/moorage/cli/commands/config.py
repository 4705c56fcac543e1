"""`moorage config`: show or change a cluster's settings, or preview what a change would do."""

from typing import Annotated, Any

import msgspec
import typer

from moorage.cli.exceptions import WrongUsage
from moorage.cli.input.settings import read_setting
from moorage.cli.render.differences import describe_comparison, print_differences
from moorage.cli.session.options import DryRun, Session, connected


@connected
def config(
    session: Session,
    *,
    settings: Annotated[
        list[str] | None, typer.Argument(help="name=value, the value as YAML; null resets it.")
    ] = None,
    preview: Annotated[
        bool,
        typer.Option(
            "--preview", help="List the placed pods that would get another node; change nothing."
        ),
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Show a cluster's configuration, or change some of its settings."""
    changes = dict(read_setting(text) for text in settings or ())
    if preview:
        _preview(session, changes)
        return
    session = session.trying(dry_run)
    path = session.client.path()
    if changes:
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


def _preview(session: Session, changes: dict[str, Any]) -> None:
    if not changes:
        raise WrongUsage("--preview needs the settings to try, such as kubernetes=1.37.")
    body = {
        "changes": [{"op": "SetConfig", "config": changes}],
        "goal": {"type": "Compare"},
    }
    answer = session.client.post(session.client.path("plans"), body)
    if not session.output.for_people:
        session.output.document(answer)
        return
    print_differences(session.output, answer["differences"])
    session.output.prose(describe_comparison(answer), style="bold")
