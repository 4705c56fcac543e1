"""The measures of objectives, and their changes as pods are added to nodes or removed.

A measure is an integer for the cluster; less is better. It is maintained by differences: adding or
removing a pod changes it by an amount computed from counters and columns, without examining other
pods. `total` recounts everything, and equals the sum of the differences.
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
"""The value of a full share; shares of a node's capacity are in thousandths."""
ANYWHERE = ""
"""The key of node costs in totals, as nodes belong to no namespace."""


class PlacementCost(ABC):
    """Base class of measures of how a cluster's pods are placed."""

    @abstractmethod
    def total(self) -> Counter[str]:
        """Recount the cost of all placed pods by namespace, or under `ANYWHERE`."""

    @abstractmethod
    def added_cost(self, pod_class: PodClass, use: PodUsage) -> Ints:
        """Return the cost that one more pod adds on each node, shape (nodes,), int64."""

    @abstractmethod
    def removed_cost(self, pod_class: PodClass, use: PodUsage) -> Ints:
        """Return the cost saved by removing one such pod from each node, shape (nodes,), int64.

        Only the entries of nodes that have such a pod are meaningful.
        """


# Topology spread


class SpreadLevel(NamedTuple):
    """The numbers of pods that a constraint currently counts and allows."""

    counts: Ints
    """The number of pods in each domain, shape (domains,)."""
    existing: Mask
    """Whether each domain exists, shape (domains,); at least one does."""
    least: int
    """The number of pods in the emptiest existing domain."""
    allowed: int
    """The maximum number of pods allowed in each existing domain."""


class SoftSpread(NamedTuple):
    """A soft spread constraint, shared by all constraints that count the same pods."""

    namespace: str
    counter: DomainCounter
    rule: SpreadRule

    def level(self) -> SpreadLevel | None:
        """Return the counted and allowed numbers of pods, or None if no domain exists."""
        counts, existing = self.counts()
        if not existing.any():
            return None
        least = int(counts[existing].min())
        return SpreadLevel(counts, existing, least, least + self.rule.max_skew)

    def counts(self) -> tuple[Ints, Mask]:
        """Return the number of pods in each domain, and which domains exist, shape (domains,)."""
        if self.rule.per_node:
            existing = self.rule.included_nodes.mask
        else:
            existing = self.rule.included_nodes.nodes_of[self.rule.key.name].counts[:-1] > 0
        return self.counter.counts[: len(existing)], existing


