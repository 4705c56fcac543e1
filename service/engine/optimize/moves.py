"""Better nodes for placed pods, under several objectives in lexicographic order.

Pods are tentatively removed from their nodes and put on others; the caller undoes that. The effect
of a move is computed from a pod's contribution to each node and from the affected rules, without a
recount.
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
"""One figure per objective, most important first; less is better."""
Measure = PlacementCost | None
"""The measure of an objective, or None for the number of broken required rules."""
KINDS_MAX = 64
"""The maximum number of kinds of nodes, as distinguished by rules, considered for a pod."""


class WatchedRules(NamedTuple):
    """The rules that may be broken or satisfied by moving pods."""

    affected: Affected
    before: frozenset[BrokenRule]
    """The affected rules that were broken before the move."""


class Options(NamedTuple):
    """The nodes that a pod may move to, best first, and how each changes the objectives."""

    slots: Slots
    changes: list[Costs]


class MoveEvaluator:
    """Moves pods of a cluster tentatively, and reports the effects."""

    def __init__(self, cluster: Cluster, measures: Sequence[Measure]) -> None:
        self._cluster = cluster
        self.measures = measures
        self.rules = AffectedRules(cluster)
        self.none: Costs = (0,) * len(measures)
        """The effect of moving no pod."""
        self._before: dict[frozenset[PodClass], frozenset[BrokenRule]] = {}
        """The broken rules of each set of classes in the last committed arrangement."""

    def invalidate(self) -> None:
        """Invalidate cached results after pods have moved permanently."""
        self._before.clear()

    def is_least(self) -> bool:
        """Return whether no objective can improve: no rule and no soft constraint is broken."""
        for measure in self.measures:
            if measure is None:
                if self.rules.known:
                    return False
            elif not isinstance(measure, SkewCost) or measure.total().total():
                return False
        return True

    def watch(self, pods: Iterable[Pod]) -> WatchedRules | None:
        """Return the rules to watch while placed pods move, or None if no rule is affected.

        The rules that are broken before the move are cached until `invalidate`.
        """
        affected: Affected | None = None
        for pod in pods:
            added = self.rules.of(self._cluster.class_of(pod))
            affected = added if affected is None else affected.union(added)
        if affected is None or not self.rules.matters(affected):
            return None
        before = self._before.get(affected.classes)
        if before is None:
            before = self._before[affected.classes] = self.rules.broken(affected.classes)
        return WatchedRules(affected, before)

    def unplace(self, pod: Pod) -> Costs:
        """Remove a pod from its node, and return the effect on the objectives."""
        slot = self._cluster.nodes.slots[pod.node_name or ""]
        pod_class, use = self._cluster.class_of(pod), self.use(pod)
        changes = tuple(
            0 if measure is None else -int(measure.removed_cost(pod_class, use)[slot])
            for measure in self.measures
        )
        self._cluster.put_pod(_unbound(pod))
        return changes

    def put(self, pod: Pod, slot: int) -> None:
        """Put an unplaced pod on a node."""
        node = self._cluster.nodes.nodes[slot]
        assert node is not None
        self._cluster.put_pod(replace(_unbound(pod), node_name=node.name))

    def feasible(self, pod: Pod) -> Mask:
        """Return the nodes that pass all filters for an unplaced pod, shape (nodes,)."""
        cluster, waiting = self._cluster, _unbound(pod)
        profile = profile_of(cluster, waiting)
        if cluster.class_of(waiting).template.falls_back:
            waiting = resolve_fallbacks(cluster, waiting)
        pod_class = cluster.class_of(waiting)
        vetoes = relation_vetoes(cluster.nodes, pod_class, profile)
        candidates = candidates_of(cluster, pod_class, profile, vetoes)
        if cluster.nominated:
            candidates = without_reserved_nodes(cluster, waiting, candidates)
        feasible: Mask = candidates.ranks >= 0
        return feasible

    def feasible_alone(self, pod: Pod) -> Mask:
        """Return the feasible nodes when rules about other pods are ignored, shape (nodes,)."""
        cluster, waiting = self._cluster, _unbound(pod)
        profile, pod_class = profile_of(cluster, waiting), cluster.class_of(waiting)
        feasible: Mask = candidates_of(cluster, pod_class, profile, ()).ranks >= 0
        return feasible

    def options(
        self,
        pod: Pod,
        base: Costs,
        watch: WatchedRules | None,
        most: int,
        among: Mask | None = None,
    ) -> Options:
        """Return up to `most` of the best nodes for an unplaced pod, with their total effects.

        `base` is the effect of unplacing this pod and others.
        """
        mask = self.feasible(pod)
        if among is not None:
            mask = mask & among
        slots = np.flatnonzero(mask)
        if not len(slots):
            return Options(slots, [])
        columns = self._columns(pod)
        judged = [None if column is None else column[slots] for column in columns]
        rules: Ints | None = None
        if watch is not None:
            slots, judged, rules = self._without_breaches(pod, slots, judged, watch)
        filled = [rules if column is None else column for column in judged]
        return self._best(pod, base, slots, filled, most)

    def _best(
        self, pod: Pod, base: Costs, slots: Slots, columns: Sequence[Ints | None], most: int
    ) -> Options:
        if not len(slots):
            return Options(slots, [])
        tie = tie_hash(f"{pod.namespace}/{pod.name}")
        ties = -(self._cluster.nodes.tie[slots] ^ tie)
        known = [column for column in columns if column is not None]
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
            None if measure is None else measure.added_cost(pod_class, use)
            for measure in self.measures
        ]

    def estimates(self, pod: Pod) -> list[Ints]:
        """Estimate the best change of each objective from moving a pod like this one off each node.

        Each array has the shape (nodes,). Estimates are computed with the pod still on its node, so
        they are not bounds; only a trial is exact.
        """
        pod_class, use = self._cluster.class_of(pod), self.use(pod)
        estimates = []
        mask = self.feasible(pod)
        for measure in self.measures:
            if measure is None:
                affected = self.rules.of(pod_class)
                broken = len(self.rules.known) if self.rules.matters(affected) else 0
                estimates.append(np.full(self._cluster.nodes.size, -broken, dtype=np.int64))
                continue
            added_cost = measure.added_cost(pod_class, use)[mask]
            least = int(added_cost.min()) if len(added_cost) else 0
            estimates.append(least - measure.removed_cost(pod_class, use))
        return estimates

    def change(self, moves: Sequence[tuple[Pod, int]]) -> Costs | None:
        """Return the effect of moving placed pods together, or None if that breaks a rule."""
        cluster, watch = self._cluster, self.watch(pod for pod, _ in moves)
        mark, changes = cluster.mark(), list(self.none)
        for pod, _ in moves:
            changes = [sum(measure) for measure in zip(changes, self.unplace(pod), strict=True)]
        for pod, slot in moves:
            for index, column in enumerate(self._columns(pod)):
                changes[index] += 0 if column is None else int(column[slot])
            self.put(pod, slot)
        if watch is not None:
            broken = self.rules.broken(watch.affected.classes)
            if self.rules.newly_broken(broken):
                cluster.undo(mark)
                return None
            for index, measure in enumerate(self.measures):
                changes[index] += len(broken) - len(watch.before) if measure is None else 0
        cluster.undo(mark)
        return tuple(changes)

    def preferred_nodes(self, pod: Pod, most: int) -> list[int]:
        """Return the nodes that would be best for an unplaced pod if other pods made room."""
        columns = [column for column in self._columns(pod) if column is not None]
        slots = np.flatnonzero(self._cluster.nodes.alive & ~self._cluster.nodes.unschedulable)
        if not columns or not len(slots):
            return [int(slot) for slot in slots[:most]]
        order = np.lexsort([column[slots] for column in reversed(columns)])
        return [int(slot) for slot in slots[order[:most]]]

    def _without_breaches(
        self, pod: Pod, slots: Slots, columns: list[Ints | None], watch: WatchedRules
    ) -> tuple[Slots, list[Ints | None], Ints]:
        """Drop nodes where the pod would break another pod's rule; count broken rules elsewhere."""
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
        """Return the resources that a pod uses on its node."""
        if pod.resize is not None:
            return PodUsage.of(pod.spec, pod.resize, self._cluster.resize_rules)
        return self._cluster.class_of(pod).template.use


def _unbound(pod: Pod) -> Pod:
    return replace(pod, node_name=None, nominated_node_name=None)
