"""Drains of nodes: the steps that remove all pods except daemons, wave by wave."""

from msgspec import UNSET
from msgspec.structs import replace

from service.scheduler.decide.context import Steps
from service.scheduler.decide.placing.pod_placement import Candidate
from service.scheduler.plans.drained_pods import DrainUnit, pods_on, units_of
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.place import Explainer, GoalPod, unplaced_goal_pod
from service.scheduler.plans.selection import field_error, nodes_of
from service.scheduler.plans.waves import (
    EVICTIONS_OVER,
    Blocked,
    Move,
    MoveLimits,
    Waves,
)
from service.scheduler.protocol.intents import MakePlan
from service.scheduler.protocol.plans import Drain, PlanBounds, PlanStep, Unplaced

_CORDONED = "it is drained"
_DRAINED = "its node is drained"
_NOT_TRIED = Blocked("SecondsOver", "It was not tried: the plan's time was over.")


class DrainPlan:
    """Empties nodes on a fork, and collects the steps and the pods that fit on no other node."""

    def __init__(self, fork: Fork, intent: MakePlan, goal: Drain) -> None:
        self._fork = fork
        self._intent = intent
        self._goal = goal
        self.steps: list[PlanStep] = []
        self.unplaced: list[Unplaced] = []

    @property
    def complete(self) -> bool:
        """Whether all pods got nodes."""
        return not self.unplaced

    def drain(self) -> Steps[None]:
        """Cordon the nodes, then move their pods in as many waves as needed.

        Raises:
            NotFound: a named node does not exist.
            InvalidManifest: the nodes have more pods than one plan may move.
        """
        nodes = yield from nodes_of(self._fork, self._goal.nodes)
        for node in nodes:
            if not node.node.unschedulable:
                self._fork.put(replace(node, node=replace(node.node, unschedulable=True)))
                self._cordoned(node.name)
                yield from self._fork.pause()
        names = [node.name for node in nodes]
        units = units_of(pods_on(self._fork.replica, names))
        self._refuse_too_many(sum(len(unit.pods) for unit in units))
        limited = _limited(self._intent.bounds)._replace(is_late=self._fork.context.is_late)
        waves = Waves(self._fork, frozenset(names), units, limited)
        wave = 1
        while moves := (yield from waves.next_wave()):
            self.steps += [_evicted(move, wave) for move in moves]
            wave += 1
        yield from self._report_unplaced(waves)

    def _cordoned(self, name: str) -> None:
        self.steps.append(PlanStep(action="Cordon", name=name, wave=0, reason=_CORDONED))

    def _refuse_too_many(self, pods: int) -> None:
        most = self._fork.context.limits.plan_pods_max
        if pods > most:
            raise field_error("nodes", f"has {pods} pods, over the limit of {most} in one plan")

    def _report_unplaced(self, waves: Waves) -> Steps[None]:
        explaining = Explainer(self._fork, self._intent.explain)
        for unit in waves.waiting:
            reason = waves.blocked.get(unit, _NOT_TRIED)
            self.unplaced += [
                self._unplaced(goal_pod, reason, explaining) for goal_pod in _goal_pods(unit)
            ]
            yield

    def _unplaced(self, goal_pod: GoalPod, reason: Blocked, explaining: Explainer) -> Unplaced:
        result = unplaced_goal_pod(goal_pod, reason.reason, reason.message)
        if reason.reason != "Unschedulable" or goal_pod.group is not None:
            return result
        replica = self._fork.replica
        start = replica.mark()
        replica.put(goal_pod.candidate.manifest.without_node())
        result = explaining.of(goal_pod.candidate.manifest.without_node().pod, result)
        replica.undo(start)
        return result


def _limited(bounds: PlanBounds) -> MoveLimits:
    """Return the lower of two bounds, since every evicted pod gets another node."""
    moves, evictions = bounds.moves_max, bounds.evictions_max
    if evictions is not None and (moves is None or evictions < moves):
        return MoveLimits(evictions, over=EVICTIONS_OVER, protect=bounds.protect)
    return MoveLimits(moves, protect=bounds.protect)


def _goal_pods(unit: DrainUnit) -> list[GoalPod]:
    return [GoalPod(Candidate(pod, pod), pod.pod.node_name, unit.group) for pod in unit.pods]


def _evicted(move: Move, wave: int) -> PlanStep:
    return PlanStep(
        action="Evict",
        namespace=move.pod.namespace,
        name=move.pod.name,
        from_node=move.pod.pod.node_name or UNSET,
        to=move.to,
        wave=wave,
        reason=_DRAINED,
    )
