"""NodeAffinity: nodeSelector and required affinity filter nodes; preferred terms score them."""

from collections.abc import Collection, Iterator
from typing import ClassVar, Self

import numpy as np
from typing_extensions import override

from service.engine.framework.events import Change, ClusterEvent, Pair, changed_keys
from service.engine.framework.plugin import (
    MAX_NODE_SCORE,
    Failure,
    NodePlugin,
    PreFilterResult,
    bounds_of,
)
from service.engine.state.nodes.columns import ALL, Ints, Mask, Rows, at
from service.engine.state.nodes.node_rules import (
    NodeRules,
    ProfileRules,
)
from service.engine.state.nodes.node_selectors import named_nodes, required_mask, term_mask
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.pods.classes import PodClass
from service.model.cluster.cluster_config import ClusterConfig, SchedulerProfile
from service.model.cluster.plugin_args import NodeAffinityArgs
from service.model.cluster.plugin_rules import Arguments
from service.model.core.primitives import NodeSelectorRequirement
from service.model.nodes.node import Node
from service.model.pods.affinity import required_node_affinity_matches, required_node_selectors
from service.model.pods.pod import Pod

NAME = "NodeAffinity"
REASON = "node(s) didn't match Pod's node affinity/selector"
ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
CONFLICT = "pod affinity terms conflict"
"""The reason of PreFilter if the node names in the terms exclude each other."""


ANY_VALUE = "*"
"""Stands for any value, or no value, of a pair's key; it is not a valid label value."""
_NEGATIVE = frozenset({"NotIn", "DoesNotExist"})


class NodeAffinity(NodePlugin):
    name: ClassVar[str] = NAME
    filters: ClassVar[bool] = True
    weight: ClassVar[int] = 2
    normalizes: ClassVar[bool] = True
    narrows: ClassVar[bool] = True
    prefilters: ClassVar[bool] = True
    events: ClassVar[frozenset[Change]] = frozenset({Change.NODE_DESCRIBED})
    arguments: ClassVar[type[Arguments] | None] = NodeAffinityArgs

    def __init__(self, arguments: NodeAffinityArgs) -> None:
        self._added = arguments.added_affinity

    @classmethod
    @override
    def of(cls, profile: SchedulerProfile, config: ClusterConfig) -> Self:
        return cls(profile.arguments_of(cls.name, NodeAffinityArgs))

    @override
    def added_to(self, rules: ProfileRules) -> ProfileRules:
        return rules._replace(affinity=self._added)

    @override
    def applies(self, rules: NodeRules) -> bool:
        return rules.required.restricts or rules.enforced.restricts

    @override
    def admits(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Mask:
        mask = required_mask(nodes, rules.required, rows)
        if rules.enforced.restricts:
            mask &= required_mask(nodes, rules.enforced, rows)
        return mask

    @override
    def node_failures(self, nodes: NodeTable, rules: NodeRules) -> list[Failure]:
        own = ~required_mask(nodes, rules.required, ALL)
        if not rules.enforced.restricts:
            return [Failure(REASON, own, unresolvable=True)]
        enforced = ~required_mask(nodes, rules.enforced, ALL)
        return [
            Failure(ENFORCED, enforced, unresolvable=True),
            Failure(REASON, own & ~enforced, unresolvable=True),
        ]

    @override
    def scores(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints | None:
        """Return the total weight of the matching preferred terms; empty terms match nothing."""
        if rules.preferred is None:
            return None
        total = np.zeros(len(at(nodes.alive, rows)), dtype=np.int64)
        for term in rules.preferred:
            total += term.weight * term_mask(nodes, term.preference, rows, empty=False)
        return total

    @override
    def normalize(self, raw: Ints, ranks: Ints) -> Ints:
        bounds = bounds_of(raw, ranks)
        if bounds is None or not bounds.greatest:
            return np.zeros_like(raw)
        return bounds.capped(raw) * MAX_NODE_SCORE // bounds.greatest

    @override
    def prefilter(self, nodes: NodeTable, pod_class: PodClass) -> PreFilterResult | None:
        names = named_nodes(pod_class.template.rules.required)
        if names is None:
            return None
        return PreFilterResult(names) if names else PreFilterResult(reason=CONFLICT)

    @classmethod
    @override
    def helps(cls, event: ClusterEvent, pod: Pod, reasons: Collection[str]) -> bool:
        """Return whether the node begins to match; always True for a rule of the profile."""
        return event.node is None or ENFORCED in reasons or _begins_to_match(pod, *event.node)

    @classmethod
    @override
    def topics(cls, pod: Pod, reasons: Collection[str]) -> frozenset[Pair] | None:
        return None if ENFORCED in reasons else _node_pairs(pod)

    @classmethod
    @override
    def labels_of(cls, event: ClusterEvent) -> frozenset[Pair] | None:
        return None if event.node is None else _gained_labels(*event.node)


def _gained_labels(before: Node | None, after: Node) -> frozenset[Pair]:
    """Return the labels that a node gained, plus a pair with ANY_VALUE for each changed key."""
    old = before.labels if before else {}
    keys = changed_keys(old, after.labels)
    given = {(key, after.labels[key]) for key in keys if key in after.labels}
    return frozenset(given | {(key, ANY_VALUE) for key in keys})


def _begins_to_match(pod: Pod, before: Node | None, after: Node) -> bool:
    """Return whether a node matches a pod's node affinity now but did not before.

    An empty term is treated as if it matched, because its meaning depends on the configuration.
    """
    if not required_node_affinity_matches(
        pod.spec, after.name, after.labels, empty_matches_all=True
    ):
        return False
    return before is None or not required_node_affinity_matches(
        pod.spec, before.name, before.labels
    )


def _node_pairs(pod: Pod) -> frozenset[Pair] | None:
    """Return labels such that a node that begins to match a pod gains or loses one of them.

    A new node gains all of its labels, including one of these, unless a node without labels would
    match. In that case, any node may match, and the result is None.
    """
    pairs = set((pod.spec.node_selector or {}).items())
    needs_label = bool(pairs)
    for selector in required_node_selectors(pod.spec):
        for term in selector.node_selector_terms:
            requirements = term.match_expressions if term else None
            pairs |= {
                pair
                for requirement in requirements or ()
                for pair in _requirement_pairs(requirement)
            }
            if not needs_label and all(
                requirement.operator in _NEGATIVE for requirement in requirements or ()
            ):
                return None
    return frozenset(pairs)


def _requirement_pairs(requirement: NodeSelectorRequirement) -> Iterator[Pair]:
    values = requirement.values if requirement.operator == "In" else None
    return ((requirement.key, value) for value in values or (ANY_VALUE,))
