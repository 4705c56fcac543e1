"""`moorage capacity`: count how many more pods of a template fit."""

from typing import Annotated

import typer

from moorage.cli.exceptions import WrongUsage
from moorage.cli.input.sources import read_objects
from moorage.cli.session.options import Session, connected


@connected
def capacity(
    session: Session,
    *,
    file: Annotated[str, typer.Option("--file", "-f", help="A pod, or a template of pods.")],
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Stop after so many pods.")
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", help="Count them by the domains of this node label.")
    ] = None,
) -> None:
    """Say how many more pods like the one in a file fit now, and what ends it; nothing is stored."""
    objects = read_objects([file])
    if len(objects) != 1:
        raise WrongUsage("--file has to hold exactly one pod.")
    template = {name: objects[0][name] for name in ("metadata", "spec") if name in objects[0]}
    body = {"template": template, "limit": limit, "topologyKey": by}
    body = {name: value for name, value in body.items() if value is not None}
    answer = session.client.post(session.client.path("capacity"), body)
    output = session.output
    if not output.for_people:
        output.document(answer)
        return
    more = "" if answer["limited"] else "at least "
    output.prose(f"{more}{answer['fits']} more fit", style="bold")
    for value, count in answer.get("domains", {}).items():
        output.line(f"{value}: {count}")
    if answer["limited"]:
        output.line(f"The next one: {answer['message']}")
