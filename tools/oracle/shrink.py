"""Makes a failing case small: objects are taken away, then fields, while it still fails.

What "fails" means is up to the caller. A case is a JSON document, so shrinking needs to know
nothing of its objects: what makes it invalid makes it fail otherwise, and is not kept.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Case = dict[str, Any]
Path = tuple[str | int, ...]
Fails = Callable[[Case], bool]

ATTEMPTS_MAX = 3_000
"""How many smaller cases are tried before the smallest so far is good enough."""
KEPT = frozenset({"name", "source", "config", "nodes", "pods", "namespaces", "pod", "expect"})
"""Entries of a case that stay, though what is in them may go."""


class _Attempts:
    """Counts the attempts that are left, and asks whether a smaller case still fails."""

    def __init__(self, fails: Fails, most: int) -> None:
        self._fails = fails
        self._left = most

    def fails(self, case: Case) -> bool:
        self._left -= 1
        return self._left >= 0 and self._fails(case)


def shrink(case: Case, fails: Fails, attempts: int = ATTEMPTS_MAX) -> Case:
    """Return a smaller case that still fails, of which nothing more can be taken away.

    The smallest found is returned if the attempts run out; `case` itself has to fail, and is not
    changed.
    """
    trying = _Attempts(fails, attempts)
    before = None
    while before != case:
        before = case
        for name in _lists_of(case):
            case = _with_fewer_items(case, name, trying)
        case = _with_fewer_fields(case, trying)
    return case


def _lists_of(case: Case) -> list[str]:
    return [name for name, value in case.items() if isinstance(value, list)]


def _with_fewer_items(case: Case, name: str, trying: _Attempts) -> Case:
    """Take away runs of items of one list: half of it, a quarter, and so on down to one."""
    size = (len(case[name]) + 1) // 2
    while size:
        start = 0
        while start < len(case[name]):
            items = case[name][:start] + case[name][start + size :]
            smaller = {**case, name: items}
            if trying.fails(smaller):
                case = smaller
            else:
                start += size
        size //= 2
    return case


def _with_fewer_fields(case: Case, trying: _Attempts) -> Case:
    """Take away fields and items at any depth, outer ones first."""
    for path in list(_paths(case)):
        if not _exists(case, path):
            continue
        smaller = _without(case, path)
        if trying.fails(smaller):
            case = smaller
    return case


def _paths(case: Case) -> Iterator[Path]:
    """Yield the places of all fields and items; later items of a list come first."""
    places: list[tuple[Path, Any]] = [((name,), value) for name, value in case.items()]
    while places:
        path, value = places.pop(0)
        if not (len(path) == 1 and path[0] in KEPT):
            yield path
        if path[0] != "expect":
            places += [((*path, key), inner) for key, inner in _inside(value)]


def _inside(value: object) -> Sequence[tuple[str | int, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, list):
        return list(enumerate(value))[::-1]
    return ()


def _exists(case: Case, path: Path) -> bool:
    value: Any = case
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _without(value: Any, path: Path) -> Any:
    """Return a copy without the field or item at a path."""
    first, rest = path[0], path[1:]
    if isinstance(value, list):
        assert isinstance(first, int)
        inner = [_without(value[first], rest)] if rest else []
        return value[:first] + inner + value[first + 1 :]
    if rest:
        return {**value, first: _without(value[first], rest)}
    return {name: item for name, item in value.items() if name != first}
