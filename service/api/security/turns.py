"""Requests of nobody known take turns, so that any number of them leaves the event loop to those who are known."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from service.api.openapi.access import principal_of

AT_A_TIME = 8
"""So many are worked on at once: enough to wait for the database, few enough to be no queue before other requests."""

TURN_SECONDS = 0.005
"""A turn lasts so long at least: the process has time for others between those of nobody known, however many these are."""

_TURNS = "moorage.turns"


class Turns:
    """The turns of one application. Create it for the event loop that uses it.

    An event loop resumes whoever is ready in the order in which they became so. If each of thousands of connections has a
    request under way, each step of another request waits for a step of all of those.
    """

    def __init__(self, at_a_time: int = AT_A_TIME, seconds: float = TURN_SECONDS) -> None:
        self._turns = asyncio.Semaphore(at_a_time)
        self._seconds = seconds

    def attend(self, scope: HTTPScope) -> None:
        """Have this request wait for its turn once it is routed, if nobody known makes it (see `take_turns`)."""
        cast("dict[str, Any]", scope)[_TURNS] = self

    async def give(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on in its turn, which ends when its answer begins: whoever reads slowly keeps no turn."""
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
    """One of the turns, until it is ended."""

    def __init__(self, turns: asyncio.Semaphore, seconds: float) -> None:
        self._turns = turns
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + seconds
        self._is_over = False

    def end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._loop.call_at(self._until, self._turns.release)


def take_turns(app: ASGIApp) -> ASGIApp:
    """Litestar middleware: requests without a principal wait for their turn, all others go on at once."""

    async def taking(scope: Scope, receive: Receive, send: Send) -> None:
        turns = cast("Mapping[str, Any]", scope).get(_TURNS)
        if turns is None or principal_of(scope) is not None:
            await app(scope, receive, send)
        else:
            await turns.give(app, scope, receive, send)

    return taking
