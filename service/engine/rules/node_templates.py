"""Templates for adding nodes to a cluster: existing nodes, emptied and renamed."""

from collections.abc import Hashable

from msgspec.structs import replace

from service.engine.cluster import Cluster
from service.engine.rules.obstacles import Remedy
from service.engine.state.nodes.node_table import HOSTNAME, without_times
from service.model.core.primitives import Taint
from service.model.nodes.condition_taints import without_condition_taints
from service.model.nodes.node import Node
from service.model.plans.repair_changes import AddNodes

_NAME = "added"


def template_name(cluster: Cluster) -> str:
    """Return an unused name for a node template."""
    name, number = _NAME, 1
    while f"{name}-0" in cluster.nodes.slots:
        number += 1
        name = f"{_NAME}-{number}"
    return name


def shape_of(node: Node) -> Hashable:
    """Return a key that is equal for nodes that would be interchangeable if empty."""
    labels = frozenset(_labels_of_added(node, "").items())
    taints = frozenset(_own_taints(node))
    return labels, frozenset(node.allocatable.items()), taints, node.declared_features


def node_addition(node: Node, name: str) -> Remedy:
    """Return the remedy of adding a node like an existing one, named after a template."""
    labels = _labels_of_added(node, f"{name}-0")
    taints = _own_taints(node)
    added = replace(
        node,
        name=f"{name}-0",
        labels=labels,
        taints=taints,
        unschedulable=False,
        uid="",
        ready="",
        conditions=(),
        images=(),
    )
    features = {"declaredFeatures": node.declared_features} if node.declared_features else {}
    template = {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [_taint_manifest(taint) for taint in taints]} if taints else {},
        "status": {"allocatable": dict(node.allocatable), **features},
    }
    return Remedy(
        ("AddNodes", node.name),
        node_name=node.name,
        added=added,
        change=AddNodes(template=template, count=1),
    )


def _own_taints(node: Node) -> tuple[Taint, ...]:
    """Return a node's taints, except those set by conditions, which a new node may lack."""
    return without_times(without_condition_taints(node))


def _taint_manifest(taint: Taint) -> dict[str, str]:
    value = {"value": taint.value} if taint.value else {}
    return {"key": taint.key, **value, "effect": taint.effect}


def _labels_of_added(node: Node, name: str) -> dict[str, str]:
    """Return the labels of a node of this name like an existing one.

    Labels that contain the existing node's name are left out. The new node has a hostname, its
    name, only if the existing one has a hostname: nobody else would give it one.
    """
    labels = {key: value for key, value in node.labels.items() if value != node.name}
    return labels | {HOSTNAME: name} if HOSTNAME in node.labels else labels
