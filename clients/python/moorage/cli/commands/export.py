"""`moorage export`: write all objects of a cluster to one file that `apply -f` accepts."""

import gzip
import sys
from pathlib import Path
from typing import IO, Annotated

import msgspec
import typer

from moorage.cli.exceptions import WrongUsage
from moorage.cli.render.output import Format
from moorage.cli.session.options import Session, connected


@connected
def export(
    session: Session,
    *,
    to: Annotated[
        str | None,
        typer.Option("--to", help="The file to write, gzipped if it ends in .gz (default: print)."),
    ] = None,
) -> None:
    """Write all objects of a cluster, as of one revision, as a List in JSON (or with -o yaml)."""
    if to is None:
        _write(session, sys.stdout.buffer)
        return
    path = Path(to)
    unfinished = path.with_name(f".{path.name}.part")
    try:
        with gzip.open(unfinished, "wb") if to.endswith(".gz") else unfinished.open("wb") as file:
            _write(session, file)
        unfinished.replace(path)
    except OSError as error:
        raise WrongUsage(f"{to}: {error.strerror or error}") from None
    finally:
        unfinished.unlink(missing_ok=True)
    session.output.note(f"{session.client.cluster} is in {to}")


def _write(session: Session, file: IO[bytes] | gzip.GzipFile) -> None:
    path = session.client.path("export")
    with session.client.download(path) as pieces:
        if session.output.format is Format.YAML:
            content = session.output.as_yaml(msgspec.json.decode(b"".join(pieces)))
            file.write(content.encode())
        else:
            for piece in pieces:
                file.write(piece)
    file.flush()
