"""Manifests and answers as they are on the wire: what the OpenAPI document shows.

Handlers read manifests as bytes through `service.model.manifest`, which checks all of what is
written here and more; these types are for readers and for generated clients. What scheduling
reads is taken from `service.model.objects` and `service.model.manifest_types`, not written a second time.
"""

from typing import Annotated, Any, Literal, get_args

import msgspec

from service.api.openapi.extender_types import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderPreemptionArgs,
)
from service.model import manifest_types, objects
from service.model.audit import AuditRow
from service.model.config import ClusterConfig, MatchScope, PreemptionScope
from service.model.events import EventReason, EventType
from service.model.field_warnings import FieldWarning
from service.model.kept_kinds import KEPT_KINDS
from service.model.kept_object import KeptKind
from service.model.manifest_types import NodeSpec, NodeStatus, ObjectMeta, PodSpec
from service.model.objects import Quantities, Strict, Value
from service.model.plans import WhenUnschedulable
from service.model.principals import Role
from service.model.priority_classes import PriorityClassFields
from service.model.rollouts import PodOwner
from service.model.scheduling_groups import (
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
)
from service.scheduler.protocol.placements import Explain, PodRef, Policy, Preemption, Strategy
from service.scheduler.protocol.plans import Objective

GRANTS_MAX = 1000
"""How many grants a principal or a group may have."""
SECONDS_MAX = 100 * 366 * 24 * 3600
"""For how long a token may be taken."""

ScopeName = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
"""A name that a cluster or a namespace can have."""


_WARNINGS = Annotated[
    list[FieldWarning] | msgspec.UnsetType,
    msgspec.Meta(
        description="In the answer to a write: fields that are passed over. Ignored where it is sent."
    ),
]


class Written(Value, frozen=True, kw_only=True):
    """What every object has in the answer to a write."""

    warnings: _WARNINGS = msgspec.UNSET


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


class PodStatus(Value, frozen=True, kw_only=True):
    """What is known of a pod's life; stored as sent."""

    phase: str | None = None
    """Pending, Running, Succeeded, Failed or Unknown; finished pods hold nothing."""
    start_time: str | None = None
    """Since when it runs; of pods of one priority, preemption evicts the youngest first."""
    nominated_node_name: str | None = None
    """The node on which preemption makes room for the pod."""
    conditions: list[PodCondition] | None = None
    """What is known of the pod, one condition for each type."""
    container_statuses: list[objects.ContainerStatus] | None = None
    """Resources granted to running containers."""
    init_container_statuses: list[objects.ContainerStatus] | None = None
    """Resources granted to running init containers."""


class Pod(Written, frozen=True, kw_only=True):
    """A Kubernetes Pod. Without `spec.nodeName` it is pending."""

    metadata: ObjectMeta
    api_version: str = "v1"
    kind: Literal["Pod"] = "Pod"
    spec: PodSpec
    """What the pod needs, and where it may go."""
    status: PodStatus | None = None
    """What is known of the pod's life."""


class PodTemplate(Value, frozen=True, kw_only=True):
    """A PodTemplateSpec; its name is the prefix of the pods' names."""

    metadata: ObjectMeta
    spec: PodSpec
    """The spec that all pods of the template share."""


class Node(Written, frozen=True, kw_only=True):
    """A Kubernetes Node."""

    metadata: ObjectMeta
    api_version: str = "v1"
    kind: Literal["Node"] = "Node"
    spec: NodeSpec | None = None
    """What keeps pods off."""
    status: NodeStatus | None = None
    """What the node has to give."""


class EventObject(Value, frozen=True, kw_only=True):
    """What an event is about."""

    kind: Literal["Pod"] = "Pod"
    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    uid: str
    """Identity of the one pod that is meant."""
    api_version: str = "v1"


class EventSource(Value, frozen=True, kw_only=True):
    """Who tells of an event."""

    component: str
    """`moorage`."""


class Event(Value, frozen=True, kw_only=True):
    """A Kubernetes Event: what happened to a pod, how often, and when."""

    metadata: ObjectMeta
    api_version: str = "v1"
    kind: Literal["Event"] = "Event"
    involved_object: EventObject
    """The pod."""
    type: EventType
    """Normal, or Warning where somebody may want to act."""
    reason: EventReason
    """What happened, in one word."""
    message: str
    """What happened the last time, in a sentence; an eviction's names the rule."""
    count: int
    """How often it happened."""
    first_timestamp: str
    """When it happened first, RFC 3339 in UTC."""
    last_timestamp: str
    """When it happened last."""
    source: EventSource
    """Who tells of it."""


class Namespace(Written, frozen=True, kw_only=True):
    """A Kubernetes Namespace; its labels are what namespace selectors read."""

    metadata: ObjectMeta
    api_version: str = "v1"
    kind: Literal["Namespace"] = "Namespace"


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


