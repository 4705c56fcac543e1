"""NodeName: a pod that names a node fits on no other node."""

from typing import ClassVar

import numpy as np
from typing_extensions import override

from service.engine.framework.events import Change
from service.engine.framework.plugin import NodePlugin, PreFilterResult
from service.engine.state.nodes.columns import Mask, Rows
from service.engine.state.nodes.node_rules import NodeRules
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.pods.classes import PodClass
from service.model.cluster.cluster_config import ClusterConfig, SchedulerProfile

NAME = "NodeName"


class NodeName(NodePlugin):
    name: ClassVar[str] = NAME
    filters: ClassVar[bool] = True
    reason: ClassVar[str] = "node(s) didn't match the requested node name"
    events: ClassVar[frozenset[Change]] = frozenset({Change.NODE_ADDED})

    @classmethod
    @override
    def of(cls, profile: SchedulerProfile, config: ClusterConfig) -> "NodeName":
        narrows = config.scheduler_version.narrows_to_node_name
        return NarrowingNodeName() if narrows else NodeName()

    @override
    def applies(self, rules: NodeRules) -> bool:
        return rules.node_name is not None

    @override
    def admits(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Mask:
        mask = np.full(nodes.size, rules.node_name is None, dtype=np.bool_)
        slot = None if rules.node_name is None else nodes.slots.get(rules.node_name)
        if slot is not None:
            mask[slot] = True
        return mask[rows]


class NarrowingNodeName(NodeName):
    """Leaves only the named node to the other filters, as kube-scheduler does from version 1.37."""

    prefilters: ClassVar[bool] = True

    @override
    def prefilter(self, nodes: NodeTable, pod_class: PodClass) -> PreFilterResult | None:
        name = pod_class.template.rules.node_name
        return None if name is None else PreFilterResult(frozenset({name}))
