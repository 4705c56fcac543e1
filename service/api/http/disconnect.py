"""Detect when a request's client disconnects, watching it only once a decision asks."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec
from litestar.types import Receive

Left = Callable[[], Awaitable[None]]
"""A coroutine function that returns once a client has disconnected."""


async def never() -> None:
    """Wait forever; stands in for `left` if a request's client is not watched."""
    await asyncio.Event().wait()


class WaitingClient(msgspec.Struct, eq=False):
    """The client of one request, whose body has been read.

    Most requests are answered before a decision asks whether the client is still connected, so the
    task that watches for a disconnect is only started by the first such question.
    """

    receive: Receive
    leaving: asyncio.Task[None] | None = None
    """The task that ends when the client disconnects, or None if it was not needed yet."""

    def has_left(self) -> bool:
        """Return whether the client has disconnected or the request has ended.

        The first call starts watching for a disconnect.
        """
        return self._watch().done()

    async def left(self) -> None:
        """Wait until the client has disconnected or the request has ended."""
        await asyncio.wait({self._watch()})

    def end(self) -> None:
        """Stop watching the client, because the request has ended."""
        if self.leaving is not None:
            self.leaving.cancel()

    def _watch(self) -> asyncio.Task[None]:
        if self.leaving is None:
            self.leaving = asyncio.create_task(_left(self.receive))
        return self.leaving


async def _left(receive: Receive) -> None:
    with suppress(OSError, RuntimeError):  # raised by servers whose connection is closed
        while (await receive())["type"] != "http.disconnect":
            pass
