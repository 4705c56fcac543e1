"""Limits the size of logs, idempotency records, events, and the audit log, in the background."""

import logging
from typing import NamedTuple

from service.model.core.errors import NotFound, StorageUnavailable
from service.model.log.commit import Head
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock, Store

LEASE = "upkeep"
_log = logging.getLogger(__name__)


class _Look(NamedTuple):
    """The last upkeep of a cluster, or the last time its lease was held by another process."""

    head: Head
    at: float
    pause: float
    """How long to skip the cluster unless it changes."""


class Upkeep:
    """Compacts the logs of all clusters, and deletes their expired answers and events.

    Only the process that holds a cluster's lease does this; two at once would be harmless.
    """

    def __init__(self, store: Store, clock: Clock, holder: str, limits: Limits) -> None:
        self._store = store
        self._clock = clock
        self._holder = holder
        self._limits = limits
        self._floors: dict[int, int] = {}
        """The revision up to which the log is compacted, for each cluster whose lease is held."""
        self.log_changes = 0
        """The number of changes in these clusters' logs at the end of the last round."""
        self._looks: dict[int, _Look] = {}
        self._audit_due = clock.monotonic()

    async def run(self) -> None:
        """Do a round every `Limits.upkeep_seconds`, forever."""
        while True:
            await self._clock.sleep(self._limits.upkeep_seconds)
            try:
                await self.round()
            except StorageUnavailable:
                _log.debug("The database cannot be reached.", exc_info=True)
            except Exception:  # noqa: BLE001 - a bug here must not end all upkeep
                _log.exception("Compacting logs failed; it will be tried again.")

    async def round(self) -> None:
        """Do the upkeep of each cluster whose lease is available or held by this process."""
        heads = await self._store.log.heads(await self._store.clusters.ids())
        self._floors = {
            cluster_id: floor for cluster_id, floor in self._floors.items() if cluster_id in heads
        }
        self._looks = {
            cluster_id: look for cluster_id, look in self._looks.items() if cluster_id in heads
        }
        for cluster_id, head in heads.items():
            if self._is_due(cluster_id, head):
                pause = self._pause(cluster_id, head)
                self._looks[cluster_id] = _Look(head, self._clock.monotonic(), pause)
                if await self._has_lease(cluster_id, pause):
                    await self._look_after(cluster_id)
        self.log_changes = sum(
            heads[cluster_id].revision - floor for cluster_id, floor in self._floors.items()
        )
        await self._sweep_audit()

    def _is_due(self, cluster_id: int, head: Head) -> bool:
        """Return whether upkeep is due: rarely if nothing changed or another worker does it."""
        look = self._looks.get(cluster_id)
        if look is None or (cluster_id in self._floors and look.head != head):
            return True
        pause = look.pause if look.head == head else self._limits.upkeep_lease_seconds / 2
        return self._clock.monotonic() >= look.at + pause

    def _pause(self, cluster_id: int, head: Head) -> float:
        """Return twice the last pause if nothing changed: most clusters may be unused."""
        least = self._limits.upkeep_lease_seconds / 2
        look = self._looks.get(cluster_id)
        if look is None or look.head != head:
            return least
        return min(2 * look.pause, max(least, self._limits.upkeep_pause_seconds_max))

    async def release(self) -> None:
        """Release all leases, so that other processes need not wait for them to expire."""
        try:
            for cluster_id in list(self._floors):
                await self._store.leases.release(cluster_id, LEASE, self._holder)
        except StorageUnavailable:
            _log.debug("Leases end by themselves.", exc_info=True)

    async def _look_after(self, cluster_id: int) -> None:
        try:
            await self._compact(cluster_id)
            await self._sweep(cluster_id)
            await self._sweep_events(cluster_id)
        except NotFound:
            self._floors.pop(cluster_id, None)  # deleted in the meantime

    async def _has_lease(self, cluster_id: int, pause: float) -> bool:
        seconds = 2 * pause
        lease = await self._store.leases.acquire(cluster_id, LEASE, self._holder, seconds)
        if lease is None:
            self._floors.pop(cluster_id, None)
        else:
            self._floors.setdefault(cluster_id, 0)
        return lease is not None

    async def _compact(self, cluster_id: int) -> None:
        """Compact a log in small transactions, so that other transactions never wait long (P12)."""
        limits, rose = self._limits, True
        while rose:
            self._floors[cluster_id], rose = await self._store.housekeeping.compact(
                cluster_id,
                keep_changes=limits.log_keep_changes,
                keep_seconds=limits.log_keep_seconds,
            )
            await self._clock.sleep(0)

    async def _sweep(self, cluster_id: int) -> None:
        seconds = self._limits.answers_keep_seconds
        while await self._store.housekeeping.sweep_answers(cluster_id, keep_seconds=seconds):
            await self._clock.sleep(0)

    async def _sweep_events(self, cluster_id: int) -> None:
        limits = self._limits
        while await self._store.events.sweep(
            cluster_id, keep_seconds=limits.events_keep_seconds, keep_rows=limits.events_keep
        ):
            await self._clock.sleep(0)

    async def _sweep_audit(self) -> None:
        """Delete old rows of all audit chains, even of deleted clusters, which have no lease."""
        limits, now = self._limits, self._clock.monotonic()
        if now < self._audit_due:
            return
        self._audit_due = now + limits.audit_sweep_seconds
        while await self._store.audit.sweep(keep_seconds=limits.audit_keep_seconds):
            await self._clock.sleep(0)
