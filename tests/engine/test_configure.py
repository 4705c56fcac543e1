"""A change of configuration rebuilds what is compiled, and nothing else."""

from msgspec.structs import replace

from service.engine import Cluster
from service.model.cluster.cluster_config import ClusterConfig
from service.model.nodes.node import Node


def _cluster() -> Cluster:
    cluster = Cluster(ClusterConfig())
    cluster.put_node(Node(name="n1", labels={}, allocatable={"cpu": "1", "pods": "1"}))
    return cluster


def test_a_setting_that_is_not_compiled_leaves_the_columns_alone() -> None:
    cluster = _cluster()
    columns = cluster.nodes
    cluster.configure(replace(cluster.config, priority_classes={"high": 10}))
    assert cluster.config.priority_classes == {"high": 10}
    assert cluster.nodes is columns


def test_a_setting_that_is_compiled_makes_everything_anew_and_is_undone() -> None:
    cluster = _cluster()
    columns, mark = cluster.nodes, cluster.mark()
    cluster.configure(replace(cluster.config, daemon_namespaces=()))
    assert cluster.nodes is not columns
    assert cluster.nodes.slots == {"n1": 0}
    cluster.undo(mark)
    assert cluster.config == ClusterConfig()
    assert cluster.nodes.slots == {"n1": 0}
