"""Pods as scheduling reads them: frozen values, valid and defaulted.

Fields have their Kubernetes names, in snake_case here and in camelCase on the wire. Fields that
scheduling does not read are stored as bytes in the pod's manifest. All pods of one template share a
spec object, so its identity is a cheap key for work done once per template.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from service.model.core.primitives import (
    AtLeastOne,
    ConnectionWeight,
    HostPort,
    Int32,
    LabelKeys,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    OwnerReference,
    PodSelector,
    Port,
    Positive,
    Quantities,
    Strict,
    TopologyKey,
    Value,
    Weight,
)
from service.model.pods.volume_sources import Volume

_EXECUTION = msgspec.Meta(
    description="Has to hold when the pod is placed, and as long as it runs: when a later change "
    "makes it false, Moorage evicts."
)
_PLACEMENT = msgspec.Meta(description="Has to hold when the pod is placed.")
_PREFERENCE = msgspec.Meta(
    description="Weighed among the nodes that are feasible when the pod is placed."
)


class PreferredSchedulingTerm(Strict, frozen=True, kw_only=True):
    """A node selector term and how much it counts."""

    weight: Weight
    preference: NodeSelectorTerm
    """The node selector term that is preferred."""


class NodeAffinity(Strict, frozen=True, kw_only=True):
    """Rules about the labels of nodes."""

    required_during_scheduling_required_during_execution: Annotated[
        NodeSelector | None, _EXECUTION
    ] = None
    required_during_scheduling_ignored_during_execution: Annotated[
        NodeSelector | None, _PLACEMENT
    ] = None
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[PreferredSchedulingTerm, ...] | None, _PREFERENCE
    ] = None


DEFAULT_SCHEDULER = "default-scheduler"
"""The profile of pods that name no scheduler; an empty name counts as none, as in Kubernetes."""
ToleranceSeconds = Annotated[int, msgspec.Meta(ge=0, le=86400)]


class PodAffinityTerm(Strict, frozen=True, kw_only=True):
    """One term; `matchLabelKeys` and `mismatchLabelKeys` are already merged into the selector."""

    topology_key: TopologyKey
    label_selector: PodSelector = None
    namespaces: tuple[str, ...] | None = None
    """Namespaces whose pods count, together with those that `namespaceSelector` selects; both
    absent means the pod's own."""
    namespace_selector: LabelSelector | None = None
    """Selects namespaces by their labels; `{}` means all."""
    except_namespace_selector: LabelSelector | None = None
    """Selects namespaces whose pods do not count for this term, though `namespaces` or
    `namespaceSelector` has them; `{}` means all, absent none. Kubernetes has no such field."""
    match_label_keys: LabelKeys = None
    mismatch_label_keys: tuple[str, ...] | None = None
    """Like `matchLabelKeys`, but the values must differ."""
    tolerance_seconds: ToleranceSeconds | None = None
    """How long the term may be broken before the pod is evicted; null: as `podAffinity` says. Only for
    terms of `podAffinity` that are required during execution."""
    max_per_domain: Positive | None = None
    """In required anti-affinity: the most matching pods that may be in one domain with the pod,
    itself included if it matches; absent means no other. Kubernetes has no such field."""
    first_pod_exempt: bool = False
    """In affinity required for scheduling only: the term is left out for a pod while no other pod of
    its controller that has such a term is placed; without a controller, none of the same labels.
    Kubernetes has no such field."""


class WeightedPodAffinityTerm(Strict, frozen=True, kw_only=True):
    """A pod affinity term and how much it counts."""

    weight: Weight
    pod_affinity_term: PodAffinityTerm
    """The term that is preferred."""


class PodAffinity(Strict, frozen=True, kw_only=True):
    """Also the shape of `podAntiAffinity`."""

    required_during_scheduling_required_during_execution: Annotated[
        tuple[PodAffinityTerm, ...] | None, _EXECUTION
    ] = None
    required_during_scheduling_ignored_during_execution: Annotated[
        tuple[PodAffinityTerm, ...] | None, _PLACEMENT
    ] = None
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[WeightedPodAffinityTerm, ...] | None, _PREFERENCE
    ] = None
    tolerance_seconds: ToleranceSeconds | None = None
    """How long each term that is required during execution may be broken before the pod is evicted;
    null: as `affinityViolationGraceSeconds` of the cluster says. Only for `podAffinity`."""


class Affinity(Strict, frozen=True, kw_only=True):
    """Rules about where a pod may and should go."""

    node_affinity: NodeAffinity | None = None
    """Rules about the labels of nodes."""
    pod_affinity: PodAffinity | None = None
    """Rules that draw the pod to domains that hold certain pods."""
    pod_anti_affinity: PodAffinity | None = None
    """Rules that keep the pod out of domains that hold certain pods."""


