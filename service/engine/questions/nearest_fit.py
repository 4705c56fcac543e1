"""What the pending queue asks of the engine: whose verdicts are equal, and who nearly fits where."""

from collections.abc import Hashable

import numpy as np

from service.engine.cluster import Cluster
from service.engine.placement import pipeline_of
from service.engine.plugins.node_resources_fit import NAME as FIT
from service.engine.refusal import failures_of, narrowing_of
from service.model.objects import Pod


def verdict_key(cluster: Cluster, pod: Pod) -> Hashable:
    """Pods of equal keys get equal verdicts from all filters, as long as nothing changes.

    They may differ in labels that no rule reads. The key is worth nothing after the next change.
    """
    pod_class = cluster.class_of(pod)
    matched = tuple(map(id, pod_class.matched))
    return id(pod_class.template), pod_class.terminating, pod_class.hard_self, matched


def nearest_node(cluster: Cluster, pod: Pod) -> str | None:
    """Where least has to be freed for a pod that only resources keep out.

    Of the nodes that pass all other filters and could hold the pod if they were empty, the one
    that lacks the least, summed over resources in parts of what it has. None: there is no such
    node. Raises `UnknownSchedulerError`.
    """
    nodes, pod_class = cluster.nodes, cluster.class_of(pod)
    pipeline = pipeline_of(cluster, pod)
    mask = nodes.alive & (nodes.allowed_pods > 0)
    for plugin, failures in failures_of(cluster, pod_class, pipeline).items():
        for failure in failures:
            mask &= ~(failure.nodes & failure.unresolvable if plugin == FIT else failure.nodes)
    narrowed = narrowing_of(pod_class, pipeline)
    if narrowed is not None:
        named = np.zeros_like(mask)
        named[[nodes.slots[name] for name in narrowed.names if name in nodes.slots]] = True
        mask &= named
    if not mask.any():
        return None
    lack = np.maximum(nodes.pods + 1 - nodes.allowed_pods, 0) / np.maximum(nodes.allowed_pods, 1)
    for resource, amount in pod_class.template.rules.needs.amounts:
        allocatable = nodes.allocatable(resource)
        short = np.maximum(nodes.requested(resource) + amount - allocatable, 0)
        lack += short / np.maximum(allocatable, 1)
    nearest = nodes.nodes[int(np.where(mask, lack, np.inf).argmin())]
    assert nearest is not None
    return nearest.name
