"""What kube-scheduler decides differently from one minor version of Kubernetes to the next."""

import msgspec


class SchedulerVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The decisions of one minor version's kube-scheduler that other versions make differently.

    A version describes kube-scheduler with the default feature gates of its last patch release that
    was compared. Code asks for the decision that it makes, and never compares versions.
    """

    name: str
    """The minor version, such as "1.36"."""
    patch: str
    """The release whose code gave the expected answers, such as "1.36.3"."""
    scores_balance_gain: bool = False
    """Whether NodeResourcesBalancedAllocation scores how much a pod improves a node's balance, and
    not only the balance that results (kubernetes#135573)."""
    counts_image_volumes: bool = False
    """Whether ImageLocality counts the images that pods mount as volumes (KEP-4639)."""
    matches_declared_features: bool = False
    """Whether nodes must declare the features that a pod needs (NodeDeclaredFeatures, KEP-5328)."""
    resizes_pod_level: bool = False
    """Whether NodeResourcesFit reads the pod-level resources in a pod's status (KEP-5419)."""
    counts_resizes_by_sum: bool = False
    """Whether a pod that is resized counts with the larger of two sums over its containers, and not
    with the sum of each container's larger amount."""
    keeps_alternatives: bool = False
    """Whether a request for all devices stays with the alternative that it has begun."""
    partitions_devices: bool = False
    """Whether devices may share counters, and name the nodes that can access them (KEP-4815)."""
    taints_devices: bool = False
    """Whether device taints keep away requests that do not tolerate them (KEP-5055)."""
    shares_devices: bool = False
    """Whether requests may need amounts of a device's capacities (KEP-5075)."""
    awaits_devices: bool = False
    """Whether devices may have binding conditions, and bind to the node (KEP-5007)."""
    scores_storage_capacity: bool = False
    """Whether VolumeBinding scores nodes by their storage capacity (KEP-4049)."""
    requires_csi_driver: bool = False
    """Whether NodeVolumeLimits refuses nodes without a CSI driver that asks for that (KEP-5030)."""
