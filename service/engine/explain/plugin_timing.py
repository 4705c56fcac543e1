"""Timing of each plugin for one pod, for operators who monitor the scheduler."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from service.engine.cluster import Cluster
from service.engine.placing.placement import profile_of
from service.model.pods.pod import Pod

ExtensionPoint = Literal["Filter", "Score"]
Status = Literal["Success", "Unschedulable"]


class Execution(NamedTuple):
    """One plugin's run at one extension point, for one pod and all nodes."""

    plugin: str
    extension_point: ExtensionPoint
    status: Status
    """Unschedulable if no node passes this filter, else Success."""
    seconds: float


def time_plugins(cluster: Cluster, pod: Pod, now: Callable[[], float]) -> list[Execution]:
    """Time each plugin that applies to a pod, on all nodes and without caches.

    The cluster stays unchanged. Placements use cached results for most of this, so they take much
    less than the sum. `now` returns seconds since some fixed moment.

    Raises:
        UnknownSchedulerError: the pod's scheduler is not a profile of the cluster.
    """
    nodes, profile, pod_class = cluster.nodes, profile_of(cluster, pod), cluster.class_of(pod)
    executions = []
    for plugin in profile.filters:
        started = now()
        mask = plugin.passing(nodes, pod_class)
        seconds = now() - started
        if mask is not None:
            status: Status = "Success" if mask.any() else "Unschedulable"
            executions.append(Execution(plugin.name, "Filter", status, seconds))
    everywhere = np.zeros(nodes.size, dtype=np.int64)
    for plugin, _ in profile.scores:
        if plugin.has_score_for(pod_class):
            started = now()
            plugin.normalized_scores(nodes, pod_class, everywhere)
            executions.append(Execution(plugin.name, "Score", "Success", now() - started))
    return executions
