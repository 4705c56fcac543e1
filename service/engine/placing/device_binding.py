"""Which devices a pod's claims are given when it is placed on a node."""

from service.engine.cluster import Cluster
from service.engine.state.devices.search import NoAllocation
from service.model.devices.device import ClaimAllocation
from service.model.pods.pod import Pod


def allocations_on(cluster: Cluster, pod: Pod, node_name: str) -> list[ClaimAllocation] | None:
    """Return what the claims of a pod are given that have no devices yet, in the order of its spec.

    Nothing is given if the pod's profile does not filter by devices. None stands for a node where
    not all claims of the pod can be given what they ask for.
    """
    devices, slot = cluster.class_of(pod).devices, cluster.nodes.slots.get(node_name)
    profile = cluster.profiles.get(pod.spec.scheduler_name)
    if devices is None or slot is None or (profile and not profile.allocates_devices):
        return []
    if devices.rejection() is not None:
        return None
    try:
        found = devices.table.find(devices.wanted(), slot)
    except NoAllocation:
        return None
    return [
        ClaimAllocation(pod_claim=use.pod_claim, claim=use.claim, grants=grants)
        for use, grants in zip(devices.unallocated_uses(), found, strict=True)
    ]
