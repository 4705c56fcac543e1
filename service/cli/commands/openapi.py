"""`moorage openapi`: print or check the OpenAPI document, which is generated from the code."""

import difflib
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from moorage.cli.exceptions import ExitCode
from moorage.cli.render.output import Output

DIFFERENCES_SHOWN = 40


def openapi(
    file: Annotated[
        Path | None, typer.Option("--file", help="Write the document to this file.")
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check",
            help="Compare the document with this file; the exit code is 1 if they differ.",
        ),
    ] = None,
) -> None:
    """Print the OpenAPI document of the HTTP API."""
    text = rendered_document()
    if check is not None:
        _compare(check, text)
    elif file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    else:
        typer.echo(text, nl=False)


def rendered_document() -> str:
    """Return the document's text, indented so that changes to it can be reviewed."""
    from service.app import openapi_document  # noqa: PLC0415 - other commands start faster without

    return msgspec.json.format(msgspec.json.encode(openapi_document()), indent=2).decode() + "\n"


def _compare(file: Path, text: str) -> None:
    stored = file.read_text() if file.exists() else ""
    if stored == text:
        return
    output = Output()
    differences = difflib.unified_diff(
        stored.splitlines(), text.splitlines(), str(file), "the code", lineterm="", n=1
    )
    for line in list(differences)[:DIFFERENCES_SHOWN]:
        output.line(line)
    output.note(f"{file} is not what the code says: run `make openapi`.")
    raise typer.Exit(ExitCode.REFUSED)
