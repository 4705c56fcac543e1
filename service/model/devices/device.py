"""Devices, claims, and classes, as the plugin DynamicResources reads them.

This is dynamic resource allocation with structured parameters. Slices, classes, claims and templates
of claims are kept for the plugin DynamicResources. What rules read of one is a value here, with
everything that follows from the object alone worked out once.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

import msgspec
from typing_extensions import override

from service.model.core.primitives import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectName,
)

RESULTS_MAX = 32
"""How many devices one claim can be given (AllocationResultsMaxSize)."""
CONSUMERS_MAX = 256
"""How many pods can share one claim (ResourceClaimReservedForMaxSize)."""

AttributeValue: TypeAlias = tuple[str, str | int | bool]
"""The type of an attribute (int, bool, string or version) and its value."""


class DeviceID(NamedTuple):
    """The identity of a device."""

    driver: str
    pool: str
    device: str

    @override
    def __str__(self) -> str:
        return "/".join(self)


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """A device of a slice."""

    name: str
    driver: str
    """The driver of its slice."""
    content: bytes
    """Attributes and capacity as JSON: equal for devices that no selector can tell apart."""
    attributes: Mapping[str, AttributeValue] = {}
    """Attributes by full name, prefixed by their domain or else by the driver's."""
    is_shared: bool = False
    """It consumes counters that it shares with other devices, so it can't be given by itself."""
    has_conditions: bool = False
    """It has binding conditions, which are not supported."""


class ResourceSlice(msgspec.Struct, frozen=True, kw_only=True):
    """Some devices of one pool, and the nodes that reach them."""

    name: str
    driver: str
    pool: str
    generation: int = 0
    """Slices of an older generation of the pool do not count."""
    slice_count: int = 1
    """The number of slices in this generation of the pool."""
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    is_known: bool = True
    """Whether it uses only supported features, and not shared counters, for example."""
    devices: tuple[Device, ...] = ()

    @property
    def pool_id(self) -> tuple[str, str]:
        """The pool: a name of its own in each driver."""
        return self.driver, self.pool


class DeviceClass(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of devices that claims can ask for."""

    name: str
    selectors: tuple[str, ...] = ()
    """Expressions that all have to be true of a device."""


class DeviceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request of a claim, or one of several that may take its place."""

    name: str
    parent: str = ""
    """The request that it is an alternative of, or ""."""
    class_name: str
    selectors: tuple[str, ...] = ()
    """Expressions that all have to be true of a device, besides those of the class."""
    takes_all: bool = False
    """All devices that match, on a node, and not a number of them."""
    count: int = 1
    admin_access: bool = False
    """The devices may be in use, and stay free for others."""

    @property
    def full_name(self) -> str:
        """The name by which allocations call the request."""
        return f"{self.parent}/{self.name}" if self.parent else self.name


class MatchAttribute(msgspec.Struct, frozen=True, kw_only=True):
    """All devices of some requests have the same value of an attribute."""

    attribute: str
    requests: frozenset[str] = frozenset()
    """Names of requests, or of those that may take their place; empty: all of the claim."""

    def concerns(self, request: DeviceRequest) -> bool:
        """Return whether the attribute is compared among the devices for a request."""
        names = self.requests
        return not names or request.full_name in names or request.parent in names


Alternatives: TypeAlias = tuple[DeviceRequest, ...]
"""Alternative requests, usually one; the first that can be met is met."""


class DeviceClaimSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a claim asks for: every request, under all constraints."""

    requests: tuple[Alternatives, ...] = ()
    constraints: tuple[MatchAttribute, ...] = ()


class ResourceClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's claim to devices."""

    namespace: str
    name: str
    uid: str = ""
    spec: DeviceClaimSpec = DeviceClaimSpec()
    is_allocated: bool = False
    devices: tuple[DeviceID, ...] = ()
    """The devices that it was given for itself; those with admin access stay free for others."""
    node_selector: NodeSelector | None = None
    """The nodes on which the devices can be used, or None for all."""
    consumers: int = 0
    """How many pods it is reserved for."""
    controller_uid: str = ""
    terminating: bool = False

    @property
    def key(self) -> ObjectName:
        """Namespace and name."""
        return self.namespace, self.name


class ResourceClaimTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A template from which claims are made, one for each pod that names it."""

    namespace: str
    name: str
    spec: DeviceClaimSpec = DeviceClaimSpec()


DeviceObject: TypeAlias = ResourceSlice | DeviceClass | ResourceClaim | ResourceClaimTemplate


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """One device that a claim is given."""

    request: str
    """Full name of the request."""
    class_name: str
    device: DeviceID
    admin_access: bool = False
    node_name: str | None = None
    """The only node that reaches the device, or None if `node_selector` selects the nodes."""
    node_selector: NodeSelector | None = None


class ClaimAllocation(msgspec.Struct, frozen=True, kw_only=True):
    """The devices that one claim of a pod is given."""

    pod_claim: str
    """The name that the pod's spec has for the claim."""
    claim: str | None
    """Name of the claim, or None if it is still to be made from its template."""
    grants: tuple[Grant, ...] = ()


def nodes_of(grants: Iterable[Grant]) -> NodeSelector | None:
    """Return a selector of the nodes that reach all devices of a claim, or None for all nodes.

    As in Kubernetes, a device of one node decides alone; else every requirement is taken once.
    """
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for grant in grants:
        if grant.node_name is not None:
            name = NodeSelectorRequirement(
                key="metadata.name", operator="In", values=(grant.node_name,)
            )
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name,)),))
        term = grant.node_selector.node_selector_terms[0] if grant.node_selector else None
        if term is not None:
            _add_new(fields, term.match_fields or ())
            _add_new(expressions, term.match_expressions or ())
    if not fields and not expressions:
        return None
    both = NodeSelectorTerm(
        match_fields=tuple(fields) or None, match_expressions=tuple(expressions) or None
    )
    return NodeSelector(node_selector_terms=(both,))


def _add_new(known: list[NodeSelectorRequirement], more: Iterable[NodeSelectorRequirement]) -> None:
    for requirement in more:
        same = (
            requirement.key == one.key
            and requirement.operator == one.operator
            and set(requirement.values or ()) == set(one.values or ())
            for one in known
        )
        if not any(same):
            known.append(requirement)
