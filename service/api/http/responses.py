"""Build answers: headers, entity tags, manifests, and lists, assembled from bytes."""

import asyncio
import logging
import re
from collections.abc import Iterable, Sequence
from contextlib import aclosing, suppress
from typing import Any

import msgspec
from litestar import Litestar, Request, Response
from litestar.response.base import ASGIResponse
from litestar.types import Receive, Send
from typing_extensions import override

from service.api.http.context import ApiRequest, context_of
from service.api.http.operation import JSON
from service.api.http.problems import TooManyBytes
from service.api.http.request import if_none_match
from service.api.http.sparse_fields import ChosenFields
from service.api.http.streaming import Pieces, TooSlow
from service.model.core.field_warnings import FieldWarning
from service.model.core.manifest import WARNINGS
from service.model.log.commit import ObjectRow
from service.model.registry.manifests import with_resource_version

WARNING_LENGTH_MAX = 256
"""The maximum length in characters of one warning in the header; the body has the full text."""
WARNINGS_LENGTH_MAX = 4 * 1024
"""The maximum length in characters of the warning header; further warnings are only in the body."""

_log = logging.getLogger(__name__)

_UNQUOTABLE = re.compile(r"[^ !#-\[\]-~]")

Warnings = Sequence[FieldWarning] | msgspec.UnsetType
"""The warnings of an answer, or `UNSET`."""


def revision_headers(revision: int, etag: str | None = None) -> dict[str, str]:
    """Return the headers of an answer about a cluster: its revision and optional entity tag."""
    headers = {"moorage-revision": str(revision)}
    return headers if etag is None else {**headers, "etag": etag}


def warning_header(warnings: Warnings) -> str | None:
    """Return the `Warning` header in Kubernetes' format, or None without warnings."""
    values, length = list[str](), 0
    for warning in warnings or ():
        message = f"{warning.field} {warning.message}".strip()
        text = _UNQUOTABLE.sub("?", message)[:WARNING_LENGTH_MAX]
        written = f'299 - "{text}"'
        length += len(written) + 2
        if length > WARNINGS_LENGTH_MAX:
            break
        values.append(written)
    return ", ".join(values) or None


def with_warnings(body: bytes, warnings: Warnings) -> bytes:
    """Add the field `warnings` to an encoded object if there are any."""
    if not warnings:
        return body
    return b'%b,"%b":%b}' % (body[:-1], WARNINGS.encode(), msgspec.json.encode(warnings))


def json_response(
    body: bytes,
    revision: int,
    *,
    status: int = 200,
    etag: str | None = None,
    warning: str | None = None,
) -> Response[bytes]:
    """Return an answer about a cluster with a body that is already encoded."""
    headers = revision_headers(revision, etag)
    if warning is not None:
        headers["warning"] = warning
    return Response(body, status_code=status, headers=headers, media_type=JSON)


def encoded_response(value: object, revision: int, *, status: int = 200) -> Response[bytes]:
    """Encode a value as an answer about a cluster."""
    return json_response(msgspec.json.encode(value), revision, status=status)


def object_response(
    body: bytes,
    resource_version: int,
    revision: int,
    *,
    status: int = 200,
    warnings: Warnings = msgspec.UNSET,
) -> Response[bytes]:
    """Return an answer with a stored object; `body` is its manifest without the resourceVersion."""
    return json_response(
        with_warnings(with_resource_version(body, resource_version), warnings),
        revision,
        status=status,
        etag=tag_of(resource_version),
        warning=warning_header(warnings),
    )


def dry_response(
    body: bytes, revision: int, *, status: int, warnings: Warnings = msgspec.UNSET
) -> Response[bytes]:
    """Return a dry run's answer: the object as it would be stored, without a resourceVersion."""
    warning = warning_header(warnings)
    return json_response(with_warnings(body, warnings), revision, status=status, warning=warning)


def tag_of(resource_version: int) -> str:
    """Return an object's entity tag: the revision that last changed it."""
    return f'"{resource_version}"'


