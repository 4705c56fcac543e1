"""Evicts pods whose rules required during execution no longer hold.

In clusters without such rules, newly placed pods cost nothing here.
"""

from collections.abc import Sequence
from datetime import datetime

from typing_extensions import override

from service.model.registry.manifests import PodManifest
from service.scheduler.controllers.controller import Controllers
from service.scheduler.controllers.leases import HeldLease
from service.scheduler.controllers.sweep_controller import SweepController
from service.scheduler.decide.eviction_rate import needs_eviction_checks
from service.scheduler.protocol.answers import Answer, EvictionsAnswer
from service.scheduler.protocol.intents import EvictViolating
from service.scheduler.replica.replica import Entry, Replica
from service.scheduler.replica.stored_kinds import EvictionState

_RULE = b"SchedulingRequiredDuringExecution"


class EvictionController(SweepController):
    """Has one cluster's violating pods evicted while this process holds the lease.

    After each commit that may have broken a rule, a sweep checks all rules again, in a request
    alongside those of clients. The decision itself (`decide.evicting`) ensures that no pod is
    evicted twice or needlessly.
    """

    # Changes of the replica

    def on_loaded(self, replica: Replica) -> None:
        """Start from a newly loaded replica, which has no tentative changes yet."""
        self._replica = replica
        self._changed = True
        self._advance()

    def on_committed(self, entries: Sequence[Entry]) -> None:
        """Process committed changes of the replica."""
        self._changed = self._changed or not all(map(_only_evicts, entries))
        self._advance()

    # Sweeps

    @property
    @override
    def _is_to_be_done(self) -> bool:
        replica = self._replica
        return replica is not None and needs_eviction_checks(replica)

    @override
    def _advance(self) -> None:
        """Begin a sweep, if pods may have to be evicted and this process holds the lease."""
        if not self._is_to_be_done:
            self._changed = True  # by whatever adds the next rule
            return
        if self._closed or self._sweeping or not (self._changed or self._due):
            return
        if self._clock.monotonic() < self._not_before:
            return
        if self._may() and (self._changed or self._is_due):
            self.sweep()

    @override
    def _intent(self) -> EvictViolating:
        return EvictViolating(clock=self.lease.database_time)

    @override
    def _due_after(self, answer: Answer) -> datetime | None:
        assert isinstance(answer, EvictionsAnswer)
        return answer.due


def _only_evicts(entry: Entry) -> bool:
    """Return whether a change only marks a pod for termination, as sweeps do; no rule breaks by it.

    A marked pod stays on its node, and still counts for the rules of other pods.
    """
    before = entry.before.manifest if entry.before else None
    after = entry.after.manifest if entry.after else None
    if isinstance(after, EvictionState):
        return True
    if not isinstance(before, PodManifest) or not isinstance(after, PodManifest):
        return False
    old, new = before.pod, after.pod
    return (
        new.terminating
        and not new.finished
        and new.spec is old.spec
        and (new.node_name, new.labels) == (old.node_name, old.labels)
    )


class EvictionControllers(Controllers[EvictionController]):
    """The eviction controllers of all clusters that this process has in memory."""

    name = "evictions"

    @property
    @override
    def lease_seconds(self) -> float:
        return self._limits.evictions_lease_seconds

    @override
    def _controller(self, lease: HeldLease) -> EvictionController:
        return EvictionController(
            lease=lease, clock=self._clock, limits=self._limits, spawn=self._spawn
        )

    @override
    async def unattended(self) -> list[str]:
        return await self._store.leases.unattended(self.name, _RULE)