class ResourceQuota(Written, frozen=True, kw_only=True):
    """A Kubernetes ResourceQuota."""

    metadata: ObjectMeta
    api_version: str = "v1"
    kind: Literal["ResourceQuota"] = "ResourceQuota"
    spec: ResourceQuotaSpec | None = None
    """What is limited."""
    status: ResourceQuotaStatus | None = None
    """What is used. Watches and exports leave it out: it changes with every pod."""


class PodGroupStatus(Value, frozen=True, kw_only=True):
    """How the members fare, exactly as of the answer's revision; ignored where it is sent."""

    phase: Literal["Pending", "Scheduling", "Running", "Unknown", "Finished", "Failed"] | None = (
        None
    )
    """Scheduling: at least `minMember` have nodes; Running: and run. Unknown: fewer have."""
    members: int | None = None
    """Pods of the namespace that have the group's label."""
    scheduled: int | None = None
    """Members that have a node and have not ended."""
    running: int | None = None
    """Members whose `status.phase` is Running."""
    succeeded: int | None = None
    """Members whose `status.phase` is Succeeded."""
    failed: int | None = None
    """Members whose `status.phase` is Failed."""
    schedule_start_time: str | None = None
    """Since when the group waits: the time of `scheduleTimeoutSeconds` counts from here."""


class PodGroupSpec(
    manifest_types.PodGroupSpec, frozen=True, kw_only=True, forbid_unknown_fields=False
):
    """What a group needs.

    Groups of `scheduling.x-k8s.io` have no other fields than the first three. Those of
    `scheduling.k8s.io` have the last two, and other fields are kept as they are.
    """

    scheduling_policy: PodGroupSchedulingPolicy | None = None
    """How the members are placed; required in `scheduling.k8s.io`."""
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    """Where the members may go."""


class PodGroup(Written, frozen=True, kw_only=True):
    """A PodGroup as kubernetes-sigs/scheduler-plugins or Kubernetes itself has it.

    That of the coscheduling plugin is of `scheduling.x-k8s.io`, that of Kubernetes v1.36 and later of
    `scheduling.k8s.io`.
    """

    metadata: ObjectMeta
    api_version: str = "scheduling.x-k8s.io/v1alpha1"
    kind: Literal["PodGroup"] = "PodGroup"
    spec: PodGroupSpec | None = None
    """What the group needs."""
    status: PodGroupStatus | None = None
    """How its members fare. Watches and exports leave it out: it changes with every member. That of a
    group of `scheduling.k8s.io` is kept as it was sent."""


class PriorityClass(PriorityClassFields, frozen=True, kw_only=True):
    """A Kubernetes PriorityClass, which `apply` takes as an entry of `priorityClasses`."""

    metadata: ObjectMeta
    api_version: str = "scheduling.k8s.io/v1"
    kind: Literal["PriorityClass"] = "PriorityClass"


class ListMeta(Value, frozen=True, kw_only=True):
    """Which state a list shows, and where it goes on."""

    resource_version: str
    """Revision of the list's first page: watch from it to keep the list exact."""
    continue_: str | None = msgspec.field(default=None, name="continue")
    """Send it back as `continue` for the next page; absent on the last one."""


class EventList(Value, frozen=True, kw_only=True):
    """Events by namespace and name."""

    metadata: ListMeta
    items: list[Event]
    api_version: str = "v1"
    kind: Literal["EventList"] = "EventList"


class PodList(Value, frozen=True, kw_only=True):
    """Pods, by namespace and name."""

    metadata: ListMeta
    items: list[Pod]
    api_version: str = "v1"
    kind: Literal["PodList"] = "PodList"


class NodeList(Value, frozen=True, kw_only=True):
    """Nodes, by name."""

    metadata: ListMeta
    items: list[Node]
    api_version: str = "v1"
    kind: Literal["NodeList"] = "NodeList"


class NamespaceList(Value, frozen=True, kw_only=True):
    """Namespaces, by name."""

    metadata: ListMeta
    items: list[Namespace]
    api_version: str = "v1"
    kind: Literal["NamespaceList"] = "NamespaceList"


class ResourceQuotaList(Value, frozen=True, kw_only=True):
    """Quotas, by namespace and name."""

    metadata: ListMeta
    items: list[ResourceQuota]
    api_version: str = "v1"
    kind: Literal["ResourceQuotaList"] = "ResourceQuotaList"


class PodGroupList(Value, frozen=True, kw_only=True):
    """Pod groups, by namespace and name."""

    metadata: ListMeta
    items: list[PodGroup]
    api_version: str = "v1"
    kind: Literal["PodGroupList"] = "PodGroupList"


