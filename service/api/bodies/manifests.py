"""Reads the many manifests of one request, and lets other requests be answered in between."""

from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import TypeVar

from service.api.cooperative_pauses import Pause
from service.api.problems import FIELD_PROBLEMS_MAX
from service.model.errors import FieldError, InvalidManifest
from service.model.json_and_patches.stepwise_json_reading import LargeObject, Member
from service.model.json_and_patches.strict_json import decode_items, decode_members

LARGE_BYTES = 1024 * 1024
"""Longer bodies are read in small steps. No single item may be longer, since it is read in one step."""

NAME_SHOWN_MAX = 200
"""How many characters of an unknown field's name an answer shows; the name may be very long."""

T = TypeVar("T")
Item = TypeVar("Item")


async def read_members(
    raw: bytes, *, read: Collection[str], lists: Collection[str], items_max: int
) -> dict[str, Member]:
    """The members of a request as `decode_members` gives them; in a large request `lists` are split, too.

    Raises:
        MalformedJSON, InvalidManifest: as `decode_members` and `LargeObject` do.
    """
    if len(raw) <= LARGE_BYTES:
        return dict(decode_members(raw, read))
    large = LargeObject(raw, lists, items_max=items_max, item_bytes_max=LARGE_BYTES)
    pause = Pause()
    for _ in large.steps():
        await pause.after_some()
    large.require_strict(read)
    return large.members


async def parse_items(items: Sequence[Item], field: str, parse: Callable[[Item], T]) -> list[T]:
    """The parsed items of a list.

    Raises:
        InvalidManifest: some items are wrong; errors are named as `<field>[3].…`. Once there are
            more errors than an answer names, the items that follow are not looked at.
    """
    parsed: list[T] = []
    errors: list[FieldError] = []
    pause = Pause() if len(items) > 1 else None
    for index, item in enumerate(items):
        if pause is not None:
            await pause.after_some()
        try:
            parsed.append(parse(item))
        except InvalidManifest as error:
            errors += error.under(f"{field}[{index}]").errors
            if len(errors) > FIELD_PROBLEMS_MAX:
                break
    if errors:
        raise InvalidManifest(errors)
    return parsed


def items_in(member: Member, field: str, items_max: int) -> list[bytes]:
    """The items of a JSON list, each still as JSON.

    Raises:
        InvalidManifest: the member is no list, or has too many items.
    """
    try:
        return member if isinstance(member, list) else decode_items(member, items_max)
    except InvalidManifest as error:
        raise error.under(field) from None


def unknown_fields(names: Iterable[str], known: Collection[str]) -> list[FieldError]:
    """The errors for unknown fields; those that an answer names suggest a known field that is spelt alike."""
    unknown = [name[:NAME_SHOWN_MAX] for name in names if name not in known]
    named, others = unknown[:FIELD_PROBLEMS_MAX], unknown[FIELD_PROBLEMS_MAX:]
    return [
        *(_unknown_field(name, known) for name in named),
        *(FieldError(name, "is unknown") for name in others),
    ]


def _unknown_field(name: str, known: Collection[str]) -> FieldError:
    near = get_close_matches(name, known, n=1)
    return FieldError(name, f"is unknown; did you mean {near[0]}?" if near else "is unknown")
