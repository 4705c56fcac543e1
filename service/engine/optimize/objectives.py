"""What placed pods cost by one measure each, and how much more or less if one comes to a node or leaves.

A measure is a whole number for the cluster; less is better. It is kept by differences: a pod that
comes or leaves changes it by an amount that follows from counters and columns alone, without
looking at other pods. `total` counts all anew, and is what the differences add up to.
"""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from typing_extensions import override

from service.engine.cluster import Cluster
from service.engine.state.nodes.columns import ALL, Ints, Mask
from service.engine.state.nodes.counters import DomainCounter
from service.engine.state.nodes.node_rules import NodeRules, PodUsage
from service.engine.state.nodes.node_selectors import term_mask
from service.engine.state.nodes.topology import NO_DOMAIN
from service.engine.state.pods.classes import PodClass
from service.engine.state.pods.spread import SpreadRule

WHOLE = 1_000
"""Shares of what a node has are told in thousandths of it."""
ANYWHERE = ""
"""Stands in totals for what belongs to nodes, and so to no namespace."""


class PlacementCost(ABC):
    """One measure of where the pods of a cluster are."""

    @abstractmethod
    def total(self) -> Counter[str]:
        """Count anew what the placed pods cost, by namespace, or for `ANYWHERE`."""

    @abstractmethod
    def coming(self, pod_class: PodClass, use: PodUsage) -> Ints:
        """Return what is added if one pod more comes to each node, shape (nodes,), int64."""

    @abstractmethod
    def leaving(self, pod_class: PodClass, use: PodUsage) -> Ints:
        """Return what is taken away if one such pod leaves each node, shape (nodes,), int64.

        Only the entries of nodes that have such a pod mean anything.
        """


# Topology spread


class SpreadLevel(NamedTuple):
    """How many pods a constraint counts now, and how many it allows."""

    counts: Ints
    """How many pods each domain has, shape (domains,)."""
    existing: Mask
    """Which domains there are, at least one, shape (domains,)."""
    least: int
    """How many pods the emptiest of these domains has."""
    allowed: int
    """How many pods any of these domains may have."""


class SoftSpread(NamedTuple):
    """A soft constraint with the domains over which it counts; shared by all that count alike."""

    namespace: str
    counter: DomainCounter
    rule: SpreadRule

    def level(self) -> SpreadLevel | None:
        """Return how many pods are counted and allowed, or None if there are no domains."""
        counts, existing = self.counts()
        if not existing.any():
            return None
        least = int(counts[existing].min())
        return SpreadLevel(counts, existing, least, least + self.rule.max_skew)

    def counts(self) -> tuple[Ints, Mask]:
        """Return the pods in each domain, and which domains there are, both of shape (domains,)."""
        if self.rule.per_node:
            existing = self.rule.included_nodes.mask
        else:
            existing = self.rule.included_nodes.nodes_of[self.rule.key.name].counts[:-1] > 0
        return self.counter.counts[: len(existing)], existing


