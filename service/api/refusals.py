"""Refusals in the audit: some of each second with all that is known of them, of the others how many there were."""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from litestar.types import HTTPScope

from service.api.callers import caller_in
from service.model.audit import AuditEntry, Caller
from service.model.errors import StorageUnavailable
from service.scheduler.ports import Clock

REFUSED = frozenset({401, 403, 429})
TOLD_MAX = 10
"""Refusals of a second that have a row of their own."""
FLUSH_SECONDS = 1.0

_log = logging.getLogger(__name__)


class RefusalLog(Protocol):
    """Where refusals are kept."""

    async def add_refusals(self, entries: Sequence[AuditEntry]) -> None:
        """Add rows to the chain of the server; raises StorageUnavailable."""
        ...


class Refusals:
    """What was refused by one worker and is not kept yet: a process that dies loses so much of it."""

    def __init__(self, store: RefusalLog, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._told: list[AuditEntry] = []
        self._others: Counter[int] = Counter()
        """By status, the refusals that have no row of their own."""
        self._flushing: asyncio.Task[None] | None = None

    def note(self, scope: HTTPScope, status: int) -> None:
        """A request was answered; refusals are kept within a second or so."""
        if status not in REFUSED:
            return
        if len(self._told) < TOLD_MAX:
            cluster = str(scope.get("path_params", {}).get("cluster", ""))
            told = AuditEntry(caller=caller_in(scope), cluster=cluster[:100], status=status)
            self._told.append(told)
        else:
            self._others[status] += 1
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush_soon())

    async def _flush_soon(self) -> None:
        await self._clock.sleep(FLUSH_SECONDS)
        self._flushing = None
        await self.flush()

    async def flush(self) -> None:
        """Keep what there is. Where the database cannot be reached it is lost, but for its count in the metrics."""
        told, others = self._told, self._others
        self._told, self._others = [], Counter()
        counted = [
            AuditEntry(caller=Caller(""), cluster="", status=status, requests=requests)
            for status, requests in sorted(others.items())
        ]
        if not told and not counted:
            return
        try:
            await self._store.add_refusals([*told, *counted])
        except StorageUnavailable:
            _log.warning("%d refusals are not in the audit.", len(told) + others.total())

    async def close(self) -> None:
        """Keep what there is, and nothing more."""
        if self._flushing is not None:
            self._flushing.cancel()
        await self.flush()
