"""Requests of nobody known take turns, so that any number of them leaves the event loop to those who are known."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from service.api.access import principal_of

AT_A_TIME = 8
"""So many are answered at once: enough to wait for the database, few enough to be no queue before other requests."""

_TURNS = "moorage.turns"


class Turns:
    """The turns of one application. Create it for the event loop that uses it.

    An event loop resumes whoever is ready in the order in which they became so. If each of thousands of connections has a
    request under way, each step of another request waits for a step of all of those.
    """

    def __init__(self, at_a_time: int = AT_A_TIME) -> None:
        self._turns = asyncio.Semaphore(at_a_time)

    def attend(self, scope: HTTPScope) -> None:
        """Have this request wait for its turn, if nobody known makes it (see `take_turns`)."""
        cast("dict[str, Any]", scope)[_TURNS] = self._turns


def take_turns(app: ASGIApp) -> ASGIApp:
    """Litestar middleware: requests without a principal wait for their turn, all others go on at once."""

    async def taking(scope: Scope, receive: Receive, send: Send) -> None:
        turns = cast("Mapping[str, Any]", scope).get(_TURNS)
        if turns is None or principal_of(scope) is not None:
            await app(scope, receive, send)
            return
        async with turns:
            await asyncio.sleep(0)  # most never wait for anything, and would all run in one turn
            await app(scope, receive, send)

    return taking
