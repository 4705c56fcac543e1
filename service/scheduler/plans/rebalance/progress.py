"""A look at a plan that rebalances and is carried out: who has come, who moves next, and when it ends.

Of the moves that are under way the reservations tell, and of all others the state: so a server that
goes on with the plan of another one needs to know nothing but what is stored.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from service.model.manifests.manifest import KeptManifest, PodManifest
from service.model.plans.plans import ObjectiveProgress, PlanMove, PlanProgress
from service.model.plans.rebalance_objectives import OBJECTIVES_WANTED, block_amount
from service.scheduler.decide.admission.plan_admission import plan_of
from service.scheduler.decide.context import DecisionContext, Steps
from service.scheduler.decide.move_reservations import give_up, reservations_in, reserve
from service.scheduler.decide.node_lifecycle.taints import in_whole_seconds
from service.scheduler.decide.status.pod_conditions import (
    EVICTION_REASON,
    evicted,
    tell_evicted,
)
from service.scheduler.plans.eviction_bounds import evictions_left
from service.scheduler.plans.rebalance.moves import Measured, measure, next_moves
from service.scheduler.plans.waves import Kept
from service.scheduler.protocol.plans import FoundMoves, PlanBounds, Rebalance, Search, Selection
from service.scheduler.replica.stored_kinds import MoveReservation


class RebalanceStep(NamedTuple):
    """What one look at a plan has found and done."""

    status: PlanProgress
    evicted: int = 0
    waiting: Sequence[tuple[PodManifest, Kept]] = ()
    """The pods that were to move and cannot now, and why."""
    search: Search | None = None
    """The search for the next moves; None if none may be made now."""
    due: datetime | None = None
    """When to look again even if nothing has changed."""
    is_done: bool = False


class RebalanceProgress:
    """One look at a plan, on one state and at one time."""

    def __init__(
        self, context: DecisionContext, plan: KeptManifest, now: datetime, *, most: int
    ) -> None:
        """`most`: how many pods may be evicted in this look."""
        self._context = context
        self._replica = context.replica
        self._plan = plan
        self._now = now
        self._most = most
        self._body = plan_of(plan).body
        goal = self._body.spec.goal
        self._names = goal.objectives or OBJECTIVES_WANTED
        self._moves_max = goal.moves_max
        self._goal = Rebalance(
            pods=Selection(namespace=goal.namespace, selector=goal.selector),
            objectives=self._names,
            resource=goal.resource,
            block=block_amount(goal.resource, goal.block),
        )

    def go_on(self, status: PlanProgress, found: FoundMoves | None) -> Steps[RebalanceStep]:
        """Note who has come; then make the moves that a search has found, or ask for one."""
        status = self._followed(status)
        under_way = self._under_way()
        due = self._next_expiry(under_way)
        if not status.objectives:
            measured = yield from measure(self._context, self._goal)
            status = self._measured(status, measured)
        if not self._is_running:
            return RebalanceStep(self._with_moves(status), due=due)
        if self._left(status) == 0:
            reason = "MovesMax" if self._moves_left(status) == 0 else "EvictionsMax"
            return RebalanceStep(
                replace(self._with_moves(status), reason=reason),
                due=due,
                is_done=not under_way,
            )
        if found is None or (found.search.under_way and not under_way):
            return RebalanceStep(
                self._with_moves(status), due=due, search=self._search(status, under_way)
            )
        return (yield from self._moved(status, found, due))

    def _moved(
        self, status: PlanProgress, found: FoundMoves, due: datetime | None
    ) -> Steps[RebalanceStep]:
        """Make those found moves that still can be made; with none to make the plan has ended."""
        room = self._room(status, len(self._under_way()))
        search = replace(found.search, goal=replace(self._goal, moves_max=room))
        moving = yield from next_moves(self._context, search, found.steps)
        for each in moving.moves:
            self._evict(each.pod, each.to)
        measured = yield from measure(self._context, self._goal)
        status = self._measured(status, measured)
        status = self._with_moves(replace(status, evicted=status.evicted + len(moving.moves)))
        if found.steps and not moving.moves:  # Something has changed since; it is planned anew.
            again = self._now + timedelta(seconds=self._context.limits.plan_look_seconds)
            due = again if due is None else min(due, again)
        is_done = not found.steps and not status.moves
        if is_done and not found.complete:
            status = replace(status, reason="SecondsOver")
        return RebalanceStep(
            status,
            len(moving.moves),
            moving.kept,
            due=due or self._next_expiry(self._under_way()),
            is_done=is_done,
        )

    @property
    def _is_running(self) -> bool:
        return self._body.spec.state == "Running"

    # Who has come

    def _followed(self, status: PlanProgress) -> PlanProgress:
        """Count in place of whom others have come, or nobody has for too long; keep their room no longer."""
        moved, elsewhere, missing = status.moved, status.elsewhere, status.missing
        for each in self._reservations():
            if each.came_to:
                moved += each.came_to == each.node_name
                elsewhere += each.came_to != each.node_name
            elif self._end_of(each) <= self._now:
                missing += 1
                self._context.rest_on(self._end_of(each))
            else:
                continue
            give_up(self._replica, each)
        return replace(status, moved=moved, elsewhere=elsewhere, missing=missing)

    def _reservations(self) -> list[MoveReservation]:
        own = (self._plan.name, self._plan.uid)
        return [
            each for each in reservations_in(self._replica) if (each.plan, each.plan_uid) == own
        ]

    def _under_way(self) -> list[MoveReservation]:
        return [each for each in self._reservations() if not each.came_to]

    def _end_of(self, reservation: MoveReservation) -> datetime:
        return reservation.since + timedelta(seconds=self._context.limits.plan_reservation_seconds)

    def _next_expiry(self, under_way: Sequence[MoveReservation]) -> datetime | None:
        return min(map(self._end_of, under_way), default=None)

    # Who moves

    def _search(self, status: PlanProgress, under_way: Sequence[MoveReservation]) -> Search | None:
        room = self._room(status, len(under_way))
        if not room:
            return None
        return Search(
            plan=self._plan.name,
            uid=self._plan.uid,
            goal=replace(self._goal, moves_max=room),
            bounds=PlanBounds(protect=self._body.spec.bounds.protect),
            under_way=len(under_way),
        )

    def _room(self, status: PlanProgress, under_way: int) -> int:
        """Return how many pods may be evicted now."""
        free = max(self._context.limits.plan_moves_max - under_way, 0)
        left = self._left(status)
        most = min(free, self._most)
        return most if left is None else min(most, left)

    def _left(self, status: PlanProgress) -> int | None:
        """Return how many more pods may be evicted for the plan in all; None: any number."""
        known = [self._moves_left(status), evictions_left(self._body)]
        return min((each for each in known if each is not None), default=None)

    def _moves_left(self, status: PlanProgress) -> int | None:
        return None if self._moves_max is None else max(self._moves_max - status.evicted, 0)

    def _evict(self, manifest: PodManifest, to: str) -> None:
        message = f"Rebalance: the plan {self._plan.name} moves it to {to}"
        self._replica.put(evicted(self._context, manifest, EVICTION_REASON, message))
        tell_evicted(self._context, manifest, "Rebalance", message)
        reserve(self._replica, self._plan, manifest, to, self._now)

    # What is told

    def _measured(self, status: PlanProgress, measured: Measured) -> PlanProgress:
        before = {each.name: each.before for each in status.objectives if each.before is not None}
        told = tuple(
            ObjectiveProgress(name=name, before=before.get(name, value[0]), now=value[0])
            for name, value in zip(self._names, measured, strict=True)
        )
        return replace(status, objectives=told)

    def _with_moves(self, status: PlanProgress) -> PlanProgress:
        under_way = self._under_way()
        told = tuple(
            PlanMove(
                namespace=each.namespace,
                name=each.name,
                from_node=each.pod.pod.node_name or "",
                to=each.node_name,
                since=in_whole_seconds(each.since),
            )
            for each in under_way
        )
        return replace(status, moves=told, leaving=len(told))
