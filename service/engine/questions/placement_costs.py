"""What placed pods cost by one measure each, and how much more or less if one comes to a node or leaves.

A measure is a whole number for the cluster; less is better. It is kept by differences: a pod that
comes or leaves changes it by an amount that follows from counters and columns alone, without
looking at other pods. `total` counts all anew, and is what the differences add up to.
"""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np
from typing_extensions import override

from service.engine.cluster import Cluster
from service.engine.state.classes import OwnedTerm, PodClass, Role
from service.engine.state.columns import ALL, Ints, Mask
from service.engine.state.counters import DomainCounter
from service.engine.state.node_rules import NodeRules, Use
from service.engine.state.nodes import NodeTable
from service.engine.state.selectors import term_mask
from service.engine.state.spread import SpreadRule
from service.engine.state.topology import NO_DOMAIN

WHOLE = 1_000
"""Shares of what a node has are told in thousandths of it."""
ANYWHERE = ""
"""Stands in totals for what belongs to nodes, and so to no namespace."""


class PlacementCost(Protocol):
    """One measure of where the pods of a cluster are."""

    def total(self) -> Counter[str]:
        """Count anew what the placed pods cost, by namespace, or for `ANYWHERE`."""
        ...

    def coming(self, pod_class: PodClass, use: Use) -> Ints:
        """Return what is added if one pod more comes to each node, shape (nodes,), int64."""
        ...

    def leaving(self, pod_class: PodClass, use: Use) -> Ints:
        """Return what is taken away if one such pod leaves each node, shape (nodes,), int64.

        Only the entries of nodes that have such a pod mean anything.
        """
        ...


# Topology spread


class _SoftSpread(NamedTuple):
    """A soft constraint with the domains over which it counts; shared by all that count alike."""

    namespace: str
    counter: DomainCounter
    rule: SpreadRule

    def counts(self) -> tuple[Ints, Mask]:
        """Return the pods in each domain, and which domains there are, both of shape (domains,)."""
        if self.rule.per_node:
            existing = self.rule.eligibility.mask
        else:
            existing = self.rule.eligibility.nodes_of[self.rule.key.name].counts[:-1] > 0
        return self.counter.counts[: len(existing)], existing


