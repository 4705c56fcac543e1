"""Printing what a command finds: tables for people, JSON or YAML for programs.

Results go to standard output; progress, hints and errors go to standard error, so that a pipe gets
only results.
"""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec
import yaml
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from service.cli.errors import CliError, Refused

PIPE_WIDTH = 10_000  # wide enough to wrap nothing, as a pipe has no edge


class Format(StrEnum):
    """The values of the option `-o`."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


class Output:
    """Prints results in one format."""

    def __init__(self, chosen: Format = Format.TABLE) -> None:
        self.format = chosen
        self.console = _console(error=False)
        self.notes = _console(error=True)
        self._warned: set[str] = set()

    @property
    def for_people(self) -> bool:
        """Whether people read the output, as tables and sentences."""
        return self.format is Format.TABLE

    def document(self, value: object) -> None:
        """Print a whole JSON value as JSON or YAML."""
        if self.format is Format.YAML:
            sys.stdout.write(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))
        else:
            sys.stdout.write(
                msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
            )

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table without lines, which is readable and easy to cut into fields."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in columns:
            table.add_column(column.upper() if column.islower() else column, overflow="fold")
        for row in rows:
            table.add_row(*(escape(_cell(value)) for value in row))
        self.console.print(table)

    def line(self, text: str = "", style: str | None = None) -> None:
        """Print a line of the result."""
        self.console.print(escape(text), style=style, highlight=False, soft_wrap=True)

    def prose(self, text: str, style: str | None = None) -> None:
        """Print sentences, which break between words where the terminal ends."""
        self.console.print(escape(text), style=style, highlight=False)

    def note(self, text: str) -> None:
        """Print a remark to standard error."""
        self.notes.print(escape(text), style="dim", highlight=False, soft_wrap=True)

    def warning(self, warning: Mapping[str, str]) -> None:
        """A field that the server passes over; of fields that differ only in their numbers the first."""
        alike = re.sub(r"\[[0-9]+\]", "[]", f"{warning['code']} {warning['field']}")
        if alike in self._warned:
            return
        self._warned.add(alike)
        text = f"{warning['field']} {warning['message']}".strip()
        self.notes.print(
            f"[yellow]warning[/] ({warning['code']}): {escape(text)}",
            highlight=False,
            soft_wrap=True,
        )

    def progress(self) -> Progress:
        """Make a bar for work that takes a while; it shows only on a terminal."""
        return Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.notes,
            transient=True,
            disable=not self.notes.is_terminal,
        )


def print_error(error: CliError) -> None:
    """Print on standard error why the command ends; each detail of a problem gets its own line."""
    console = _console(error=True)
    title = "refused" if isinstance(error, Refused) else "error"
    code = (
        f" ({error.problem['code']})"
        if isinstance(error, Refused) and "code" in error.problem
        else ""
    )
    console.print(f"[bold red]{title}[/]{escape(code)}: {escape(str(error))}", highlight=False)
    if isinstance(error, Refused):
        for line in _details(error.problem):
            if line != str(error):
                console.print(f"  {escape(line)}", highlight=False)


def _details(problem: Mapping[str, Any]) -> Iterable[str]:
    for error in problem.get("errors") or ():
        yield f"{error.get('field')}: {error.get('message')}"
    for plugin, reasons in (problem.get("reasons") or {}).items():
        yield f"{plugin}: {', '.join(reasons)}"


def _console(*, error: bool) -> Console:
    stream = sys.stderr if error else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(stderr=error, width=width)


def _cell(value: object) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, float):
        return f"{value:.1f}"
    return str(value)
