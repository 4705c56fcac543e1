"""Advances each stored plan by one step, on the current state.

No earlier planning is stored: each step plans the next wave from the current state and carries it
out. So every change in between is taken into account, and a server can continue another server's
plans from the stored plans alone. Room for the replacements of evicted pods that still occupy their
nodes stays reserved.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from msgspec.structs import replace

from service.model.core.errors import InvalidManifest
from service.model.plans.plan import PLAN, KeptGoal, PlanBody, PlanProgress, WaitingPod, ended
from service.model.registry.manifests import DeclaredManifest, PodManifest
from service.scheduler.decide.admission.plan_admission import (
    is_active,
    plan_of,
    replace_of,
    with_status,
)
from service.scheduler.decide.context import Decision, DecisionContext, Steps
from service.scheduler.decide.disruption_budgets import Allowances
from service.scheduler.decide.move_reservations import give_up, reservations_in
from service.scheduler.decide.node_lifecycle.taints import in_whole_seconds, parse_time
from service.scheduler.decide.status.pod_conditions import (
    EVICTION_REASON,
    reasons_in,
    record_evicted,
    with_eviction,
)
from service.scheduler.plans.bounds import evictions_left
from service.scheduler.plans.drain.cordon import plans_in
from service.scheduler.plans.drained_pods import DrainUnit, pods_on, stays, units_of
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.rebalance.progress import RebalanceProgress
from service.scheduler.plans.replace.wave import (
    EXCEEDED,
    WaveLimits,
    deadline_of,
    is_done,
    observe_only,
    progress_after,
    take_wave,
)
from service.scheduler.plans.waves import (
    EVICTIONS_OVER,
    Blocked,
    Move,
    MoveLimits,
    Waves,
    blocked_by_budget,
)
from service.scheduler.protocol.intents import AdvancePlans
from service.scheduler.protocol.plans import FoundMoves, PlansAnswer, Search

WAITING_SHOWN_MAX = 20
"""How many waiting pods a plan's status shows."""
_ALWAYS_WAITS = ("DisruptionBudget", "BreaksRule", "MovesMax", "EvictionsMax", "Protected")


def advance_plans(context: DecisionContext, intent: AdvancePlans) -> Decision[PlansAnswer]:
    """Take the next step of each plan, and delete plans that ended long ago.

    Raises:
        Overloaded: too many races were lost.
    """
    context.check_attempts("The plans could not be gone on with in time.")
    advance = _Advance(context, intent.clock(), intent.found_moves)
    plans = plans_in(context.replica)
    advance.drop_reservations(plans)
    for plan in plans:
        advance.cordon(plan_of(plan).body)
    for plan in plans:
        yield from advance.go_on(plan)
    return PlansAnswer(
        revision=context.replica.revision,
        due=advance.due,
        evicted=advance.evicted,
        searches=tuple(advance.searches),
    )


