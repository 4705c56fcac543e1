"""TaintToleration: untolerated hard taints exclude nodes; untolerated soft ones lower the score."""

from typing import ClassVar

import numpy as np
from typing_extensions import override

from service.engine.framework.events import Change
from service.engine.framework.plugin import MAX_NODE_SCORE, NodePlugin, bounds_of
from service.engine.state.nodes.columns import Ints, Mask, Rows
from service.engine.state.nodes.node_rules import NodeRules
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.nodes.taints import untolerated_hard, untolerated_soft

NAME = "TaintToleration"


class TaintToleration(NodePlugin):
    name: ClassVar[str] = NAME
    filters: ClassVar[bool] = True
    weight: ClassVar[int] = 3
    normalizes: ClassVar[bool] = True
    reason: ClassVar[str] = "node(s) had untolerated taint(s)"
    events: ClassVar[frozenset[Change]] = frozenset({Change.NODE_ADDED, Change.NODE_TAINTED})

    @override
    def admits(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Mask:
        return ~untolerated_hard(nodes, rules.tolerations, rows)

    @override
    def scores(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints:
        return untolerated_soft(nodes, rules.tolerations, rows)

    @override
    def normalize(self, raw: Ints, ranks: Ints) -> Ints:
        """Reverse the counts: nodes without such taints score 100, those with the most score 0."""
        bounds = bounds_of(raw, ranks)
        if bounds is None or not bounds.greatest:
            return np.full_like(raw, MAX_NODE_SCORE)
        return MAX_NODE_SCORE - bounds.capped(raw) * MAX_NODE_SCORE // bounds.greatest
