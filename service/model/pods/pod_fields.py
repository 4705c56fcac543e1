"""Wire types of pods; the fields that scheduling reads are converted by hand.

Validation and the OpenAPI document are derived from these types. Parts that are decoded directly
are in `service.model.pods.pod`.
"""

from service.model.core.primitives import Quantities, Strict, Value
from service.model.pods import pod


class PodSchedulingGroup(Strict, frozen=True, kw_only=True):
    """The group whose members get nodes together, as Kubernetes has it since v1.36."""

    pod_group_name: str
    """Name of a PodGroup in the pod's namespace; until it exists, the pod waits."""


class WorkloadReference(Strict, frozen=True, kw_only=True):
    """The group whose members get nodes together, as Kubernetes v1.35 has it."""

    name: str
    """Name of a Workload in the pod's namespace; until it exists, the pod waits."""
    pod_group: str
    """Name of a pod group of the Workload."""
    pod_group_replica_key: str | None = None
    """Tells the replicas of the pod group apart: each is a group of its own."""


class PodSpec(pod.PodSpec, frozen=True, kw_only=True):
    """What scheduling reads of a pod. Other fields are kept and returned as they are."""

    node_name: str | None = None
    """The node that the pod is bound to; absent while it is pending."""
    resource_claims: tuple[pod.PodResourceClaim, ...] = ()
    """Claims to devices, which the pod is given together with its node. With other values of the
    setting `deviceClaims` it is refused, or they are passed over."""
    scheduling_group: PodSchedulingGroup | None = None
    """The PodGroup that the pod is a member of."""
    workload_ref: WorkloadReference | None = None
    """The pod group of a Workload that the pod is a member of."""


class PodCondition(Value, frozen=True, kw_only=True):
    """One condition, such as PodScheduled, which says why a pending pod waits."""

    type: str
    """What the condition is about."""
    status: str
    """True, False or Unknown."""
    reason: str | None = None
    """One word in CamelCase."""
    message: str | None = None
    """A sentence for people."""
    last_transition_time: str | None = None
    """When `status` last changed, RFC 3339."""


class PodResourceClaimStatus(Value, frozen=True, kw_only=True):
    """Which claim was made for one of the templates that the pod's `resourceClaims` name."""

    name: str
    """The pod's own name for the claim."""
    resource_claim_name: str | None = None
    """Name of the ResourceClaim in the pod's namespace."""


class PodStatus(Value, frozen=True, kw_only=True):
    """What is known of a pod's life. It is stored as sent, with what Moorage has written into it."""

    phase: str | None = None
    """Pending, Running, Succeeded, Failed or Unknown; finished pods hold nothing."""
    start_time: str | None = None
    """Since when it runs; of pods of one priority, preemption evicts the youngest first."""
    nominated_node_name: str | None = None
    """The node on which preemption makes room for the pod."""
    conditions: list[PodCondition] | None = None
    """What is known of the pod, one condition for each type."""
    container_statuses: list[pod.ContainerStatus] | None = None
    """Resources granted to running containers."""
    init_container_statuses: list[pod.ContainerStatus] | None = None
    """Resources granted to running init containers."""
    resources: pod.ResourceRequirements | None = None
    """Requests and limits of the pod as a whole, as they are in force."""
    allocated_resources: Quantities | None = None
    """What the node has granted the pod as a whole."""
    resource_claim_statuses: list[PodResourceClaimStatus] | None = None
    """Claims that were made from templates, one for each."""
