"""Throttle requests of unknown callers, so that they always leave time for known callers."""

import asyncio

from litestar.types import ASGIApp, Message, Receive, Scope, Send

AT_A_TIME = 8
"""How many requests of unknown callers are served at once.

Enough to keep the database busy, but too few to make other requests queue behind them.
"""

TURN_SECONDS = 0.005
"""The minimum duration of a slot, so that the process has time for known callers in between."""


class AnonymousThrottle:
    """Limits how many anonymous requests an application serves at once.

    Create it in the event loop that uses it. An event loop resumes tasks in the order in which they
    became ready: if thousands of connections each had a request under way, every step of another
    request would wait for one step of each of them.
    """

    def __init__(self, at_a_time: int = AT_A_TIME, seconds: float = TURN_SECONDS) -> None:
        self._slots = asyncio.Semaphore(at_a_time)
        self._seconds = seconds

    async def give(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on once a slot is free.

        The slot is released when the answer begins, so a client that reads slowly does not hold
        one.
        """
        await self._slots.acquire()
        slot = _Slot(self._slots, self._seconds)

        async def answering(message: Message) -> None:
            slot.end()
            await send(message)

        try:
            await app(scope, receive, answering)
        finally:
            slot.end()


class _Slot:
    """A slot that one request holds until it ends."""

    def __init__(self, slots: asyncio.Semaphore, seconds: float) -> None:
        self._slots = slots
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + seconds
        self._is_over = False

    def end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._loop.call_at(self._until, self._slots.release)
