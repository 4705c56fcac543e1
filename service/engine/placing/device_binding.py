"""The devices allocated to a pod's claims when it is placed on a node."""

from service.engine.cluster import Cluster
from service.engine.state.devices.search import NoAllocation
from service.model.devices.device import ClaimAllocation
from service.model.pods.pod import Pod


def allocations_on(cluster: Cluster, pod: Pod, node_name: str) -> list[ClaimAllocation] | None:
    """Return the allocations of a pod's unallocated claims, in the order of its spec, or None.

    Nothing is allocated if the pod's profile does not filter by devices. None means that not all
    claims of the pod can be allocated on the node.
    """
    devices, slot = cluster.class_of(pod).devices, cluster.nodes.slots.get(node_name)
    profile = cluster.profiles.get(pod.spec.scheduler_name)
    if devices is None or slot is None or (profile and not profile.allocates_devices):
        return []
    if devices.rejection() is not None:
        return None
    try:
        allocations = devices.table.find(devices.wanted(), slot)
    except NoAllocation:
        return None
    return [
        ClaimAllocation(pod_claim=use.pod_claim, claim=use.claim, grants=grants)
        for use, grants in zip(devices.unallocated_uses(), allocations, strict=True)
    ]