class SkewCost(PlacementCost):
    """The number of pods that exceed soft topology spread constraints, over all constraints.

    In each domain, these are the pods beyond those of the emptiest included domain plus `maxSkew`.
    It is 0 if and only if every constraint is satisfied; otherwise, removing a pod from some domain
    reduces it. Equal constraints of one namespace that count the same pods over the same nodes are
    counted once.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_counter: defaultdict[int, list[SoftSpread]] = defaultdict(list)
        self.constraints: list[SoftSpread] = []
        """The constraints that are measured."""
        known: set[object] = set()
        for pod_class in cluster.placed_classes():
            for rule in pod_class.template.soft_spread:
                spread = _soft_spread(pod_class.namespace, rule)
                if spread is None:
                    continue
                identity = (
                    spread.namespace,
                    id(spread.counter),
                    id(rule.included_nodes),
                    rule.key.name,
                    rule.max_skew,
                )
                if identity not in known:
                    known.add(identity)
                    self.constraints.append(spread)
                    self._by_counter[id(spread.counter)].append(spread)

    @override
    def total(self) -> Counter[str]:
        totals: Counter[str] = Counter()
        for constraint in self.constraints:
            level = constraint.level()
            if level is not None:
                too_many = np.maximum(level.counts[level.existing] - level.allowed, 0)
                totals[constraint.namespace] += int(too_many.sum())
        return totals

    @override
    def added_cost(self, pod_class: PodClass, use: PodUsage) -> Ints:
        added = np.zeros(self._cluster.nodes.size, dtype=np.int64)
        for spread, level in self._counted_spreads(pod_class):
            per_domain = np.zeros(len(level.counts) + 1, dtype=np.int64)
            per_domain[:-1] = level.counts >= level.allowed
            lowest = np.flatnonzero(level.existing & (level.counts == level.least))
            if len(lowest) == 1:  # the minimum rises, so others may have one more
                above = level.counts[level.existing] > level.allowed
                per_domain[lowest[0]] = -int(np.count_nonzero(above))
            added += self._on_nodes(spread, per_domain)
        return added

    @override
    def removed_cost(self, pod_class: PodClass, use: PodUsage) -> Ints:
        removed = np.zeros(self._cluster.nodes.size, dtype=np.int64)
        for spread, level in self._counted_spreads(pod_class):
            per_domain = np.zeros(len(level.counts) + 1, dtype=np.int64)
            per_domain[:-1] = level.counts > level.allowed
            # The minimum falls too, so each domain at its limit has one pod too many.
            others = int(np.count_nonzero(level.counts[level.existing] >= level.allowed))
            per_domain[:-1][level.counts == level.least] = -others
            removed += self._on_nodes(spread, per_domain)
        return removed

    def _counted_spreads(self, pod_class: PodClass) -> Iterator[tuple[SoftSpread, SpreadLevel]]:
        for entry in pod_class.matched:
            for counter in entry.counters.values():
                for spread in self._by_counter.get(id(counter), ()):
                    level = spread.level()
                    if level is not None:
                        yield spread, level

    def _on_nodes(self, spread: SoftSpread, per_domain: Ints) -> Ints:
        mask = spread.rule.included_nodes.mask
        if spread.rule.per_node:
            return np.where(mask, per_domain[: len(mask)], 0)
        domains = spread.counter.key.domain_of
        values: Ints = np.where(mask & (domains != NO_DOMAIN), per_domain.take(domains), 0)
        return values


def _soft_spread(namespace: str, rule: SpreadRule) -> SoftSpread | None:
    """Return a constraint as a `SoftSpread`, or None if it counts no pods or no domains."""
    if rule.counter is None:
        return None
    if not rule.per_node and rule.key.name not in rule.included_nodes.nodes_of:
        return None
    return SoftSpread(namespace, rule.counter, rule)


# Preferences


class PreferenceCost(PlacementCost):
    """The negated sum of the weights of placed pods' satisfied preferences.

    A term of node affinity is satisfied on nodes that match it. A term of pod affinity is satisfied
    once for each other pod that it matches in the domain, as in Kubernetes' score; an anti-affinity
    term counts against its owner.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._chosen: dict[NodeRules, Ints] = {}
        """The weight of the preferred node affinity terms that each node satisfies, by node rules.
        """

    @override
    def total(self) -> Counter[str]:
        totals: Counter[str] = Counter()
        for pod_class in self._cluster.placed_classes():
            template = pod_class.template
            for slot, pods in pod_class.nodes.items():
                satisfied = int(self._node_affinity(template.rules)[slot])
                for term in template.preferred:
                    others = term.counter.in_domain_of(slot) - (pod_class in term.matcher.classes)
                    satisfied += term.weight * max(others, 0)
                totals[pod_class.namespace] -= pods * satisfied
        return totals

    @override
    def added_cost(self, pod_class: PodClass, use: PodUsage) -> Ints:
        return -self._satisfied(pod_class, itself=0)

    @override
    def removed_cost(self, pod_class: PodClass, use: PodUsage) -> Ints:
        return -self._satisfied(pod_class, itself=1)

    def _satisfied(self, pod_class: PodClass, *, itself: int) -> Ints:
        """Return the weight of the preferences that one pod on each node satisfies.

        `itself` is 1 if the pod is already counted there, else 0.
        """
        template = pod_class.template
        satisfied = self._node_affinity(template.rules).copy()
        for term in template.preferred:
            own = itself * (pod_class in term.matcher.classes)
            key = term.counter.key
            satisfied += term.weight * (key.on_nodes(term.counter.counts) - own * key.keyed)
        for entry in pod_class.matched:
            for owned in entry.terms:
                weight = owned.preference
                if weight and owned.counter.total:
                    own = itself * sum(term is owned for term in template.owned)
                    key = owned.counter.key
                    satisfied += weight * (key.on_nodes(owned.counter.counts) - own * key.keyed)
        return satisfied

    def of_node_affinity(self, pod_class: PodClass) -> Ints:
        """Return the weight of a pod's node affinity that each node satisfies, shape (nodes,)."""
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
    """A cost that each node incurs separately, from the pods on it."""

    resources: tuple[str, ...] = ()
    """The resources whose requested amounts determine the cost."""

    def __init__(self, cluster: Cluster) -> None:
        self._nodes = cluster.nodes
        self._now: Ints | None = None
        self._position = -1

    @override
    def total(self) -> Counter[str]:
        return Counter({ANYWHERE: int(self._present().sum())})

    @override
    def added_cost(self, pod_class: PodClass, use: PodUsage) -> Ints:
        return self._with(use, 1) - self._present()

    @override
    def removed_cost(self, pod_class: PodClass, use: PodUsage) -> Ints:
        return self._present() - self._with(use, -1)

    def _present(self) -> Ints:
        """Return the current cost of each node, cached until pods are added or removed."""
        position = self._nodes.usage_log.position
        if self._now is None or position != self._position:
            self._now, self._position = self._with(None, 0), position
        return self._now

    @abstractmethod
    def _with(self, use: PodUsage | None, pods: int) -> Ints:
        """Return each node's cost with `pods` more pods of a usage, shape (nodes,), int64."""

    @abstractmethod
    def of_node(self, slot: int, requested: list[int], pods: int) -> int:
        """Return a node's cost, given its requested amounts of `resources` and number of pods."""


