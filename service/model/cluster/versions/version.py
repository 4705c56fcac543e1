"""What kube-scheduler decides differently from one minor version of Kubernetes to the next."""

import msgspec

from service.model.pods.requests import ResizeRules


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
    normalizes_image_volumes: bool = False
    """Whether these images also raise the size that gets the best score (kubernetes#138951)."""
    known_features: frozenset[str] = frozenset()
    """The features that are inferred from pods and that nodes must declare (NodeDeclaredFeatures,
    KEP-5328); without any, there is no such plugin."""
    narrows_to_node_name: bool = False
    """Whether NodeName comes before all other filters, and leaves only the named node to them
    (PreFilter)."""
    stops_at_exceeded_budget: bool = False
    """Whether a victim that violates one disruption budget uses up nothing of those that follow."""
    reports_preemption: bool = False
    """Whether the message of a refused pod names the node on which preemption makes room
    (kubernetes#140180)."""
    omits_device_report: bool = False
    """Whether the message of a refused pod omits that DynamicResources cannot help."""
    resizes_pod_level: bool = False
    """Whether NodeResourcesFit reads the pod-level resources in a pod's status (KEP-5419)."""
    counts_resizes_by_sum: bool = False
    """Whether a pod that is resized counts with the largest of several sums over its containers, and
    not with the sum of each container's largest amount."""
    negation_selects_all: bool = False
    """Whether a namespaceSelector of an incoming pod's term that only excludes (NotIn, DoesNotExist)
    selects all namespaces, although it is documented to select by labels."""
    keeps_alternatives: bool = False
    """Whether a request for all devices stays with the alternative that it has begun."""
    partitions_devices: bool = False
    """Whether devices may share counters, and name the nodes that can access them (KEP-4815)."""
    keeps_counters_apart: bool = False
    """Whether pools of several drivers that have the same name each have their own counters. If not,
    those of the first pool of the name that a search takes from count for all of them."""
    hides_counters: bool = False
    """Whether nodes that reach no slice of a pool do not see its sets of counters, so that such a pool
    cannot keep requests for all devices from being satisfied there."""
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

    @property
    def resize_rules(self) -> ResizeRules:
        """How pods count that are resized in place."""
        return ResizeRules(pod_level=self.resizes_pod_level, by_sum=self.counts_resizes_by_sum)
