"""The rebalance goal: move placed pods to better nodes, by ordered objectives.

A search on the engine alone finds better nodes for some pods. Then the plan looks for an order of
moves that breaks no required rules and exceeds no disruption budgets between waves. Each wave has
one pod where possible, or the pods that must move at once. Impossible moves, and those after the
best state, are dropped.
"""

from collections.abc import Sequence
from itertools import combinations, islice
from typing import NamedTuple

from msgspec import UNSET

from service.engine.optimize.moves import Costs, MoveEvaluator
from service.model.core.primitives import ObjectName
from service.model.plans.rebalance_objectives import Objective
from service.model.pods.pod import Pod
from service.model.registry.manifests import PodManifest
from service.scheduler.decide.context import Steps
from service.scheduler.decide.disruption_budgets import Allowances
from service.scheduler.decide.placing.pod_placement import Candidate, place_pod
from service.scheduler.plans.bounds import is_protected
from service.scheduler.plans.drained_pods import units_of
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.rebalance.objectives import measures_of
from service.scheduler.plans.rebalance.search import LocalSearch, Places
from service.scheduler.plans.selection import field_error, pods_of
from service.scheduler.protocol.intents import MakePlan, PlacePods
from service.scheduler.protocol.plans import PlanStep, Rebalance, Unplaced

_ASKED = PlacePods(dry_run=True)
_PAIRS_MAX = 200
"""How many pairs of pods are tried together when no single pod can move next."""
_SAME = "it makes way for pods that move later"


class RebalancePlan:
    """Moves pods on a fork while that improves the objectives, and collects the steps."""

    def __init__(self, fork: Fork, intent: MakePlan, goal: Rebalance) -> None:
        self._fork = fork
        self._intent = intent
        self._goal = goal
        self.steps: list[PlanStep] = []
        self.unplaced: list[Unplaced] = []
        self.complete = False
        """Whether the search ended on its own and all of its moves are possible."""

    def rebalance(self) -> Steps[None]:
        """Move pods, in waves, until no improvement is found or a bound is reached.

        Raises:
            NotFound, Forbidden: as for `pods_of`.
            InvalidManifest: more pods are selected than one plan may move.
        """
        pods = yield from self._movable()
        if not pods:
            self.complete = True
            return
        context, cluster = self._fork.context, self._fork.replica.cluster
        moving = MoveEvaluator(cluster, measures_of(self._fork, self._goal))
        mark = cluster.mark()
        search = LocalSearch(cluster, moving, pods, self._moves_max, context.is_late)
        yield from search.search()
        places, history = search.places, search.history
        cluster.undo(mark)
        moving.invalidate()
        reached = yield from self._carried_out(moving, places, history, search.changes)
        self.complete = reached and not search.ended_early

    def _carried_out(
        self, moving: MoveEvaluator, places: Places, history: Sequence[Places], target: Costs
    ) -> Steps[bool]:
        """Move pods in waves, trying several orders; return whether the target is reached."""
        order = _order(places, history)
        attempts = (
            [_Part(places, order)],
            [_Part(places, order[::-1])],
            [_Part(places, order, at_once=True)],
            [_Part(step_places, list(step_places)) for step_places in history],
        )
        best: _Waves | None = None
        for parts in attempts if places else ():
            waves = _Waves(self._fork, moving, self._labels())
            for part in parts:
                yield from waves.carry_out(part)
            is_allowed = self._moves_max is None or len(waves.steps) <= self._moves_max
            if is_allowed and waves.changes <= target:
                self.steps = waves.steps
                return True
            if is_allowed and (best is None or waves.changes < best.changes):
                best = waves
            yield from waves.take_back()
        if best is not None and best.changes < moving.none:
            yield from best.repeat()
            self.steps = best.steps
        return not places

    def _movable(self) -> Steps[list[ObjectName]]:
        """Return the pods that may leave their nodes, in the order in which to try them."""
        pods = yield from pods_of(self._fork, self._goal.pods, self._intent.caller)
        cluster = self._fork.replica.cluster
        placed = [
            pod
            for pod in pods
            if pod.pod.node_name is not None
            and not pod.pod.finished
            and cluster.node(pod.pod.node_name) is not None
        ]
        most = self._fork.context.limits.plan_pods_max
        if len(placed) > most:
            raise field_error(
                "selector", f"selects {len(placed)} pods, over the limit of {most} in one plan"
            )
        allowances = Allowances(cluster)
        movable = []
        for unit in units_of(placed):
            pod = unit.pods[0].pod
            if unit.group is not None or is_protected(pod, self._intent.bounds.protect):
                continue
            if pod.spec.scheduler_name in cluster.profiles and not allowances.blocking([pod]):
                movable.append((pod.namespace, pod.name))
        yield
        return movable

    @property
    def _moves_max(self) -> int | None:
        bounds = self._intent.bounds
        limits = (self._goal.moves_max, bounds.moves_max, bounds.evictions_max)
        return min((bound for bound in limits if bound is not None), default=None)

    def _labels(self) -> list[Objective]:
        """Return the objective of each measure."""
        return [
            name
            for name in self._goal.objectives
            for _ in range(2 if name in ("Packing", "Fragmentation") else 1)
        ]


def _order(places: Places, history: Sequence[Places]) -> list[ObjectName]:
    """Return the moving pods in the order in which they reached their nodes."""
    last: dict[ObjectName, int] = {}
    for index, moved_places in enumerate(history):
        for key in moved_places:
            last[key] = index
    return sorted(places, key=lambda key: (last.get(key, 0), key))


