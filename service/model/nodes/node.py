"""Nodes and namespaces as scheduling reads them, and the wire types of nodes."""

from collections.abc import Mapping

import msgspec

from service.model.core import primitives
from service.model.core.primitives import (
    ContainerImage,
    Quantities,
    Taint,
    Value,
)


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a node that scheduling decisions read."""

    name: str
    labels: Mapping[str, str]
    allocatable: Quantities
    """`status.allocatable`, or `status.capacity` if absent."""
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    images: tuple[ContainerImage, ...] = ()
    uid: str = ""
    ready: str = ""
    """The status of the condition Ready (True, False, or Unknown), or "" if the node has none."""
    conditions: tuple[tuple[str, str], ...] = ()
    """The type and status of each other condition that may require a taint."""
    declared_features: tuple[str, ...] = ()
    """`status.declaredFeatures`: the features that pods may need, in order."""


class Namespace(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a namespace that scheduling decisions read."""

    name: str
    labels: Mapping[str, str]
    uid: str = ""


class NodeSpec(Value, frozen=True, kw_only=True):
    """What keeps pods off a node."""

    unschedulable: bool | None = None
    """Takes no new pods that do not tolerate it."""
    taints: list[primitives.Taint] | None = None
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
    images: list[primitives.ContainerImage] | None = None
    """Images on the node."""
    conditions: list[NodeCondition] | None = None
    """What is known of the node, one condition for each type."""
    declared_features: list[str] | None = None
    """Features of the kubelet that pods may need, sorted by name. From Kubernetes 1.36 on, a node
    takes no pod that needs another one."""
