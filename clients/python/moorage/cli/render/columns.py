"""User-defined columns: `-o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName`."""

import re
from collections.abc import Sequence

from moorage.cli.exceptions import WrongUsage
from moorage.cli.render.jsonpath import read_path, shown

MISSING = "<none>"

_NEXT_COLUMN = re.compile(r",(?=[^,:\[\]]+:)")
"""Matches the commas between columns, but not those within a path, such as `['a','b']`."""


class Columns:
    """Column headings, each with the path to the column's values."""

    def __init__(self, text: str) -> None:
        """Parse `HEADING:PATH,…`.

        Raises:
            WrongUsage: a column is not `HEADING:PATH`.
        """
        pairs = [part.partition(":") for part in _NEXT_COLUMN.split(text)]
        if not all(heading and path for heading, _, path in pairs):
            raise WrongUsage(f"-o custom-columns={text}: a column is HEADING:PATH.")
        self.headings = [heading for heading, _, _ in pairs]
        self._paths = [read_path(path) for _, _, path in pairs]

    def row(self, item: object) -> Sequence[str]:
        """Return the cells of an object's row."""
        cells = (path(item) for path in self._paths)
        return [",".join(map(shown, values)) if values else MISSING for values in cells]