def _kept_type(declared: KeptKind) -> type[msgspec.Struct]:
    """The type of the objects of a kind: what it declares, and what all objects have."""
    return msgspec.defstruct(
        declared.kind,
        [
            ("metadata", ObjectMeta),
            ("api_version", str, declared.api_version),
            ("kind", Literal[declared.kind], declared.kind),
            ("warnings", _WARNINGS, msgspec.UNSET),
        ],
        bases=(declared.body,),
        namespace={"__doc__": f"A Kubernetes {declared.kind}. {_OPEN}"},
        frozen=True,
        kw_only=True,
    )


def _kept_list(declared: KeptKind) -> type[msgspec.Struct]:
    kind = f"{declared.kind}List"
    item = KEPT_TYPES[declared.kind]
    return msgspec.defstruct(
        kind,
        [
            ("metadata", ListMeta),
            ("items", list[item]),  # type: ignore[valid-type]
            ("api_version", str, "v1"),
            ("kind", Literal[kind], kind),
        ],
        bases=(Value,),
        namespace={"__doc__": f"Objects of the kind {declared.kind}, by namespace and name."},
        frozen=True,
        kw_only=True,
    )


_OPEN = "Fields that scheduling does not read are kept and returned as they are."
KEPT_TYPES = {kind: _kept_type(declared) for kind, declared in KEPT_KINDS.items()}
KEPT_LISTS = {kind: _kept_list(declared) for kind, declared in KEPT_KINDS.items()}

STORED_KINDS = ("Node", "Namespace", "Pod", "ResourceQuota", "PodGroup", *KEPT_KINDS)


def _any_of(description: str, *kinds: str) -> dict[str, Any]:
    """A union of schemas that are named after their kinds.

    It is an `anyOf`, because generators of TypeScript would ask for `kind` in every manifest if it
    told the schemas of a `oneOf` apart.
    """
    return {
        "description": description,
        "anyOf": [{"$ref": f"#/components/schemas/{kind}"} for kind in kinds],
        "required": ["kind"],
        "discriminator": {"propertyName": "kind"},
    }


def _named(union: str) -> msgspec.Meta:
    return msgspec.Meta(extra_json_schema={"$ref": f"#/components/schemas/{union}"})


UNIONS = {
    "ApplicableObject": _any_of(
        "One of the kinds that `apply` takes.", *STORED_KINDS, "PriorityClass"
    ),
    "RuleObject": _any_of("One of the kinds that are kept for rules.", *KEPT_KINDS),
}
"""Schemas of which msgspec has no types, since it has no untagged unions of structs."""

AnyKept = Annotated[Any, _named("RuleObject")]
"""One of the kinds that are kept for rules."""

Applicable = Annotated[Any, _named("ApplicableObject")]
"""What `apply` takes."""


class ObjectList(Value, frozen=True, kw_only=True):
    """A Kubernetes List of objects of several kinds; each has its own `kind`."""

    items: list[Applicable]
    api_version: str = "v1"
    kind: Literal["List"] = "List"
    metadata: ListMeta | None = None


class ClusterCounts(Value, frozen=True, kw_only=True):
    """How many objects a cluster holds."""

    nodes: int
    """Nodes in the cluster."""
    pods: int
    """Pods in the cluster, pending ones included."""
    pending: int
    """Pods without a node."""


class Cluster(Value, frozen=True, kw_only=True):
    """A cluster: its configuration, where its log ends, and how much it holds."""

    name: str
    """Name of the cluster."""
    config: ClusterConfig
    """Its settings."""
    revision: int
    """Revision of its last change."""
    counts: ClusterCounts
    """How many objects it holds."""


class ClusterList(Value, frozen=True, kw_only=True):
    """All clusters, by name."""

    items: list[Cluster]
    """The clusters."""
    kind: Literal["ClusterList"] = "ClusterList"
    """What this is."""


class AuditPlace(Value, frozen=True, kw_only=True):
    """Where the audit goes on."""

    continue_: str | None = msgspec.field(default=None, name="continue")
    """Send it back as `continue` for the next page; absent on the last one."""


class AuditList(Value, frozen=True, kw_only=True):
    """Rows of the audit, by chain and number."""

    metadata: AuditPlace
    """Where it goes on."""
    items: list[AuditRow]
    """The rows."""
    kind: Literal["AuditList"] = "AuditList"
    """What this is."""


class _ClusterShown(Strict, frozen=True, kw_only=True):
    """What GET of a cluster shows beside its settings, so that its answer can be sent back."""

    name: str | msgspec.UnsetType = msgspec.UNSET
    """Ignored: the name is in the path."""
    revision: int | msgspec.UnsetType = msgspec.UNSET
    """Ignored, as in what GET shows."""
    counts: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    """Ignored, as in what GET shows."""


