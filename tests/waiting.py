"""Waits for events elsewhere: in another process, the database, or a task that sets no event."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

WAIT_SECONDS = 300.0
"""The bound on waiting, which only an event that never happens reaches, even on a slow machine.

pytest's own timeout is longer still.
"""
PATIENCE_SECONDS = 30.0
"""The bound on events that come at once, or else never."""
LOOK_SECONDS = 0.01
"""The time between two looks."""

T = TypeVar("T")


def eventually(condition: Callable[[], T], seconds: float = WAIT_SECONDS) -> T:
    """Wait until the condition gives a true answer, and return it."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(LOOK_SECONDS)
    return answer


async def once(condition: Callable[[], Awaitable[T]], seconds: float = WAIT_SECONDS) -> T:
    """Wait until the condition gives a true answer, and return it; other tasks run meanwhile."""
    async with asyncio.timeout(seconds):
        while not (answer := await condition()):  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(LOOK_SECONDS)
    return answer
