"""The public interface for plugin authors: import from here, and from nowhere else in `service`.

`service.plugin.testing` has what the tests of a plugin need. Both keep their names; the modules
behind them may move. `docs/plugins.md` explains how to write, test, and install a plugin.
"""

from service.engine.framework.events import ANY_CHANGE, Change, ClusterEvent, Pair
from service.engine.framework.plugin import (
    MAX_NODE_SCORE,
    Blame,
    DomainScores,
    Failure,
    Headroom,
    Headrooms,
    NodePlugin,
    Plugin,
    PreFilterResult,
    RelationPlugin,
    RelativeScore,
)
from service.engine.state.nodes.columns import ALL, Ints, Mask, Rows, at
from service.engine.state.nodes.node_rules import NodeRules
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.nodes.vetoes import Vetoes
from service.engine.state.pods.classes import PodClass
from service.model.cluster.cluster_config import ClusterConfig, SchedulerProfile
from service.model.cluster.plugin_rules import Arguments
from service.model.core.validators import RecordCheck, Rule
from service.model.pods.pod import Pod

__all__ = [
    "ALL",
    "ANY_CHANGE",
    "MAX_NODE_SCORE",
    "Arguments",
    "Blame",
    "Change",
    "ClusterConfig",
    "ClusterEvent",
    "DomainScores",
    "Failure",
    "Headroom",
    "Headrooms",
    "Ints",
    "Mask",
    "NodePlugin",
    "NodeRules",
    "NodeTable",
    "Pair",
    "Plugin",
    "Pod",
    "PodClass",
    "PreFilterResult",
    "RecordCheck",
    "RelationPlugin",
    "RelativeScore",
    "Rows",
    "Rule",
    "SchedulerProfile",
    "Vetoes",
    "at",
]
