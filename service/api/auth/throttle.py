"""Throttle requests of unknown callers, so that any number of them leaves time for known callers."""

import asyncio

from litestar.types import ASGIApp, Message, Receive, Scope, Send

AT_A_TIME = 8
"""How many requests of unknown callers are served at once.

That keeps the database busy while some wait for it, without becoming a queue before other requests.
"""

TURN_SECONDS = 0.005
"""The minimum duration of a slot, so that the process has time for known callers in between."""


class AnonymousThrottle:
    """The slots of one application. Create it in the event loop that uses it.

    An event loop resumes tasks in the order in which they became ready. If thousands of connections had a
    request under way, each step of another request would wait for a step of all of those.
    """

    def __init__(self, at_a_time: int = AT_A_TIME, seconds: float = TURN_SECONDS) -> None:
        self._turns = asyncio.Semaphore(at_a_time)
        self._seconds = seconds

    async def give(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on once there is a slot for it.

        The slot is released when the answer begins, so a client that reads slowly holds none.
        """
        await self._turns.acquire()
        turn = _Turn(self._turns, self._seconds)

        async def answering(message: Message) -> None:
            turn.end()
            await send(message)

        try:
            await app(scope, receive, answering)
        finally:
            turn.end()


class _Turn:
    """A slot that one request holds until it ends."""

    def __init__(self, turns: asyncio.Semaphore, seconds: float) -> None:
        self._turns = turns
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + seconds
        self._is_over = False

    def end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._loop.call_at(self._until, self._turns.release)