class SkewCost(PlacementCost):
    """How many pods are too many for soft topology spread constraints, over all constraints.

    These are, in each domain, the pods beyond those of the emptiest eligible domain and `maxSkew`.
    It is 0 if and only if each constraint is kept, and while it is not, there is a domain from
    which one pod less is less. Constraints that count the same pods over the same nodes alike in
    one namespace are counted once.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_counter: defaultdict[int, list[SoftSpread]] = defaultdict(list)
        self.constraints: list[SoftSpread] = []
        """The constraints that are measured."""
        known: set[object] = set()
        for pod_class in cluster.placed_classes():
            for rule in pod_class.template.soft_spread:
                each = _soft_spread(pod_class.namespace, rule)
                if each is None:
                    continue
                identity = (
                    each.namespace,
                    id(each.counter),
                    id(rule.included_nodes),
                    rule.key.name,
                    rule.max_skew,
                )
                if identity not in known:
                    known.add(identity)
                    self.constraints.append(each)
                    self._by_counter[id(each.counter)].append(each)

    @override
    def total(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for constraint in self.constraints:
            level = constraint.level()
            if level is not None:
                too_many = np.maximum(level.counts[level.existing] - level.allowed, 0)
                found[constraint.namespace] += int(too_many.sum())
        return found

    @override
    def coming(self, pod_class: PodClass, use: PodUsage) -> Ints:
        added = np.zeros(self._cluster.nodes.size, dtype=np.int64)
        for each, level in self._counting(pod_class):
            per_domain = np.zeros(len(level.counts) + 1, dtype=np.int64)
            per_domain[:-1] = level.counts >= level.allowed
            lowest = np.flatnonzero(level.existing & (level.counts == level.least))
            if len(lowest) == 1:  # The least rises with it, so all others may have one pod more.
                above = level.counts[level.existing] > level.allowed
                per_domain[lowest[0]] = -int(np.count_nonzero(above))
            added += self._on_nodes(each, per_domain)
        return added

    @override
    def leaving(self, pod_class: PodClass, use: PodUsage) -> Ints:
        removed = np.zeros(self._cluster.nodes.size, dtype=np.int64)
        for each, level in self._counting(pod_class):
            per_domain = np.zeros(len(level.counts) + 1, dtype=np.int64)
            per_domain[:-1] = level.counts > level.allowed
            # The least falls with it, so each domain that has as many as it may has one too many.
            others = int(np.count_nonzero(level.counts[level.existing] >= level.allowed))
            per_domain[:-1][level.counts == level.least] = -others
            removed += self._on_nodes(each, per_domain)
        return removed

    def _counting(self, pod_class: PodClass) -> Iterator[tuple[SoftSpread, SpreadLevel]]:
        for entry in pod_class.matched:
            for counter in entry.counters.values():
                for each in self._by_counter.get(id(counter), ()):
                    level = each.level()
                    if level is not None:
                        yield each, level

    def _on_nodes(self, each: SoftSpread, per_domain: Ints) -> Ints:
        mask = each.rule.included_nodes.mask
        if each.rule.per_node:
            return np.where(mask, per_domain[: len(mask)], 0)
        domains = each.counter.key.domain_of
        found: Ints = np.where(mask & (domains != NO_DOMAIN), per_domain.take(domains), 0)
        return found


def _soft_spread(namespace: str, rule: SpreadRule) -> SoftSpread | None:
    """Return what a constraint counts, or None if it counts no pods, or no domains."""
    if rule.counter is None:
        return None
    if not rule.per_node and rule.key.name not in rule.included_nodes.nodes_of:
        return None
    return SoftSpread(namespace, rule.counter, rule)


# Preferences


class PreferenceCost(PlacementCost):
    """The weights of the preferred terms of placed pods that hold, negated.

    A term of node affinity holds on nodes that match it. A term of pod affinity holds once for each
    other pod that it matches in the domain, as in Kubernetes' score; that of anti-affinity counts
    against its owner.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._chosen: dict[NodeRules, Ints] = {}
        """The weights of the preferred terms of node affinity that each node fulfils."""

    @override
    def total(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for pod_class in self._cluster.placed_classes():
            template = pod_class.template
            for slot, pods in pod_class.nodes.items():
                held = int(self._node_affinity(template.rules)[slot])
                for term in template.preferred:
                    others = term.counter.in_domain_of(slot) - (pod_class in term.matcher.classes)
                    held += term.weight * max(others, 0)
                found[pod_class.namespace] -= pods * held
        return found

    @override
    def coming(self, pod_class: PodClass, use: PodUsage) -> Ints:
        return -self._held(pod_class, itself=0)

    @override
    def leaving(self, pod_class: PodClass, use: PodUsage) -> Ints:
        return -self._held(pod_class, itself=1)

    def _held(self, pod_class: PodClass, *, itself: int) -> Ints:
        """Return the weights that hold thanks to one pod on each node; `itself` is counted there, or not."""
        template = pod_class.template
        held = self._node_affinity(template.rules).copy()
        for term in template.preferred:
            own = itself * (pod_class in term.matcher.classes)
            key = term.counter.key
            held += term.weight * (key.on_nodes(term.counter.counts) - own * key.keyed)
        for entry in pod_class.matched:
            for owned in entry.terms:
                weight = owned.preference
                if weight and owned.counter.total:
                    own = itself * sum(each is owned for each in template.owned)
                    key = owned.counter.key
                    held += weight * (key.on_nodes(owned.counter.counts) - own * key.keyed)
        return held

    def of_node_affinity(self, pod_class: PodClass) -> Ints:
        """Return the weights that hold of a pod's node affinity on each node, shape (nodes,)."""
        return self._node_affinity(pod_class.template.rules)

    def _node_affinity(self, rules: NodeRules) -> Ints:
        known = self._chosen.get(rules)
        if known is None:
            nodes = self._cluster.nodes
            known = np.zeros(nodes.size, dtype=np.int64)
            for term in rules.preferred or ():
                known += term.weight * term_mask(nodes, term.preference, ALL, empty=False)
            self._chosen[rules] = known
        return known


# Nodes


class NodeCost(PlacementCost):
    """What follows for each node by itself from the pods on it."""

    resources: tuple[str, ...] = ()
    """The resources of which it follows what is requested of a node."""

    def __init__(self, cluster: Cluster) -> None:
        self._nodes = cluster.nodes
        self._now: Ints | None = None
        self._position = -1

    @override
    def total(self) -> Counter[str]:
        return Counter({ANYWHERE: int(self._present().sum())})

    @override
    def coming(self, pod_class: PodClass, use: PodUsage) -> Ints:
        return self._with(use, 1) - self._present()

    @override
    def leaving(self, pod_class: PodClass, use: PodUsage) -> Ints:
        return self._present() - self._with(use, -1)

    def _present(self) -> Ints:
        """Return what each node costs now; it is computed again only after pods came or left."""
        position = self._nodes.usage_log.position
        if self._now is None or position != self._position:
            self._now, self._position = self._with(None, 0), position
        return self._now

    @abstractmethod
    def _with(self, use: PodUsage | None, pods: int) -> Ints:
        """Return what each node costs with so many pods more of this use, shape (nodes,), int64."""

    @abstractmethod
    def of_node(self, slot: int, requested: list[int], pods: int) -> int:
        """Return what one node costs with so much requested of each of the `resources`, and so many pods."""


def _amount(use: PodUsage | None, resource: str) -> int:
    if use is not None:
        for name, amount in use.amounts:
            if name == resource:
                return amount
    return 0


class LoadCost(NodeCost):
    """The squares of the shares of cpu and memory that are requested, over all nodes.

    Shares are thousandths of what the node has, cut off. For as much load as there is, the sum is
    least where it is spread most evenly; with `sign` -1 it is least where the load is packed.
    """

    resources: tuple[str, ...] = ("cpu", "memory")

    def __init__(self, cluster: Cluster, sign: int = 1) -> None:
        super().__init__(cluster)
        self._sign = sign
        self._divisors: list[tuple[str, Ints]] = []
        """What nodes have; where they have none, so much that no share is left."""
        for resource in self.resources:
            allocatable = self._nodes.allocatable(resource)
            divisor: Ints = np.where(allocatable > 0, allocatable, 2**62)
            self._divisors.append((resource, divisor))

    @override
    def _with(self, use: PodUsage | None, pods: int) -> Ints:
        squares: Ints | None = None
        for resource, divisor in self._divisors:
            requested = self._nodes.requested(resource)
            amount = _amount(use, resource)
            if amount:
                requested = requested + pods * amount
            share = requested * WHOLE
            share //= divisor
            share *= share
            squares = share if squares is None else squares + share
        assert squares is not None
        return squares if self._sign == 1 else -squares

    @override
    def of_node(self, slot: int, requested: list[int], pods: int) -> int:
        squares = 0
        for (_, divisor), amount in zip(self._divisors, requested, strict=True):
            share = amount * WHOLE // int(divisor[slot])
            squares += share * share
        return self._sign * squares


class UsedNodesCost(NodeCost):
    """The nodes with pods that are not bound to stay there, as daemons are."""

    def __init__(self, cluster: Cluster, staying: Iterable[str]) -> None:
        """Let it leave out, of each pod that stays, the node, which is named as often as it has such."""
        super().__init__(cluster)
        self._staying = np.zeros(cluster.nodes.size, dtype=np.int64)
        for name in staying:
            self._staying[cluster.nodes.slots[name]] += 1

    @override
    def _with(self, use: PodUsage | None, pods: int) -> Ints:
        return (self._nodes.pods > self._staying - pods).astype(np.int64)

    @override
    def of_node(self, slot: int, requested: list[int], pods: int) -> int:
        return int(pods > self._staying[slot])


class _ResourceCost(NodeCost):
    """What follows from what is free of a resource; nodes that take no new pods have nothing free."""

    def __init__(self, cluster: Cluster, resource: str) -> None:
        super().__init__(cluster)
        self.resources = (resource,)
        self._resource = resource
        takes_pods = self._nodes.alive & ~self._nodes.unschedulable
        self._allocatable: Ints = np.where(takes_pods, self._nodes.allocatable(resource), 0)

    @override
    def _with(self, use: PodUsage | None, pods: int) -> Ints:
        amount = _amount(use, self._resource)
        if use is not None and not amount:
            return self._present()
        requested = self._nodes.requested(self._resource) + pods * amount
        return self._of(np.maximum(self._allocatable - requested, 0), requested)

    @override
    def of_node(self, slot: int, requested: list[int], pods: int) -> int:
        amount = requested[0]
        return self._at(max(int(self._allocatable[slot]) - amount, 0), amount)

    @abstractmethod
    def _at(self, free: int, requested: int) -> int:
        """Do what `_of` does for one node, in plain integers."""

    @abstractmethod
    def _of(self, free: Ints, requested: Ints) -> Ints:
        """Return what nodes cost that have so much free and requested."""


class FragmentationCost(_ResourceCost):
    """What is free of a resource where it is of no use to who needs a whole block of it.

    Without a size of blocks, a block is all that a node has: what is free on nodes that have a part
    in use. Else it is what is left of each node's free amount after as many blocks as it has.
    """

    def __init__(self, cluster: Cluster, resource: str, block: int | None) -> None:
        super().__init__(cluster, resource)
        self._block = block

    @override
    def _of(self, free: Ints, requested: Ints) -> Ints:
        found: Ints = (
            np.where(requested > 0, free, 0) if self._block is None else free % self._block
        )
        return found

    @override
    def _at(self, free: int, requested: int) -> int:
        if self._block is not None:
            return free % self._block
        return free if requested > 0 else 0


class FreeBlocksCost(_ResourceCost):
    """The squares of the free amounts of a resource, over all nodes, negated.

    Free amounts are in thousandths of the greatest amount that any node has. The sum is least where
    what is free lies together.
    """

    def __init__(self, cluster: Cluster, resource: str) -> None:
        super().__init__(cluster, resource)
        self._greatest = max(int(self._allocatable.max(initial=0)), 1)

    @override
    def _of(self, free: Ints, requested: Ints) -> Ints:
        share = free * WHOLE // self._greatest
        return -share * share

    @override
    def _at(self, free: int, requested: int) -> int:
        share = free * WHOLE // self._greatest
        return -share * share