class ClusterSettings(_ClusterShown, frozen=True, kw_only=True):
    """What PUT of a cluster takes."""

    config: ClusterConfig
    """All its settings; one that is left out has its default."""


class ClusterPatch(_ClusterShown, frozen=True, kw_only=True):
    """What PATCH of a cluster takes."""

    config: dict[str, Any]
    """The settings to change; null gives one its default."""


class Grant(Strict, frozen=True, kw_only=True):
    """A role on one cluster or all, in one namespace or all."""

    role: Role
    """What the role lets one do is told in the documentation."""
    cluster: ScopeName | None = None
    """Name of the cluster; absent: all."""
    namespace: ScopeName | None = None
    """Name of the namespace; absent: all, and what is in none."""


class PrincipalSettings(Strict, frozen=True, kw_only=True):
    """What PUT of a principal or a group takes."""

    grants: Annotated[list[Grant], msgspec.Meta(max_length=GRANTS_MAX)]
    """All its grants."""


class Token(Value, frozen=True, kw_only=True):
    """A token of a principal, without its secret."""

    id: str
    """What it is called, as in `mrg_<id>_<secret>`."""
    description: str
    """What it is for."""
    created_at: str
    """When it was made, RFC 3339 in UTC."""
    expires_at: str | None = None
    """Until when it is taken; absent: for good."""
    last_used_at: str | None = None
    """When it was used last, within a minute or so; absent: never."""


class Principal(Value, frozen=True, kw_only=True):
    """Somebody who may make requests."""

    name: str
    """Name of the principal."""
    grants: list[Grant]
    """What it may do, and where."""
    created_at: str
    """When it was made, RFC 3339 in UTC."""
    tokens: list[Token]
    """Its tokens, the oldest first."""


class Group(Value, frozen=True, kw_only=True):
    """A group that an identity provider names in its tokens."""

    name: str
    """Name of the group, as the provider's."""
    grants: list[Grant]
    """What those who are in it may do, and where."""
    created_at: str
    """When it was made, RFC 3339 in UTC."""


class PrincipalList(Value, frozen=True, kw_only=True):
    """All principals, by name."""

    items: list[Principal]
    """The principals."""
    kind: str = "PrincipalList"
    """What this is."""


class GroupList(Value, frozen=True, kw_only=True):
    """All groups that have grants, by name."""

    items: list[Group]
    """The groups."""
    kind: str = "GroupList"
    """What this is."""


class TokenSettings(Strict, frozen=True, kw_only=True):
    """What a new token is to be."""

    description: Annotated[str, msgspec.Meta(max_length=500)] = ""
    """What it is for."""
    expires_in_seconds: Annotated[int, msgspec.Meta(ge=1, le=SECONDS_MAX)] | None = None
    """How long it is taken from now on; absent: for good."""


class NewToken(Token, frozen=True, kw_only=True):
    """A token that was just made: its text is told this once."""

    token: str
    """What to send as `Authorization: Bearer <token>`."""


class Caller(Value, frozen=True, kw_only=True):
    """Who makes this request."""

    name: str
    """Name of the principal."""
    grants: list[Grant]
    """What it may do, and where."""
    groups: list[str]
    """Groups that the identity provider says it is in."""


JsonPointer = Annotated[str, msgspec.Meta(pattern=r"^(/([^~/]|~[01])*)*$")]


class MergePatch(Value, frozen=True, kw_only=True):
    """The fields to change, in the object's own shape; null removes one (RFC 7396)."""


class StrategicMergePatch(Value, frozen=True, kw_only=True):
    """A merge patch that merges lists by the key that Kubernetes gives them."""


class AppliedObject(Value, frozen=True, kw_only=True):
    """All that a manager wants of an object, in the form of its kind."""


class JsonPatchOperation(Value, frozen=True, kw_only=True):
    """One step of a JSON patch (RFC 6902)."""

    op: Literal["add", "remove", "replace", "move", "copy", "test"]
    """What to do."""
    path: JsonPointer
    """JSON pointer to the value that changes."""
    from_: JsonPointer | None = msgspec.field(default=None, name="from")
    """JSON pointer to the value that `move` and `copy` take."""
    value: Any = None
    """The value that `add`, `replace` and `test` use."""


class DeletePreconditions(Value, frozen=True, kw_only=True):
    """What must be true of the object that is deleted."""

    uid: str | None = None
    """Its `metadata.uid`."""
    resource_version: str | None = None
    """Its `metadata.resourceVersion`."""


class DeleteOptions(Value, frozen=True, kw_only=True):
    """Kubernetes' DeleteOptions; all but `preconditions` is ignored."""

    preconditions: DeletePreconditions | None = None
    """Preconditions on the object; if one does not hold, nothing is deleted."""


