"""Carries out stored plans: drains, rollouts, and rebalancing.

In clusters without such plans, newly placed pods cost nothing here.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from typing_extensions import override

from service.model.core.errors import MoorageError
from service.model.plans.plan import PLAN
from service.scheduler.controllers.controller import PAUSE_SECONDS, Controllers, Spawn
from service.scheduler.controllers.leases import HeldLease
from service.scheduler.controllers.sweep_controller import SweepController
from service.scheduler.decide.admission.plan_admission import has_plan_ended
from service.scheduler.protocol.answers import Answer
from service.scheduler.protocol.intents import AdvancePlans, MakePlan
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.plans import FoundMoves, Planned, PlansAnswer, Search
from service.scheduler.protocol.ports import Clock
from service.scheduler.replica.replica import Entry, Replica
from service.scheduler.replica.stored_kinds import MoveReservation

_log = logging.getLogger(__name__)
PlanMaker = Callable[[MakePlan], Awaitable[Planned]]
_MENTION = f'"kind":"{PLAN.kind}"'.encode()


class PlanController(SweepController):
    """Carries out the stored plans of one cluster while this process holds the lease.

    After each commit that may let a plan continue, all plans advance one step, in a request
    alongside those of clients. The decision itself (`plans.advance`) plans each step from the
    current state, so no step is taken twice or on outdated state. A search for moves may take
    longer than a placement, so it runs in parallel; the next step checks its results.
    """

    def __init__(
        self,
        *,
        lease: HeldLease,
        clock: Clock,
        limits: Limits,
        spawn: Spawn,
        plan: PlanMaker,
    ) -> None:
        super().__init__(lease=lease, clock=clock, limits=limits, spawn=spawn)
        self._plan = plan
        self._searching = False
        self._found: tuple[FoundMoves, ...] = ()
        """The search results for the next step."""
        self._plans: dict[str, bool] = {}
        """Whether each plan, by name, has anything left to do."""

    # Changes of the replica

    def on_loaded(self, replica: Replica) -> None:
        """Start from a newly loaded replica, which has no tentative changes yet."""
        self._replica = replica
        self._plans = {
            stored.manifest.name: not has_plan_ended(stored.manifest)
            for stored in replica.objects(PLAN.kind)
        }
        self._changed = self._is_to_be_done
        self.wants_new_pods = any(self._plans.values())
        self._advance()

    def on_committed(self, entries: Sequence[Entry]) -> None:
        """Process committed changes of the replica."""
        for entry in entries:
            if entry.kind == PLAN.kind:
                self._note(entry)
            elif entry.kind == MoveReservation.kind:
                self._changed = True
        self.wants_new_pods = any(self._plans.values())
        self._changed = self._changed or self.wants_new_pods
        self._advance()

    def _note(self, entry: Entry) -> None:
        name = entry.key[1]
        if entry.after is None:
            self._plans.pop(name, None)
            self._changed = self._changed or self._has_reservations
            return
        self._plans[name] = not has_plan_ended(entry.after.manifest)
        self._changed = True

    # Sweeps

    @property
    @override
    def _is_to_be_done(self) -> bool:
        return bool(self._plans) or self._has_reservations

    @property
    def _has_reservations(self) -> bool:
        return self._replica is not None and self._replica.count(MoveReservation.kind) > 0

    @override
    def _advance(self) -> None:
        """Take a step, if one may be due and this process holds the lease."""
        if self._closed or self._sweeping or self._searching or not (self._changed or self._due):
            return
        if not self._is_to_be_done or self._clock.monotonic() < self._not_before:
            return
        if self._may() and (self._changed or self._is_due):
            self.sweep()

    @override
    def _intent(self) -> AdvancePlans:
        found_moves, self._found = self._found, ()
        return AdvancePlans(clock=self.lease.database_time, found_moves=found_moves)

    @override
    def _due_after(self, answer: Answer) -> datetime | None:
        assert isinstance(answer, PlansAnswer)
        if answer.searches and not self._closed:
            self._searching = True
            self._spawn(self._search(answer.searches))
        return answer.due

    async def _search(self, searches: Sequence[Search]) -> None:
        """Search for the next moves of plans, and take the next step with the results."""
        try:
            self._found = tuple([await self._searched(search) for search in searches])
        except MoorageError:
            _log.debug("The next moves of a plan could not be searched.", exc_info=True)
            self._not_before = self._clock.monotonic() + PAUSE_SECONDS
        finally:
            self._searching = False
            self._changed = True
        self._advance()

    async def _searched(self, search: Search) -> FoundMoves:
        planned = await self._plan(MakePlan(goal=search.goal, bounds=search.bounds))
        return FoundMoves(search=search, steps=tuple(planned.steps), complete=planned.complete)

    @override
    def _pause_after(self, answer: Answer, took: float) -> float:
        """Return how long to pause, longer while pods wait, since a step is expensive."""
        assert isinstance(answer, PlansAnswer)
        if answer.evicted or answer.searches:
            return super()._pause_after(answer, took)
        return self._limits.plan_look_seconds


class PlanControllers(Controllers[PlanController]):
    """The plan controllers of all clusters that this process has in memory."""

    name = "plans"
    plan: Callable[[str, MakePlan], Awaitable[Planned]]
    """Makes a plan on a cluster's state, in parallel with placements."""

    @property
    @override
    def lease_seconds(self) -> float:
        return self._limits.evictions_lease_seconds

    @override
    def _controller(self, lease: HeldLease) -> PlanController:
        return PlanController(
            lease=lease,
            clock=self._clock,
            limits=self._limits,
            spawn=self._spawn,
            plan=lambda intent: self.plan(lease.cluster, intent),
        )

    @override
    async def unattended(self) -> list[str]:
        return await self._store.leases.unattended(self.name, _MENTION, PLAN.kind)
