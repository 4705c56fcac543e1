"""TaintToleration: untolerated hard taints exclude a node, untolerated soft ones lower its score."""

import numpy as np

from service.engine.plugin import MAX_NODE_SCORE, Failure, bounds_of
from service.engine.state.columns import ALL, Ints, Mask, Rows
from service.engine.state.nodes import NodeTable
from service.engine.state.rules import NodeRules
from service.engine.state.taints import untolerated_hard, untolerated_soft

NAME = "TaintToleration"
REASON = "node(s) had untolerated taint(s)"


class TaintToleration:
    name = NAME

    def applies(self, rules: NodeRules) -> bool:
        return True

    def admits(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Mask:
        return ~untolerated_hard(nodes, rules.tolerations, rows)

    def failures(self, nodes: NodeTable, rules: NodeRules) -> list[Failure]:
        failing = untolerated_hard(nodes, rules.tolerations, ALL)
        return [Failure(REASON, failing, unresolvable=True)]

    def raw(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints:
        return untolerated_soft(nodes, rules.tolerations, rows)

    def normalize(self, raw: Ints, ranks: Ints) -> Ints:
        """Reversed: no such taint gives 100, the most of them 0."""
        bounds = bounds_of(raw, ranks)
        if bounds is None or not bounds.greatest:
            return np.full_like(raw, MAX_NODE_SCORE)
        return MAX_NODE_SCORE - bounds.capped(raw) * MAX_NODE_SCORE // bounds.greatest