class StatusReport(Strict, frozen=True, kw_only=True):
    """What one pod's `status` has to be changed to."""

    namespace: str = "default"
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    uid: str | None = None
    """If given, its `metadata.uid` has to be this one."""
    resource_version: str | None = None
    """If given, its `metadata.resourceVersion` has to be this one."""
    status: dict[str, Any]
    """A merge patch of its status: fields that are absent stay, null removes a field."""


class StatusReports(Strict, frozen=True, kw_only=True):
    """Reports on many pods."""

    items: list[StatusReport]
    """One for each pod; for one pod there may be several, which count in their order."""


class LeaseMeta(Value, frozen=True, kw_only=True):
    """Identity of a node's lease."""

    name: str | None = None
    """Name of the node."""
    namespace: str | None = None
    """Namespace that Kubernetes keeps leases of nodes in, `kube-node-lease`."""


class LeaseSpec(Value, frozen=True, kw_only=True):
    """What a node's lease says; of one that is sent, nothing is read."""

    holder_identity: str | None = None
    """Name of the node."""
    lease_duration_seconds: int | None = None
    """After how long without another report the node counts as silent."""
    renew_time: str | None = None
    """When the node last reported, RFC 3339, on the clock of the database."""


class Lease(Value, frozen=True, kw_only=True):
    """The lease of a node, as a coordination.k8s.io/v1 Lease."""

    api_version: Literal["coordination.k8s.io/v1"] | None = None
    """Version of the kind."""
    kind: Literal["Lease"] | None = None
    """Kind of the object."""
    metadata: LeaseMeta | None = None
    """Identity of the lease."""
    spec: LeaseSpec | None = None
    """What the lease says."""


class NodeReport(Strict, frozen=True, kw_only=True):
    """Nodes that report, by name or by their leases."""

    nodes: list[str] | None = None
    """Names of the nodes."""
    items: list[Lease] | None = None
    """Their leases, as a list of the kind LeaseList has them."""


class NodeReportResult(Value, frozen=True, kw_only=True):
    """What became of the reports of many nodes."""

    renewed: int
    """How many of the nodes are known to have reported now."""
    unknown: list[str]
    """Names that no node of the cluster has."""


class PodIdentity(Value, frozen=True, kw_only=True):
    """Which pod is meant; all other metadata is ignored."""

    name: str | None = None
    """The pod's name; it has to be that of the path."""
    namespace: str | None = None
    """The pod's namespace; it has to be that of the path."""
    uid: str | None = None
    """The pod's `metadata.uid`; if it is another one by now, the pod is not bound."""


class Eviction(Strict, frozen=True, kw_only=True):
    """A Kubernetes policy/v1 Eviction; which pod is meant is in the path."""

    api_version: Literal["policy/v1", "policy/v1beta1"] | None = None
    """As Kubernetes has it."""
    kind: Literal["Eviction"] | None = None
    """As Kubernetes has it."""
    metadata: PodIdentity | None = None
    """The pod; `uid` is not read here."""
    delete_options: DeleteOptions | None = None
    """Options of the eviction, of which only preconditions on the pod are read."""


class BindingTarget(Strict, frozen=True, kw_only=True):
    """The node to bind to."""

    api_version: Literal["v1"] | None = None
    """As Kubernetes has it."""
    kind: Literal["Node"] | None = None
    """Kind of the target, which can only be a node."""
    name: str
    """Name of the node."""
    namespace: Any = None
    """Ignored."""
    uid: Any = None
    """Ignored."""
    resource_version: Any = None
    """Ignored."""
    field_path: Any = None
    """Ignored."""


class Binding(Strict, frozen=True, kw_only=True):
    """A Kubernetes Binding, with `force`."""

    api_version: Literal["v1"] | None = None
    """As Kubernetes has it."""
    kind: Literal["Binding"] | None = None
    """As Kubernetes has it."""
    target: BindingTarget
    """Where the pod goes."""
    metadata: PodIdentity | None = None
    """Which pod is meant."""
    force: bool | None = False
    """Whether to bind the pod even if a filter refuses the node."""


class BindingSeen(Strict, frozen=True, kw_only=True):
    """The binding of a pod as a node saw it."""

    uid: str
    """The pod's `metadata.uid`."""
    revision: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
    """The revision that last changed the pod, its `metadata.resourceVersion` as a number."""
    node_name: str | None = None
    """The node that asks; if the pod is bound to another one, the binding is not confirmed."""


class BindingConfirmed(Value, frozen=True, kw_only=True):
    """A binding whose pod may be started."""

    revision: int
    """The cluster's revision at which all required rules of the pod hold."""
    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    uid: str
    """The pod's `metadata.uid`."""
    node_name: str
    """The node that the pod is bound to."""


