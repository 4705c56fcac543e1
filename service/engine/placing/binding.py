"""The volumes that a pod's claims bind to when it is placed on a node."""

from collections.abc import Mapping

from service.engine.cluster import Cluster
from service.engine.state.volumes.matching import PROVISION, VolumeMatches
from service.engine.state.volumes.pod_volumes import claims_of
from service.model.core.primitives import ObjectName
from service.model.pods.pod import Pod

__all__ = ["PROVISION", "assume_bindings", "bindings_on", "user_of_claim"]


def bindings_on(cluster: Cluster, pod: Pod, node_name: str) -> dict[str, str] | None:
    """Return the volume, or `PROVISION`, for each unbound claim of a pod on a node, or None.

    Bound claims are omitted. Nothing is bound if the pod's profile does not filter by them. None
    means that not all claims of the pod can be bound on the node.
    """
    volumes, slot = cluster.class_of(pod).volumes, cluster.nodes.slots.get(node_name)
    profile = cluster.profiles.get(pod.spec.scheduler_name)
    if volumes is None or slot is None or (profile and not profile.binds_claims):
        return {}
    unbound = [claim for claim in volumes.unbound_claims() if not claim.volume_name]
    if not unbound:
        return {}
    matches = VolumeMatches(volumes.table, unbound)
    return None if matches.failing[slot] else matches.volumes_on(slot)


def user_of_claim(cluster: Cluster, claim: ObjectName) -> str | None:
    """Return the name of the first pod, by name, that uses a claim on a node, or None."""
    if not cluster.volumes.is_in_use(claim):
        return None
    placed = (pod for pod in cluster.pods() if pod.node_name is not None and not pod.finished)
    users = (pod.name for pod in placed if any(use.key == claim for use in claims_of(pod)))
    return min(users, default=None)


def assume_bindings(
    cluster: Cluster, pod: Pod, node_name: str, bindings: Mapping[str, str]
) -> None:
    """Tentatively bind a pod's claims as its placement will."""
    for claim_name, volume_name in bindings.items():
        if volume_name == PROVISION:
            cluster.assume_provisioning((pod.namespace, claim_name), node_name)
        else:
            cluster.assume_binding((pod.namespace, claim_name), volume_name)
