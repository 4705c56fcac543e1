"""Report a worker's health about once a second to the process that started it.

That process need not query the worker, which might not answer.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from service.model.core.errors import MoorageError

BEAT_SECONDS = 1.0
BEAT_BYTES_MAX = 4096
_DETAIL_CHARACTERS_MAX = 500


class WorkerHealth(msgspec.Struct, frozen=True):
    """Whether a worker is ready, as reported to the process that started it."""

    worker: int
    """The worker's process id."""
    trouble: str | None
    """Why the worker is not ready, or None."""


class Heartbeat:
    """Sends this worker's health to a Unix socket."""

    def __init__(self, path: str, check_ready: Callable[[], Awaitable[None]]) -> None:
        """Create a heartbeat; `check_ready` raises the reason if this process is not ready."""
        self._path = path
        self._check_ready = check_ready

    async def run(self) -> None:
        """Send the health repeatedly, ignoring failures, which are usual while the server stops."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)  # noqa: FBT003 - takes it by position only
            while True:
                beat = WorkerHealth(os.getpid(), await self._trouble())
                with suppress(OSError):
                    sender.sendto(msgspec.json.encode(beat), self._path)
                await asyncio.sleep(BEAT_SECONDS)

    async def _trouble(self) -> str | None:
        try:
            await self._check_ready()
        except MoorageError as error:
            return str(error)[:_DETAIL_CHARACTERS_MAX]
        return None
