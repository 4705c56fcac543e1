"""NodeDeclaredFeatures: a pod fits only on nodes that declare all features which it needs."""

from typing import ClassVar

import numpy as np
from typing_extensions import override

from service.engine.framework.events import Change
from service.engine.framework.plugin import NodePlugin
from service.engine.state.nodes.columns import Mask, Rows, at
from service.engine.state.nodes.node_rules import NodeRules
from service.engine.state.nodes.node_table import NodeTable
from service.model.cluster.versions.version import SchedulerVersion

NAME = "NodeDeclaredFeatures"


class NodeDeclaredFeatures(NodePlugin):
    name: ClassVar[str] = NAME
    filters: ClassVar[bool] = True
    reason: ClassVar[str] = "node(s) didn't match Pod's required features"
    events: ClassVar[frozenset[Change]] = frozenset({Change.NODE_ADDED, Change.NODE_FEATURES})

    @classmethod
    @override
    def is_in(cls, version: SchedulerVersion) -> bool:
        return bool(version.known_features)

    @override
    def applies(self, rules: NodeRules) -> bool:
        return bool(rules.features)

    @override
    def admits(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Mask:
        required = frozenset(rules.features)
        table = np.zeros(len(nodes.feature_sets), dtype=np.bool_)
        for declared, index in nodes.feature_sets.items():
            table[index] = required.issubset(declared)
        return table.take(at(nodes.feature_set, rows))
