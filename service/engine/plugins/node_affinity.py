"""NodeAffinity: nodeSelector and required node affinity exclude, preferred terms score."""

import numpy as np

from service.engine.plugin import MAX_NODE_SCORE, Failure, bounds_of
from service.engine.state.columns import ALL, Ints, Mask, Rows, at
from service.engine.state.nodes import NodeTable
from service.engine.state.rules import NodeRules
from service.engine.state.selectors import required_mask, term_mask

NAME = "NodeAffinity"
REASON = "node(s) didn't match Pod's node affinity/selector"
ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
CONFLICT = "pod affinity terms conflict"
"""PreFilter's reason where the terms' node names exclude each other."""


class NodeAffinity:
    name = NAME

    def applies(self, rules: NodeRules) -> bool:
        return rules.required.anything or rules.enforced.anything

    def admits(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Mask:
        mask = required_mask(nodes, rules.required, rows)
        if rules.enforced.anything:
            mask &= required_mask(nodes, rules.enforced, rows)
        return mask

    def failures(self, nodes: NodeTable, rules: NodeRules) -> list[Failure]:
        own = ~required_mask(nodes, rules.required, ALL)
        if not rules.enforced.anything:
            return [Failure(REASON, own, unresolvable=True)]
        enforced = ~required_mask(nodes, rules.enforced, ALL)
        return [
            Failure(ENFORCED, enforced, unresolvable=True),
            Failure(REASON, own & ~enforced, unresolvable=True),
        ]

    def raw(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints | None:
        """The weights of the preferred terms that match; an empty term matches nothing."""
        if rules.preferred is None:
            return None
        total = np.zeros(len(at(nodes.alive, rows)), dtype=np.int64)
        for term in rules.preferred:
            total += term.weight * term_mask(nodes, term.preference, rows, empty=False)
        return total

    def normalize(self, raw: Ints, ranks: Ints) -> Ints:
        bounds = bounds_of(raw, ranks)
        if bounds is None or not bounds.greatest:
            return np.zeros_like(raw)
        return bounds.capped(raw) * MAX_NODE_SCORE // bounds.greatest
