"""Array literals in PostgreSQL's own form, `{"a",NULL}`, for statements that take many rows.

asyncpg checks the type of each element of a list twice, half a microsecond each; joining strings
takes a twentieth of that. Statements cast the literals: `$1::text::text[]`.
"""

from collections.abc import Iterable, Sequence

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"'})


def placeholders(types: Sequence[str], first: int) -> str:
    """Return SQL placeholders for array literals of these element types, numbered from `first`."""
    return ", ".join(f"${place}::text::{element}[]" for place, element in enumerate(types, first))


def texts(values: Sequence[str]) -> str:
    """Return an array of strings, which may contain any characters."""
    joined = '","'.join(values)
    if "\\" in joined or joined.count('"') != 2 * max(0, len(values) - 1):
        joined = '","'.join(value.translate(_ESCAPES) for value in values)
    return f'{{"{joined}"}}' if values else "{}"


def texts_or_null(values: Sequence[str | None]) -> str:
    """Return an array of strings or NULLs."""
    if all(values):
        return texts([value for value in values if value is not None])
    return _plain("NULL" if value is None else _quoted(value) for value in values)


def bytes_or_null(values: Sequence[bytes | None]) -> str:
    """Return an array for `bytea[]`, most of whose elements are NULL."""
    return _plain("NULL" if value is None else f'"\\\\x{value.hex()}"' for value in values)


def booleans(values: Iterable[bool]) -> str:
    """Return an array of booleans."""
    return _plain("t" if value else "f" for value in values)


def integers(values: Iterable[int]) -> str:
    """Return an array of integers."""
    return _plain(map(str, values))


def integers_or_null(values: Iterable[int | None]) -> str:
    """Return an array of integers or NULLs."""
    return _plain("NULL" if value is None else str(value) for value in values)


def _plain(elements: Iterable[str]) -> str:
    return f"{{{','.join(elements)}}}"


def _quoted(value: str) -> str:
    return f'"{value.translate(_ESCAPES)}"'
