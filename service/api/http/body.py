"""Read request bodies within size and time limits, and parse large JSON bodies in small steps.

Other requests are served between the steps.
"""

import sys
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TypeVar

import msgspec

from service.api.http.byte_budget import ArrivingBody, Pace
from service.api.http.compression import Unpacker, unpacker_of
from service.api.http.context import ApiRequest
from service.api.http.pause import Pause
from service.api.http.problems import (
    FIELD_PROBLEMS_MAX,
    BodyTooLarge,
    MalformedRequest,
)
from service.api.http.request import untyped
from service.model.core.errors import FieldError, InvalidManifest
from service.model.core.messages import reword
from service.model.core.strict_json import decode_items, decode_members
from service.model.json.streaming import LargeObject, Member
from service.settings import Settings

T = TypeVar("T")
Item = TypeVar("Item")

_ANNOUNCING = frozenset({b"content-length", b"content-type", b"content-encoding"})

LARGE_BYTES = 1024 * 1024
"""The size above which a body is parsed in small steps; also the limit for a single item in it."""
NAME_SHOWN_MAX = 200
"""The number of characters shown of an unknown field's name."""


class BodyReader:
    """Reads request bodies within the limits of the settings."""

    def __init__(self, settings: Settings, monotonic: Callable[[], float]) -> None:
        self._limits = {
            "body": settings.body_bytes_max,
            "placements": settings.placements_bytes_max,
            "simulations": settings.simulations_bytes_max,
            "apply": settings.apply_bytes_max,
        }
        self._pace = Pace(
            settings.body_timeout_seconds, settings.body_bytes_per_second_min, monotonic
        )

    async def read(self, request: ApiRequest) -> bytes:
        """Return the whole body, which counts against the byte budget until the request ends.

        Raises:
            BodyTooLarge: the announced or received length exceeds the limit.
            TooManyBytes: the process already holds too many bytes.
            BodyTimeout: the body arrived too slowly.
            MalformedRequest: the client disconnected, or the body cannot be decompressed.
            UnsupportedMediaType: a nonempty body has no Content-Type, or its coding is unknown.
        """
        operation = request.context.operation
        assert operation is not None
        limit, announced = self._limits[operation.limit], _announced(request)
        _refuse_announced(announced.get(b"content-length") or "0", limit)
        unpacker = _unpacker_for(announced)
        body = await ArrivingBody(
            request.receive, request.context.reservation, limit, self._pace, unpacker
        ).whole()
        if body and not announced.get(b"content-type", "").strip():
            raise untyped(operation)
        return body

    def stream(
        self, request: ApiRequest, waits: Callable[[], bool] | None = None
    ) -> AsyncIterator[bytes]:
        """Yield the body piece by piece, without a limit on its length.

        The caller releases the bytes of each piece to the budget. While `waits` returns True, the
        client may be waiting for an answer to what it has sent, and its timeout restarts.

        Raises:
            MalformedRequest, TooManyBytes, BodyTimeout, UnsupportedMediaType: as in `read`.
        """
        announced = _announced(request)
        _refuse_announced(announced.get(b"content-length") or "0", sys.maxsize)
        unpacker = _unpacker_for(announced)
        return ArrivingBody(
            request.receive, request.context.reservation, sys.maxsize, self._pace, unpacker
        ).pieces(waits)


def _announced(request: ApiRequest) -> dict[bytes, str]:
    """Return the headers that describe the body, using the first occurrence of each."""
    announced: dict[bytes, str] = {}
    for name, value in request.scope["headers"]:
        if name in _ANNOUNCING:
            announced.setdefault(name, value.decode("latin-1"))
    return announced


def _unpacker_for(announced: Mapping[bytes, str]) -> Unpacker | None:
    coding = announced.get(b"content-encoding")
    return None if coding is None else unpacker_of(coding)


def _refuse_announced(content_length: str, limit: int) -> None:
    if not (content_length.isascii() and content_length.isdigit()):
        raise MalformedRequest("Content-Length has to be a number.")
    if len(content_length) > 18 or int(content_length) > limit:  # noqa: PLR2004
        raise BodyTooLarge(f"The body is longer than {limit} bytes.")


async def read_members(
    raw: bytes, *, read: Collection[str], lists: Collection[str], items_max: int
) -> dict[str, Member]:
    """Return the members of a JSON object; large bodies also have their `lists` split into items.

    Raises:
        MalformedJSON, InvalidManifest: as for `decode_members` and `LargeObject`.
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
    """Parse each item of a list.

    Raises:
        InvalidManifest: some items are invalid; error paths begin with `<field>[3]`. Parsing stops
            once there are more errors than an answer lists.
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
    """Return the items of a JSON list as encoded JSON.

    Raises:
        InvalidManifest: the member is not a list, or has too many items.
    """
    try:
        return member if isinstance(member, list) else decode_items(member, items_max)
    except InvalidManifest as error:
        raise error.under(field) from None


def unknown_fields(names: Iterable[str], known: Collection[str]) -> list[FieldError]:
    """Return an error for each unknown field, with a suggestion if a known one is similar."""
    unknown = [name[:NAME_SHOWN_MAX] for name in names if name not in known]
    named, others = unknown[:FIELD_PROBLEMS_MAX], unknown[FIELD_PROBLEMS_MAX:]
    return [
        *(_unknown_field(name, known) for name in named),
        *(FieldError(name, "is unknown") for name in others),
    ]


def _unknown_field(name: str, known: Collection[str]) -> FieldError:
    near = get_close_matches(name, known, n=1)
    return FieldError(name, f"is unknown; did you mean {near[0]}?" if near else "is unknown")


def converted(value: object, type_: type[T], prefix: str = "") -> T:
    """Convert a decoded value to a type.

    Raises:
        InvalidManifest: the value is not of that type; the error's path begins with `prefix`.
    """
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        raise InvalidManifest([reword(str(error))]).under(prefix) from None
