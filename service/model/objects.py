"""The Kubernetes objects that scheduling reads, as frozen values.

Field names are Kubernetes' own in snake_case (camelCase on the wire). What scheduling does not
read is absent here and is kept as bytes beside the object (`service.model.manifest`). Every
value here is valid and defaulted: it comes from `service.model.manifest` only. Values are shared
between all pods of one template, so identity is a cheap key for work done once per template.
"""
# ruff: noqa: D101 - what a type means is said by Kubernetes' API reference, under the same name

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

ObjectName: TypeAlias = tuple[str, str]
"""Namespace and name of an object; the namespace of a cluster-scoped one is empty."""


class Value(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all values: immutable, camelCase on the wire."""


class Strict(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of values that scheduling reads whole: an unknown field is an error."""


SelectorOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
NodeSelectorOperator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
Quantities = Mapping[str, str | int | float]
"""Resource name to quantity as sent; `service.model.quantity` turns one into an integer."""


class LabelSelectorRequirement(Strict, frozen=True, kw_only=True):
    key: str
    operator: SelectorOperator
    values: tuple[str, ...] | None = None


class LabelSelector(Strict, frozen=True, kw_only=True):
    """`None` in place of a selector matches nothing, an empty selector everything."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None


class NodeSelectorRequirement(Strict, frozen=True, kw_only=True):
    key: str
    operator: NodeSelectorOperator
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(Strict, frozen=True, kw_only=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] | None = None
    match_fields: tuple[NodeSelectorRequirement, ...] | None = None


class NodeSelector(Strict, frozen=True, kw_only=True):
    node_selector_terms: tuple[NodeSelectorTerm | None, ...]


class PreferredSchedulingTerm(Strict, frozen=True, kw_only=True):
    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(Strict, frozen=True, kw_only=True):
    required_during_scheduling_required_during_execution: NodeSelector | None = None
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: (
        tuple[PreferredSchedulingTerm, ...] | None
    ) = None


class PodAffinityTerm(Strict, frozen=True, kw_only=True):
    """One term; `matchLabelKeys` and `mismatchLabelKeys` are already merged into the selector."""

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class WeightedPodAffinityTerm(Strict, frozen=True, kw_only=True):
    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Strict, frozen=True, kw_only=True):
    """Also the shape of `podAntiAffinity`."""

    required_during_scheduling_required_during_execution: tuple[PodAffinityTerm, ...] | None = None
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] | None = None
    preferred_during_scheduling_ignored_during_execution: (
        tuple[WeightedPodAffinityTerm, ...] | None
    ) = None


class Affinity(Strict, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Strict, frozen=True, kw_only=True):
    topology_key: str
    max_skew: int = 1
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"
    match_label_keys: tuple[str, ...] | None = None


class Toleration(Strict, frozen=True, kw_only=True):
    """`operator` also admits Lt and Gt, which match nothing (an alpha gate that is off)."""

    key: str = ""
    operator: Literal["", "Equal", "Exists", "Lt", "Gt"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    toleration_seconds: int | None = None


class Taint(Strict, frozen=True, kw_only=True):
    key: str
    effect: TaintEffect
    value: str = ""
    time_added: str | None = None


class ContainerPort(Value, frozen=True, kw_only=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"


class ResourceRequirements(Value, frozen=True, kw_only=True):
    """`requests` are already defaulted from `limits`."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class Container(Value, frozen=True, kw_only=True):
    """Also an init container; one with `restart_policy` Always is a sidecar."""

    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None


class PodSchedulingGate(Value, frozen=True, kw_only=True):
    name: str


class PodSpec(Value, frozen=True, kw_only=True, weakref=True):
    """What scheduling reads of a pod's `spec`, without `nodeName` (see `Pod.node_name`)."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Quantities | None = None
    resources: ResourceRequirements | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduler_name: str = "default-scheduler"
    priority: int | None = None
    priority_class_name: str = ""
    active_deadline_seconds: int | None = None


class ContainerStatus(Value, frozen=True, kw_only=True):
    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: Quantities | None = None


class ContainerImage(Value, frozen=True, kw_only=True):
    names: tuple[str, ...] = ()
    size_bytes: int = 0


class PodResize(Value, frozen=True, kw_only=True):
    """The state of an in-place resize of a placed pod; most pods have none."""

    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    infeasible: bool = False
    """Whether the pod has the condition PodResizePending with the reason Infeasible."""


class Pod(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All that decisions need of one pod. It is small, as all pods of a template share `spec`.

    `node_name` is where the pod is placed; None while it is pending. `required_node_name` is the
    `spec.nodeName` of a pod that is still to be placed: what the NodeName filter checks.
    """

    namespace: str
    name: str
    spec: PodSpec
    labels: Mapping[str, str]
    uid: str = ""
    node_name: str | None = None
    required_node_name: str | None = None
    terminating: bool = False
    """A `deletionTimestamp` is set."""
    finished: bool = False
    """`status.phase` is Succeeded or Failed: the pod holds nothing and counts nowhere."""
    resize: PodResize | None = None
    created: str = ""
    """`creationTimestamp`, RFC 3339 in UTC, so that it sorts as a string."""

    @property
    def wants_node(self) -> bool:
        """Whether the pod is still to be placed: it has no node, is not being deleted and has not ended."""
        return self.node_name is None and not self.terminating and not self.finished


class Node(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    labels: Mapping[str, str]
    allocatable: Quantities
    """`status.allocatable`, or `status.capacity` where that is absent."""
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    images: tuple[ContainerImage, ...] = ()
    uid: str = ""


class Namespace(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    labels: Mapping[str, str]
    uid: str = ""