class TopologySpreadConstraint(Strict, frozen=True, kw_only=True):
    """How evenly matching pods have to be spread over domains."""

    topology_key: TopologyKey
    max_skew: Positive = 1
    """By how many matching pods two domains may differ."""
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway", "FallbackWhenFull"] = (
        "DoNotSchedule"
    )
    """Whether the constraint filters nodes or only ranks them. `FallbackWhenFull`, which Kubernetes
    does not have, filters while that leaves a node on which the pod fits, and else only ranks."""
    label_selector: PodSelector = None
    min_domains: Positive | None = None
    """With fewer eligible domains, the smallest count is taken as zero."""
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    """Whether only nodes that the pod's node affinity lets in make up the domains."""
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"
    """Whether only nodes whose taints the pod tolerates make up the domains."""
    match_label_keys: LabelKeys = None
    namespace_selector: LabelSelector | None = None
    """Selects namespaces by their labels: the pods in these count, and no others; `{}` means all,
    absent the pod's own alone. Kubernetes has no such field."""


class PodConnection(Strict, frozen=True, kw_only=True):
    """Pods that a pod talks with, and how much. Kubernetes has no such thing."""

    topology_key: TopologyKey
    label_selector: PodSelector = None
    namespaces: tuple[str, ...] | None = None
    """Namespaces whose pods are connected; absent means the pod's own."""
    weight: ConnectionWeight


class RequiredData(Strict, frozen=True, kw_only=True):
    """Data that a pod cannot do without."""

    data_set: str
    """Name of a DataSet of the pod's namespace."""


class PreferredData(Strict, frozen=True, kw_only=True):
    """Data that a pod should be near, and how much that counts."""

    weight: Weight
    data_set: str
    """Name of a DataSet of the pod's namespace."""


class DataAffinity(Strict, frozen=True, kw_only=True):
    """Rules about the data that nodes have. Kubernetes has no such thing."""

    required: tuple[RequiredData, ...] = ()
    """Data sets all of which the node has to have when the pod is placed."""
    preferred: tuple[PreferredData, ...] = ()
    """Data sets that are weighed among the nodes that are feasible when the pod is placed."""


class Toleration(Strict, frozen=True, kw_only=True):
    """`Lt` and `Gt` are behind a gate that Kubernetes has off up to v1.37, so they are refused."""

    key: str = ""
    """Name of the taints tolerated; empty with Exists means all."""
    operator: Literal["Equal", "Exists", ""] = "Equal"
    """Equal compares `value`, Exists does not."""
    value: str = ""
    """Value of the taints tolerated."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""] = ""
    """Effect that is tolerated; empty means every effect."""
    toleration_seconds: int | None = None
    """How long NoExecute is tolerated once the taint was added; None: for ever. Placing ignores it."""


class ContainerPort(Value, frozen=True, kw_only=True):
    """A port of a container."""

    container_port: Port
    """Port inside the container."""
    host_port: HostPort = 0
    """Port taken on the node; 0 takes none."""
    host_ip: str = msgspec.field(default="", name="hostIP")
    """Address that `hostPort` is taken on; empty means all."""
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    """Protocol of the port."""


class ResourceRequirements(Value, frozen=True, kw_only=True):
    """`requests` are already defaulted from `limits`."""

    requests: Quantities | None = None
    """What is set aside, by resource name; taken from `limits` where absent."""
    limits: Quantities | None = None
    """The most that may be used, by resource name."""


class ContainerRestartRule(Value, frozen=True, kw_only=True):
    """What happens when a container exits in a certain way."""

    action: str = ""
    """RestartAllContainers needs a node that declares the feature; see `status.declaredFeatures` of
    nodes."""


class VolumeMount(Value, frozen=True, kw_only=True):
    """A volume as a container mounts it."""

    bind_mount_options: tuple[str, ...] = ()
    """Options of the mount, for which the node has to declare the feature VolumeBindMountOptions."""


class Container(Value, frozen=True, kw_only=True):
    """Also an init container; one with `restart_policy` Always is a sidecar."""

    name: str = ""
    """Name of the container."""
    image: str = ""
    """Image; a node that already holds it scores higher."""
    ports: tuple[ContainerPort, ...] = ()
    """Ports; only those with a `hostPort` matter to scheduling."""
    resources: ResourceRequirements | None = None
    """Requests and limits."""
    restart_policy: Literal["Always", "OnFailure", "Never"] | None = None
    """Always makes an init container a sidecar."""
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    """What happens when the container exits in a certain way."""
    volume_mounts: tuple[VolumeMount, ...] = ()
    """The volumes that the container mounts; only their `bindMountOptions` matter to scheduling."""


class PodSchedulingGate(Strict, frozen=True, kw_only=True):
    """Keeps the pod from being tried."""

    name: str
    """Name of the gate."""


class PodResourceClaim(Value, frozen=True, kw_only=True):
    """A claim to devices; either it is there, or it is made for the pod from a template."""

    name: str
    """Name by which containers refer to the claim."""
    resource_claim_name: str | None = None
    """Name of a ResourceClaim in the pod's namespace."""
    resource_claim_template_name: str | None = None
    """Name of a ResourceClaimTemplate in the pod's namespace."""


