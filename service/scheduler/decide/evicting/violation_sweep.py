"""Evicts placed pods whose rules required during execution do not hold.

Evictions are decided like any request, on top of all earlier ones, and again after a lost race. A
separate object, changed in the same commit, stores when each pod affinity rule broke, how many pods
were evicted in the last minute, and which evictions a disruption budget blocks.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from service.engine.rules.violations import Inspection, Violation, key_of
from service.model.core.primitives import ObjectName
from service.model.pods.pod import PodSpec
from service.model.registry.manifests import PodManifest
from service.scheduler.decide.context import Decision, DecisionContext
from service.scheduler.decide.disruption_budgets import BudgetsByNamespace
from service.scheduler.decide.evicting.minimal_evictions import Cause, MinimalEvictions
from service.scheduler.decide.eviction_rate import (
    MINUTE,
    budget_left,
    eviction_state,
    recent_evictions,
)
from service.scheduler.decide.status.pod_conditions import (
    Rule,
    record_evicted,
    record_eviction_blocked,
    with_eviction,
)
from service.scheduler.protocol.answers import EvictionsAnswer
from service.scheduler.protocol.intents import EvictViolating
from service.scheduler.replica.stored_kinds import (
    BlockedEviction,
    EvictionsAt,
    EvictionState,
    ViolationTimer,
)

_STEP_CLASSES = 100
"""How many classes are examined in one step, before other tasks may run."""
EVICTIONS_MAX = 500
"""How many pods one commit may evict; the next commits evict the rest."""


def evict_violating(context: DecisionContext, intent: EvictViolating) -> Decision[EvictionsAnswer]:
    """Evict as many pods as allowed, start and stop timers, and return when to sweep again.

    Raises:
        Overloaded: too many races were lost.
    """
    context.check_attempts("Pods could not be evicted in time.")
    now, inspection = intent.clock(), Inspection(context.replica.cluster)
    broken: list[Violation] = []
    enduring = (
        pod_class
        for pod_class in context.replica.cluster.execution_classes()
        if not pod_class.terminating
    )
    for index, pod_class in enumerate(inspection.suspects(enduring)):
        broken += [v for v in inspection.of(pod_class) if v.breach.rule.execution == "Required"]
        if index % _STEP_CLASSES == _STEP_CLASSES - 1:
            yield
    sweep = Sweep(context, now, inspection, broken)
    sweep.run()
    return EvictionsAnswer(revision=context.replica.revision, due=sweep.due())


class Sweep:
    """One check of all rules for pods to evict, based on a single state and time."""

    def __init__(
        self,
        context: DecisionContext,
        now: datetime,
        inspection: Inspection,
        broken: list[Violation],
    ) -> None:
        self._context = context
        self._config = context.replica.config
        self._now = now
        self._broken = broken
        self._state = eviction_state(context.replica)
        self.recent = recent_evictions(self._state, now)
        """The evictions that count for the budget; those of this sweep are added at its end."""
        self._allowed = min(budget_left(self._config, self.recent), EVICTIONS_MAX)
        self._gone: set[ObjectName] = set()
        self._over: list[datetime] = []
        """The end times of the expired grace periods."""
        self._held_back = False
        """Whether more victims exist than are allowed now."""
        self._budgets = BudgetsByNamespace(context.replica.cluster)
        self._blocked: list[BlockedEviction] = []
        self._reported = frozenset(self._state.blocked)
        """The blocked evictions already reported to pods."""
        self._conflicts = MinimalEvictions(self._config, inspection)
        self._timers = {key_of_timer(timer): timer for timer in self._running_timers()}

    def run(self) -> None:
        """Evict pods, and store what changed."""
        seen: set[ObjectName] = set()
        for key, cause in self.victims():
            if key in seen:
                continue
            if len(self._gone) >= self._allowed:
                self._held_back = True
                break
            seen.add(key)
            self._evict_unless_blocked(key, cause)
        if self._held_back:
            self._blocked += [
                blocked
                for blocked in self._state.blocked
                if (blocked.namespace, blocked.name) not in seen
            ]
        self.remember()

    def due(self) -> datetime | None:
        """Return when the next timer ends or the next eviction is allowed, or None."""
        ends = map(self._end, self._timers.values())
        times = [end for end in ends if end > self._now]
        if self._held_back and len(self._gone) == EVICTIONS_MAX:
            return self._now
        if self._held_back and self.recent:
            times.append(self.recent[0].at + MINUTE)
        return min(times, default=None)

    def grace(self, timer: ViolationTimer) -> timedelta:
        """Return how long a timer's rule may be broken, as set by its term, its pod, or the cluster."""
        manifest = self._context.replica.pod(timer.namespace, timer.name)
        assert manifest is not None
        seconds = tolerance_seconds(manifest.pod.spec, timer.rule)
        return timedelta(
            seconds=self._config.affinity_violation_grace_seconds if seconds is None else seconds
        )

    def _end(self, timer: ViolationTimer) -> datetime:
        return timer.since + self.grace(timer)

    def victims(self) -> Iterator[tuple[ObjectName, Cause]]:
        """Yield the pods to evict, each at least once.

        Pods that only eviction can help come first: those with broken node affinity, and those with
        broken pod affinity past its grace period. Of the others, the fewest leave so that all rules
        hold.
        """
        lost = {
            key_of(violation.pod): _cause("NodeAffinity", violation)
            for violation in self._broken
            if violation.breach.rule.is_about_nodes
        }
        for violation in self._overdue():
            if violation.breach.competing_pods is None:
                lost.setdefault(key_of(violation.pod), _cause("PodAffinity", violation))
            else:
                self._conflicts.add(violation)
        for violation in self._broken:
            if violation.breach.domain_pods is not None:
                self._conflicts.add(violation)
        for key in lost:
            self._conflicts.leave(key)
        yield from lost.items()
        yield from self._conflicts.victims()

    def _overdue(self) -> Iterator[Violation]:
        """Yield the broken affinity rules whose grace period is over."""
        late = [timer for timer in self._timers.values() if self._end(timer) <= self._now]
        reasons = {timer_key(v): v for v in self._broken if _is_affinity(v)}
        for timer in sorted(late, key=self._end):
            self._over.append(self._end(timer))
            yield reasons[key_of_timer(timer)]

    def _evict_unless_blocked(self, key: ObjectName, cause: Cause) -> None:
        manifest = self._context.replica.pod(*key)
        assert manifest is not None
        budget = self._budgets.blocking(manifest.pod)
        if budget is None:
            self._evict(manifest, cause)
            return
        namespace, name = key
        blocked = BlockedEviction(namespace=namespace, name=name, uid=manifest.uid, budget=budget)
        self._blocked.append(blocked)
        if blocked not in self._reported:
            record_eviction_blocked(self._context, manifest, cause.rule, budget, cause.message)

    def _evict(self, manifest: PodManifest, cause: Cause) -> None:
        for time in self._over:
            self._context.hold_until(time)
        self._context.replica.put(
            with_eviction(self._context, manifest, cause.reason, cause.message)
        )
        record_evicted(self._context, manifest, cause.rule, cause.message)
        self._gone.add((manifest.namespace, manifest.name))

    def _running_timers(self) -> Iterator[ViolationTimer]:
        """Yield the timers of rules that are still broken, and new ones for new violations."""
        before = {key_of_timer(timer): timer for timer in self._state.timers}
        for violation in sorted(self._broken, key=timer_key):
            if _is_affinity(violation):
                key = timer_key(violation)
                namespace, name, uid, rule = key
                yield before.get(key) or ViolationTimer(
                    namespace=namespace, name=name, uid=uid, rule=rule, since=self._now
                )

    def remember(self) -> None:
        """Store timers and evictions if they changed; evicted pods need no timers."""
        self._timers = {k: t for k, t in self._timers.items() if k[:2] not in self._gone}
        if self._gone:
            self.recent.append(EvictionsAt(at=self._now, pods=len(self._gone)))
        timers = tuple(self._timers.values())
        blocked = tuple(
            sorted(
                self._blocked,
                key=lambda blocked_eviction: (blocked_eviction.namespace, blocked_eviction.name),
            )
        )
        if self._gone or timers != self._state.timers or blocked != self._state.blocked:
            recent = tuple(self.recent)
            self._context.replica.put(EvictionState(timers=timers, recent=recent, blocked=blocked))


