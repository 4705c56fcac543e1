"""Tables that print while rows still arrive, and stay fast with very many rows.

A layout that needs all rows first (like rich's) prints nothing before the last row, and takes half
a millisecond of CPU for each. Here, each batch of rows, such as a page of a list, is aligned with
all batches before it, so columns only ever get wider.
"""

import textwrap
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from rich.cells import cell_len, set_cell_size

GAP = "  "
MORE = "…"
PIECE_ROWS = 500
"""How many rows are aligned and printed at once if they do not arrive in pages."""

LAST_COLUMN_MIN = 20
"""The minimum width of the last column, which often has long text and is narrowed first."""

COLUMN_MIN = 3

Row = Sequence[object]


class TableWriter:
    """Prints the rows of one table, batch by batch.

    Without a `width` (in terminal cells), nothing is truncated, as in a pipe.
    """

    def __init__(
        self,
        columns: Sequence[str],
        *,
        write: Callable[[str], object],
        head: Callable[[str], object],
        width: int | None = None,
        wraps: bool = False,
        headed: bool = True,
    ) -> None:
        """Create a table.

        Args:
            columns: The headings; lowercase ones are shown in capitals.
            write: Receives the table's lines.
            head: Receives the heading line.
            width: The maximum width of a line.
            wraps: Whether the last column wraps; otherwise, it is truncated.
            headed: Whether the headings are printed.
        """
        self._headings = [column.upper() if column.islower() else column for column in columns]
        self._widths = [len(heading) if headed else 0 for heading in self._headings]
        self._width = width
        self._wraps = wraps
        self._headed = headed
        self._write = write
        self._head = head

    def add(self, rows: Iterable[Row]) -> None:
        """Print more rows, preceded by the headings the first time."""
        texts = [[_text(value) for value in row] for row in rows]
        self._widen(texts)
        widths = _fitted(self._widths, self._width)
        if self._headed:
            self._headed = False
            self._head(_line(self._headings, widths, cuts=self._width is not None))
        if texts:
            lines = (line for row in texts for line in self._lines(row, widths))
            self._write("\n".join(lines) + "\n")

    def end(self) -> None:
        """Print the headings if no rows came."""
        if self._headed:
            self.add(())

    def _widen(self, texts: Sequence[Sequence[str]]) -> None:
        for number, column in enumerate(zip(*texts, strict=True)):
            widest = max(map(_cells, column))
            self._widths[number] = max(self._widths[number], widest)

    def _lines(self, row: Sequence[str], widths: Sequence[int]) -> Iterable[str]:
        """Lay out one row, in several lines if its last text wraps."""
        cuts = self._width is not None
        if not (self._wraps and cuts and row[-1].strip() and _cells(row[-1]) > widths[-1]):
            return [_line(row, widths, cuts=cuts)]
        parts = textwrap.wrap(row[-1], widths[-1], break_long_words=False, break_on_hyphens=False)
        blank = [""] * (len(row) - 1)
        first = _line([*row[:-1], parts[0]], widths, cuts=cuts)
        return [first, *(_line([*blank, part], widths, cuts=cuts) for part in parts[1:])]


def in_pieces(rows: Iterable[Row]) -> Iterable[list[Row]]:
    """Divide rows into batches of a suitable size."""
    source = iter(rows)
    while piece := list(islice(source, PIECE_ROWS)):
        yield piece


def _text(value: object) -> str:
    if value is None or value == "":
        return "-"
    text = f"{value:.1f}" if isinstance(value, float) else str(value)
    return text if text.isprintable() else printable(text)


def printable(text: str) -> str:
    """Escape characters that could move a terminal's cursor or break a line."""
    return "".join(
        character
        if character.isprintable()
        else " "
        if character.isspace()
        else repr(character)[1:-1]
        for character in text
    )


def _cells(text: str) -> int:
    """Count the terminal cells of a text; wide characters take two."""
    return len(text) if text.isascii() else cell_len(text)


def _line(texts: Sequence[str], widths: Sequence[int], *, cuts: bool) -> str:
    cells = [
        text + " " * (width - _cells(text)) if _cells(text) <= width else _cut(text, width, cuts)
        for text, width in zip(texts, widths, strict=True)
    ]
    return GAP.join(cells).rstrip()


def _cut(text: str, width: int, cuts: bool) -> str:  # noqa: FBT001
    return set_cell_size(text, width - 1) + MORE if cuts else text


def _fitted(wanted: Sequence[int], width: int | None) -> list[int]:
    """Narrow columns until a line fits: first the last one, then always the widest."""
    widths = list(wanted)
    if width is None:
        return widths
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - width
    if excess > 0 and widths[-1] > LAST_COLUMN_MIN:
        given_up = min(excess, widths[-1] - LAST_COLUMN_MIN)
        widths[-1] -= given_up
        excess -= given_up
    while excess > 0 and max(widths) > COLUMN_MIN:
        widths[widths.index(max(widths))] -= 1
        excess -= 1
    return widths
