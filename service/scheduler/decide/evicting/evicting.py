"""Evicting placed pods whose rules that are required during execution do not hold.

Evictions are decided like every request, on the state with all earlier ones applied, and again
after every lost race. Since when a rule of pod affinity does not hold, and how many pods were
evicted in the last minute, is stored in an object of its own, which changes in the same commit.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from service.engine import Cluster
from service.engine.questions.violations import Inspection, Violation, key_of
from service.model.config import ClusterConfig
from service.model.errors import Overloaded
from service.model.objects import ObjectName
from service.scheduler.decide.conditions import evicted
from service.scheduler.decide.context import Decision, DecisionContext
from service.scheduler.decide.events import Rule, tell_evicted
from service.scheduler.decide.evicting.anti_affinity_victims import Cause, Conflicts
from service.scheduler.protocol.answers import EvictionsAnswer
from service.scheduler.protocol.intents import EvictViolating
from service.scheduler.replica.kinds import EvictionsAt, EvictionState, ViolationTimer
from service.scheduler.replica.replica import Replica

_STEP_CLASSES = 100
"""How many classes are looked at in one step, before other tasks may run."""
_ATTEMPTS_MAX = 10
"""After so many attempts, with all races lost, the request is given up and made again later."""
EVICTIONS_MAX = 500
"""How many pods one commit may evict; the rest follow in the next."""
_MINUTE = timedelta(minutes=1)


def eviction_state(replica: Replica) -> EvictionState:
    """Return the stored state of evictions, or an empty one if none is stored."""
    stored = replica.get(EvictionState.kind, EvictionState.namespace, EvictionState.name)
    if stored is None:
        return EvictionState()
    assert isinstance(stored.manifest, EvictionState)
    return stored.manifest


def evict_violating(context: DecisionContext, intent: EvictViolating) -> Decision[EvictionsAnswer]:
    """Evict as many pods as may be evicted now, start and stop timers, and say when to look again.

    Raises:
        Overloaded: too many races were lost.
    """
    if context.attempts > _ATTEMPTS_MAX:
        raise Overloaded("Pods could not be evicted in time.")
    now, inspection = intent.clock(), Inspection(context.replica.cluster)
    broken: list[Violation] = []
    enduring = (each for each in context.replica.cluster.enduring_classes() if not each.terminating)
    for index, pod_class in enumerate(inspection.suspects(enduring)):
        broken += [v for v in inspection.of(pod_class) if v.breach.rule.execution == "Required"]
        if index % _STEP_CLASSES == _STEP_CLASSES - 1:
            yield
    sweep = Sweep(context, now, inspection, broken)
    sweep.run()
    return EvictionsAnswer(revision=context.replica.revision, due=sweep.due())


def recent_evictions(state: EvictionState, now: datetime) -> list[EvictionsAt]:
    """Return the evictions of the last minute, which the budget counts."""
    return [each for each in state.recent if each.at > now - _MINUTE]


def budget_left(config: ClusterConfig, recent: Iterable[EvictionsAt]) -> int:
    """How many more pods may be evicted now."""
    return config.evictions_per_minute - sum(each.pods for each in recent)


class Sweep:
    """One look for pods to evict, at all rules on one state and at one time."""

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
        self._held_back = False
        """Whether there are victims beyond what is allowed now."""
        self._conflicts = Conflicts(self._config, inspection)
        self._timers = {key_of_timer(each): each for each in self._running_timers()}

    def run(self) -> None:
        """Evict, and remember what changed."""
        for key, cause in self.victims():
            if key in self._gone:
                continue
            if len(self._gone) >= self._allowed:
                self._held_back = True
                break
            self._evict(key, cause)
        self.remember()

    def due(self) -> datetime | None:
        """When the next timer ends or the next eviction is allowed; None if neither is to come."""
        grace = self.grace
        ends = [timer.since + grace for timer in self._timers.values()]
        times = [end for end in ends if end > self._now]
        if self._held_back and len(self._gone) == EVICTIONS_MAX:
            return self._now
        if self._held_back and self.recent:
            times.append(self.recent[0].at + _MINUTE)
        return min(times, default=None)

    @property
    def grace(self) -> timedelta:
        """How long affinity that is required during execution may be broken."""
        return timedelta(seconds=self._config.affinity_violation_grace_seconds)

    def victims(self) -> Iterator[tuple[ObjectName, Cause]]:
        """Find whom to evict: for node affinity, then for anti-affinity, then for affinity.

        For each of these rules, the victims of the earlier ones count as gone.
        """
        for violation in self._broken:
            if violation.breach.rule.plugin == "NodeAffinity":
                yield key_of(violation.pod), _cause("NodeAffinity", violation)
        for violation in self._broken:
            if violation.breach.crowd is not None:
                self._conflicts.add(violation)
        for key in self._gone:
            self._conflicts.leave(key)
        yield from self._conflicts.victims()
        yield from self._overdue()

    def _overdue(self) -> Iterator[tuple[ObjectName, Cause]]:
        late = [each for each in self._timers.values() if each.since + self.grace <= self._now]
        reasons = {timer_key(v): v for v in self._broken if _is_affinity(v)}
        for timer in sorted(late, key=lambda each: each.since):
            violation = reasons[key_of_timer(timer)]
            self._act_on(timer.since + self.grace)
            yield key_of(violation.pod), _cause("PodAffinity", violation)

    def _act_on(self, time: datetime) -> None:
        """Note that the decision rests on that time having come (P16)."""
        self._context.not_before = max(self._context.not_before or time, time)

    def _evict(self, key: ObjectName, cause: Cause) -> None:
        manifest = self._context.replica.pod(*key)
        assert manifest is not None
        self._context.replica.put(evicted(self._context, manifest, cause.reason, cause.message))
        tell_evicted(self._context, manifest, cause.rule, cause.message)
        self._gone.add(key)

    def _running_timers(self) -> Iterator[ViolationTimer]:
        """Keep the timers of rules that still don't hold, and start one for each newly broken rule."""
        before = {key_of_timer(each): each for each in self._state.timers}
        for violation in sorted(self._broken, key=timer_key):
            if _is_affinity(violation):
                key = timer_key(violation)
                namespace, name, uid, rule = key
                yield before.get(key) or ViolationTimer(
                    namespace=namespace, name=name, uid=uid, rule=rule, since=self._now
                )

    def remember(self) -> None:
        """Store timers and evictions if they changed; a pod that is evicted needs no timer any more."""
        self._timers = {k: t for k, t in self._timers.items() if k[:2] not in self._gone}
        if self._gone:
            self.recent.append(EvictionsAt(at=self._now, pods=len(self._gone)))
        timers = tuple(self._timers.values())
        if self._gone or timers != self._state.timers:
            state = EvictionState(timers=timers, recent=tuple(self.recent))
            self._context.replica.put(state)


TimerKey = tuple[str, str, str, str]
"""A pod's namespace, name and uid, and the path of the rule that it breaks."""


def key_of_timer(timer: ViolationTimer) -> TimerKey:
    """Return the pod and the rule that a timer is for."""
    return timer.namespace, timer.name, timer.uid, timer.rule


def timer_key(violation: Violation) -> TimerKey:
    """Return the key of the timer that belongs to a violation."""
    pod = violation.pod
    return pod.namespace, pod.name, pod.uid, violation.breach.rule.path


def _is_affinity(violation: Violation) -> bool:
    breach = violation.breach
    return breach.rule.plugin == "InterPodAffinity" and breach.crowd is None


def _cause(rule: Rule, violation: Violation) -> Cause:
    path = violation.breach.rule.path
    return Cause(rule, f"{path} does not hold on node {violation.pod.node_name}.")


def watches(cluster: Cluster, state: EvictionState) -> bool:
    """Whether any pod of a cluster may have to be evicted, or a timer to be stopped."""
    return cluster.endures or bool(state.timers)