class PlacementRequest(Strict, frozen=True, kw_only=True):
    """What to place: exactly one of `pods`, `podRefs`, or `template` with `replicas`."""

    pods: list[Pod] | msgspec.UnsetType = msgspec.UNSET
    """Manifests; stored if they are new. Their `nodeName` is a wish, not a fact."""
    pod_refs: list[PodRef] | msgspec.UnsetType = msgspec.UNSET
    """Pods that are stored already."""
    template: PodTemplate | msgspec.UnsetType = msgspec.UNSET
    """What the replicas have in common; they are named `<name>-0`, `<name>-1`, …"""
    replicas: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | msgspec.UnsetType = msgspec.UNSET
    """How many pods of the template: at most as many as the server takes in one request."""
    policy: Policy = "BestEffort"
    """AllOrNothing places all of them in one commit, or none."""
    on_unschedulable: Literal["Reject", "Queue"] = "Reject"
    """Queue keeps what cannot be placed now as pending pods."""
    dry_run: bool = False
    """Whether to answer as if the pods were placed, but change nothing."""
    explain: Explain = "None"
    """How much to explain."""
    preemption: Preemption = "Never"
    """Propose says of each pod that fits nowhere which pods of lower priority would have to leave
    which node. Evict marks them as to be stopped, of the namespaces where the caller may evict, and
    the pod waits for their room (`status.nominatedNodeName`). Not for members of groups."""
    preemption_scope: PreemptionScope = "Node"
    """Node: only pods of that node would have to leave, as in Kubernetes. Domains: also pods on other
    nodes because of which a rule of anti-affinity or a hard spread constraint refuses the node."""
    compare: bool = False
    """Whether to tell with each pod what placements over several clusters compare of this cluster."""


class OverClustersRequest(Strict, frozen=True, kw_only=True):
    """What to place in which clusters: exactly one of `pods`, or `template` with `replicas`."""

    clusters: list[str] | msgspec.UnsetType = msgspec.UNSET
    """The names of the clusters, in the caller's order; if absent, all where the caller may place all
    of these pods, by name."""
    strategy: Strategy = "LeastAllocated"
    """Of the clusters that the rules allow: LeastAllocated takes the one with the smallest share of cpu
    or memory requested; AsListed takes the first of `clusters`."""
    pods: list[Pod] | msgspec.UnsetType = msgspec.UNSET
    """Manifests, each with a name."""
    template: PodTemplate | msgspec.UnsetType = msgspec.UNSET
    """What the replicas have in common; they are named `<name>-0`, `<name>-1`, …"""
    replicas: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | msgspec.UnsetType = msgspec.UNSET
    """How many pods of the template."""
    policy: Policy = "BestEffort"
    """AllOrNothing places all of them in one cluster in one commit, or none."""
    on_unschedulable: Literal["Reject", "Queue"] = "Reject"
    """Queue keeps what no cluster can place now as pending pods of the first cluster that the rules
    over clusters allow."""
    dry_run: bool = False
    """Whether to answer as if each pod were placed, by itself, but change nothing."""


class CapacityRequest(Strict, frozen=True, kw_only=True):
    """Pods of which it is asked how many fit."""

    template: PodTemplate
    """What the pods have in common."""
    limit: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """After how many pods to stop; 1000 if it is not given."""
    topology_key: str | None = None
    """The label of nodes by whose values the pods are counted, too."""
    explain: Explain = "None"
    """Summary and Full explain which rules and resources keep the next one from which nodes."""


class SimulationRequest(Strict, frozen=True, kw_only=True):
    """A cluster written out, and the pods to place in it: exactly one of `pod` and `place`."""

    config: ClusterConfig | None = None
    """Its settings."""
    namespaces: list[Namespace] | None = None
    """Its namespaces."""
    nodes: list[Node] | None = None
    """Its nodes."""
    objects: list[AnyKept] | None = None
    """What rules read besides, such as services; each has its own `apiVersion` and `kind`."""
    pods: list[Pod] | None = None
    """What is there already; those without `nodeName` are pending and not tried."""
    pod: Pod | msgspec.UnsetType = msgspec.UNSET
    """The one pod to place."""
    place: list[Pod] | msgspec.UnsetType = msgspec.UNSET
    """The pods to place in order, each seeing those before it."""
    policy: Policy = "BestEffort"
    """AllOrNothing places all of `place`, or none."""
    preemption: Literal["Never", "Propose"] = "Never"
    """Propose says of each pod that fits nowhere which pods of lower priority would have to leave
    which node. Members of groups get no proposals."""
    preemption_scope: PreemptionScope = "Node"
    """Node: only pods of that node would have to leave, as in Kubernetes. Domains: also pods on other
    nodes because of which a rule of anti-affinity or a hard spread constraint refuses the node."""


class Domains(Strict, frozen=True, kw_only=True):
    """Topology domains: the nodes that have one of the values for a label."""

    key: str
    """Label key of nodes."""
    values: list[str]
    """Values of the label."""


