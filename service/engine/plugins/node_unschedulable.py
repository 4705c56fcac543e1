"""NodeUnschedulable: a cordoned node accepts only pods that tolerate the corresponding taint."""

from typing import ClassVar

import numpy as np
from typing_extensions import override

from service.engine.framework.events import Change
from service.engine.framework.plugin import NodePlugin
from service.engine.state.nodes.columns import Mask, Rows, at
from service.engine.state.nodes.node_rules import NodeRules
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.nodes.taints import tolerates
from service.model.core.primitives import Taint

NAME = "NodeUnschedulable"
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable(NodePlugin):
    name: ClassVar[str] = NAME
    filters: ClassVar[bool] = True
    reason: ClassVar[str] = "node(s) were unschedulable"
    events: ClassVar[frozenset[Change]] = frozenset({Change.NODE_ADDED, Change.NODE_TAINTED})

    @override
    def admits(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Mask:
        cordoned: Mask = at(nodes.unschedulable, rows)
        if any(tolerates(toleration, CORDON) for toleration in rules.tolerations):
            return np.ones(len(cordoned), dtype=np.bool_)
        return ~cordoned
