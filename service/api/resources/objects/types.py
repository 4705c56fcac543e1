"""Schemas of objects, lists, and patches: the manifests in the OpenAPI document.

Handlers parse manifests from bytes with `service.model.registry.manifests`, which checks everything
declared here and more; these types are for readers and generated clients. Fields that scheduling
reads are imported from `service.model.pods.pod` and `service.model.pods.pod_fields` instead of
being declared again.
"""

from typing import Annotated, Any, Literal

import msgspec

from service.model.core.field_warnings import FieldWarning
from service.model.core.kind import KindSpec
from service.model.core.primitives import ObjectMeta, Strict, Value
from service.model.log.events import EventReason, EventType
from service.model.nodes.node import NodeSpec, NodeStatus
from service.model.pods import pod_group
from service.model.pods.pod_fields import PodSpec, PodStatus
from service.model.pods.pod_group import PodGroupStatus
from service.model.pods.scheduling_groups import (
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
)
from service.model.policies.priority_classes import PriorityClassFields
from service.model.policies.quota_spec import ResourceQuotaSpec, ResourceQuotaStatus
from service.model.registry.kinds import DECLARED_KINDS
from service.model.registry.manifests import STORED_KINDS

_WARNINGS = Annotated[
    list[FieldWarning] | msgspec.UnsetType,
    msgspec.Meta(
        description="In the answer to a write: fields that are passed over. Ignored where it is sent."
    ),
]


class Written(Value, frozen=True, kw_only=True):
    """What every object has in the answer to a write."""

    warnings: _WARNINGS = msgspec.UNSET


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


class ResourceQuota(Written, frozen=True, kw_only=True):
    """A Kubernetes ResourceQuota."""

    metadata: ObjectMeta
    api_version: str = "v1"
    kind: Literal["ResourceQuota"] = "ResourceQuota"
    spec: ResourceQuotaSpec | None = None
    """What is limited."""
    status: ResourceQuotaStatus | None = None
    """What is used. Watches and exports leave it out: it changes with every pod."""


class PodGroupSpec(pod_group.PodGroupSpec, frozen=True, kw_only=True, forbid_unknown_fields=False):
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


class ListOfObjects(Value, frozen=True, kw_only=True):
    """A list that may omit some objects."""

    unreadable: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Objects missing from the list because their rows cannot be read, as `namespace/name` or `name`.
    Absent if there are none."""


class EventList(Value, frozen=True, kw_only=True):
    """Events by namespace and name."""

    metadata: ListMeta
    items: list[Event]
    api_version: str = "v1"
    kind: Literal["EventList"] = "EventList"


class PodList(ListOfObjects, frozen=True, kw_only=True):
    """Pods, by namespace and name."""

    metadata: ListMeta
    items: list[Pod]
    api_version: str = "v1"
    kind: Literal["PodList"] = "PodList"


class NodeList(ListOfObjects, frozen=True, kw_only=True):
    """Nodes, by name."""

    metadata: ListMeta
    items: list[Node]
    api_version: str = "v1"
    kind: Literal["NodeList"] = "NodeList"


class NamespaceList(ListOfObjects, frozen=True, kw_only=True):
    """Namespaces, by name."""

    metadata: ListMeta
    items: list[Namespace]
    api_version: str = "v1"
    kind: Literal["NamespaceList"] = "NamespaceList"


class ResourceQuotaList(ListOfObjects, frozen=True, kw_only=True):
    """Quotas, by namespace and name."""

    metadata: ListMeta
    items: list[ResourceQuota]
    api_version: str = "v1"
    kind: Literal["ResourceQuotaList"] = "ResourceQuotaList"


class PodGroupList(ListOfObjects, frozen=True, kw_only=True):
    """Pod groups, by namespace and name."""

    metadata: ListMeta
    items: list[PodGroup]
    api_version: str = "v1"
    kind: Literal["PodGroupList"] = "PodGroupList"


def _kept_type(declared: KindSpec) -> type[msgspec.Struct]:
    """Build the type of a kind's objects from its own fields and those of all objects."""
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


def _kept_list(declared: KindSpec) -> type[msgspec.Struct]:
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
        bases=(ListOfObjects,),
        namespace={"__doc__": f"Objects of the kind {declared.kind}, by namespace and name."},
        frozen=True,
        kw_only=True,
    )


_OPEN = "Fields that scheduling does not read are kept and returned as they are."

KEPT_TYPES = {kind: _kept_type(declared) for kind, declared in DECLARED_KINDS.items()}

KEPT_LISTS = {kind: _kept_list(declared) for kind, declared in DECLARED_KINDS.items()}


def _any_of(description: str, *kinds: str) -> dict[str, Any]:
    """Build a union of the schemas with these kinds' names.

    It is an `anyOf`, because TypeScript generators would require `kind` in every manifest if it
    discriminated the alternatives of a `oneOf`.
    """
    return {
        "description": description,
        "anyOf": [{"$ref": f"#/components/schemas/{kind}"} for kind in kinds],
        "required": ["kind"],
        "discriminator": {"propertyName": "kind"},
    }


def _named(union: str) -> msgspec.Meta:
    return msgspec.Meta(extra_json_schema={"$ref": f"#/components/schemas/{union}"})


APPLICABLE = _any_of("One of the kinds that `apply` takes.", *STORED_KINDS, "PriorityClass")
"""The schema of `ApplicableObject`; msgspec has no untagged unions of structs."""
RULE_OBJECT = _any_of("One of the kinds that are kept for rules.", *DECLARED_KINDS)
"""The schema of `RuleObject`."""

AnyKept = Annotated[Any, _named("RuleObject")]
"""An object of one of the kinds that are only stored for scheduling rules."""

Applicable = Annotated[Any, _named("ApplicableObject")]
"""An object that `apply` accepts."""


class ObjectList(Value, frozen=True, kw_only=True):
    """A Kubernetes List of objects of several kinds; each has its own `kind`."""

    items: list[Applicable]
    api_version: str = "v1"
    kind: Literal["List"] = "List"
    metadata: ListMeta | None = None


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
