"""The goal that pods are placed better than they are: single moves, each of which is an improvement.

A local search: each pod is taken away and placed anew, as the engine would place it now. The move is
kept if it makes the objectives better, in their order, and undone otherwise. What is found cannot be
improved by moving one more of the pods to the node that the engine prefers; it need not be the best.
"""

from msgspec import UNSET

from service.engine import Cluster
from service.engine.analysis.totals import spread_totals
from service.scheduler.decide.context import Steps
from service.scheduler.decide.planning.drained_pods import Unit, units_of
from service.scheduler.decide.planning.fork import Fork
from service.scheduler.decide.planning.plan_totals import violations_by_namespace
from service.scheduler.decide.planning.selected_objects import pods_of, refused
from service.scheduler.decide.planning.waves import EVICTIONS_OVER, Limited, Move, Waves
from service.scheduler.protocol.intents import MakePlan
from service.scheduler.protocol.plans import PlanStep, Rebalance, Unplaced

_REASON = "it is better placed there"

Measured = tuple[int, ...]
"""The objectives of a cluster in their order; less is better, and the first that differs decides."""


class Rebalancing:
    """Moves pods on a fork while that improves the objectives, and gathers the steps."""

    def __init__(self, fork: Fork, intent: MakePlan, goal: Rebalance) -> None:
        self._fork = fork
        self._intent = intent
        self._goal = goal
        self.steps: list[PlanStep] = []
        self.unplaced: list[Unplaced] = []
        self.complete = False
        """Whether all was tried until no single move was an improvement."""

    def rebalance(self) -> Steps[None]:
        """Move single pods, a wave each, until none is an improvement or a bound is reached.

        Raises:
            NotFound, Forbidden: as of `pods_of`.
            InvalidManifest: more pods are selected than one plan may move.
        """
        pods = yield from pods_of(self._fork, self._goal.pods, self._intent.caller)
        keys = [(each.namespace, each.name) for each in pods if each.pod.node_name is not None]
        most = self._fork.context.limits.plan_pods_max
        if len(keys) > most:
            raise refused(
                "selector", f"selects {len(keys)} pods, over the limit of {most} in one plan"
            )
        now = yield from self._measured()
        improved = True
        while improved:
            improved = False
            for key in keys:
                if self._is_over():
                    return
                better = yield from self._try(key, now)
                if better is not None:
                    now, improved = better, True
        self.complete = True

    def _is_over(self) -> bool:
        bounds = self._intent.bounds
        limits = (self._goal.moves_max, bounds.moves_max, bounds.evictions_max)
        least = min((each for each in limits if each is not None), default=None)
        return self._fork.context.is_late() or (least is not None and len(self.steps) >= least)

    def _try(self, key: tuple[str, str], now: Measured) -> Steps[Measured | None]:
        """Place a pod anew; return what is measured then, or None if it stays where it is."""
        found = self._fork.replica.pod(*key)
        units = [] if found is None else units_of([found])
        if found is None or found.pod.node_name is None or not units or units[0].group is not None:
            return None
        start = self._fork.try_out()
        moves = yield from self._moved(units[0], found.pod.node_name)
        if not moves:
            return None
        then = yield from self._measured()
        if then >= now:
            yield from self._fork.take_back(start)
            return None
        wave = len(self.steps) + 1
        self.steps += [_evicted(each, wave) for each in moves]
        return then

    def _moved(self, unit: Unit, node: str) -> Steps[list[Move]]:
        limited = Limited(
            over=EVICTIONS_OVER,
            protect=self._intent.bounds.protect,
            is_late=self._fork.context.is_late,
        )
        waves = Waves(self._fork, frozenset([node]), [unit], limited)
        return (yield from waves.next_wave())

    def _measured(self) -> Steps[Measured]:
        cluster = self._fork.replica.cluster
        found = []
        for each in self._goal.objectives:
            if each == "Violations":
                counted = yield from violations_by_namespace(cluster)
                found.append(counted.total())
            else:
                found.append(_excess_skew(cluster))
        yield
        return tuple(found)


def _excess_skew(cluster: Cluster) -> int:
    """Return by how much constraints that are only wishes exceed their `maxSkew`, all together."""
    return sum(
        max(each.skew - each.max_skew, 0) for each in spread_totals(cluster) if not each.is_hard
    )


def _evicted(move: Move, wave: int) -> PlanStep:
    return PlanStep(
        action="Evict",
        namespace=move.pod.namespace,
        name=move.pod.name,
        from_node=move.pod.pod.node_name or UNSET,
        to=move.to,
        wave=wave,
        reason=_REASON,
    )
