"""Where placed pods would be better, by several measures of which the first that differs decides.

Pods are taken off their nodes and put on others tentatively; whoever asks undoes that. What a move
changes is known from what a pod adds to a node and takes away, and from the rules that are
concerned; nothing is counted anew.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from service.engine.cluster import Cluster
from service.engine.optimize.affected_rules import (
    Affected,
    AffectedRules,
    BrokenRule,
)
from service.engine.optimize.objectives import PlacementCost, SkewCost
from service.engine.placing.placement import (
    candidates_of,
    profile_of,
    relation_vetoes,
    resolve_fallbacks,
    without_reserved_nodes,
)
from service.engine.state.nodes.columns import Ints, Mask, Slots
from service.engine.state.nodes.node_rules import PodUsage
from service.engine.state.nodes.node_table import tie_hash
from service.engine.state.pods.classes import PodClass
from service.model.pods.pod import Pod

Costs = tuple[int, ...]
"""One figure for each measure, the most important first; less is better."""
Measure = PlacementCost | None
"""How something is measured; None stands for the required rules that are broken."""
KINDS_MAX = 64
"""Among how many kinds of nodes that rules tell apart a pod chooses; the others are not looked at."""


class WatchedRules(NamedTuple):
    """What is looked after while pods move: rules that may break, or hold again."""

    affected: Affected
    before: frozenset[BrokenRule]
    """The rules of these that did not hold before."""


class Options(NamedTuple):
    """Where a pod may go, the best nodes first, and by how much each measure changes by that."""

    slots: Slots
    changes: list[Costs]


class MoveEvaluator:
    """Moves pods of a cluster tentatively, and tells what that changes."""

    def __init__(self, cluster: Cluster, measures: Sequence[Measure]) -> None:
        self._cluster = cluster
        self.measures = measures
        self.rules = AffectedRules(cluster)
        self.none: Costs = (0,) * len(measures)
        """What no move changes."""
        self._before: dict[frozenset[PodClass], frozenset[BrokenRule]] = {}
        """What was broken among some classes when pods were last where they stay."""

    def moved(self) -> None:
        """Note that pods are on other nodes now than when something was asked before."""
        self._before.clear()

    def is_least(self) -> bool:
        """Return whether no measure can be less: no rule is broken, and no soft constraint."""
        for measure in self.measures:
            if measure is None:
                if self.rules.known:
                    return False
            elif not isinstance(measure, SkewCost) or measure.total().total():
                return False
        return True

    def watch(self, pods: Iterable[Pod]) -> WatchedRules | None:
        """Return what to look after while some placed pods move, or None if no rule is concerned.

        What it says of before is looked up again only after `moved`.
        """
        affected: Affected | None = None
        for pod in pods:
            found = self.rules.of(self._cluster.class_of(pod))
            affected = found if affected is None else affected.joined(found)
        if affected is None or not self.rules.matters(affected):
            return None
        before = self._before.get(affected.classes)
        if before is None:
            before = self._before[affected.classes] = self.rules.broken(affected.classes)
        return WatchedRules(affected, before)

    def unplace(self, pod: Pod) -> Costs:
        """Take a pod off its node, and return what changes by that."""
        slot = self._cluster.nodes.slots[pod.node_name or ""]
        pod_class, use = self._cluster.class_of(pod), self.use(pod)
        changes = tuple(
            0 if measure is None else -int(measure.leaving(pod_class, use)[slot])
            for measure in self.measures
        )
        self._cluster.put_pod(_unbound(pod))
        return changes

    def put(self, pod: Pod, slot: int) -> None:
        """Put a pod that was lifted on a node."""
        node = self._cluster.nodes.nodes[slot]
        assert node is not None
        self._cluster.put_pod(replace(_unbound(pod), node_name=node.name))

    def feasible(self, pod: Pod) -> Mask:
        """Return the nodes that pass all filters for a pod that was lifted, shape (nodes,)."""
        cluster, waiting = self._cluster, _unbound(pod)
        profile = profile_of(cluster, waiting)
        if cluster.class_of(waiting).template.falls_back:
            waiting = resolve_fallbacks(cluster, waiting)
        pod_class = cluster.class_of(waiting)
        vetoes = relation_vetoes(cluster.nodes, pod_class, profile)
        candidates = candidates_of(cluster, pod_class, profile, vetoes)
        if cluster.nominated:
            candidates = without_reserved_nodes(cluster, waiting, candidates)
        found: Mask = candidates.ranks >= 0
        return found

    def feasible_alone(self, pod: Pod) -> Mask:
        """Do what `feasible` does as if no rule of any pod were about others."""
        cluster, waiting = self._cluster, _unbound(pod)
        profile, pod_class = profile_of(cluster, waiting), cluster.class_of(waiting)
        found: Mask = candidates_of(cluster, pod_class, profile, ()).ranks >= 0
        return found

    def options(
        self,
        pod: Pod,
        base: Costs,
        watch: WatchedRules | None,
        most: int,
        among: Mask | None = None,
    ) -> Options:
        """Return the best nodes for a pod that was lifted, at most so many, and all changes with it.

        `base` is what the lifting of this pod and of others has changed.
        """
        mask = self.feasible(pod)
        if among is not None:
            mask = mask & among
        slots = np.flatnonzero(mask)
        if not len(slots):
            return Options(slots, [])
        columns = self._columns(pod)
        found = [None if column is None else column[slots] for column in columns]
        rules: Ints | None = None
        if watch is not None:
            slots, found, rules = self._judged(pod, slots, found, watch)
        filled = [rules if each is None else each for each in found]
        return self._best(pod, base, slots, filled, most)

    def _best(
        self, pod: Pod, base: Costs, slots: Slots, columns: Sequence[Ints | None], most: int
    ) -> Options:
        if not len(slots):
            return Options(slots, [])
        tie = tie_hash(f"{pod.namespace}/{pod.name}")
        ties = -(self._cluster.nodes.tie[slots] ^ tie)
        known = [each for each in columns if each is not None]
        if most == 1:
            kept = np.arange(len(slots))
            for column in (*known, ties):
                values = column[kept]
                kept = kept[values == values.min()]
        else:
            kept = np.lexsort((ties, *reversed(known)))[:most]
        changes = [
            tuple(
                start if column is None else start + int(column[index])
                for start, column in zip(base, columns, strict=True)
            )
            for index in kept[:most]
        ]
        return Options(slots[kept[:most]], changes)

    def _columns(self, pod: Pod) -> list[Ints | None]:
        pod_class, use = self._cluster.class_of(pod), self.use(pod)
        return [
            None if measure is None else measure.coming(pod_class, use) for measure in self.measures
        ]

    def estimates(self, pod: Pod) -> list[Ints]:
        """Return by how much each measure may change at best for pods like this one, by their node.

        Each has the shape (nodes,). They rest on what is there with the pod on its node, so they
        are no bounds; only a trial tells.
        """
        pod_class, use = self._cluster.class_of(pod), self.use(pod)
        found = []
        mask = self.feasible(pod)
        for measure in self.measures:
            if measure is None:
                affected = self.rules.of(pod_class)
                broken = len(self.rules.known) if self.rules.matters(affected) else 0
                found.append(np.full(self._cluster.nodes.size, -broken, dtype=np.int64))
                continue
            coming = measure.coming(pod_class, use)[mask]
            least = int(coming.min()) if len(coming) else 0
            found.append(least - measure.leaving(pod_class, use))
        return found

    def change(self, moves: Sequence[tuple[Pod, int]]) -> Costs | None:
        """Return what changes if placed pods move at once, each to a node; None if that breaks a rule."""
        cluster, watch = self._cluster, self.watch(pod for pod, _ in moves)
        mark, changes = cluster.mark(), list(self.none)
        for pod, _ in moves:
            changes = [sum(each) for each in zip(changes, self.unplace(pod), strict=True)]
        for pod, slot in moves:
            for index, column in enumerate(self._columns(pod)):
                changes[index] += 0 if column is None else int(column[slot])
            self.put(pod, slot)
        if watch is not None:
            broken = self.rules.broken(watch.affected.classes)
            if self.rules.newly_broken(broken):
                cluster.undo(mark)
                return None
            for index, each in enumerate(self.measures):
                changes[index] += len(broken) - len(watch.before) if each is None else 0
        cluster.undo(mark)
        return tuple(changes)

    def preferred_nodes(self, pod: Pod, most: int) -> list[int]:
        """Return nodes on which a pod that was lifted would be better, if others were not there."""
        columns = [column for column in self._columns(pod) if column is not None]
        slots = np.flatnonzero(self._cluster.nodes.alive & ~self._cluster.nodes.unschedulable)
        if not columns or not len(slots):
            return [int(slot) for slot in slots[:most]]
        order = np.lexsort([column[slots] for column in reversed(columns)])
        return [int(slot) for slot in slots[order[:most]]]

    def _judged(
        self, pod: Pod, slots: Slots, columns: list[Ints | None], watch: WatchedRules
    ) -> tuple[Slots, list[Ints | None], Ints]:
        """Leave out the nodes on which the pod would break a rule of others; count what is broken."""
        kinds = self.rules.alike(watch.affected, slots)
        known = [column for column in columns if column is not None]
        order = np.lexsort(known[::-1]) if known else np.arange(len(slots))
        _, firsts, inverse = np.unique(kinds[order], return_index=True, return_inverse=True)
        added = np.zeros(len(firsts), dtype=np.int64)
        is_cached = np.zeros(len(firsts), dtype=np.bool_)
        for kind in np.argsort(firsts)[:KINDS_MAX]:
            mark = self._cluster.mark()
            self.put(pod, int(slots[order[firsts[kind]]]))
            broken = self.rules.broken(watch.affected.classes)
            self._cluster.undo(mark)
            is_cached[kind] = not self.rules.newly_broken(broken)
            added[kind] = len(broken) - len(watch.before)
        kept = np.flatnonzero(is_cached[inverse])
        chosen = order[kept]
        left = [None if column is None else column[chosen] for column in columns]
        return slots[chosen], left, added[inverse[kept]]

    def use(self, pod: Pod) -> PodUsage:
        """Return what a pod takes of its node."""
        if pod.resize is not None:
            return PodUsage.of(pod.spec, pod.resize)
        return self._cluster.class_of(pod).template.use


def _unbound(pod: Pod) -> Pod:
    return replace(pod, node_name=None, nominated_node_name=None)
