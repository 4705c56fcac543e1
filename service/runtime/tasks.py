"""Background tasks, whose exceptions are always logged."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any

_log = logging.getLogger(__name__)


def log_failure(task: asyncio.Task[Any]) -> None:
    """Log the exception of a finished task; use it as a callback of the task."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _log.error("A background task failed: %s", task.get_name(), exc_info=error)


@asynccontextmanager
async def background_tasks(
    coroutines: Iterable[Coroutine[None, None, None]],
) -> AsyncIterator[None]:
    """Run coroutines during the context, and cancel them at its end."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    yield
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
