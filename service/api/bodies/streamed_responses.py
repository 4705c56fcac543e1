"""Sends answers piece by piece, within the time that their reader has for each piece."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager

from litestar.types import Send

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


async def send_piece(send: Send, piece: bytes, *, more: bool) -> None:
    """Send a part of a body; raises TooSlow if its reader does not take it."""
    try:
        async with asyncio.timeout(READER_SECONDS_MAX):
            await send({"type": "http.response.body", "body": piece, "more_body": more})
    except TimeoutError:
        raise TooSlow from None
