"""Whether a stored cluster breaks a rule: every placed pod, taken out, must fit where it is."""

import json
from typing import Any

from service.engine import Cluster, check
from service.model.config import ClusterConfig
from service.model.manifest import TemplateCache, parse_any
from service.model.objects import Namespace, Node, Pod

Manifest = dict[str, Any]


def violations(items: list[Manifest], config: ClusterConfig | None = None) -> list[str]:
    """One line per placed pod that breaks a required rule of the present state."""
    templates, cluster = TemplateCache(), Cluster(config or ClusterConfig())
    placed = []
    for item in items:
        subject = parse_any(json.dumps(item).encode(), templates).subject
        match subject:
            case Node():
                cluster.put_node(subject)
            case Namespace():
                cluster.put_namespace(subject)
            case Pod():
                cluster.put_pod(subject)
                placed.append(subject)
    return [line for pod in placed if (line := _broken(cluster, pod))]


def _broken(cluster: Cluster, pod: Pod) -> str | None:
    if pod.node_name is None or pod.node_name not in cluster.nodes.slots:
        return None
    mark = cluster.mark()
    cluster.delete_pod(pod.namespace, pod.name)
    reasons = check(cluster, pod, pod.node_name)
    cluster.undo(mark)
    return f"{pod.namespace}/{pod.name} on {pod.node_name}: {reasons}" if reasons else None
