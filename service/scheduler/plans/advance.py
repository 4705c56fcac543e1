"""The next step of each plan that is kept, on the state of now.

Nothing is remembered of what was planned before: each step plans the next wave anew, and takes it.
So whatever has changed meanwhile is heeded, and a server that goes on with the plans of another
one needs to know nothing but the plans. Pods that were evicted and are still on their nodes have
their followers' room kept in the calculation.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from msgspec.structs import replace

from service.model.errors import InvalidManifest
from service.model.manifests.manifest import KeptManifest, PodManifest
from service.model.plans.plans import PLAN, KeptGoal, PlanBody, PlanProgress, WaitingPod, ended
from service.scheduler.decide.admission.plan_admission import (
    is_active,
    plan_of,
    replace_of,
    with_status,
)
from service.scheduler.decide.context import Decision, DecisionContext, Steps
from service.scheduler.decide.disruption_budgets import Allowances
from service.scheduler.decide.move_reservations import give_up, reservations_in
from service.scheduler.decide.node_lifecycle.taints import in_whole_seconds, parsed
from service.scheduler.decide.status.pod_conditions import (
    EVICTION_REASON,
    evicted,
    reasons_in,
    tell_evicted,
)
from service.scheduler.plans.drain.cordon import plans_in
from service.scheduler.plans.drained_pods import DrainUnit, pods_on, stays, units_of
from service.scheduler.plans.eviction_bounds import evictions_left
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.rebalance.progress import RebalanceProgress
from service.scheduler.plans.replace.wave import (
    EXCEEDED,
    WaveLimits,
    deadline_of,
    is_done,
    look_only,
    progress_after,
    take_wave,
)
from service.scheduler.plans.waves import (
    EVICTIONS_OVER,
    Kept,
    Limited,
    Move,
    Waves,
    kept_by_budget,
)
from service.scheduler.protocol.intents import AdvancePlans
from service.scheduler.protocol.plans import FoundMoves, PlansAnswer, Search

WAITING_SHOWN_MAX = 20
"""The number of waiting pods of which the status of a plan tells."""
_ALWAYS_WAITS = ("DisruptionBudget", "BreaksRule", "MovesMax", "EvictionsMax", "Protected")


def advance_plans(context: DecisionContext, intent: AdvancePlans) -> Decision[PlansAnswer]:
    """Take the next step of each plan, and delete plans that ended long ago.

    Raises:
        Overloaded: too many races were lost.
    """
    context.give_up_in_time("The plans could not be gone on with in time.")
    advance = _Advance(context, intent.clock(), intent.found)
    plans = plans_in(context.replica)
    advance.give_up_room(plans)
    for each in plans:
        advance.cordon(plan_of(each).body)
    for each in plans:
        yield from advance.go_on(each)
    return PlansAnswer(
        revision=context.replica.revision,
        due=advance.due,
        evicted=advance.evicted,
        searches=tuple(advance.searches),
    )


class _Advance:
    """One step of all plans, on one state and at one time."""

    def __init__(
        self, context: DecisionContext, now: datetime, found: Sequence[FoundMoves]
    ) -> None:
        self._found = {(each.search.plan, each.search.uid): each for each in found}
        self.searches: list[Search] = []
        self._context = context
        self._replica = context.replica
        self._now = now
        self._most = context.limits.plan_evictions_max
        self.evicted = 0
        self.due: datetime | None = None

    def cordon(self, body: PlanBody) -> None:
        """Cordon the nodes of a plan, also if somebody has uncordoned them since."""
        if not _is_running(body):
            return
        for name in body.spec.goal.node_names:
            node = self._replica.node(name)
            if node is not None and not node.node.unschedulable:
                self._replica.put(node.with_cordon(unschedulable=True))

    def go_on(self, plan: KeptManifest) -> Steps[None]:
        """Take the next step of a plan, and write down how far it has come."""
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

    def _forget_in_time(self, plan: KeptManifest, status: PlanProgress) -> None:
        since = parsed(status.ended_at) if status.ended_at else self._now
        end = since + timedelta(seconds=self._context.limits.plan_kept_seconds)
        if end > self._now:
            self._look_again(end)
            return
        self._context.rest_on(end)
        self._replica.delete(PLAN.kind, "", plan.name)

    def _look_again(self, at: datetime) -> None:
        self.due = at if self.due is None else min(self.due, at)

    def _stepped(self, body: PlanBody, status: PlanProgress, at: str) -> Steps[PlanProgress]:
        names = body.spec.goal.node_names
        present = pods_on(self._replica, names)
        staying = sum(map(stays, present))
        units = units_of(present)
        gone: list[PodManifest] = []
        kept: list[tuple[PodManifest, Kept]] = []
        if units and _is_running(body):
            gone, kept = yield from self._next_wave(body, units, present)
            for each in gone:
                self._evict(each)
        waiting = sum(len(each.pods) for each in units) - len(gone)
        status = replace(
            status,
            phase="Running" if _is_running(body) else "Paused",
            evicted=status.evicted + len(gone),
            leaving=len(present) - staying - waiting,
            waiting=waiting,
            staying=staying,
            waiting_pods=_told(kept, status.waiting_pods) if _is_running(body) else (),
        )
        if _is_running(body) and not status.leaving and not status.waiting:
            return ended(status, "Succeeded", at)
        return status

    def _rolled(
        self, name: str, body: PlanBody, status: PlanProgress, at: str
    ) -> Steps[PlanProgress]:
        """Take the next wave of a rolling release, if its time has come."""
        running, kept_goal = _is_running(body), body.spec.goal
        try:
            goal = replace_of(kept_goal, self._context.templates)
        except InvalidManifest as error:  # a limit was lowered, or another version wrote it
            return replace(status, waiting_pods=(_unreadable(error),))
        if not running:
            wave = yield from look_only(self._context, goal)
        else:
            most = self._most - self.evicted
            evict = partial(self._evict_replaced, name)
            bounds = WaveLimits(most, evictions_left(body), body.spec.bounds.protect)
            wave = yield from take_wave(self._context, goal, evict, bounds)
        resumed = running and (body.status.phase == "Paused" or not status.progressed_at)
        status = replace(
            progress_after(wave, status, at, resumed=resumed),
            phase="Running" if running else "Paused",
            waiting_pods=_told(wave.waiting, status.waiting_pods),
        )
        if not running:
            return status
        return (
            ended(status, "Succeeded", at)
            if is_done(status, goal)
            else self._timed(status, kept_goal)
        )

    def give_up_room(self, plans: Sequence[KeptManifest]) -> None:
        """Keep no room any more for moves of plans that are not there, or have ended."""
        active = {(each.name, each.uid) for each in plans if is_active(each)}
        for each in reservations_in(self._replica):
            if (each.plan, each.plan_uid) not in active:
                give_up(self._replica, each)

    def _balanced(
        self, plan: KeptManifest, body: PlanBody, status: PlanProgress, at: str
    ) -> Steps[PlanProgress]:
        """Make the next moves of a plan that rebalances, or have them searched."""
        balance = RebalanceProgress(self._context, plan, self._now, most=self._most - self.evicted)
        found = self._found.get((plan.name, plan.uid))
        step = yield from balance.go_on(status, found)
        self.evicted += step.evicted
        if step.search is not None:
            self.searches.append(step.search)
        if step.due is not None:
            self._look_again(step.due)
        status = replace(
            step.status,
            phase="Running" if _is_running(body) else "Paused",
            waiting_pods=_told(step.waiting, status.waiting_pods),
        )
        return ended(status, "Succeeded", at) if step.is_done else status

    def _timed(self, status: PlanProgress, goal: KeptGoal) -> PlanProgress:
        """Note that a plan is without progress for too long, or look again when it would be."""
        if status.reason is not None:
            return status
        end = deadline_of(status, goal)
        if end > self._now:
            self._look_again(end)
            return status
        self._context.rest_on(end)
        return replace(status, reason=EXCEEDED)

    def _evict_replaced(self, plan: str, manifest: PodManifest) -> None:
        """Have an old pod go; one without a node is gone at once."""
        self.evicted += 1
        if manifest.pod.node_name is None:
            self._replica.delete(manifest.kind, manifest.namespace, manifest.name)
            self._replica.end_reservation((manifest.namespace, manifest.name))
            return
        message = f"Replace: the plan {plan} replaces it"
        self._replica.put(evicted(self._context, manifest, EVICTION_REASON, message))
        tell_evicted(self._context, manifest, "Replace", message)

    def _next_wave(
        self, body: PlanBody, units: Sequence[DrainUnit], present: Sequence[PodManifest]
    ) -> Steps[tuple[list[PodManifest], list[tuple[PodManifest, Kept]]]]:
        """Find out who can leave now, and why the others cannot, on a fork that is undone again."""
        fork = Fork(self._context.aside())
        limited = self._limited(body)
        waves = Waves(fork, frozenset(body.spec.goal.node_names), units, limited)
        yield from waves.keep_room([p for p in present if p.pod.terminating and not stays(p)])
        moves: list[Move] = yield from waves.next_wave()
        yield from fork.restore()
        gone = [each.pod for each in moves]
        left = [(unit, waves.kept[unit]) for unit in waves.waiting if unit in waves.kept]
        if body.spec.when_unschedulable == "Evict":
            left = self._leave_anyway(left, gone, evictions_left(body))
        told = [(pod, kept) for unit, kept in left for pod in unit.pods]
        return gone, [(pod, kept) for pod, kept in told if kept.reason != "MovesMax"]

    def _limited(self, body: PlanBody) -> Limited:
        """Return how many pods a drain may evict now, and which it may not."""
        left, protect = self._most - self.evicted, body.spec.bounds.protect
        most = evictions_left(body)
        if most is not None and most < left:
            return Limited(most, over=EVICTIONS_OVER, protect=protect)
        return Limited(left, first_whole=not self.evicted and most is None, protect=protect)

    def _leave_anyway(
        self, left: Sequence[tuple[DrainUnit, Kept]], gone: list[PodManifest], most: int | None
    ) -> list[tuple[DrainUnit, Kept]]:
        """Add to `gone` whom no other node takes, as far as budgets allow it; return who stays, and why."""
        allowances = Allowances(self._replica.cluster)
        allowances.take([each.pod for each in gone])
        stay: list[tuple[DrainUnit, Kept]] = []
        for unit, kept in left:
            pods = [each.pod for each in unit.pods]
            room = self._most - self.evicted - len(gone)
            too_many = len(pods) > room and bool(gone or self.evicted)
            if kept.reason in _ALWAYS_WAITS or too_many:
                stay.append((unit, kept))
            elif most is not None and len(gone) + len(pods) > most:
                stay.append((unit, EVICTIONS_OVER))
            elif (budget := allowances.blocking(pods)) is not None:
                stay.append((unit, kept_by_budget(budget)))
            else:
                allowances.take(pods)
                gone += unit.pods
        return stay

    def _evict(self, manifest: PodManifest) -> None:
        message = f"Drain: node {manifest.pod.node_name} is drained"
        self._replica.put(evicted(self._context, manifest, EVICTION_REASON, message))
        tell_evicted(self._context, manifest, "Drain", message)
        self.evicted += 1


def _unreadable(error: InvalidManifest) -> WaitingPod:
    return WaitingPod(reason="InvalidManifest", message=str(error))


def _is_running(body: PlanBody) -> bool:
    return not body.has_ended and body.spec.state == "Running"


def _told(
    kept: Sequence[tuple[PodManifest, Kept]], before: Sequence[WaitingPod]
) -> tuple[WaitingPod, ...]:
    """Tell of the first waiting pods; words in which only numbers of nodes differ stay as they were."""
    known = {(each.namespace, each.name): each for each in before}
    told = []
    for pod, why in sorted(kept, key=lambda each: (each[0].namespace, each[0].name)):
        now = WaitingPod(
            namespace=pod.namespace,
            name=pod.name,
            reason=why.reason,
            message=why.message,
            budget=why.budget,
        )
        old = known.get((pod.namespace, pod.name))
        told.append(old if old is not None and _says_the_same(old, now) else now)
    return tuple(told[:WAITING_SHOWN_MAX])


def _says_the_same(old: WaitingPod, now: WaitingPod) -> bool:
    same = (old.reason, old.budget) == (now.reason, now.budget)
    return same and reasons_in(old.message) == reasons_in(now.message)
