"""Types shared by the values of all kinds: base classes, selectors, numbers, and quantities.

Fields have their Kubernetes names, in snake_case here and in camelCase on the wire.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

import msgspec

ObjectName: TypeAlias = tuple[str, str]
"""An object's namespace and name; the namespace is empty for cluster-scoped objects."""


CLUSTER_KIND = "Cluster"
CLUSTER_NAME = "config"
"""The name of the object that holds a cluster's configuration: (`Cluster`, "", `config`)."""


class Value(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base class of all values: immutable, and in camelCase on the wire."""


class Strict(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base class of values that scheduling reads completely; unknown fields are errors."""


class Partial(Value, frozen=True, kw_only=True):
    """Base class of values that scheduling reads in part; other fields are stored unread."""


SelectorOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
NodeSelectorOperator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]
HostPort = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
NotNegative = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[
    int, msgspec.Meta(ge=1, le=2**31 - 1, extra={"message": "must be greater than 0"})
]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Weight = Annotated[
    int,
    msgspec.Meta(
        ge=1,
        le=100,
        description="How much the preference counts, from 1 to 100.",
        extra={"message": "must be in the range 1-100"},
    ),
]
ConnectionWeight = Annotated[
    int,
    msgspec.Meta(
        ge=1,
        le=1_000_000,
        description="How much the two pods talk with each other, from 1 to 1000000.",
        extra={"message": "must be in the range 1-1000000"},
    ),
]
TopologyKey = Annotated[
    str,
    msgspec.Meta(description="Node label whose values divide the nodes into domains."),
]
LabelKeys = Annotated[
    tuple[str, ...] | None,
    msgspec.Meta(
        description="Pod label keys whose values, taken from the pod itself, are added to the "
        "selector when the pod is created."
    ),
]
Quantities = Mapping[str, str | int | float]
"""Quantities as sent, by resource name; `service.model.core.quantity` converts them to integers."""


class LabelSelectorRequirement(Strict, frozen=True, kw_only=True):
    """One requirement on a label."""

    key: str
    """Label key."""
    operator: SelectorOperator
    """How the label is compared with `values`."""
    values: tuple[str, ...] | None = None
    """Values to compare with; none for Exists and DoesNotExist."""


class LabelSelector(Strict, frozen=True, kw_only=True):
    """`None` in place of a selector matches nothing, an empty selector everything."""

    match_labels: dict[str, str] | None = None
    """Labels that must be there with exactly these values."""
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None
    """Requirements that all have to hold."""


PodSelector = Annotated[
    LabelSelector | None,
    msgspec.Meta(description="Which pods the rule is about; null selects no pod, `{}` every pod."),
]


class NodeSelectorRequirement(Strict, frozen=True, kw_only=True):
    """One requirement on a label of a node."""

    key: str
    """Label key."""
    operator: NodeSelectorOperator
    """How the label is compared; Gt and Lt compare integers."""
    values: tuple[str, ...] | None = None
    """Values to compare with; none for Exists and DoesNotExist."""


class NodeSelectorTerm(Strict, frozen=True, kw_only=True):
    """Requirements that all have to hold."""

    match_expressions: tuple[NodeSelectorRequirement, ...] | None = None
    """Requirements on the node's labels that all have to hold."""
    match_fields: tuple[NodeSelectorRequirement, ...] | None = None
    """Requirements on the node's fields; only `metadata.name`."""


class NodeSelector(Strict, frozen=True, kw_only=True):
    """Selects nodes: one of its terms has to match."""

    node_selector_terms: tuple[NodeSelectorTerm | None, ...]
    """Terms of which one has to match."""


class Taint(Strict, frozen=True, kw_only=True):
    """Keeps pods off a node that do not tolerate it."""

    key: str
    """Name of the taint."""
    effect: TaintEffect
    """What the taint does to pods that do not tolerate it."""
    value: str = ""
    """Value of the taint."""
    time_added: str | None = None
    """When the taint was added, RFC 3339."""


class ContainerImage(Value, frozen=True, kw_only=True):
    """An image on a node."""

    names: tuple[str, ...] = ()
    """Names by which the image is known."""
    size_bytes: NotNegative = 0
    """Size of the image in bytes."""


class OwnerReference(Value, frozen=True, kw_only=True):
    """A reference to an object's owner."""

    api_version: str
    kind: str
    name: str
    uid: str = ""


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
