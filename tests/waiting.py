"""Waiting for what another process does."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

WAIT_SECONDS = 300.0
"""Only what never happens takes so long, also on a machine that is ten times slower; pytest's own timeout is longer still."""

T = TypeVar("T")


def eventually(condition: Callable[[], T], seconds: float = WAIT_SECONDS) -> T:
    """Wait for a true answer, and give it."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return answer


async def once(condition: Callable[[], Awaitable[T]], seconds: float = WAIT_SECONDS) -> T:
    """Wait for a true answer, and give it, while other tasks run."""
    async with asyncio.timeout(seconds):
        while not (answer := await condition()):  # noqa: ASYNC110 - other processes set no event
            await asyncio.sleep(0.02)
    return answer
