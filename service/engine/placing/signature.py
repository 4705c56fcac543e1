"""Signatures of pending pods: pods with equal signatures get equal verdicts from all filters."""

from collections.abc import Hashable

from service.engine.cluster import Cluster
from service.engine.placing.nominations import replaced_by
from service.model.pods.pod import Pod


def pod_signature(cluster: Cluster, pod: Pod) -> Hashable:
    """Return a key that is equal for pods that all filters treat alike.

    Such pods may differ in labels that no rule reads. Do not compare keys from before a change of
    the cluster with later ones.
    """
    pod_class = cluster.class_of(pod)
    matched = tuple(map(id, pod_class.matched))
    volumes = id(pod_class.volumes) if pod_class.volumes is not None else None
    devices = id(pod_class.devices) if pod_class.devices is not None else None
    nominated = pod.nominated_node_name and (pod.namespace, pod.name)
    replaced = replaced_by(cluster, pod) if cluster.reserved else None
    return (
        id(pod_class.template),
        pod_class.terminating,
        pod_class.hard_self,
        matched,
        volumes,
        devices,
        nominated,
        replaced,
    )
