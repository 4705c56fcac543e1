"""Where a pod that only resources keep out nearly fits."""

import numpy as np

from service.engine.cluster import Cluster
from service.engine.placing.placement import profile_of
from service.engine.placing.refusal import PrefilterRejection, failures_of, prefilter
from service.model.pods.pod import Pod


def nearest_node(cluster: Cluster, pod: Pod) -> str | None:
    """Return the name of the node that lacks least for a pod that only resources keep out.

    It is one of the nodes that pass all other filters and could hold the pod if they were empty.
    What a node lacks of each resource is divided by what it has of it, and these shares are added
    up. Returns None if there is no such node.

    Raises:
        UnknownSchedulerError: the pod's scheduler is no profile of the cluster.
    """
    nodes, pod_class = cluster.nodes, cluster.class_of(pod)
    profile = profile_of(cluster, pod)
    mask = nodes.alive & (nodes.allowed_pods > 0)
    for plugin, failures in failures_of(cluster, pod, profile).items():
        is_room = plugin in profile.resource_filters
        for failure in failures:
            mask &= ~(failure.nodes & failure.unresolvable if is_room else failure.nodes)
    said = prefilter(cluster, pod_class, profile)
    if isinstance(said, PrefilterRejection):
        return None
    if said is not None:
        named = np.zeros_like(mask)
        named[[nodes.slots[name] for name in said.names if name in nodes.slots]] = True
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
