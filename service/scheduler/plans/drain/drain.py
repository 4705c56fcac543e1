"""The goal that nodes are empty but for daemons: its steps, wave by wave."""

from msgspec import UNSET
from msgspec.structs import replace

from service.scheduler.decide.context import Steps
from service.scheduler.decide.placing.pod_placement import Candidate
from service.scheduler.plans.changes import unbound
from service.scheduler.plans.drained_pods import DrainUnit, pods_on, units_of
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.place import Explaining, Wanted, unplaced
from service.scheduler.plans.selection import nodes_of, refused
from service.scheduler.plans.waves import (
    EVICTIONS_OVER,
    Kept,
    Limited,
    Move,
    Waves,
)
from service.scheduler.protocol.intents import MakePlan
from service.scheduler.protocol.plans import Drain, PlanBounds, PlanStep, Unplaced

_CORDONED = "it is drained"
_DRAINED = "its node is drained"
_NOT_TRIED = Kept("SecondsOver", "It was not tried: the plan's time was over.")


class Draining:
    """Empties nodes on a fork, and gathers the steps and the pods that stay without a place."""

    def __init__(self, fork: Fork, intent: MakePlan, goal: Drain) -> None:
        self._fork = fork
        self._intent = intent
        self._goal = goal
        self.steps: list[PlanStep] = []
        self.unplaced: list[Unplaced] = []

    @property
    def complete(self) -> bool:
        """Whether all pods have got nodes."""
        return not self.unplaced

    def drain(self) -> Steps[None]:
        """Cordon the nodes; then move their pods in as many waves as it takes.

        Raises:
            NotFound: a node that is named is not there.
            InvalidManifest: there are more pods on the nodes than one plan may move.
        """
        nodes = yield from nodes_of(self._fork, self._goal.nodes)
        for each in nodes:
            if not each.node.unschedulable:
                self._fork.put(replace(each, node=replace(each.node, unschedulable=True)))
                self._cordoned(each.name)
                yield from self._fork.pause()
        names = [each.name for each in nodes]
        units = units_of(pods_on(self._fork.replica, names))
        self._refuse_too_many(sum(len(each.pods) for each in units))
        limited = _limited(self._intent.bounds)._replace(is_late=self._fork.context.is_late)
        waves = Waves(self._fork, frozenset(names), units, limited)
        wave = 1
        while moves := (yield from waves.next_wave()):
            self.steps += [_evicted(each, wave) for each in moves]
            wave += 1
        yield from self._tell(waves)

    def _cordoned(self, name: str) -> None:
        self.steps.append(PlanStep(action="Cordon", name=name, wave=0, reason=_CORDONED))

    def _refuse_too_many(self, pods: int) -> None:
        most = self._fork.context.limits.plan_pods_max
        if pods > most:
            raise refused("nodes", f"has {pods} pods, over the limit of {most} in one plan")

    def _tell(self, waves: Waves) -> Steps[None]:
        explaining = Explaining(self._fork, self._intent.explain)
        for unit in waves.waiting:
            kept = waves.kept.get(unit, _NOT_TRIED)
            self.unplaced += [self._told(each, kept, explaining) for each in _wanted(unit)]
            yield

    def _told(self, wanted: Wanted, kept: Kept, explaining: Explaining) -> Unplaced:
        told = unplaced(wanted, kept.reason, kept.message)
        if kept.reason != "Unschedulable" or wanted.group is not None:
            return told
        replica = self._fork.replica
        start = replica.mark()
        replica.put(unbound(wanted.candidate.manifest))
        told = explaining.of(unbound(wanted.candidate.manifest).pod, told)
        replica.undo(start)
        return told


def _limited(bounds: PlanBounds) -> Limited:
    """Every pod that is evicted gets another node, so the lesser of two bounds holds."""
    moves, evictions = bounds.moves_max, bounds.evictions_max
    if evictions is not None and (moves is None or evictions < moves):
        return Limited(evictions, over=EVICTIONS_OVER, protect=bounds.protect)
    return Limited(moves, protect=bounds.protect)


def _wanted(unit: DrainUnit) -> list[Wanted]:
    return [Wanted(Candidate(each, each), each.pod.node_name, unit.group) for each in unit.pods]


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
