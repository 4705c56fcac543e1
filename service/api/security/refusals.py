"""Refusals in the audit: some of each second with all that is known of them, of the others how many there were."""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from litestar.types import HTTPScope, Scope

from service.api.security.callers import caller_in
from service.model.audit import AuditedCaller, AuditEntry
from service.model.errors import StorageUnavailable
from service.scheduler.protocol.ports import Clock

REFUSED = frozenset({401, 403, 429})
TOLD_MAX = 10
"""Refusals of a second that have a row of their own."""
FLUSH_SECONDS = 1.0

_REFUSALS = "moorage.refusals"
_log = logging.getLogger(__name__)


class RefusalLog(Protocol):
    """Where refusals are kept."""

    @property
    def keeps_audit(self) -> bool:
        """Whether they are kept at this moment."""
        ...

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
        self._waiting: asyncio.Task[None] | None = None
        """Until it is time to keep what there is."""
        self._keeping = asyncio.Lock()

    def attend(self, scope: Scope) -> None:
        """Hear of what is refused within the answer to a request (see `note_refused`)."""
        cast("dict[str, Any]", scope)[_REFUSALS] = self

    def note(self, scope: HTTPScope, status: int, times: int = 1) -> None:
        """A request was answered; refusals are kept within a second or so."""
        if status not in REFUSED or not self._store.keeps_audit:
            return
        if len(self._told) < TOLD_MAX:
            cluster = str(scope.get("path_params", {}).get("cluster", ""))
            told = AuditEntry(
                caller=caller_in(scope), cluster=cluster[:100], status=status, requests=times
            )
            self._told.append(told)
        else:
            self._others[status] += times
        if self._waiting is None:
            self._waiting = asyncio.create_task(self._flush_soon())

    async def _flush_soon(self) -> None:
        await self._clock.sleep(FLUSH_SECONDS)
        self._waiting = None
        await self.flush()

    async def flush(self) -> None:
        """Keep what there is, after what is being kept. Where the database cannot be reached it is lost, but for its count in the metrics."""
        async with self._keeping:
            await self._flush()

    async def _flush(self) -> None:
        told, others = self._told, self._others
        self._told, self._others = [], Counter()
        counted = [
            AuditEntry(caller=AuditedCaller(""), cluster="", status=status, requests=requests)
            for status, requests in sorted(others.items())
        ]
        if not told and not counted:
            return
        try:
            await self._store.add_refusals([*told, *counted])
        except StorageUnavailable:
            refused = sum(each.requests for each in told) + others.total()
            _log.warning("%d refusals are not in the audit.", refused)

    async def close(self) -> None:
        """Keep what there is, and nothing more; what is being kept is waited for."""
        if self._waiting is not None:
            self._waiting.cancel()
        await self.flush()


def note_refused(scope: Scope, status: int, times: int = 1) -> None:
    """Something was refused within an answer that began as another one: lines of a stream, or a watch that goes on no longer."""
    refusals = cast("Mapping[str, Any]", scope).get(_REFUSALS)
    if times and isinstance(refusals, Refusals):
        refusals.note(cast("HTTPScope", scope), status, times)
