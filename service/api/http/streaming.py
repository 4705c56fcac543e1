"""Send answers piece by piece, with a time limit for reading each piece."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager

from litestar.types import Send

UNBUFFERED = b"x-accel-buffering"
"""The header that tells proxies and our compression not to buffer an endless stream."""
PIECE_BYTES = 64 * 1024
"""The size in bytes of the pieces in which answers are sent; each piece has its own time limit."""
READER_SECONDS_MAX = 10.0
"""The number of seconds that a client may leave a piece unread before it is disconnected."""
PAGE_BYTES_PER_SECOND_MIN = 64 * 1024
"""The minimum average speed at which a client must read a page of a watch.

The client has READER_SECONDS_MAX seconds on top. A page stays in memory until its last piece is
read, so READER_SECONDS_MAX for each piece would be too long.
"""

_log = logging.getLogger(__name__)

Pieces = AsyncGenerator[bytes, None]


class TooSlow(Exception):  # noqa: N818 - a fact, not a failure
    """A client left a piece unread for too long."""


class PageReader:
    """Tracks how long a client takes to read a page of a watch."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._seconds = 0.0
        self._count = 0

    @contextmanager
    def reading(self, count: int) -> Iterator[None]:
        """Measure how long the client takes to read `count` bytes.

        Raises:
            TooSlow: the client has taken too long for the bytes that it has read of the page.
        """
        began = self._monotonic()
        yield
        self._seconds += self._monotonic() - began
        self._count += count
        if self._seconds > READER_SECONDS_MAX + self._count / PAGE_BYTES_PER_SECOND_MIN:
            _log.info("A client that read its watch too slowly was dropped.")
            raise TooSlow


async def send_piece(send: Send, piece: bytes, *, more: bool) -> None:
    """Send a part of a body, or raise TooSlow if the client does not read it in time."""
    try:
        async with asyncio.timeout(READER_SECONDS_MAX):
            await send({"type": "http.response.body", "body": piece, "more_body": more})
    except TimeoutError:
        raise TooSlow from None
