"""Parts of manifests as they are on the wire, of which what scheduling reads is taken by hand.

Validation follows from these types, and the OpenAPI document shows them. Parts that are decoded as a
whole are in `service.model.objects.pods_and_nodes`.
"""

from service.model.objects import pods_and_nodes
from service.model.objects.pods_and_nodes import (
    AtLeastOne,
    Quantities,
    SelectorOperator,
    Strict,
    Value,
)


class ObjectMeta(Value, frozen=True, kw_only=True):
    """What every object says of itself. Other fields are kept and returned as they are."""

    name: str
    """Name, unique among the objects of its kind and namespace."""
    namespace: str | None = None
    """Namespace; `default` where absent, none for nodes and namespaces."""
    labels: dict[str, str] | None = None
    """What selectors read."""
    annotations: dict[str, str] | None = None
    """Kept and returned. Scheduling reads one of pods, `rules.moorage.dev/v1alpha1`: rules as JSON."""
    uid: str | None = None
    """Identity of this one object among all that ever had its name."""
    resource_version: str | None = None
    """Revision that last changed the object; in PUT a precondition."""
    creation_timestamp: str | None = None
    """When Moorage first stored the object, RFC 3339 in UTC."""
    deletion_timestamp: str | None = None
    """Set while the object is being terminated, RFC 3339 in UTC."""


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


class PodSpec(pods_and_nodes.PodSpec, frozen=True, kw_only=True):
    """What scheduling reads of a pod. Other fields are kept and returned as they are."""

    node_name: str | None = None
    """The node that the pod is bound to; absent while it is pending."""
    host_network: bool | None = None
    """Whether the ports of containers are ports of the node."""
    resource_claims: tuple[pods_and_nodes.PodResourceClaim, ...] = ()
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
    container_statuses: list[pods_and_nodes.ContainerStatus] | None = None
    """Resources granted to running containers."""
    init_container_statuses: list[pods_and_nodes.ContainerStatus] | None = None
    """Resources granted to running init containers."""
    resource_claim_statuses: list[PodResourceClaimStatus] | None = None
    """Claims that were made from templates, one for each."""


class NodeSpec(Value, frozen=True, kw_only=True):
    """What keeps pods off a node."""

    unschedulable: bool | None = None
    """Takes no new pods that do not tolerate it."""
    taints: list[pods_and_nodes.Taint] | None = None
    """What keeps pods off that do not tolerate it."""


class NodeCondition(Value, frozen=True, kw_only=True):
    """One condition of a node, such as Ready."""

    type: str
    """What the condition is about; of Ready it depends whether the node has taints for that."""
    status: str
    """True, False or Unknown."""
    reason: str = ""
    """One word in CamelCase."""
    message: str = ""
    """A sentence for people."""
    last_heartbeat_time: str = ""
    """When the condition was last reported, RFC 3339."""
    last_transition_time: str = ""
    """When `status` last changed, RFC 3339."""


class NodeStatus(Value, frozen=True, kw_only=True):
    """What a node has to give, and the images that it already holds."""

    allocatable: Quantities | None = None
    """What pods may use, by resource name."""
    capacity: Quantities | None = None
    """Taken as allocatable where that is absent."""
    images: list[pods_and_nodes.ContainerImage] | None = None
    """Images on the node."""
    conditions: list[NodeCondition] | None = None
    """What is known of the node, one condition for each type."""


class PodGroupSpec(Strict, frozen=True, kw_only=True):
    """How many pods get nodes together, or not at all."""

    min_member: AtLeastOne | None = None
    """So many members have to be there, and to have a place, before any of them gets a node; 1 if
    absent."""
    min_resources: Quantities | None = None
    """Kept, but not read: the search for places knows what each member needs."""
    schedule_timeout_seconds: AtLeastOne | None = None
    """Members that have waited so long are told so; they go on waiting."""


class MatchScope(Strict, frozen=True, kw_only=True):
    """A quota scope that a pod must be in; PriorityClass compares with `values`."""

    scope_name: str
    """Name of the quota scope."""
    operator: SelectorOperator = "Exists"
    """How the scope is compared; only PriorityClass takes In and NotIn."""
    values: tuple[str, ...] = ()
    """Values to compare with; none for Exists and DoesNotExist."""


class QuotaScopeSelector(Strict, frozen=True, kw_only=True):
    """Scopes with operators; a pod has to be in all of them."""

    match_expressions: list[MatchScope] | None = None
    """The scopes; PriorityClass compares the pod's class with `values`."""


class ResourceQuotaSpec(Strict, frozen=True, kw_only=True):
    """How much the pods of a namespace may use, and which pods are meant."""

    hard: Quantities | None = None
    """Limits by resource: `pods`, `requests.…`, `limits.…`, `cpu`, `memory`, `opportunity.…`."""
    scopes: list[str] | None = None
    """Scopes that a pod has to be in to count; all of them."""
    scope_selector: QuotaScopeSelector | None = None
    """Scopes that are given with operators; a pod has to be in all of them, too."""


class ResourceQuotaStatus(Value, frozen=True, kw_only=True):
    """What is used of a quota, exactly as of the answer's revision; ignored where it is sent."""

    hard: Quantities | None = None
    """The limits, as in `spec`."""
    used: Quantities | None = None
    """What the pods that are covered are charged, by resource."""
