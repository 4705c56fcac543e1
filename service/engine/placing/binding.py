"""Which volumes a pod's claims get when it is placed on a node."""

from collections.abc import Mapping

from service.engine.cluster import Cluster
from service.engine.state.volumes.matching import PROVISION, VolumeMatches
from service.engine.state.volumes.pod_volumes import claims_of
from service.model.core.primitives import ObjectName
from service.model.pods.pod import Pod

__all__ = ["PROVISION", "assume_bindings", "bindings_on", "user_of_claim"]


def bindings_on(cluster: Cluster, pod: Pod, node_name: str) -> dict[str, str] | None:
    """Claim to the volume that it gets with the pod, or `PROVISION` where that is to be made.

    Claims that have their volumes are left out. Nothing is bound if the pod's profile does not
    filter by them. None stands for a node where not all claims of the pod can be bound.
    """
    volumes, slot = cluster.class_of(pod).volumes, cluster.nodes.slots.get(node_name)
    profile = cluster.profiles.get(pod.spec.scheduler_name)
    if volumes is None or slot is None or (profile and not profile.binds_claims):
        return {}
    unbound = [claim for claim in volumes.unbound_claims() if not claim.volume_name]
    if not unbound:
        return {}
    matches = VolumeMatches(volumes.table, unbound)
    return None if matches.failing[slot] else matches.on(slot)


def user_of_claim(cluster: Cluster, claim: ObjectName) -> str | None:
    """The name of a pod that counts on a node and uses a claim, the first by name; None: there is none."""
    if not cluster.volumes.is_in_use(claim):
        return None
    placed = (pod for pod in cluster.pods() if pod.node_name is not None and not pod.finished)
    users = (pod.name for pod in placed if any(use.key == claim for use in claims_of(pod)))
    return min(users, default=None)


def assume_bindings(
    cluster: Cluster, pod: Pod, node_name: str, bindings: Mapping[str, str]
) -> None:
    """Have the pod's claims bound as they will be when it is placed; the cluster can undo it."""
    for claim_name, volume_name in bindings.items():
        if volume_name == PROVISION:
            cluster.assume_provisioning((pod.namespace, claim_name), node_name)
        else:
            cluster.assume_binding((pod.namespace, claim_name), volume_name)
