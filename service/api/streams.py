"""Answers that are sent piece by piece."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from litestar import Litestar, Request, Response
from litestar.response.base import ASGIResponse
from litestar.types import Receive, Scope, Send
from typing_extensions import override

HEAD_ONLY = "moorage_head_only"
"""Set in the scope's state by the edge, which turns HEAD into GET."""
PIECE_BYTES = 64 * 1024
"""What is sent at once, about; a slow reader is judged piece by piece."""
READER_SECONDS_MAX = 10.0
"""How long a client may leave a piece unread before it is dropped."""

_log = logging.getLogger(__name__)

Pieces = AsyncGenerator[bytes, None]


def is_head(scope: Scope) -> bool:
    """Whether the client asked with HEAD, so that a body would be made for nothing."""
    return bool(scope.get("state", {}).get(HEAD_ONLY))


class Streamed(Response[None]):
    """A body of unknown length.

    Litestar's own `Stream` waits for the client to leave by reading on, and so would swallow the
    request's body where that is still being read. With `ends_with_client` this one does the same:
    for requests without a body, and for pieces that may be long in coming.
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
        """Send the pieces as they come; a reader that is too slow finds the answer cut off."""
        if not self._ends_with_client:
            await self._send_pieces(send)
            return
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(self._send_pieces(send))
            leaving = group.create_task(_left(receive))
            sending.add_done_callback(lambda _: leaving.cancel())
            leaving.add_done_callback(lambda _: sending.cancel())

    async def _send_pieces(self, send: Send) -> None:
        try:
            async with aclosing(self._pieces) as pieces:
                async for piece in pieces:
                    await send_piece(send, piece, more=True)
            await send_piece(send, b"", more=False)
        except TooSlow:
            _log.info("A client that did not read its answer was dropped.")


class TooSlow(Exception):  # noqa: N818 - a fact, not a failure
    """A client has left a piece unread for too long."""


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
