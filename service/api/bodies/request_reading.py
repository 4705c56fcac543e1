"""Reads requests strictly: media types, queries, preconditions, and bodies within their limits.

The members and items of a large body are read in small steps, so that other requests are answered
in between.
"""

import re
import sys
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from litestar import Request

from service.api.bodies.byte_budget import ArrivingBody, Pace
from service.api.bodies.compression import Unpacker, unpacker_of
from service.api.cooperative_pauses import Pause
from service.api.openapi.operation_declaration import JSON, Operation
from service.api.problems import (
    FIELD_PROBLEMS_MAX,
    BodyTooLarge,
    MalformedRequest,
    UnsupportedMediaType,
)
from service.model.core.errors import FieldError, InvalidManifest
from service.model.core.messages import reword
from service.model.core.strict_json import decode_items, decode_members
from service.model.json.streaming import LargeObject, Member
from service.settings import Settings

T = TypeVar("T")
Item = TypeVar("Item")

LARGE_BYTES = 1024 * 1024
"""Longer bodies are read in small steps. No single item may be longer, since it is read in one step."""

NAME_SHOWN_MAX = 200
"""How many characters of an unknown field's name an answer shows; the name may be very long."""

_ENTITY_TAG = re.compile(r'(W/)?"([!#-~]*)"')

AnyRequest = Request[Any, Any, Any]


def operation_of(request: AnyRequest) -> Operation:
    """The operation that a request was routed to."""
    operation = request.route_handler.opt["operation"]
    assert isinstance(operation, Operation)
    return operation


def header(request: AnyRequest, name: str) -> str | None:
    """The first header of this name, which is in lower case; None if there is none.

    Litestar's own view of the headers decodes and indexes all of them, for two or three that are
    looked up.
    """
    wanted = name.encode()
    for given, value in request.scope["headers"]:
        if given == wanted:
            return value.decode("latin-1")
    return None


def media_type(request: AnyRequest) -> str:
    """The body's media type, one that the operation takes; JSON if a body that is optional has none.

    A Content-Type is demanded, since a web page can have a browser send a body without one to any
    server, but no body that is declared as JSON unless the server agrees.

    Raises:
        UnsupportedMediaType: the operation does not take this Content-Type, charset or
            Content-Encoding, or it needs a body and there is no Content-Type.
    """
    if (coding := header(request, "content-encoding")) is not None:
        unpacker_of(coding)
    body = operation_of(request).request
    assert body is not None
    announced, _, parameters = (header(request, "content-type") or "").partition(";")
    kind = announced.strip().lower()
    if not kind and body.required:
        raise _untyped(request)
    if kind and kind not in body.types:
        raise UnsupportedMediaType(f"Send one of {_taken(request)}, not {kind[:100]}.")
    if parameters:
        _refuse_charsets(parameters)
    return kind or JSON


def _untyped(request: AnyRequest) -> UnsupportedMediaType:
    return UnsupportedMediaType(f"Say in Content-Type which the body is of {_taken(request)}.")


def _taken(request: AnyRequest) -> str:
    body = operation_of(request).request
    assert body is not None
    return ", ".join(body.types)


def query(request: AnyRequest) -> Mapping[str, str]:
    """The query parameters; each is one of the operation's, and is there at most once.

    A misspelt parameter is refused, not ignored: `?dryrun=true` must not write.

    Raises:
        MalformedRequest: a parameter is unknown, repeated or not UTF-8.
    """
    if not (raw := request.scope["query_string"]):
        return {}
    known = operation_of(request).names("query")
    given = _pairs(raw)
    names = [name for name, _ in given]
    errors = [
        FieldError(name, _unknown(known) if name not in known else "is given more than once")
        for name in dict.fromkeys(names)
        if name not in known or names.count(name) > 1
    ]
    if errors:
        raise MalformedRequest(f"Query parameter {errors[0].field}: {errors[0].message}.", errors)
    return dict(given)


def number(parameters: Mapping[str, str], name: str, *, least: int = 0) -> int | None:
    """A query parameter as an integer between `least` and 2**63 - 1; None if it is absent."""
    text = parameters.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) >= least):  # noqa: PLR2004
        raise wrong_parameter(name, f"has to be an integer of at least {least}", text)
    return int(text)


def flag(parameters: Mapping[str, str], name: str) -> bool:
    """A query parameter that is true or false; false if it is absent."""
    text = parameters.get(name, "false")
    if text not in ("true", "false"):
        raise wrong_parameter(name, "has to be true or false", text)
    return text == "true"


