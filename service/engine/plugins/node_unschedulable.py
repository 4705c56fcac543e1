"""NodeUnschedulable: a cordoned node takes only pods that tolerate the taint that stands for it."""

import numpy as np

from service.engine.plugin import Failure
from service.engine.state.columns import ALL, Mask, Rows, at
from service.engine.state.nodes import NodeTable
from service.engine.state.rules import NodeRules
from service.engine.state.taints import tolerates
from service.model.objects import Taint

NAME = "NodeUnschedulable"
REASON = "node(s) were unschedulable"
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable:
    name = NAME

    def applies(self, rules: NodeRules) -> bool:
        return True

    def admits(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Mask:
        cordoned: Mask = at(nodes.unschedulable, rows)
        if any(tolerates(each, CORDON) for each in rules.tolerations):
            return np.ones(len(cordoned), dtype=np.bool_)
        return ~cordoned

    def failures(self, nodes: NodeTable, rules: NodeRules) -> list[Failure]:
        return [Failure(REASON, ~self.admits(nodes, rules, ALL), unresolvable=True)]
