"""NodeName: a pod that names its node fits nowhere else."""

import numpy as np

from service.engine.plugin import Failure
from service.engine.state.columns import ALL, Mask, Rows
from service.engine.state.nodes import NodeTable
from service.engine.state.rules import NodeRules

NAME = "NodeName"
REASON = "node(s) didn't match the requested node name"


class NodeName:
    name = NAME

    def applies(self, rules: NodeRules) -> bool:
        return rules.node_name is not None

    def admits(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Mask:
        mask = np.full(nodes.size, rules.node_name is None, dtype=np.bool_)
        slot = None if rules.node_name is None else nodes.slots.get(rules.node_name)
        if slot is not None:
            mask[slot] = True
        return mask[rows]

    def failures(self, nodes: NodeTable, rules: NodeRules) -> list[Failure]:
        return [Failure(REASON, ~self.admits(nodes, rules, ALL), unresolvable=True)]
