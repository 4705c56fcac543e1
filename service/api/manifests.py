"""Reading many manifests of one request, while other requests are answered in between."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import TypeVar

from service.api.problems import FIELD_PROBLEMS_MAX
from service.model.errors import FieldError, InvalidManifest
from service.model.strict_json import decode_items

PIECE = 100
"""Objects parsed before others get their turn: a few milliseconds."""

NAME_SHOWN_MAX = 200
"""Characters of a name that nobody knows, which may be as long as the body."""

T = TypeVar("T")


class Pause:
    """Counts work; lets the event loop turn after each piece of it."""

    def __init__(self) -> None:
        self._done = 0

    async def after_some(self) -> None:
        """Note one object done."""
        self._done += 1
        if self._done % PIECE == 0:
            await asyncio.sleep(0)


async def parse_items(items: Sequence[bytes], field: str, parse: Callable[[bytes], T]) -> list[T]:
    """The parsed items of a list.

    Raises:
        InvalidManifest: what is wrong in any of them, as `<field>[3].…`. Where that is more than an
            answer names, the items that follow are not looked at.
    """
    parsed: list[T] = []
    errors: list[FieldError] = []
    for start in range(0, len(items), PIECE):
        if start:
            await asyncio.sleep(0)
        if len(errors) > FIELD_PROBLEMS_MAX:
            break
        for index, item in enumerate(items[start : start + PIECE], start):
            try:
                parsed.append(parse(item))
            except InvalidManifest as error:
                errors += error.under(f"{field}[{index}]").errors
    if errors:
        raise InvalidManifest(errors)
    return parsed


def items_in(raw: bytes, field: str) -> list[bytes]:
    """The items of a JSON list, each still as JSON; InvalidManifest if it is no list."""
    try:
        return decode_items(raw)
    except InvalidManifest as error:
        raise error.under(field) from None


def unknown_fields(names: Iterable[str], known: Collection[str]) -> list[FieldError]:
    """The errors for fields that a request does not have, those that an answer names with the known one that is near."""
    unknown = [name[:NAME_SHOWN_MAX] for name in names if name not in known]
    named, others = unknown[:FIELD_PROBLEMS_MAX], unknown[FIELD_PROBLEMS_MAX:]
    return [
        *(_unknown_field(name, known) for name in named),
        *(FieldError(name, "is unknown") for name in others),
    ]


def _unknown_field(name: str, known: Collection[str]) -> FieldError:
    near = get_close_matches(name, known, n=1)
    return FieldError(name, f"is unknown; did you mean {near[0]}?" if near else "is unknown")
