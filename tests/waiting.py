"""Waiting for what others do: another process, the database, a task that tells nobody."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

WAIT_SECONDS = 300.0
"""Only what never happens takes so long, also on a machine that is ten times slower; pytest's own timeout is longer still."""
PATIENCE_SECONDS = 30.0
"""For what comes at once, unless it waits for what does not come."""
LOOK_SECONDS = 0.01
"""Between two looks."""

T = TypeVar("T")


def eventually(condition: Callable[[], T], seconds: float = WAIT_SECONDS) -> T:
    """Wait for a true answer, and give it."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(LOOK_SECONDS)
    return answer


async def once(condition: Callable[[], Awaitable[T]], seconds: float = WAIT_SECONDS) -> T:
    """Wait for a true answer, and give it, while other tasks run."""
    async with asyncio.timeout(seconds):
        while not (answer := await condition()):  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(LOOK_SECONDS)
    return answer
