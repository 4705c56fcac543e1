"""Prints the results of commands: tables for people, JSON or YAML for programs.

Results go to standard output; progress, hints, and errors go to standard error, so that pipes
receive only results.
"""

import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Self

import msgspec
import yaml
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text
from typing_extensions import override

from moorage.cli.exceptions import CliError, ExitCode, Refused, WrongUsage
from moorage.cli.render.columns import Columns
from moorage.cli.render.jsonpath import Template
from moorage.cli.render.tables import Row, TableWriter, in_pieces

PIPE_WIDTH = 10_000  # wide enough that nothing wraps, since a pipe has no width


class Format(StrEnum):
    """The output formats, as values of the option `-o`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    JSONPATH = "jsonpath"
    CUSTOM_COLUMNS = "custom-columns"


FORMATS = "table, wide, json, yaml, name, jsonpath=TEMPLATE, custom-columns=HEADING:PATH,…"
WITH_TEMPLATE = frozenset({Format.JSONPATH, Format.CUSTOM_COLUMNS})


class Output:
    """Prints results in one format."""

    def __init__(self, chosen: Format = Format.TABLE, template: str = "") -> None:
        """Create an output; `template` is the text after jsonpath= or custom-columns=.

        Raises:
            WrongUsage: the template is not valid.
        """
        self.format = chosen
        self._jsonpath = Template(template) if chosen is Format.JSONPATH else None
        self._custom = Columns(template) if chosen is Format.CUSTOM_COLUMNS else None
        self.console = _console(error=False)
        self.notes = _console(error=True)
        self._warned: set[str] = set()

    @property
    def custom(self) -> Columns | None:
        """The custom columns requested, or None."""
        return self._custom

    @property
    def for_people(self) -> bool:
        """Whether the output is for people, as tables and sentences."""
        return self.format in {Format.TABLE, Format.WIDE}

    @classmethod
    def in_format(cls, text: str) -> Self:
        """Create the output for an `-o` value, such as `json` or `jsonpath={.metadata}`.

        Raises:
            WrongUsage: the format does not exist, or its template is invalid.
        """
        name, equals, template = text.partition("=")
        chosen = next((candidate for candidate in Format if candidate == name), None)
        if chosen is None or bool(equals) is not (chosen in WITH_TEMPLATE):
            raise WrongUsage(f"-o {text}: the formats are {FORMATS}.")
        return cls(chosen, template)

    def document(self, value: object) -> None:
        """Print a JSON value as JSON or YAML, or the parts selected by a template."""
        if self._jsonpath is not None:
            self._write(self._jsonpath.fill(value))
        elif self._custom is not None:
            items = value.get("items", [value]) if isinstance(value, dict) else [value]
            self.table(self._custom.headings, map(self._custom.row, items))
        elif self.format is Format.YAML:
            sys.stdout.write(self.as_yaml(value))
        else:
            sys.stdout.write(
                msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
            )

    @staticmethod
    def as_yaml(value: object) -> str:
        """Format a JSON value as YAML, preserving the order of keys."""
        return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)

    def table(self, columns: Sequence[str], rows: Iterable[Row], *, wraps: bool = True) -> None:
        """Print a table without borders, readable and easy to cut into fields."""
        table = self.streamed(columns, wraps=wraps)
        for piece in in_pieces(rows):
            table.add(piece)
        table.end()

    def streamed(
        self, columns: Sequence[str], *, wraps: bool = False, headed: bool = True
    ) -> TableWriter:
        """Begin a table whose rows are printed as they arrive.

        On a terminal, lines are no wider than the screen, except with -o wide.
        """
        cut = sys.stdout.isatty() and self.format is not Format.WIDE
        return TableWriter(
            columns,
            write=self._write,
            head=self._head,
            width=self.console.width if cut else None,
            wraps=wraps,
            headed=headed,
        )

    def _head(self, line: str) -> None:
        self.console.print(Text(line, style="bold"), soft_wrap=True)

    @staticmethod
    def _write(lines: str) -> None:
        sys.stdout.write(lines)
        sys.stdout.flush()

    def line(self, text: str = "", style: str | None = None) -> None:
        """Print a line of the result."""
        self.console.print(escape(text), style=style, highlight=False, soft_wrap=True)

    def prose(self, text: str, style: str | None = None) -> None:
        """Print sentences, wrapped between words at the terminal's width."""
        self.line(wrapped(text, self.console.width), style)

    def lines(self, texts: Iterable[str]) -> None:
        """Print many unstyled lines at once."""
        self._write("".join(f"{text}\n" for text in texts))

    def note(self, text: str) -> None:
        """Print a remark to standard error."""
        lines = wrapped(text, self.notes.width)
        self.notes.print(escape(lines), style="dim", highlight=False, soft_wrap=True)

    def warning(self, warning: Mapping[str, str]) -> None:
        """Print a warning about a field, once for fields that differ only in their indices."""
        alike = re.sub(r"\[[0-9]+\]", "[]", f"{warning['code']} {warning['field']}")
        if alike in self._warned:
            return
        self._warned.add(alike)
        text = f"{warning['field']} {warning['message']}".strip()
        lines = wrapped(f"warning ({warning['code']}): {text}", self.notes.width)
        marked = escape(lines).replace("warning", "[yellow]warning[/]", 1)
        self.notes.print(marked, highlight=False, soft_wrap=True)

    def progress(self) -> Progress:
        """Create a progress bar for long work, visible only on a terminal."""
        return Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.notes,
            transient=True,
            disable=not self.notes.is_terminal,
        )


def wrapped(text: str, width: int) -> str:
    """Wrap lines wider than `width` cells between words, keeping their indentation."""
    return "\n".join(_wrapped_line(line, width) for line in text.split("\n"))


def _wrapped_line(line: str, width: int) -> str:
    words = line.lstrip()
    indent = line[: len(line) - len(words)]
    return textwrap.fill(
        words,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def print_error(error: CliError) -> None:
    """Print the error that ends the command to standard error, each detail on a line of its own."""
    console = _console(error=True)
    title = "refused" if isinstance(error, Refused) else "error"
    code = (
        f" ({error.problem['code']})"
        if isinstance(error, Refused) and "code" in error.problem
        else ""
    )
    text = wrapped(f"{title}{code}: {error}", console.width)
    console.print(
        f"[bold red]{title}[/]{escape(text[len(title) :])}", highlight=False, soft_wrap=True
    )
    if isinstance(error, Refused):
        for line in _details(error.problem):
            if line != str(error):
                detail = wrapped(f"  {line}", console.width)
                console.print(escape(detail), highlight=False, soft_wrap=True)


def _details(problem: Mapping[str, Any]) -> Iterable[str]:
    for error in problem.get("errors") or ():
        yield f"{error.get('field')}: {error.get('message')}"
    for plugin, reasons in (problem.get("reasons") or {}).items():
        yield f"{plugin}: {', '.join(reasons)}"


class _Console(Console):
    """A console that tolerates a reader that closes the pipe early, as in `| head`."""

    @override
    def on_broken_pipe(self) -> None:
        try:
            super().on_broken_pipe()
        except SystemExit:
            raise SystemExit(ExitCode.OK) from None


def _console(*, error: bool) -> Console:
    stream = sys.stderr if error else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return _Console(stderr=error, width=width)