class PlanChange(Strict, frozen=True, kw_only=True):
    """A change to the fork of the cluster on which a plan is made; it is not made to the cluster.

    Objects are named by `names`, `selector` and `topology`; if there are several of them, all have to
    hold.
    """

    op: Literal[
        "RemoveNodes",
        "CordonNodes",
        "UncordonNodes",
        "AddNodes",
        "SetLabels",
        "SetTaints",
        "RemovePods",
        "PutPods",
        "SetConfig",
        "SetNamespaceLabels",
    ]
    """What is changed."""
    names: list[str] | None = None
    """Names of nodes, pods or namespaces."""
    selector: objects.LabelSelector | None = None
    """A selector of the labels of nodes, pods or namespaces."""
    topology: Domains | None = None
    """Nodes in these domains, or pods on such nodes. Of AddNodes: the domains that nodes get in turn."""
    namespace: str | None = None
    """RemovePods: the namespace of the pods. With `names`, `default` if it is absent; else all in
    which the caller may place pods."""
    template: Node | None = None
    """AddNodes: a node; the new ones are named `<name>-0`, `<name>-1`, …"""
    count: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | None = None
    """AddNodes: how many."""
    labels: dict[str, str | None] | None = None
    """SetLabels, SetNamespaceLabels: the labels to set; null removes a label."""
    taints: list[objects.Taint] | None = None
    """SetTaints: all taints that the nodes have then."""
    pods: list[Pod] | None = None
    """PutPods: pods that are there then; with a `nodeName` they are on that node."""
    config: dict[str, Any] | None = None
    """SetConfig: settings of the cluster to change, as in a merge patch."""


class PlanNodes(Strict, frozen=True, kw_only=True):
    """Nodes; if several of the fields are given, all have to hold."""

    names: list[str] | None = None
    """Names of nodes."""
    selector: objects.LabelSelector | None = None
    """A selector of the nodes' labels."""
    topology: Domains | None = None
    """Domains that the nodes are in."""


REPAIR_CHANGES, REPAIR_CHANGES_MAX = 3, 4
REPAIRS, REPAIRS_MAX = 10, 100
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
OBJECTIVES_WANTED: tuple[Objective, ...] = ("Violations", "Skew")
"""The objectives of a rebalance that names none."""