class _Part(NamedTuple):
    """Pods to move to their new nodes, in the order to try."""

    places: Places
    order: list[ObjectName]
    at_once: bool = False
    """Whether to try moving all pods at once first."""


class _Waves:
    """Moves pods to their new nodes in waves, and keeps the best state reached on the way."""

    def __init__(self, fork: Fork, moving: MoveEvaluator, labels: Sequence[Objective]) -> None:
        self._fork = fork
        self._labels = labels
        self._moving = moving
        self._allowances = Allowances(fork.replica.cluster)
        self._start = fork.try_out()
        self._waves: list[Places] = []
        self.steps: list[PlanStep] = []
        self.changes: Costs = moving.none

    def carry_out(self, part: _Part) -> Steps[None]:
        """Move as many pods as possible to their nodes, then go back to the best state."""
        places, remaining = part.places, part.order
        best = (self.changes, len(self._waves), len(self.steps), self._fork.try_out())
        if part.at_once and (yield from self._move(places, remaining)):
            remaining = []
            if self.changes < best[0]:
                best = (self.changes, len(self._waves), len(self.steps), self._fork.try_out())
        while remaining and not self._fork.context.is_late():
            moved = yield from self._next(places, remaining)
            if not moved:
                break
            remaining = [key for key in remaining if key not in moved]
            if self.changes < best[0]:
                best = (self.changes, len(self._waves), len(self.steps), self._fork.try_out())
        self.changes, waves, steps, moment = best
        if len(self.steps) > steps:
            del self.steps[steps:]
            del self._waves[waves:]
            yield from self._fork.take_back(moment)

    def take_back(self) -> Steps[None]:
        """Move all pods back to their old nodes, but keep the list of moves."""
        yield from self._fork.take_back(self._start)
        self._moving.invalidate()

    def repeat(self) -> Steps[None]:
        """Repeat the moves that `take_back` undid."""
        done, self._waves, self.steps = self._waves, [], []
        self.changes = self._moving.none
        self._allowances.renew()
        for places in done:
            yield from self._move(places, list(places))

    def _next(self, places: Places, remaining: Sequence[ObjectName]) -> Steps[Sequence[ObjectName]]:
        """Move one pod, two at once, or all the remaining ones; return which."""
        together = islice(combinations(remaining, 2), _PAIRS_MAX)
        for keys in (*((key,) for key in remaining), *together, remaining):
            done = yield from self._move(places, keys)
            if done:
                return keys
        return ()

    def _move(self, places: Places, keys: Sequence[ObjectName]) -> Steps[bool]:
        """Move pods at once if budgets and rules allow it, or else restore the fork."""
        manifests = [self._manifest(key) for key in keys]
        pods = [manifest.pod for manifest in manifests]
        if self._allowances.blocking(pods) is not None:
            return False
        self._moving.invalidate()
        change = self._moving.change(
            [(pod, places[key]) for pod, key in zip(pods, keys, strict=True)]
        )
        if change is None:
            return False
        start = self._fork.try_out()
        if not self._place(manifests, places, keys):
            self._fork.replica.undo(start)
            yield
            return False
        self._allowances.renew()
        self._waves.append({key: places[key] for key in keys})
        wave = 1 + (self.steps[-1].wave if self.steps else 0)
        reason = self._reason(change)
        nodes = self._fork.replica.cluster.nodes.nodes
        for pod, key in zip(pods, keys, strict=True):
            node = nodes[places[key]]
            assert node is not None
            self.steps.append(_evicted(pod, node.name, wave, reason))
        self.changes = tuple(a + b for a, b in zip(self.changes, change, strict=True))
        yield from self._fork.step()
        return True

    def _place(
        self, manifests: Sequence[PodManifest], places: Places, keys: Sequence[ObjectName]
    ) -> bool:
        """Remove pods from their nodes, and place them on their new ones."""
        context = self._fork.context
        unbound_pods = [manifest.without_node() for manifest in manifests]
        for manifest in unbound_pods:
            context.replica.put(manifest)
        waiting = dict(zip(keys, unbound_pods, strict=True))
        placed = True
        while waiting and placed:  # One pod may need another to be placed first.
            placed = False
            for key, manifest in tuple(waiting.items()):
                if self._gets(key, manifest, places[key]):
                    del waiting[key]
                    placed = True
        return not waiting

    def _gets(self, key: ObjectName, manifest: PodManifest, slot: int) -> bool:
        """Place a pod on a node if it fits there, and return whether it does."""
        context = self._fork.context
        node = context.replica.cluster.nodes.nodes[slot]
        assert node is not None
        start = self._fork.try_out()
        context.remember(*key, node.name)
        if place_pod(context, _ASKED, Candidate(manifest, manifest)).node_name == node.name:
            return True
        context.replica.undo(start)
        return False

    def _manifest(self, key: ObjectName) -> PodManifest:
        manifest = self._fork.replica.pod(*key)
        assert manifest is not None
        return manifest

    def _reason(self, change: Costs) -> str:
        for name, delta in zip(self._labels, change, strict=True):
            if delta:
                better = f"{name} is less by {-delta} with it there"
                return better if delta < 0 else _SAME
        return _SAME


def _evicted(pod: Pod, to: str, wave: int, reason: str) -> PlanStep:
    return PlanStep(
        action="Evict",
        namespace=pod.namespace,
        name=pod.name,
        from_node=pod.node_name or UNSET,
        to=to,
        wave=wave,
        reason=reason,
    )
