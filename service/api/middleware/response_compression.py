"""ASGI middleware, inside the edge, that compresses answers if the client accepts it.

Long pieces are compressed in a thread. Endless streams are not compressed: their events are small,
and each of thousands of streams would hold the memory of a compressor.
"""

import asyncio
from collections.abc import Awaitable, Iterable

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPResponseStartEvent, Message, Receive, Scope, Send

from service.api.http.compression import PACKERS, Packer, wanted_coding
from service.api.http.context import context_of
from service.api.http.streaming import UNBUFFERED

AT_ONCE_BYTES_MAX = 8 * 1024
"""The size above which pieces are compressed in a thread; this much takes tens of microseconds."""

_VARY = (b"vary", b"accept-encoding")
_TEXTS = (b"application/json", b"application/problem+json", b"application/x-ndjson", b"text/")
_TEXTS_NAMED = (b"application/openmetrics-text", b"image/svg+xml")

_BODILESS = frozenset({204, 304})

_Header = tuple[bytes, bytes]


class ResponseCompression:
    """ASGI middleware that compresses answers of at least `bytes_min` bytes."""

    def __init__(self, app: ASGIApp, bytes_min: int) -> None:
        self._app = app
        self._bytes_min = bytes_min

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Pass the request on, and compress its answer if the client accepts a supported coding."""
        coding = None
        if scope["type"] == ScopeType.HTTP:
            for name, value in scope["headers"]:
                if name == b"accept-encoding":
                    coding = None if context_of(scope).is_head else wanted_coding(value)
                    break
        if coding is not None:
            send = _Packed(send, coding, self._bytes_min)
        return self._app(scope, receive, send)


class _Packed:
    """Wraps `send` to compress an answer, whose start is held back until its first bytes."""

    def __init__(self, send: Send, coding: str, bytes_min: int) -> None:
        self._send = send
        self._coding = coding
        self._bytes_min = bytes_min
        self._start: HTTPResponseStartEvent | None = None
        self._packer: Packer | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and self._is_packed(message):
            self._start = message
        elif message["type"] == "http.response.body" and (self._start or self._packer):
            await self._send_packed(message["body"], more=message.get("more_body", False))
        else:
            await self._send(message)

    def _is_packed(self, start: HTTPResponseStartEvent) -> bool:
        given = {name.lower(): value for name, value in start["headers"]}
        length = given.get(b"content-length")
        return (
            start["status"] not in _BODILESS
            and (length is None or int(length) >= self._bytes_min)
            and b"content-encoding" not in given
            and UNBUFFERED not in given
            # A strong tag identifies these exact bytes; clients send it back to change the object.
            and given.get(b"etag", b"W/").startswith(b"W/")
            and _is_text(given.get(b"content-type", b""))
        )

    async def _send_packed(self, body: bytes, *, more: bool) -> None:
        if self._packer is None:
            self._packer = PACKERS[self._coding]()
        packed = await _pack(self._packer, body, last=not more) if body or not more else b""
        if self._start is not None:
            length = None if more else len(packed)
            headers = _coded(self._start["headers"], self._coding, length)
            start: HTTPResponseStartEvent = {
                "type": "http.response.start",
                "status": self._start["status"],
                "headers": headers,
            }
            self._start = None
            await self._send(start)
        await self._send({"type": "http.response.body", "body": packed, "more_body": more})


async def _pack(packer: Packer, body: bytes, *, last: bool) -> bytes:
    if len(body) <= AT_ONCE_BYTES_MAX:
        return packer.pack(body, last=last)
    return await asyncio.to_thread(packer.pack, body, last=last)


def _is_text(content_type: bytes) -> bool:
    return content_type.startswith((*_TEXTS, *_TEXTS_NAMED))


def _coded(headers: Iterable[_Header], coding: str, length: int | None) -> list[_Header]:
    kept = [(name, value) for name, value in headers if name.lower() != b"content-length"]
    own = [(b"content-encoding", coding.encode()), _VARY]
    if length is not None:
        own.append((b"content-length", b"%d" % length))
    return [*kept, *own]