def _amount(use: PodUsage | None, resource: str) -> int:
    if use is not None:
        for name, amount in use.amounts:
            if name == resource:
                return amount
    return 0


class LoadCost(NodeCost):
    """The sum of the squared requested shares of cpu and memory over all nodes.

    Shares are truncated thousandths of a node's capacity. For a given total load, the sum is
    smallest if the load is spread most evenly; with `sign` -1 it is smallest if the load is packed.
    """

    resources: tuple[str, ...] = ("cpu", "memory")

    def __init__(self, cluster: Cluster, sign: int = 1) -> None:
        super().__init__(cluster)
        self._sign = sign
        self._divisors: list[tuple[str, Ints]] = []
        """The capacity of each node, or, without any, a divisor large enough to make the share 0.
        """
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
    """The number of nodes with pods that can leave; daemons, for example, cannot."""

    def __init__(self, cluster: Cluster, staying: Iterable[str]) -> None:
        """Ignore the `staying` pods, given as one node name per pod."""
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
    """A cost based on the free amounts of a resource, which are 0 on nodes that accept no pods."""

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
        """Return the cost of one node from its free and requested amounts."""

    @abstractmethod
    def _of(self, free: Ints, requested: Ints) -> Ints:
        """Return the costs of nodes from their free and requested amounts."""


class FragmentationCost(_ResourceCost):
    """The free amount of a resource that is too fragmented for pods that need whole blocks.

    Without a block size, a block is a whole node: this counts the free amounts of partly used
    nodes. Otherwise it counts the remainder of each node's free amount after whole blocks.
    """

    def __init__(self, cluster: Cluster, resource: str, block: int | None) -> None:
        super().__init__(cluster, resource)
        self._block = block

    @override
    def _of(self, free: Ints, requested: Ints) -> Ints:
        costs: Ints = (
            np.where(requested > 0, free, 0) if self._block is None else free % self._block
        )
        return costs

    @override
    def _at(self, free: int, requested: int) -> int:
        if self._block is not None:
            return free % self._block
        return free if requested > 0 else 0


class FreeBlocksCost(_ResourceCost):
    """The negated sum of the squared free amounts of a resource over all nodes.

    Free amounts are in thousandths of the greatest amount of any node. The cost is least if the
    free amount is concentrated.
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
