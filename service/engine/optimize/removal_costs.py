"""The cost of removing a pod, in evenness of spread and in satisfied preferences."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from service.engine.cluster import Cluster
from service.engine.state.nodes.node_rules import NodeRules
from service.engine.state.nodes.node_selectors import term_mask
from service.engine.state.pods.classes import PodClass
from service.engine.state.pods.spread import SpreadRule


class RemovalCost(NamedTuple):
    """The cost of removing a pod; costs of successive removals add up."""

    spread: int
    """The increase in the sum of the squared numbers of pods per domain, over all constraints.

    For a given number of pods, this sum is least if they are spread most evenly."""
    preferences: int
    """The weight of the preferences that the pod satisfies, its own and those of other pods."""


class RemovalCosts:
    """Computes removal costs for pods of some classes, from the pods present at each call."""

    def __init__(self, cluster: Cluster, classes: Iterable[PodClass]) -> None:
        self._cluster = cluster
        self.may_fall = False
        """Whether removing other pods of these classes can lower a cost, because a class has
        preferences."""
        self._rules: dict[int, SpreadRule] = {}
        """One spread constraint of the classes per counter, by counter id."""
        for pod_class in classes:
            self.may_fall = self.may_fall or bool(pod_class.template.preferred)
            for rule in (*pod_class.template.hard_spread, *pod_class.template.soft_spread):
                if rule.counter is not None:
                    self._rules.setdefault(id(rule.counter), rule)
        self._chosen: dict[tuple[NodeRules, int], int] = {}
        """The weight of the preferred node affinity terms that a node satisfies, by node rules and
        slot."""

    def of(self, pod_class: PodClass, slot: int) -> RemovalCost:
        """Return the current cost of removing a pod of a class from the node at a slot."""
        return RemovalCost(self._spread(pod_class, slot), self._preferences(pod_class, slot))

    def _spread(self, pod_class: PodClass, slot: int) -> int:
        if not self._rules:
            return 0
        cost = 0
        for counter in {id(c): c for e in pod_class.matched for c in e.counters.values()}.values():
            rule = self._rules.get(id(counter))
            if rule is not None and rule.included_nodes.admits(slot):
                cost += 1 - 2 * counter.in_domain_of(slot)
        return cost

    def _preferences(self, pod_class: PodClass, slot: int) -> int:
        template = pod_class.template
        satisfied = self._node_affinity(template.rules, slot)
        for term in template.preferred:
            own = int(pod_class in term.matcher.classes)
            satisfied += term.weight * (term.counter.in_domain_of(slot) - own)
        for entry in pod_class.matched:
            for owned in entry.terms:
                weight = owned.preference
                if weight:
                    satisfied += weight * (
                        owned.counter.in_domain_of(slot) - (owned in template.owned)
                    )
        return satisfied

    def _node_affinity(self, rules: NodeRules, slot: int) -> int:
        if rules.preferred is None:
            return 0
        known = self._chosen.get((rules, slot))
        if known is None:
            rows = np.array([slot])
            known = sum(
                term.weight
                for term in rules.preferred
                if term_mask(self._cluster.nodes, term.preference, rows, empty=False)[0]
            )
            self._chosen[rules, slot] = known
        return known
