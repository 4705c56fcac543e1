"""Answers that are sent piece by piece.

`service.api.bodies.byte_budget` sees that there is room for each piece, and that its reader takes it.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any

from litestar import Litestar, Request, Response
from litestar.response.base import ASGIResponse
from litestar.types import Receive, Scope, Send
from typing_extensions import override

from service.api.problems import TooManyBytes

HEAD_ONLY = "moorage_head_only"
"""The edge sets this in the scope's state when it turns HEAD into GET."""
UNBUFFERED = b"x-accel-buffering"
"""The header of endless streams, by which neither proxies nor compression hold back what is sent."""
PIECE_BYTES = 64 * 1024
"""About how many bytes are sent at once; each piece has its own time to be read."""
READER_SECONDS_MAX = 10.0
"""How long a client may leave a piece unread before its connection is dropped."""
PAGE_BYTES_PER_SECOND_MIN = 64 * 1024
"""The least average rate at which a client reads a page of a watch after READER_SECONDS_MAX.

A page is held as a whole until its last piece is read, so its reader may not take
READER_SECONDS_MAX for each piece.
"""

_log = logging.getLogger(__name__)

Pieces = AsyncGenerator[bytes, None]


def is_head(scope: Scope) -> bool:
    """Whether the client asked with HEAD, so that a body would be made for nothing."""
    return bool(scope.get("state", {}).get(HEAD_ONLY))


class Streamed(Response[None]):
    """An answer whose body is sent in pieces, as its length is not known.

    Litestar's own `Stream` notices that a client leaves by reading from it, and so would swallow
    the request's body if that is still being read. This class reads only with `ends_with_client`:
    for requests without a body, whose pieces may be long in coming.
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
        """The response as Litestar sends it."""
        return _StreamedResponse(
            no_pieces() if is_head(request.scope) else self._pieces,
            ends_with_client=self._ends_with_client,
            headers=self.headers,
            media_type=self.media_type,
        )


async def no_pieces() -> Pieces:
    """An empty body."""
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
        """Send the pieces as they come.

        The answer is cut off if its reader is too slow, or a piece finds no room.
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


class TooSlow(Exception):  # noqa: N818 - a fact, not a failure
    """A client has left a piece unread for too long."""


class PageReader:
    """The client that reads one page of a watch, and the time that it takes to do so."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._seconds = 0.0
        self._count = 0

    @contextmanager
    def reading(self, count: int) -> Iterator[None]:
        """Measure how long the client takes for `count` bytes.

        Raises:
            TooSlow: it has taken too long for what it has read of the page.
        """
        began = self._monotonic()
        yield
        self._seconds += self._monotonic() - began
        self._count += count
        if self._seconds > READER_SECONDS_MAX + self._count / PAGE_BYTES_PER_SECOND_MIN:
            _log.info("A client that read its watch too slowly was dropped.")
            raise TooSlow


async def _left(receive: Receive) -> None:
    """Return once the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def send_piece(send: Send, piece: bytes, *, more: bool) -> None:
    """Send a part of a body; raises TooSlow if its reader does not take it."""
    try:
        async with asyncio.timeout(READER_SECONDS_MAX):
            await send({"type": "http.response.body", "body": piece, "more_body": more})
    except TimeoutError:
        raise TooSlow from None
