"""Notice when the client of a request disconnects, once a decision asks for it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec
from litestar.types import Receive

Left = Callable[[], Awaitable[None]]
"""Returns once a client has disconnected."""


async def never() -> None:
    """Wait forever, for a request whose client is not watched."""
    await asyncio.Event().wait()


class WaitingClient(msgspec.Struct, eq=False):
    """The client of one request, whose body has been read.

    Most requests are answered before a decision asks whether the client is still connected, so the
    task that watches for a disconnect starts with the first question.
    """

    receive: Receive
    leaving: asyncio.Task[None] | None = None
    """The task that ends when the client leaves; None if nothing has asked."""

    def has_left(self) -> bool:
        """Return whether the client has disconnected or the request has ended; the first call starts the watch."""
        return self._watch().done()

    async def left(self) -> None:
        """Return once the client has disconnected or the request has ended."""
        await asyncio.wait({self._watch()})

    def end(self) -> None:
        """Stop watching, because the request has ended."""
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
