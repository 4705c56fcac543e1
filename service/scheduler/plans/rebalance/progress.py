"""The progress of a stored rebalancing plan: completed moves, next moves, and the end.

Reservations record the moves in progress, and the cluster's state shows the others, so a server can
continue another server's plan from stored objects alone.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from service.model.plans.plan import ObjectiveProgress, PlanMove, PlanProgress
from service.model.plans.rebalance_objectives import OBJECTIVES_WANTED, block_amount
from service.model.registry.manifests import DeclaredManifest, PodManifest
from service.scheduler.decide.admission.plan_admission import plan_of
from service.scheduler.decide.context import DecisionContext, Steps
from service.scheduler.decide.move_reservations import give_up, reservations_in, reserve
from service.scheduler.decide.node_lifecycle.taints import in_whole_seconds
from service.scheduler.decide.status.pod_conditions import (
    EVICTION_REASON,
    record_evicted,
    with_eviction,
)
from service.scheduler.plans.bounds import evictions_left
from service.scheduler.plans.rebalance.moves import Measured, measure, next_moves
from service.scheduler.plans.waves import Blocked
from service.scheduler.protocol.plans import FoundMoves, PlanBounds, Rebalance, Search, Selection
from service.scheduler.replica.stored_kinds import MoveReservation


class RebalanceStep(NamedTuple):
    """The result of one check of a rebalancing plan."""

    status: PlanProgress
    evicted: int = 0
    waiting: Sequence[tuple[PodManifest, Blocked]] = ()
    """The pods that should move but currently cannot, with reasons."""
    search: Search | None = None
    """The search for the next moves, or None if no moves are allowed now."""
    due: datetime | None = None
    """When to look again even without changes, or None."""
    is_done: bool = False


class RebalanceProgress:
    """One check of a rebalancing plan, based on a single state and time of the cluster."""

    def __init__(
        self, context: DecisionContext, plan: DeclaredManifest, now: datetime, *, most: int
    ) -> None:
        """Create a check that evicts at most `most` pods."""
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

    def go_on(self, status: PlanProgress, found_moves: FoundMoves | None) -> Steps[RebalanceStep]:
        """Record completed moves, then make the moves found by a search, or request a search."""
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
        if found_moves is None or (found_moves.search.under_way and not under_way):
            return RebalanceStep(
                self._with_moves(status), due=due, search=self._search(status, under_way)
            )
        return (yield from self._moved(status, found_moves, due))

    def _moved(
        self, status: PlanProgress, found_moves: FoundMoves, due: datetime | None
    ) -> Steps[RebalanceStep]:
        """Make the found moves that are still possible, or end the plan if no moves were found."""
        room = self._room(status, len(self._under_way()))
        search = replace(found_moves.search, goal=replace(self._goal, moves_max=room))
        moving = yield from next_moves(self._context, search, found_moves.steps)
        for move in moving.moves:
            self._evict(move.pod, move.to)
        measured = yield from measure(self._context, self._goal)
        status = self._measured(status, measured)
        status = self._with_moves(replace(status, evicted=status.evicted + len(moving.moves)))
        if found_moves.steps and not moving.moves:  # The state has changed since, so plan again.
            again = self._now + timedelta(seconds=self._context.limits.plan_look_seconds)
            due = again if due is None else min(due, again)
        is_done = not found_moves.steps and not status.moves
        if is_done and not found_moves.complete:
            status = replace(status, reason="SecondsOver")
        return RebalanceStep(
            status,
            len(moving.moves),
            moving.blocked,
            due=due or self._next_expiry(self._under_way()),
            is_done=is_done,
        )

    @property
    def _is_running(self) -> bool:
        return self._body.spec.state == "Running"

    # Completed moves

    def _followed(self, status: PlanProgress) -> PlanProgress:
        """Count moves whose replacement arrived or timed out, and drop their reservations."""
        moved, elsewhere, missing = status.moved, status.elsewhere, status.missing
        for reservation in self._reservations():
            if reservation.came_to:
                moved += reservation.came_to == reservation.node_name
                elsewhere += reservation.came_to != reservation.node_name
            elif self._end_of(reservation) <= self._now:
                missing += 1
                self._context.hold_until(self._end_of(reservation))
            else:
                continue
            give_up(self._replica, reservation)
        return replace(status, moved=moved, elsewhere=elsewhere, missing=missing)

    def _reservations(self) -> list[MoveReservation]:
        own = (self._plan.name, self._plan.uid)
        return [
            reservation
            for reservation in reservations_in(self._replica)
            if (reservation.plan, reservation.plan_uid) == own
        ]

    def _under_way(self) -> list[MoveReservation]:
        return [reservation for reservation in self._reservations() if not reservation.came_to]

    def _end_of(self, reservation: MoveReservation) -> datetime:
        return reservation.since + timedelta(seconds=self._context.limits.plan_reservation_seconds)

    def _next_expiry(self, under_way: Sequence[MoveReservation]) -> datetime | None:
        return min(map(self._end_of, under_way), default=None)

    # Next moves

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
        remaining = self._left(status)
        most = min(free, self._most)
        return most if remaining is None else min(most, remaining)

    def _left(self, status: PlanProgress) -> int | None:
        """Return how many more pods the plan may evict in total, or None for any number."""
        known = [self._moves_left(status), evictions_left(self._body)]
        return min((bound for bound in known if bound is not None), default=None)

    def _moves_left(self, status: PlanProgress) -> int | None:
        return None if self._moves_max is None else max(self._moves_max - status.evicted, 0)

    def _evict(self, manifest: PodManifest, to: str) -> None:
        message = f"Rebalance: the plan {self._plan.name} moves it to {to}"
        self._replica.put(with_eviction(self._context, manifest, EVICTION_REASON, message))
        record_evicted(self._context, manifest, "Rebalance", message)
        reserve(self._replica, self._plan, manifest, to, self._now)

    # Status

    def _measured(self, status: PlanProgress, measured: Measured) -> PlanProgress:
        before = {
            objective.name: objective.before
            for objective in status.objectives
            if objective.before is not None
        }
        objectives = tuple(
            ObjectiveProgress(name=name, before=before.get(name, value[0]), now=value[0])
            for name, value in zip(self._names, measured, strict=True)
        )
        return replace(status, objectives=objectives)

    def _with_moves(self, status: PlanProgress) -> PlanProgress:
        under_way = self._under_way()
        moves = tuple(
            PlanMove(
                namespace=reservation.namespace,
                name=reservation.name,
                from_node=reservation.pod.pod.node_name or "",
                to=reservation.node_name,
                since=in_whole_seconds(reservation.since),
            )
            for reservation in under_way
        )
        return replace(status, moves=moves, leaving=len(moves))