class PlanGoal(Strict, frozen=True, kw_only=True):
    """What a plan is to reach.

    Place takes exactly one of `pods`, `podRefs`, `template` and `displaced`; Drain takes `nodes`;
    Remove takes `namespace`, `selector` and `count`; Replace takes `namespace`, `selector` or `owner` or
    both, `template`, `replicas`, and if wanted `maxSurge` and `maxUnavailable`; Rebalance takes, if wanted,
    `namespace`, `selector`, `objectives` and `movesMax`, and `resource` and if wanted `block` with Fragmentation;
    Fit takes `pod` or `podRef`, and if wanted `changesMax` and `limit`.
    """

    type: Literal["Place", "Drain", "Remove", "Replace", "Rebalance", "Fit"]
    """Place: find nodes for pods. Drain: have all pods but daemons leave nodes, in waves. Remove: find
    the pods without which the others are left best. Replace: have pods of a template in place of selected
    ones, in waves. Rebalance: move placed pods, in waves, so that the objectives become less. Fit: find
    a node for one pod, or else the least changes after which it fits."""
    pods: list[Pod] | None = None
    """Pods, new or stored. Their `nodeName` is a wish, not a fact."""
    pod_refs: list[PodRef] | None = None
    """Pods that are stored."""
    template: PodTemplate | None = None
    """What replicas have in common; they are named `<name>-0`, `<name>-1`, …"""
    replicas: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | None = None
    """How many pods of the template."""
    displaced: bool | None = None
    """All pods that lose their nodes by the changes, whoever owns them: by priority, the oldest first."""
    nodes: PlanNodes | None = None
    """Drain: the nodes to be emptied."""
    namespace: str | None = None
    """Remove, Replace, Rebalance: the namespace of the pods."""
    selector: objects.LabelSelector | None = None
    """Remove, Replace, Rebalance: a selector of the pods' labels. Pods that are leaving or have ended do
    not count. New pods of a Replace may have the labels, too."""
    owner: PodOwner | None = None
    """Replace: who manages the pods that are replaced."""
    max_surge: int | str | None = None
    """Replace: how many pods beyond `replicas` there may be between two waves, or how much of them; absent:
    25%. Percentages are rounded up."""
    max_unavailable: int | str | None = None
    """Replace: how many of the `replicas`, or how much of them, may be missing or not ready between two
    waves; absent: 25%. Percentages are rounded down. If both come to nothing, it is one pod."""
    objectives: list[Objective] | None = None
    """Rebalance: what is to become less, the most important first; absent: Violations, then Skew.
    Violations: rules of placed pods that do not hold. Skew: pods that domains have too many by constraints
    with `ScheduleAnyway`. Preferences: weights of preferred terms that do not hold. Spread: load that is
    uneven over nodes. Packing: nodes with pods. Fragmentation: what is free of a resource in rests that
    are of no use. Each counts the whole cluster; `objectives` in the plan's totals says how."""
    moves_max: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Rebalance: how many pods may move."""
    resource: str | None = None
    """Rebalance: the resource of which Fragmentation is, as in `nvidia.com/gpu`."""
    block: int | str | float | None = None
    """Rebalance: how much of the resource is needed at once on one node, a quantity; absent: all that a node
    has."""
    count: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Remove: how many of the pods are to go."""
    pod: Pod | None = None
    """Fit: the pod, new or stored."""
    pod_ref: PodRef | None = None
    """Fit: a pod that is stored."""
    changes_max: Annotated[int, msgspec.Meta(ge=1, le=REPAIR_CHANGES_MAX)] | None = None
    """Fit: how many changes of the pod and of nodes a repair may have; 3 if it is absent."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=REPAIRS_MAX)] | None = None
    """Fit: how many repairs are told; 10 if it is absent."""


class ProtectedPods(Strict, frozen=True, kw_only=True):
    """Placed pods that stay where they are; if both fields are given, one of them has to hold."""

    priority: Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)] | None = None
    """Pods of at least this priority."""
    selector: objects.LabelSelector | None = None
    """Pods with such labels."""


class PlanBounds(Strict, frozen=True, kw_only=True):
    """What a plan may cost; what it does not reach within them is told as not tried."""

    evictions_max: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How many pods may leave their nodes for the goal. Those that the changes displace or remove do not
    count."""

    moves_max: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How many displaced or evicted pods may get another node."""
    seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """How long planning may take; the server has a limit of its own."""
    respect_budgets: bool = False
    """Remove, Fit: whether disruption budgets keep pods from going, as they do not in Kubernetes for
    Remove."""
    protect: ProtectedPods | None = None
    """Pods that do not leave their nodes for the goal, whoever asks."""


class PlanRequest(Strict, frozen=True, kw_only=True):
    """What to plan: changes in their order, then a goal."""

    changes: list[PlanChange] | None = None
    """Changes to a fork of the cluster; the cluster itself is not changed."""
    goal: PlanGoal | None = None
    """What is to be reached after the changes; without it, only figures are told."""
    bounds: PlanBounds = PlanBounds()
    """What the plan may cost."""
    explain: Explain = "None"
    """Summary and Full count broken rules and skew, and explain why pods get no node."""
    steps_max: Annotated[int, msgspec.Meta(ge=0)] = 1000
    """How many steps, and how many pods without a node, the answer has at most."""


class PlannedStep(Strict, frozen=True, kw_only=True):
    """A step as a plan has told it."""

    action: Literal["Place", "Cordon", "Evict", "Delete"]
    """What is to be done."""
    namespace: str | None = None
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    from_node: str | None = msgspec.field(name="from", default=None)
    """The node that the pod was on."""
    to: str | None = None
    """The node that the pod gets."""
    wave: int | None = None
    """Is not compared."""
    reason: str | None = None
    """Is not compared."""


class PlanCommit(PlanRequest, frozen=True, kw_only=True):
    """A plan to make and to carry out in one commit."""

    steps: list[PlannedStep] | None = None
    """The steps that the plan has to have, as it told them before; without them, whatever it has."""


class NoOptions(Strict, frozen=True, kw_only=True):
    """An object without fields."""


class DrainOptions(Strict, frozen=True, kw_only=True):
    """How a node is drained."""

    when_unschedulable: WhenUnschedulable = "Wait"
    """What becomes of a pod for which there is no other node now: it waits where it is, or is evicted
    all the same, as far as disruption budgets and rules of other pods allow it."""


class Readiness(Value, frozen=True, kw_only=True):
    """Whether this process can serve."""

    status: Literal["ok"]
    """Always `ok`; a process that cannot serve answers 503 instead."""


MANIFESTS: tuple[type[msgspec.Struct], ...] = (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderPreemptionArgs,
    NodeList,
    NamespaceList,
    PodList,
    ResourceQuotaList,
    PodGroupList,
    EventList,
    *KEPT_LISTS.values(),
    Lease,
    ObjectList,
    PriorityClass,
    PodTemplate,
    MergePatch,
    StrategicMergePatch,
    AppliedObject,
    JsonPatchOperation,
    DeleteOptions,
    PodIdentity,
)
"""Types of Kubernetes' own objects: what they hold beside the declared fields is kept, or allowed and ignored."""
