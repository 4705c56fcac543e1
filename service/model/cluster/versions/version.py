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
    matches_declared_features: bool = False
    """Whether nodes must declare the features that a pod needs (NodeDeclaredFeatures, KEP-5328)."""
    resizes_pod_level: bool = False
    """Whether NodeResourcesFit reads the pod-level resources in a pod's status (KEP-5419)."""
    counts_resizes_by_sum: bool = False
    """Whether a pod that is resized counts with the largest of several sums over its containers, and
    not with the sum of each container's largest amount."""
    negation_selects_all: bool = False
    """Whether a namespaceSelector of an incoming pod's term that only excludes (NotIn, DoesNotExist)
    selects all namespaces, which is documented otherwise (kubernetes#REF)."""
    reports_claims: bool = False
    """Whether the report on a pod for which nobody can be evicted says that of device claims, too."""
    scores_storage_capacity: bool = False
    """Whether VolumeBinding scores nodes by their storage capacity (KEP-4049)."""
    requires_csi_driver: bool = False
    """Whether NodeVolumeLimits refuses nodes without a CSI driver that asks for that (KEP-5030)."""

    @property
    def resize_rules(self) -> ResizeRules:
        """How pods count that are resized in place."""
        return ResizeRules(pod_level=self.resizes_pod_level, by_sum=self.counts_resizes_by_sum)
