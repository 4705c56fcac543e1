"""Whether a stored cluster breaks a rule: every placed pod must fit where it is, if taken out."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from service.engine import Cluster, check
from service.model.cluster.cluster_config import ClusterConfig
from service.model.core.kind import DeclaredObject
from service.model.nodes.node import Namespace, Node
from service.model.pods.pod import Pod
from service.model.registry.manifests import TemplateCache, parse_any

Manifest = dict[str, Any]
Placements = Mapping[tuple[str, str], str]
"""The node of each pod, by namespace and name."""


def violations(
    items: Iterable[Manifest],
    acknowledged: Placements | None = None,
    config: ClusterConfig | None = None,
) -> list[str]:
    """Return a line for each stored pod that breaks a required rule of the present state.

    There is also a line for each pod that is missing, or on another node than was acknowledged.
    """
    templates, cluster = TemplateCache(), Cluster(config or ClusterConfig())
    for item in items:
        put(cluster, item, templates)
    return [*_lost(cluster, acknowledged or {}), *broken(cluster)]


def put(cluster: Cluster, item: Manifest, templates: TemplateCache) -> None:
    """Put an object of any kind that decides where pods can go."""
    match parse_any(json.dumps(item).encode(), templates).subject:
        case Node() as node:
            cluster.put_node(node)
        case Namespace() as namespace:
            cluster.put_namespace(namespace)
        case Pod() as pod:
            cluster.put_pod(pod)
        case DeclaredObject() as kept:
            cluster.put_object(kept)
    cluster.commit_until(cluster.mark())


def broken(cluster: Cluster) -> list[str]:
    """Return a line for each placed pod that breaks a required rule; changes nothing."""
    return [line for pod in list(cluster.pods()) if (line := broken_by(cluster, pod))]


def _lost(cluster: Cluster, acknowledged: Placements) -> list[str]:
    lines = []
    for (namespace, name), node in acknowledged.items():
        pod = cluster.pod(namespace, name)
        if pod is None or pod.node_name != node:
            where = "missing" if pod is None else f"on {pod.node_name}"
            lines.append(f"{namespace}/{name}, acknowledged on {node}, is {where}")
    return lines


def broken_by(cluster: Cluster, pod: Pod) -> str | None:
    """Return a line if this placed pod breaks a required rule; changes nothing."""
    if pod.finished or pod.node_name not in cluster.nodes.slots:
        return None
    mark = cluster.mark()
    cluster.delete_pod(pod.namespace, pod.name)
    reasons = check(cluster, pod, pod.node_name)
    cluster.undo(mark)
    return f"{pod.namespace}/{pod.name} on {pod.node_name}: {reasons}" if reasons else None
