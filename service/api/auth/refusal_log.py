"""Record refused requests in the audit log: a few per second as single rows, others as counts."""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from service.api.http.context import RequestContext
from service.model.core.errors import StorageUnavailable
from service.model.log.audit_chain import AuditedCaller, AuditEntry
from service.runtime.tasks import log_failure
from service.scheduler.protocol.ports import Clock

REFUSED = frozenset({401, 403, 429})
TOLD_MAX = 10
"""How many refusals per second get rows of their own."""
FLUSH_SECONDS = 1.0

_log = logging.getLogger(__name__)


class RefusalLog(Protocol):
    """The part of the audit log that stores refusals."""

    @property
    def enabled(self) -> bool:
        """Whether the audit log is kept at present."""
        ...

    async def add_refusals(self, entries: Sequence[AuditEntry]) -> None:
        """Append rows to the server's chain, or raise StorageUnavailable."""
        ...


class Refusals:
    """A worker's refusals that are not stored yet; they are lost if the process dies."""

    def __init__(self, audit: RefusalLog, clock: Clock) -> None:
        self._audit = audit
        self._clock = clock
        self._told: list[AuditEntry] = []
        self._others: Counter[int] = Counter()
        """The number of refusals without a row of their own, by status."""
        self._waiting: asyncio.Task[None] | None = None
        """The task that waits until it is time to store the refusals."""
        self._keeping = asyncio.Lock()

    def note(self, context: RequestContext, status: int, times: int = 1) -> None:
        """Record an answered request if it was refused; it is stored within about a second."""
        if status not in REFUSED or not self._audit.enabled:
            return
        if len(self._told) < TOLD_MAX:
            refusal = AuditEntry(
                caller=context.audited_caller(),
                cluster=context.cluster[:100],
                status=status,
                requests=times,
            )
            self._told.append(refusal)
        else:
            self._others[status] += times
        if self._waiting is None:
            self._waiting = asyncio.create_task(self._flush_soon())
            self._waiting.add_done_callback(log_failure)

    async def _flush_soon(self) -> None:
        await self._clock.sleep(FLUSH_SECONDS)
        self._waiting = None
        await self.flush()

    async def flush(self) -> None:
        """Store all recorded refusals, after any flush under way.

        If the database cannot be reached, they are lost, and only counted in the metrics.
        """
        async with self._keeping:
            await self._flush()

    async def _flush(self) -> None:
        refusals, others = self._told, self._others
        self._told, self._others = [], Counter()
        counted = [
            AuditEntry(caller=AuditedCaller(""), cluster="", status=status, requests=requests)
            for status, requests in sorted(others.items())
        ]
        if not refusals and not counted:
            return
        try:
            await self._audit.add_refusals([*refusals, *counted])
        except StorageUnavailable:
            refused = sum(entry.requests for entry in refusals) + others.total()
            _log.warning("%d refusals are not in the audit.", refused)

    async def close(self) -> None:
        """Cancel the scheduled flush, and store all recorded refusals now."""
        if self._waiting is not None:
            self._waiting.cancel()
        await self.flush()