class _Advance:
    """One step of all plans, based on a single state and time of the cluster."""

    def __init__(
        self, context: DecisionContext, now: datetime, found_moves: Sequence[FoundMoves]
    ) -> None:
        self._found = {(moves.search.plan, moves.search.uid): moves for moves in found_moves}
        self.searches: list[Search] = []
        self._context = context
        self._replica = context.replica
        self._now = now
        self._most = context.limits.plan_evictions_max
        self.evicted = 0
        self.due: datetime | None = None

    def cordon(self, body: PlanBody) -> None:
        """Cordon a plan's nodes, including any that were uncordoned in the meantime."""
        if not _is_running(body):
            return
        for name in body.spec.goal.node_names:
            node = self._replica.node(name)
            if node is not None and not node.node.unschedulable:
                self._replica.put(node.with_cordon(unschedulable=True))

    def go_on(self, plan: DeclaredManifest) -> Steps[None]:
        """Take the next step of a plan, and record its progress."""
        body = plan_of(plan).body
        if body.has_ended:
            self._forget_in_time(plan, body.status)
            return
        if not body.status.started_at and body.spec.state == "Paused":
            return
        at = in_whole_seconds(self._now)
        status = body.status if body.status.started_at else PlanProgress(started_at=at)
        if body.spec.state == "Cancelled":
            status = ended(status, "Cancelled", at)
        elif body.spec.goal.type == "Replace":
            status = yield from self._rolled(plan.name, body, status, at)
        elif body.spec.goal.type == "Rebalance":
            status = yield from self._balanced(plan, body, status, at)
        else:
            status = yield from self._stepped(body, status, at)
        if status != body.status:
            self._replica.put(with_status(plan, status))

    def _forget_in_time(self, plan: DeclaredManifest, status: PlanProgress) -> None:
        since = parse_time(status.ended_at) if status.ended_at else self._now
        end = since + timedelta(seconds=self._context.limits.plan_kept_seconds)
        if end > self._now:
            self._look_again(end)
            return
        self._context.hold_until(end)
        self._replica.delete(PLAN.kind, "", plan.name)

    def _look_again(self, at: datetime) -> None:
        self.due = at if self.due is None else min(self.due, at)

    def _stepped(self, body: PlanBody, status: PlanProgress, at: str) -> Steps[PlanProgress]:
        names = body.spec.goal.node_names
        present = pods_on(self._replica, names)
        staying = sum(map(stays, present))
        units = units_of(present)
        leaving: list[PodManifest] = []
        blocked: list[tuple[PodManifest, Blocked]] = []
        if units and _is_running(body):
            leaving, blocked = yield from self._next_wave(body, units, present)
            for pod in leaving:
                self._evict(pod)
        waiting = sum(len(unit.pods) for unit in units) - len(leaving)
        status = replace(
            status,
            phase="Running" if _is_running(body) else "Paused",
            evicted=status.evicted + len(leaving),
            leaving=len(present) - staying - waiting,
            waiting=waiting,
            staying=staying,
            waiting_pods=_waiting_pods(blocked, status.waiting_pods) if _is_running(body) else (),
        )
        if _is_running(body) and not status.leaving and not status.waiting:
            return ended(status, "Succeeded", at)
        return status

    def _rolled(
        self, name: str, body: PlanBody, status: PlanProgress, at: str
    ) -> Steps[PlanProgress]:
        """Take the next wave of a rollout if it is due; return the rollout's progress."""
        running, kept_goal = _is_running(body), body.spec.goal
        try:
            goal = replace_of(kept_goal, self._context.templates)
        except InvalidManifest as error:  # a limit was lowered, or another version wrote the plan
            return replace(status, waiting_pods=(_unreadable(error),))
        if not running:
            wave = yield from observe_only(self._context, goal)
        else:
            most = self._most - self.evicted
            evict = partial(self._evict_replaced, name)
            bounds = WaveLimits(most, evictions_left(body), body.spec.bounds.protect)
            wave = yield from take_wave(self._context, goal, evict, bounds)
        resumed = running and (body.status.phase == "Paused" or not status.progressed_at)
        status = replace(
            progress_after(wave, status, at, resumed=resumed),
            phase="Running" if running else "Paused",
            waiting_pods=_waiting_pods(wave.waiting, status.waiting_pods),
        )
        if not running:
            return status
        return (
            ended(status, "Succeeded", at)
            if is_done(status, goal)
            else self._timed(status, kept_goal)
        )

    def drop_reservations(self, plans: Sequence[DeclaredManifest]) -> None:
        """Drop move reservations of plans that were deleted or have ended."""
        active = {(plan.name, plan.uid) for plan in plans if is_active(plan)}
        for reservation in reservations_in(self._replica):
            if (reservation.plan, reservation.plan_uid) not in active:
                give_up(self._replica, reservation)

    def _balanced(
        self, plan: DeclaredManifest, body: PlanBody, status: PlanProgress, at: str
    ) -> Steps[PlanProgress]:
        """Make the next moves of a rebalancing plan, or request a search; return its progress."""
        balance = RebalanceProgress(self._context, plan, self._now, most=self._most - self.evicted)
        found_moves = self._found.get((plan.name, plan.uid))
        step = yield from balance.go_on(status, found_moves)
        self.evicted += step.evicted
        if step.search is not None:
            self.searches.append(step.search)
        if step.due is not None:
            self._look_again(step.due)
        status = replace(
            step.status,
            phase="Running" if _is_running(body) else "Paused",
            waiting_pods=_waiting_pods(step.waiting, status.waiting_pods),
        )
        return ended(status, "Succeeded", at) if step.is_done else status

    def _timed(self, status: PlanProgress, goal: KeptGoal) -> PlanProgress:
        """Mark a plan as overdue, or schedule the next check for its deadline."""
        if status.reason is not None:
            return status
        end = deadline_of(status, goal)
        if end > self._now:
            self._look_again(end)
            return status
        self._context.hold_until(end)
        return replace(status, reason=EXCEEDED)

    def _evict_replaced(self, plan: str, manifest: PodManifest) -> None:
        """Evict an old pod, or delete it at once if it has no node."""
        self.evicted += 1
        if manifest.pod.node_name is None:
            self._replica.delete(manifest.kind, manifest.namespace, manifest.name)
            self._replica.end_reservation((manifest.namespace, manifest.name))
            return
        message = f"Replace: the plan {plan} replaces it"
        self._replica.put(with_eviction(self._context, manifest, EVICTION_REASON, message))
        record_evicted(self._context, manifest, "Replace", message)

    def _next_wave(
        self, body: PlanBody, units: Sequence[DrainUnit], present: Sequence[PodManifest]
    ) -> Steps[tuple[list[PodManifest], list[tuple[PodManifest, Blocked]]]]:
        """Return the pods that can leave now, and the others with reasons; restore the fork."""
        fork = Fork(self._context.speculative())
        limited = self._limited(body)
        waves = Waves(fork, frozenset(body.spec.goal.node_names), units, limited)
        yield from waves.reserve_room([p for p in present if p.pod.terminating and not stays(p)])
        moves: list[Move] = yield from waves.next_wave()
        yield from fork.restore()
        leaving = [move.pod for move in moves]
        blocked = [(unit, waves.blocked[unit]) for unit in waves.waiting if unit in waves.blocked]
        if body.spec.when_unschedulable == "Evict":
            blocked = self._leave_anyway(blocked, leaving, evictions_left(body))
        blocked_pods = [(pod, reason) for unit, reason in blocked for pod in unit.pods]
        return leaving, [
            (pod, reason) for pod, reason in blocked_pods if reason.reason != "MovesMax"
        ]

    def _limited(self, body: PlanBody) -> MoveLimits:
        """Return how many pods a drain may evict now, and which ones are protected."""
        room, protect = self._most - self.evicted, body.spec.bounds.protect
        most = evictions_left(body)
        if most is not None and most < room:
            return MoveLimits(most, over=EVICTIONS_OVER, protect=protect)
        return MoveLimits(room, first_whole=not self.evicted and most is None, protect=protect)

    def _leave_anyway(
        self,
        blocked: Sequence[tuple[DrainUnit, Blocked]],
        leaving: list[PodManifest],
        most: int | None,
    ) -> list[tuple[DrainUnit, Blocked]]:
        """Evict pods that fit nowhere else, within the budgets; return the others, with reasons."""
        allowances = Allowances(self._replica.cluster)
        allowances.take([pod.pod for pod in leaving])
        stay: list[tuple[DrainUnit, Blocked]] = []
        for unit, reason in blocked:
            pods = [pod.pod for pod in unit.pods]
            room = self._most - self.evicted - len(leaving)
            too_many = len(pods) > room and bool(leaving or self.evicted)
            if reason.reason in _ALWAYS_WAITS or too_many:
                stay.append((unit, reason))
            elif most is not None and len(leaving) + len(pods) > most:
                stay.append((unit, EVICTIONS_OVER))
            elif (budget := allowances.blocking(pods)) is not None:
                stay.append((unit, blocked_by_budget(budget)))
            else:
                allowances.take(pods)
                leaving += unit.pods
        return stay

    def _evict(self, manifest: PodManifest) -> None:
        message = f"Drain: node {manifest.pod.node_name} is drained"
        self._replica.put(with_eviction(self._context, manifest, EVICTION_REASON, message))
        record_evicted(self._context, manifest, "Drain", message)
        self.evicted += 1


def _unreadable(error: InvalidManifest) -> WaitingPod:
    return WaitingPod(reason="InvalidManifest", message=str(error))


def _is_running(body: PlanBody) -> bool:
    return not body.has_ended and body.spec.state == "Running"


def _waiting_pods(
    blocked: Sequence[tuple[PodManifest, Blocked]], before: Sequence[WaitingPod]
) -> tuple[WaitingPod, ...]:
    """Return the waiting pods to show, repeating old messages that differ only in node counts."""
    known = {(waiting.namespace, waiting.name): waiting for waiting in before}
    waiting_pods = []
    for pod, why in sorted(blocked, key=lambda entry: (entry[0].namespace, entry[0].name)):
        now = WaitingPod(
            namespace=pod.namespace,
            name=pod.name,
            reason=why.reason,
            message=why.message,
            budget=why.budget,
        )
        old = known.get((pod.namespace, pod.name))
        waiting_pods.append(old if old is not None and _says_the_same(old, now) else now)
    return tuple(waiting_pods[:WAITING_SHOWN_MAX])


def _says_the_same(old: WaitingPod, now: WaitingPod) -> bool:
    same = (old.reason, old.budget) == (now.reason, now.budget)
    return same and reasons_in(old.message) == reasons_in(now.message)