def not_modified(request: ApiRequest, etag: str, revision: int) -> Response[bytes] | None:
    """Return a 304 if the client's If-None-Match matches this tag, or None."""
    known = if_none_match(request)
    if known is None:
        return None
    if known != ("*",) and etag.removeprefix("W/").strip('"') not in known:
        return None
    return Response(b"", status_code=304, headers=revision_headers(revision, etag))


def items(rows: Iterable[ObjectRow], chosen: ChosenFields | None = None) -> bytes:
    """Encode objects as the comma-separated items of a JSON array, reduced to the chosen fields."""
    whole = (with_resource_version(row.body, row.revision) for row in rows)
    return b",".join(whole if chosen is None else map(chosen.of, whole))


def list_end(unreadable: Sequence[ObjectRow]) -> bytes:
    """Return the end of an encoded list, which names objects that were omitted as unreadable."""
    if not unreadable:
        return b"]}"
    names = [f"{row.namespace}/{row.name}" if row.namespace else row.name for row in unreadable]
    return b'],"unreadable":%b}' % msgspec.json.encode(names)


def list_head(kind: str, revision: int, continue_: str | None) -> bytes:
    """Return the beginning of a Kubernetes list, up to its first item."""
    more = b"" if continue_ is None else b',"continue":"%s"' % continue_.encode()
    return b'{"apiVersion":"v1","kind":"%s","metadata":{"resourceVersion":"%d"%s},"items":[' % (
        kind.encode(),
        revision,
        more,
    )


class Streamed(Response[None]):
    """An answer of unknown length that is sent in pieces.

    Litestar's own `Stream` reads from the client to detect a disconnect, and would thereby swallow
    a request body that is still arriving. This class only reads if `ends_with_client` is set, which
    is meant for requests without a body and with long pauses between pieces.
    """

    def __init__(
        self,
        pieces: Pieces,
        *,
        headers: dict[str, str],
        media_type: str,
        ends_with_client: bool = False,
    ) -> None:
        super().__init__(None, headers=headers, media_type=media_type)
        self._pieces = pieces
        self._ends_with_client = ends_with_client

    @override
    def to_asgi_response(
        self, app: Litestar | None, request: Request[Any, Any, Any], **_: Any
    ) -> ASGIResponse:
        return _StreamedResponse(
            no_pieces() if context_of(request.scope).is_head else self._pieces,
            ends_with_client=self._ends_with_client,
            headers=self.headers,
            media_type=self.media_type,
        )


async def no_pieces() -> Pieces:
    """Yield nothing."""
    for piece in list[bytes]():
        yield piece


class _StreamedResponse(ASGIResponse):
    _should_set_content_length = False

    def __init__(self, pieces: Pieces, *, ends_with_client: bool, **options: Any) -> None:
        super().__init__(**options)
        self._pieces = pieces
        self._ends_with_client = ends_with_client

    @override
    async def send_body(self, send: Send, receive: Receive) -> None:
        """Send the pieces as they are produced.

        The answer is cut off if its reader is too slow or a piece does not fit the byte budget.
        """
        if not self._ends_with_client:
            await self._send_pieces(send)
            return
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(self._send_pieces(send))
            leaving = group.create_task(_left(receive))
            sending.add_done_callback(lambda _: leaving.cancel())
            leaving.add_done_callback(lambda _: sending.cancel())

    async def _send_pieces(self, send: Send) -> None:
        with suppress(TooSlow):
            await self._send_all(send)

    async def _send_all(self, send: Send) -> None:
        async with aclosing(self._pieces) as pieces:
            try:
                async for piece in pieces:
                    await _send(send, piece, more=True)
                await _send(send, b"", more=False)
            except TooManyBytes:
                _log.info("An answer was cut off: there was no room for its next piece.")


async def _send(send: Send, piece: bytes, *, more: bool) -> None:
    await send({"type": "http.response.body", "body": piece, "more_body": more})


async def _left(receive: Receive) -> None:
    """Wait until the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
