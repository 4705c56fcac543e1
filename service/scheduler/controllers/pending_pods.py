"""Having a cluster's pending pods placed: between the queue, the lease and the cluster's loop."""

import asyncio
import logging
from collections.abc import Sequence

from typing_extensions import override

from service.model.config import stored_config
from service.scheduler.controllers.controller import PAUSE_SECONDS, Controller, Controllers, Spawn
from service.scheduler.controllers.leases import HeldLease
from service.scheduler.pending.queue import PendingQueue
from service.scheduler.protocol.answers import Answer, PendingAnswer
from service.scheduler.protocol.attempts import Attempts
from service.scheduler.protocol.intents import PlacePending
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock
from service.scheduler.replica.replica import Entry, Replica

SWEEP_SECONDS = 10.0
"""How often pods are looked for that were not tried for very long."""

_log = logging.getLogger(__name__)


class PendingPods(Controller):
    """The pending pods of one cluster, as far as this process is concerned.

    The queue follows the log at any time. Turns are taken only while the lease is held, one at a
    time, as requests among those of clients in the cluster's inbox; all safety lies there. A new
    holder tries every pod once, since it does not know what was tried before.
    """

    def __init__(self, *, lease: HeldLease, clock: Clock, limits: Limits, spawn: Spawn) -> None:
        super().__init__(lease=lease, clock=clock, limits=limits, spawn=spawn)
        self.queue = PendingQueue(limits)
        self._attempts: Attempts | None = None
        """The turn that the loop is deciding."""
        self._not_before = self._swept = clock.monotonic()

    def counts(self) -> dict[str, int]:
        """Pods by what they wait for: active, backoff, unschedulable, gated."""
        return self.queue.counts()

    # What the replica tells

    def loaded(self, replica: Replica) -> None:
        """There is a new replica, of which nothing is tentative."""
        self.queue.reset(replica.pending_pods(), replica.config, replica.groups.all_waiting())
        self._advance()

    def settled(self, entries: Sequence[Entry]) -> None:
        """These changes of the replica are in the log."""
        try:
            self.queue.observe(entries)
        except Exception:  # noqa: BLE001 - answers to what was committed must go out all the same
            _log.exception("The pending queue is of no use until the replica is loaded anew.")
            self._closed = True
        self._advance()

    # What time tells

    @override
    def tick(self) -> None:
        now = self._clock.monotonic()
        if now >= self._swept + SWEEP_SECONDS:
            self._swept = now
            self.queue.sweep(now)
        super().tick()

    # Turns

    @property
    @override
    def _is_to_be_done(self) -> bool:
        return len(self.queue) > 0 and self.queue.places

    @override
    def _begin_anew(self) -> None:
        self.queue.retry_all()

    @override
    def _advance(self) -> None:
        """Take the next turn, if there is one and it is ours to take."""
        now = self._clock.monotonic()
        if self._closed or self._attempts is not None or now < self._not_before:
            return
        if self.queue.has_work(now) and self._may():
            self._take_turn(now)

    def _take_turn(self, now: float) -> None:
        attempts = self.queue.take(self._limits.pending_pods_per_turn, now)
        if attempts.tries or attempts.condition_updates:
            self._attempts = attempts
            self._submit(PlacePending(attempts=attempts), self._conclude)

    def _conclude(self, future: asyncio.Future[Answer]) -> None:
        attempts, now = self._attempts, self._clock.monotonic()
        assert attempts is not None
        self._attempts = None
        error = future.exception()
        if error is None:
            answer = future.result()
            assert isinstance(answer, PendingAnswer)
            self.queue.conclude(attempts, answer.refused, now)
        else:
            self.queue.give_back(attempts, now)
            self._not_before = now + PAUSE_SECONDS
        self._advance()


class AllPendingPods(Controllers[PendingPods]):
    """The pending pods of all clusters that this process has to do with."""

    _name = "pending"

    def counts(self, cluster_id: int) -> dict[str, int] | None:
        """Pods by what they wait for; None where another process, or nobody, looks after them."""
        pending = self._by_cluster.get(cluster_id)
        return pending.counts() if pending is not None and pending.is_needed else None

    @property
    @override
    def _lease_seconds(self) -> float:
        return self._limits.pending_lease_seconds

    @override
    def _duty(self, lease: HeldLease) -> PendingPods:
        return PendingPods(lease=lease, clock=self._clock, limits=self._limits, spawn=self._spawn)

    @override
    async def _neglected_at_start(self) -> list[str]:
        """All clusters are looked through: the last worker may have died before it took a lease."""
        return [
            row.name
            for row in await self._store.list_clusters()
            if row.counts.pending and stored_config(row.config).place_pending_pods
        ]
