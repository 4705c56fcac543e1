"""NodeAffinity: nodeSelector and required node affinity exclude, preferred terms score."""

from collections.abc import Collection, Iterator
from typing import ClassVar

import numpy as np
from typing_extensions import override

from service.engine.cluster_events import Change, ClusterEvent, Pair, differing
from service.engine.plugin import MAX_NODE_SCORE, Failure, NodePlugin, bounds_of
from service.engine.state.classes import PodClass
from service.engine.state.columns import ALL, Ints, Mask, Rows, at
from service.engine.state.nodes import NodeTable
from service.engine.state.rules import NodeRules
from service.engine.state.selectors import named_nodes, required_mask, term_mask
from service.model.objects import Node, NodeSelectorRequirement, Pod
from service.model.selectors import required_node_affinity_matches, required_node_selectors

NAME = "NodeAffinity"
REASON = "node(s) didn't match Pod's node affinity/selector"
ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
CONFLICT = "pod affinity terms conflict"
"""PreFilter's reason where the terms' node names exclude each other."""


ANY_VALUE = "*"
"""As a pair's value: whatever value the key has, or none; no label has this one."""
_NEGATIVE = frozenset({"NotIn", "DoesNotExist"})


class NodeAffinity(NodePlugin):
    name: ClassVar[str] = NAME
    filters: ClassVar[bool] = True
    weight: ClassVar[int] = 2
    normalizes: ClassVar[bool] = True
    narrows: ClassVar[bool] = True
    conflict: ClassVar[str] = CONFLICT
    events: ClassVar[frozenset[Change]] = frozenset({Change.NODE_DESCRIBED})

    @override
    def applies(self, rules: NodeRules) -> bool:
        return rules.required.anything or rules.enforced.anything

    @override
    def admits(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Mask:
        mask = required_mask(nodes, rules.required, rows)
        if rules.enforced.anything:
            mask &= required_mask(nodes, rules.enforced, rows)
        return mask

    @override
    def node_failures(self, nodes: NodeTable, rules: NodeRules) -> list[Failure]:
        own = ~required_mask(nodes, rules.required, ALL)
        if not rules.enforced.anything:
            return [Failure(REASON, own, unresolvable=True)]
        enforced = ~required_mask(nodes, rules.enforced, ALL)
        return [
            Failure(ENFORCED, enforced, unresolvable=True),
            Failure(REASON, own & ~enforced, unresolvable=True),
        ]

    @override
    def scores(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints | None:
        """The weights of the preferred terms that match; an empty term matches nothing."""
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
    def narrowed(self, pod_class: PodClass) -> frozenset[str] | None:
        return named_nodes(pod_class.template.rules.required)

    @classmethod
    @override
    def helps(cls, event: ClusterEvent, pod: Pod, reasons: Collection[str]) -> bool:
        """Of the profile's own rule nothing is known here."""
        return event.node is None or ENFORCED in reasons or _begins_to_match(pod, *event.node)

    @classmethod
    @override
    def topics(cls, pod: Pod, reasons: Collection[str]) -> frozenset[Pair] | None:
        return None if ENFORCED in reasons else _node_pairs(pod)

    @classmethod
    @override
    def labels_of(cls, event: ClusterEvent) -> frozenset[Pair] | None:
        return None if event.node is None else _turned(*event.node)


def _turned(before: Node | None, after: Node) -> frozenset[Pair]:
    """The labels that a node has now and had not before, and whose values were others."""
    old = before.labels if before else {}
    keys = differing(old, after.labels)
    given = {(key, after.labels[key]) for key in keys if key in after.labels}
    return frozenset(given | {(key, ANY_VALUE) for key in keys})


def _begins_to_match(pod: Pod, before: Node | None, after: Node) -> bool:
    """Whether a node matches a pod's node affinity now, and did not before.

    Terms that are empty count as what wakes the pod, for they mean what the configuration says.
    """
    if not required_node_affinity_matches(
        pod.spec, after.name, after.labels, empty_matches_all=True
    ):
        return False
    return before is None or not required_node_affinity_matches(
        pod.spec, before.name, before.labels
    )


def _node_pairs(pod: Pod) -> frozenset[Pair] | None:
    """Labels of which a node gets or loses one when it begins to match; None: perhaps of none.

    A node that comes gets all its labels; so it is any of them, unless what is asked for holds of
    a node without labels.
    """
    pairs = set((pod.spec.node_selector or {}).items())
    needs_label = bool(pairs)
    for selector in required_node_selectors(pod.spec):
        for term in selector.node_selector_terms:
            asked = term.match_expressions if term else None
            pairs |= {pair for each in asked or () for pair in _requirement_pairs(each)}
            if not needs_label and all(each.operator in _NEGATIVE for each in asked or ()):
                return None
    return frozenset(pairs)


def _requirement_pairs(requirement: NodeSelectorRequirement) -> Iterator[Pair]:
    values = requirement.values if requirement.operator == "In" else None
    return ((requirement.key, value) for value in values or (ANY_VALUE,))
