"""Read requests strictly: media types, headers, queries, and preconditions."""

import re
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl

from litestar.types import HTTPScope

from service.api.http.compression import unpacker_of
from service.api.http.context import ApiRequest
from service.api.http.operation import JSON, UNHONORED, Operation
from service.api.http.problems import MalformedRequest, UnsupportedMediaType
from service.model.core.errors import FieldError, PreconditionFailed

WRITES = frozenset({"DELETE", "PATCH", "POST", "PUT"})
"""Methods that may change something; preconditions of other methods can safely be ignored."""

_ENTITY_TAG = re.compile(r'(W/)?"([!#-~]*)"')


def operation_of(request: ApiRequest) -> Operation:
    """Return the operation that a request was routed to."""
    operation = request.context.operation
    assert operation is not None
    return operation


def header(request: ApiRequest, name: str) -> str | None:
    """Return the value of the first header with this lower-case name, or None.

    Litestar's header mapping decodes and indexes all headers, although only two or three are
    needed.
    """
    wanted = name.encode()
    for given, value in request.scope["headers"]:
        if given == wanted:
            return value.decode("latin-1")
    return None


def media_type(request: ApiRequest) -> str:
    """Return the media type of the body, or JSON if an optional body has no Content-Type.

    A Content-Type is required because a web page can make a browser send a body without one to any
    server, but a body declared as JSON only to a server that allows it.

    Raises:
        UnsupportedMediaType: the operation does not accept this Content-Type, charset, or
            Content-Encoding, or it needs a body and there is no Content-Type.
    """
    if (coding := header(request, "content-encoding")) is not None:
        unpacker_of(coding)
    operation = operation_of(request)
    body = operation.request
    assert body is not None
    announced, _, parameters = (header(request, "content-type") or "").partition(";")
    kind = announced.strip().lower()
    if not kind and body.required:
        raise untyped(operation)
    if kind and kind not in body.types:
        raise UnsupportedMediaType(f"Send one of {_taken(operation)}, not {kind[:100]}.")
    if parameters:
        _refuse_charsets(parameters)
    return kind or JSON


def untyped(operation: Operation) -> UnsupportedMediaType:
    """Return the error for a body without a Content-Type."""
    return UnsupportedMediaType(f"Say in Content-Type which the body is of {_taken(operation)}.")


def _taken(operation: Operation) -> str:
    assert operation.request is not None
    return ", ".join(operation.request.types)


def query(request: ApiRequest) -> Mapping[str, str]:
    """Return the query parameters; each must be declared by the operation and occur at most once.

    A misspelled parameter is refused instead of ignored: `?dryrun=true` must not write.

    Raises:
        MalformedRequest: a parameter is unknown or repeated, or the query is not valid UTF-8.
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
    """Return a query parameter as an integer from `least` to 10**18 - 1, or None if absent."""
    text = parameters.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) >= least):  # noqa: PLR2004
        raise wrong_parameter(name, f"has to be an integer of at least {least}", text)
    return int(text)


def flag(parameters: Mapping[str, str], name: str) -> bool:
    """Return a query parameter as a boolean, or False if absent."""
    text = parameters.get(name, "false")
    if text not in ("true", "false"):
        raise wrong_parameter(name, "has to be true or false", text)
    return text == "true"


def integer_header(request: ApiRequest, name: str, *, default: int | None) -> int | None:
    """Return a header as an integer from 0 to 10**18 - 1, or `default` if it is absent or empty."""
    text = (header(request, name) or "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19):  # noqa: PLR2004
        raise MalformedRequest(f"The header {name.title()} has to be an integer.")
    return int(text)


def wrong_parameter(name: str, message: str, value: str) -> MalformedRequest:
    """Return the error for an invalid query parameter."""
    errors = [FieldError(name, message, value[:200])]
    return MalformedRequest(f"Query parameter {name}: {message}.", errors)


def entity_tags(header: str, value: str, *, weak: bool = False) -> tuple[str, ...]:
    """Return the tags of an If-Match or If-None-Match without quotes; `("*",)` matches any tag.

    Unless `weak` is set, weak tags are dropped, because If-Match compares strongly (RFC 9110) and a
    weak tag never matches. The quoted `"*"` is also dropped: it is an ordinary tag that the server
    never assigns.

    Raises:
        MalformedRequest: the header is not a list of entity tags.
    """
    if value.strip() == "*":
        return ("*",)
    matches = [_ENTITY_TAG.fullmatch(part.strip()) for part in value.split(",")]
    if not all(matches):
        raise MalformedRequest(f"{header} has to be `*` or a list of quoted entity tags.")
    strong = (match for match in matches if match and (weak or not match[1]))
    return tuple(match[2] for match in strong if match[2] != "*")


def if_match(request: ApiRequest) -> tuple[str, ...] | None:
    """Return the entity tags of the request's If-Match, or None if it has none."""
    value = _lines(request, b"if-match")
    return None if value is None else entity_tags("If-Match", value)


def if_none_match(request: ApiRequest) -> tuple[str, ...] | None:
    """Return the entity tags of the request's If-None-Match, or None if it has none."""
    value = _lines(request, b"if-none-match")
    return None if value is None else entity_tags("If-None-Match", value, weak=True)


def precondition_of(request: ApiRequest) -> Callable[[str | None], None]:
    """Return a check of the request's If-Match and If-None-Match against a stored entity tag.

    It takes None if nothing is stored, and raises PreconditionFailed.
    """
    wanted, unwanted = if_match(request), if_none_match(request)

    def check(tag: str | None) -> None:
        tags = set[str]() if tag is None else {"*", tag}
        if wanted is not None and not tags.intersection(wanted):
            raise PreconditionFailed("The entity tag is another one, or there is none.")
        if unwanted is not None and tags.intersection(unwanted):
            raise PreconditionFailed("There is one, with this entity tag.")

    return check


def _lines(request: ApiRequest, name: bytes) -> str | None:
    """Return a list header with all its lines joined, or None if absent."""
    lines = [value.decode("latin-1") for given, value in request.scope["headers"] if given == name]
    return ", ".join(lines) if lines else None


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


def refuse_unhonored(scope: HTTPScope) -> None:
    """Refuse a write with a precondition that its operation would ignore.

    The client relies on nothing being changed if the precondition does not hold.

    Raises:
        MalformedRequest: the request has a precondition that its operation does not declare.
    """
    unhonored = scope["route_handler"].opt.get(UNHONORED)
    if unhonored is None or scope["method"] not in WRITES:
        return
    for name, value in scope["headers"]:
        if name in unhonored:
            raise _unhonored(name.decode("latin-1"), value.decode("latin-1"))


def _unhonored(name: str, value: str) -> MalformedRequest:
    header = name.title()
    message = "is not honored by this operation; send the request without it"
    return MalformedRequest(
        f"The header {header} {message}.", [FieldError(header, message, value[:200])]
    )