class SkewCost:
    """How many pods are too many for soft topology spread constraints, over all constraints.

    These are, in each domain, the pods beyond those of the emptiest eligible domain and `maxSkew`.
    It is 0 if and only if each constraint is kept, and while it is not, there is a domain from
    which one pod less is less. Constraints that count the same pods over the same nodes alike in
    one namespace are counted once.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_counter: defaultdict[int, list[_SoftSpread]] = defaultdict(list)
        self._all: list[_SoftSpread] = []
        known: set[object] = set()
        for pod_class in cluster.placed_classes():
            for rule in pod_class.template.soft_spread:
                each = _soft_spread(pod_class.namespace, rule)
                if each is None:
                    continue
                identity = (
                    each.namespace,
                    id(each.counter),
                    id(rule.eligibility),
                    rule.key.name,
                    rule.max_skew,
                )
                if identity not in known:
                    known.add(identity)
                    self._all.append(each)
                    self._by_counter[id(each.counter)].append(each)

    def total(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for each in self._all:
            counts, existing = each.counts()
            eligible = counts[existing]
            if len(eligible):
                allowed = int(eligible.min()) + each.rule.max_skew
                found[each.namespace] += int(np.maximum(eligible - allowed, 0).sum())
        return found

    def coming(self, pod_class: PodClass, use: Use) -> Ints:
        added = np.zeros(self._cluster.nodes.size, dtype=np.int64)
        for each in self._counting(pod_class):
            counts, existing = each.counts()
            if not existing.any():
                continue
            per_domain = np.zeros(len(counts) + 1, dtype=np.int64)
            least = int(counts[existing].min())
            allowed = least + each.rule.max_skew
            per_domain[:-1] = counts >= allowed
            lowest = np.flatnonzero(existing & (counts == least))
            if len(lowest) == 1:  # The least rises with it, so all others may have one pod more.
                per_domain[lowest[0]] = -int(np.count_nonzero(counts[existing] > allowed))
            added += self._on_nodes(each, per_domain)
        return added

    def leaving(self, pod_class: PodClass, use: Use) -> Ints:
        removed = np.zeros(self._cluster.nodes.size, dtype=np.int64)
        for each in self._counting(pod_class):
            counts, existing = each.counts()
            if not existing.any():
                continue
            per_domain = np.zeros(len(counts) + 1, dtype=np.int64)
            least = int(counts[existing].min())
            allowed = least + each.rule.max_skew
            per_domain[:-1] = counts > allowed
            # The least falls with it, so each domain that has as many as it may has one too many.
            others = int(np.count_nonzero(counts[existing] >= allowed))
            per_domain[:-1][counts == least] = -others
            removed += self._on_nodes(each, per_domain)
        return removed

    def _counting(self, pod_class: PodClass) -> list[_SoftSpread]:
        return [
            each
            for entry in pod_class.matched
            for counter in entry.counters.values()
            for each in self._by_counter.get(id(counter), ())
        ]

    def _on_nodes(self, each: _SoftSpread, per_domain: Ints) -> Ints:
        mask = each.rule.eligibility.mask
        if each.rule.per_node:
            return np.where(mask, per_domain[: len(mask)], 0)
        domains = each.counter.key.domain_of
        found: Ints = np.where(mask & (domains != NO_DOMAIN), per_domain.take(domains), 0)
        return found


def _soft_spread(namespace: str, rule: SpreadRule) -> _SoftSpread | None:
    """Return what a constraint counts; None if it counts no pods, or no domains."""
    if rule.counter is None:
        return None
    if not rule.per_node and rule.key.name not in rule.eligibility.nodes_of:
        return None
    return _SoftSpread(namespace, rule.counter, rule)


# Preferences


class PreferenceCost:
    """The weights of the preferred terms of placed pods that hold, negated.

    A term of node affinity holds on nodes that match it. A term of pod affinity holds once for each
    other pod that it matches in the domain, as in Kubernetes' score; that of anti-affinity counts
    against its owner.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._chosen: dict[NodeRules, Ints] = {}
        """The weights of the preferred terms of node affinity that each node fulfils."""

    def total(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for pod_class in self._cluster.placed_classes():
            template = pod_class.template
            for slot, pods in pod_class.nodes.items():
                held = int(self._node_affinity(template.rules)[slot])
                for term in template.preferred:
                    others = _beside(term.counter, slot) - (pod_class in term.matcher.classes)
                    held += term.weight * max(others, 0)
                found[pod_class.namespace] -= pods * held
        return found

    def coming(self, pod_class: PodClass, use: Use) -> Ints:
        return -self._held(pod_class, itself=0)

    def leaving(self, pod_class: PodClass, use: Use) -> Ints:
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
                weight = _weight(owned)
                if weight and owned.counter.total:
                    own = itself * sum(each is owned for each in template.owned)
                    key = owned.counter.key
                    held += weight * (key.on_nodes(owned.counter.counts) - own * key.keyed)
        return held

    def _node_affinity(self, rules: NodeRules) -> Ints:
        known = self._chosen.get(rules)
        if known is None:
            nodes = self._cluster.nodes
            known = np.zeros(nodes.size, dtype=np.int64)
            for term in rules.preferred or ():
                known += term.weight * term_mask(nodes, term.preference, ALL, empty=False)
            self._chosen[rules] = known
        return known


def _beside(counter: DomainCounter, slot: int) -> int:
    domain = counter.key.cells[slot]
    return 0 if domain == NO_DOMAIN else counter.in_domain(domain)


def _weight(term: OwnedTerm) -> int:
    if term.role is Role.ATTRACTS:
        return term.weight
    return -term.weight if term.role is Role.REPELS else 0


# Nodes


class _NodeCost(ABC):
    """What follows for each node by itself from the pods on it."""

    def __init__(self, cluster: Cluster) -> None:
        self._nodes = cluster.nodes

    def total(self) -> Counter[str]:
        return Counter({ANYWHERE: int(self._with(None, 0).sum())})

    def coming(self, pod_class: PodClass, use: Use) -> Ints:
        return self._with(use, 1) - self._with(None, 0)

    def leaving(self, pod_class: PodClass, use: Use) -> Ints:
        return self._with(None, 0) - self._with(use, -1)

    @abstractmethod
    def _with(self, use: Use | None, pods: int) -> Ints:
        """Return what each node costs with so many pods more of this use, shape (nodes,), int64."""

    def _requested(self, resource: str, use: Use | None, pods: int) -> Ints:
        requested = self._nodes.requested(resource)
        amount = 0 if use is None else dict(use.amounts).get(resource, 0)
        return requested + pods * amount if amount else requested


class LoadCost(_NodeCost):
    """The squares of the shares of cpu and memory that are requested, over all nodes.

    Shares are thousandths of what the node has, cut off. For as much load as there is, the sum is
    least where it is spread most evenly; with `sign` -1 it is least where the load is packed.
    """

    def __init__(self, cluster: Cluster, sign: int = 1) -> None:
        super().__init__(cluster)
        self._sign = sign

    @override
    def _with(self, use: Use | None, pods: int) -> Ints:
        squares = np.zeros(self._nodes.size, dtype=np.int64)
        for resource in ("cpu", "memory"):
            allocatable = self._nodes.allocatable(resource)
            share = self._requested(resource, use, pods) * WHOLE // np.maximum(allocatable, 1)
            squares += np.where(allocatable > 0, share * share, 0)
        return self._sign * squares


class UsedNodesCost(_NodeCost):
    """The nodes with pods that are not bound to stay there, as daemons are."""

    def __init__(self, cluster: Cluster, staying: Iterable[str]) -> None:
        """Let it leave out, of each pod that stays, the node, which is named as often as it has such."""
        super().__init__(cluster)
        self._staying = np.zeros(cluster.nodes.size, dtype=np.int64)
        for name in staying:
            self._staying[cluster.nodes.slots[name]] += 1

    @override
    def _with(self, use: Use | None, pods: int) -> Ints:
        return (self._nodes.pods + pods > self._staying).astype(np.int64)


class RestsCost(_NodeCost):
    """What is free of a resource where it is of no use to who needs a whole block of it.

    Without a size of blocks, a block is all that a node has: what is free on nodes that have a part
    in use. Else it is what is left of each node's free amount after as many blocks as it has. Nodes
    that take no new pods have nothing free.
    """

    def __init__(self, cluster: Cluster, resource: str, block: int | None) -> None:
        super().__init__(cluster)
        self._resource = resource
        self._block = block

    @override
    def _with(self, use: Use | None, pods: int) -> Ints:
        requested = self._requested(self._resource, use, pods)
        free = _free(self._nodes, self._resource, requested)
        found: Ints = np.where(requested > 0, free, 0) if self._block is None else free % self._block
        return found


class BlocksCost(_NodeCost):
    """The squares of the free amounts of a resource, over all nodes, negated.

    Free amounts are in thousandths of the greatest amount that any node has. The sum is least where
    what is free lies together.
    """

    def __init__(self, cluster: Cluster, resource: str) -> None:
        super().__init__(cluster)
        self._resource = resource
        self._greatest = max(int(self._nodes.allocatable(resource).max(initial=0)), 1)

    @override
    def _with(self, use: Use | None, pods: int) -> Ints:
        requested = self._requested(self._resource, use, pods)
        free = _free(self._nodes, self._resource, requested) * WHOLE // self._greatest
        return -free * free


def _free(nodes: NodeTable, resource: str, requested: Ints) -> Ints:
    takes_pods = nodes.alive & ~nodes.unschedulable
    return np.where(takes_pods, np.maximum(nodes.allocatable(resource) - requested, 0), 0)