class PodSpec(Value, frozen=True, kw_only=True, weakref=True):
    """The fields of a pod's `spec` that scheduling reads, except `nodeName` (see `Pod.node_name`).

    `volumes` has only volumes whose source scheduling reads, without the names of claims
    (`Pod.claims`).
    """

    containers: tuple[Container, ...] = ()
    """The pod's containers."""
    init_containers: tuple[Container, ...] = ()
    """Containers that run before the others, and sidecars."""
    host_network: bool | None = None
    """Whether the ports of containers are ports of the node."""
    host_users: bool | None = None
    """False, together with `hostNetwork`, needs a node that declares the feature
    UserNamespacesHostNetworkSupport."""
    overhead: Quantities | None = None
    """What the pod itself costs beside its containers."""
    resources: ResourceRequirements | None = None
    """Requests and limits."""
    node_selector: dict[str, str] | None = None
    """Node labels that must be there; holds beside node affinity."""
    affinity: Affinity | None = None
    """Rules about nodes and about other pods."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints that the pod tolerates."""
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    """How evenly pods have to be spread over domains."""
    connections: tuple[PodConnection, ...] = ()
    """Pods that the pod talks with, so that it is preferred in their domains. Kubernetes has no
    such field."""
    data_affinity: DataAffinity | None = None
    """Rules about the data that nodes have. Kubernetes has no such field."""
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    """While there are any, the pod is not tried."""
    scheduler_name: str = DEFAULT_SCHEDULER
    """The scheduling profile that places the pod."""
    priority: Int32 | None = None
    """Pods with a higher priority are tried first."""
    priority_class_name: str = ""
    """Name of the class that gives the pod its priority."""
    preemption_policy: Literal["PreemptLowerPriority", "Never"] = "PreemptLowerPriority"
    """Never: no pod is proposed to make room for this one."""
    runtime_class_name: str = ""
    """Name of the RuntimeClass, whose overhead, node selector and tolerations the pod gets when it
    is created."""
    active_deadline_seconds: AtLeastOne | None = None
    """How long the pod may run; read by quota scopes."""
    resource_claims: tuple[PodResourceClaim, ...] = ()
    """Claims to devices, which the pod is given together with its node."""
    volumes: tuple[Volume, ...] = ()
    """What the pod's containers mount; claims and disks decide where it can go."""


class ContainerStatus(Value, frozen=True, kw_only=True):
    """What a running container was granted."""

    name: str = ""
    """Name of the container."""
    resources: ResourceRequirements | None = None
    """Requests and limits."""
    allocated_resources: Quantities | None = None
    """What the node has granted the container."""


class PodResize(Value, frozen=True, kw_only=True):
    """The state of an in-place resize of a placed pod; most pods have none."""

    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    """The requests and limits of the pod as a whole, as they are in force."""
    allocated_resources: Quantities | None = None
    """What the node has granted the pod as a whole."""
    infeasible: bool = False
    """Whether the pod's first condition PodResizePending has the reason Infeasible."""

    @property
    def states_requests(self) -> bool:
        """Whether both what is granted and what is in force are stated for the pod as a whole."""
        in_force = self.resources is not None and self.resources.requests is not None
        return in_force and self.allocated_resources is not None


class Pod(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The parts of a pod that decisions read; small, as all pods of a template share `spec`.

    `node_name` is the pod's node, or None while it is pending. `required_node_name` is the
    `spec.nodeName` requested for a pending pod, which the NodeName filter checks.
    """

    namespace: str
    name: str
    spec: PodSpec
    labels: Mapping[str, str]
    uid: str = ""
    node_name: str | None = None
    required_node_name: str | None = None
    terminating: bool = False
    """Whether `deletionTimestamp` is set."""
    finished: bool = False
    """Whether `status.phase` is Succeeded or Failed, so that the pod holds no resources and rules
    ignore it."""
    resize: PodResize | None = None
    created: str = ""
    """`creationTimestamp`: RFC 3339 in UTC, so that it sorts as a string."""
    controller: OwnerReference | None = None
    """The owner that controls the pod, or None."""
    started: str = ""
    """`status.startTime`, RFC 3339 in UTC, or "" until reported."""
    nominated_node_name: str | None = None
    """The node on which preemption makes room for the pod."""
    unready: bool = False
    """Whether the pod has the condition Ready with a status other than True."""
    starting: bool = False
    """Whether the pod is unready in the phase Pending, so that disruption budgets ignore it."""
    preempted: bool = False
    """Whether the pod has the condition DisruptionTarget with the reason PreemptionByScheduler."""
    claims: tuple[str, ...] = ()
    """The names of the claims that the spec's volumes refer to, in the volumes' order.

    They are stored outside the spec, so that pods that differ only in claims can share it."""
    device_claims: tuple[tuple[str, str | None], ...] = ()
    """`status.resourceClaimStatuses`: the claims created from the spec's claim templates.

    The claim's name is None if the claim turned out not to be needed."""

    @property
    def priority(self) -> int:
        """`spec.priority`, or 0 if absent."""
        return self.spec.priority or 0

    @property
    def wants_node(self) -> bool:
        """Whether the pod has no node yet, and is neither terminating nor finished."""
        return self.node_name is None and not self.terminating and not self.finished