def integer_header(request: AnyRequest, name: str, *, default: int | None) -> int | None:
    """A header as an integer between 0 and 2**63 - 1; `default` if it is absent or empty."""
    text = (header(request, name) or "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19):  # noqa: PLR2004
        raise MalformedRequest(f"The header {name.title()} has to be an integer.")
    return int(text)


def wrong_parameter(name: str, message: str, value: str) -> MalformedRequest:
    """The error for one query parameter whose value cannot be read."""
    errors = [FieldError(name, message, value[:200])]
    return MalformedRequest(f"Query parameter {name}: {message}.", errors)


def entity_tags(header: str, value: str, *, weak: bool = False) -> tuple[str, ...]:
    """The tags of an If-Match or If-None-Match, without their quotes; `("*",)` matches any tag.

    If-Match compares strongly (RFC 9110): a weak tag in it matches nothing, so it is left out. The
    quoted `"*"` is left out, too: it is a tag like any other, and none that the server gives.

    Raises:
        MalformedRequest: the header is not a list of entity tags.
    """
    if value.strip() == "*":
        return ("*",)
    found = [_ENTITY_TAG.fullmatch(part.strip()) for part in value.split(",")]
    if not all(found):
        raise MalformedRequest(f"{header} has to be `*` or a list of quoted entity tags.")
    strong = (match for match in found if match and (weak or not match[1]))
    return tuple(match[2] for match in strong if match[2] != "*")


def if_match(request: AnyRequest) -> tuple[str, ...] | None:
    """The entity tags of the request's If-Match; None if it has no such header."""
    value = _lines(request, b"if-match")
    return None if value is None else entity_tags("If-Match", value)


def if_none_match(request: AnyRequest) -> tuple[str, ...] | None:
    """The entity tags of the If-None-Match of a write; None if it has no such header."""
    value = _lines(request, b"if-none-match")
    return None if value is None else entity_tags("If-None-Match", value, weak=True)


def _lines(request: AnyRequest, name: bytes) -> str | None:
    """A header that is a list, whose lines are parts of it; None if it is absent."""
    lines = [value.decode("latin-1") for given, value in request.scope["headers"] if given == name]
    return ", ".join(lines) if lines else None


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


def converted(value: object, type_: type[T], prefix: str = "") -> T:
    """Convert a decoded value to a type.

    Raises:
        InvalidManifest: the value is not of that type; the error's path begins with `prefix`.
    """
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        raise InvalidManifest([reword(str(error))]).under(prefix) from None


class BodyReader:
    """Reads bodies within their limits in bytes and time."""

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

    async def read(self, request: AnyRequest) -> bytes:
        """Read the whole body, whose bytes are held until the request's end.

        Raises:
            BodyTooLarge: the announced or the received length is over the limit.
            TooManyBytes: the process holds too many bytes already.
            BodyTimeout: the client is too slow.
            MalformedRequest: the client left in the middle.
            UnsupportedMediaType: there is a body, and no Content-Type.
        """
        limit = self._limits[operation_of(request).limit]
        _refuse_announced(header(request, "content-length") or "0", limit)
        is_typed = bool((header(request, "content-type") or "").strip())
        unpacker = _unpacker_for(request)
        body = await ArrivingBody(request, limit, self._pace, unpacker).whole()
        if body and not is_typed:
            raise _untyped(request)
        return body

    def stream(
        self, request: AnyRequest, waits: Callable[[], bool] | None = None
    ) -> AsyncIterator[bytes]:
        """Yield the body piece by piece, however long it is; it raises what `read` raises.

        The caller gives the bytes of the pieces back to the budget. `waits` tells whether the
        client may be waiting for an answer to what it has sent so far: then its time begins anew.
        """
        _refuse_announced(header(request, "content-length") or "0", sys.maxsize)
        unpacker = _unpacker_for(request)
        return ArrivingBody(request, sys.maxsize, self._pace, unpacker).pieces(waits)


def _unpacker_for(request: AnyRequest) -> Unpacker | None:
    coding = header(request, "content-encoding")
    return None if coding is None else unpacker_of(coding)


def _refuse_announced(content_length: str, limit: int) -> None:
    if not (content_length.isascii() and content_length.isdigit()):
        raise MalformedRequest("Content-Length has to be a number.")
    if len(content_length) > 18 or int(content_length) > limit:  # noqa: PLR2004
        raise BodyTooLarge(f"The body is longer than {limit} bytes.")


def _refuse_charsets(parameters: str) -> None:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        charset = value.strip().strip('"').lower()
        if name.strip().lower() == "charset" and charset not in {"utf-8", "utf8", "us-ascii"}:
            raise UnsupportedMediaType("Send the body in UTF-8.")


def _pairs(raw: bytes) -> list[tuple[str, str]]:
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError:
        raise MalformedRequest("The query has to be percent-encoded UTF-8.") from None
    for name, value in pairs:
        if "\0" in name or "\0" in value:
            raise MalformedRequest("The query contains a NUL character.")
    return pairs


def _unknown(known: frozenset[str]) -> str:
    if not known:
        return "is unknown; the operation has no query parameters"
    return f"is unknown; the operation knows {', '.join(sorted(known))}"
