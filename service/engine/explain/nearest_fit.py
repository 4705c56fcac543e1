"""The node that comes closest to fitting a pod that only lacks resources."""

import numpy as np

from service.engine.cluster import Cluster
from service.engine.placing.placement import profile_of
from service.engine.placing.refusal import PrefilterRejection, failures_of, prefilter
from service.model.pods.pod import Pod


def nearest_node(cluster: Cluster, pod: Pod) -> str | None:
    """Return the name of the node with the smallest shortage for a pod, or None.

    Candidates pass all other filters and could hold the pod if they were empty. The shortage is the
    sum, over resources, of the missing share of the node's allocatable amount.

    Raises:
        UnknownSchedulerError: the pod's scheduler is not a profile of the cluster.
    """
    nodes, pod_class = cluster.nodes, cluster.class_of(pod)
    profile = profile_of(cluster, pod)
    mask = nodes.alive & (nodes.allowed_pods > 0)
    for plugin, failures in failures_of(cluster, pod, profile).items():
        is_room = plugin in profile.resource_filters
        for failure in failures:
            mask &= ~(failure.nodes & failure.unresolvable if is_room else failure.nodes)
    prefiltered = prefilter(cluster, pod_class, profile)
    if isinstance(prefiltered, PrefilterRejection):
        return None
    if prefiltered is not None:
        named = np.zeros_like(mask)
        named[[nodes.slots[name] for name in prefiltered.names if name in nodes.slots]] = True
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