TimerKey = tuple[str, str, str, str]
"""A pod's namespace, name, and uid, and the path of its broken rule."""


def key_of_timer(timer: ViolationTimer) -> TimerKey:
    """Return the key of a timer: its pod and rule."""
    return timer.namespace, timer.name, timer.uid, timer.rule


def timer_key(violation: Violation) -> TimerKey:
    """Return the key of a violation's timer."""
    pod = violation.pod
    return pod.namespace, pod.name, pod.uid, violation.breach.rule.path


def tolerance_seconds(spec: PodSpec, rule: str) -> int | None:
    """Return how long a pod tolerates a broken rule of its affinity, in seconds, or None.

    `rule` is the path of a pod affinity term that is required during execution.
    """
    affinity = spec.affinity.pod_affinity if spec.affinity else None
    assert affinity is not None
    terms = affinity.required_during_scheduling_required_during_execution or ()
    term = terms[int(rule.rpartition("[")[2].rstrip("]"))]
    own = term.tolerance_seconds
    return affinity.tolerance_seconds if own is None else own


def _is_affinity(violation: Violation) -> bool:
    breach = violation.breach
    return breach.rule.is_about_pods and breach.domain_pods is None


def _cause(rule: Rule, violation: Violation) -> Cause:
    path = violation.breach.rule.path
    return Cause(rule, f"{path} does not hold on node {violation.pod.node_name}.")
