"""Devices, claims, and classes, as the DynamicResources plugin reads them.

The types support dynamic resource allocation with structured parameters. Each one holds the parts
of a slice, class, claim, or claim template that rules read, with everything that depends on the
object alone computed once.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from service.model.core.primitives import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectName,
)
from service.model.devices.device_fields import DeviceTaint, DeviceToleration

ALTERNATIVES_MAX = 8
"""The most alternatives of one request (FirstAvailableDeviceRequestMaxSize)."""
RESULTS_MAX = 32
"""The most devices per claim (AllocationResultsMaxSize)."""
CONSUMERS_MAX = 256
"""The most pods that can share one claim (ResourceClaimReservedForMaxSize)."""

AttributeValue: TypeAlias = tuple[str, str | int | bool]
"""The type of an attribute (int, bool, string, or version), and its value."""


HARD_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
"""The effects of device taints that keep claims away."""


CounterKey: TypeAlias = tuple[str, str]
"""The name of a set of counters in a pool, and that of a counter in it."""
Amounts: TypeAlias = tuple[tuple[CounterKey, int], ...]
"""Amounts of counters, in nano-units."""


class DeviceID(NamedTuple):
    """A device's identity: its driver, pool, and name."""

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
    """The name of the driver."""
    content: bytes
    """The attributes and capacity as JSON; equal for devices that no selector can distinguish."""
    attributes: Mapping[str, AttributeValue] = {}
    """The attributes by full name: with their own domain, or with the driver's."""
    counter_sets: tuple[str, ...] = ()
    """The names of the sets of counters of its pool that the device takes of."""
    consumes: Amounts = ()
    """What the device takes of each counter."""
    has_conditions: bool = False
    """Whether the device has binding conditions, which are not awaited."""
    binds_to_node: bool = False
    """Whether an allocation of the device is limited to the node for which it was made."""
    taints: tuple[DeviceTaint, ...] = ()
    """The taints that keep away requests without a toleration."""
    node_name: str | None = None
    """The only node that can access the device, if its slice selects nodes for each device."""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False

    def is_tolerated(self, tolerations: Collection[DeviceToleration]) -> bool:
        """Return whether a request with these tolerations may get the device."""
        return all(
            any(_tolerates(toleration, taint) for toleration in tolerations)
            for taint in self.taints
        )


class ResourceSlice(msgspec.Struct, frozen=True, kw_only=True):
    """A slice: some devices of one pool, and the nodes that can access them."""

    name: str
    driver: str
    pool: str
    generation: int = 0
    """The generation of the pool; slices of older generations are ignored."""
    slice_count: int = 1
    """The number of slices in this generation of the pool."""
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    selects_per_device: bool | None = None
    """Whether each device states which nodes can access it; None if the slice leaves that open."""
    counter_sets: tuple[str, ...] = ()
    """The names of the sets of counters that the slice holds instead of devices."""
    counters: Amounts = ()
    """What there is of each counter."""
    devices: tuple[Device, ...] = ()

    @property
    def pool_id(self) -> tuple[str, str]:
        """The driver and the name of the pool, which is unique per driver."""
        return self.driver, self.pool


class DeviceClass(msgspec.Struct, frozen=True, kw_only=True):
    """A class of devices that claims can request."""

    name: str
    selectors: tuple[str, ...] = ()
    """The expressions that must all be true of a device."""


class DeviceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A device request of a claim, or one of a request's alternatives."""

    name: str
    parent: str = ""
    """The name of the request to which this alternative belongs, or ""."""
    class_name: str
    selectors: tuple[str, ...] = ()
    """Expressions that must all be true of a device, in addition to those of the class."""
    takes_all: bool = False
    """Whether to allocate all matching devices that the node can access, instead of `count`."""
    count: int = 1
    admin_access: bool = False
    """Whether devices may already be in use, and remain available to others."""
    tolerations: tuple[DeviceToleration, ...] = ()
    needs_capacity: bool = False
    """Whether the request needs amounts of a device's capacities, which are not counted."""

    @property
    def full_name(self) -> str:
        """The name that allocations use for the request."""
        return f"{self.parent}/{self.name}" if self.parent else self.name


class MatchAttribute(msgspec.Struct, frozen=True, kw_only=True):
    """A constraint that the devices of some requests have the same value of an attribute."""

    attribute: str
    requests: frozenset[str] = frozenset()
    """The names of the requests or alternatives compared; empty: all requests of the claim."""

    def concerns(self, request: DeviceRequest) -> bool:
        """Return whether the constraint applies to the devices of a request."""
        names = self.requests
        return not names or request.full_name in names or request.parent in names


Alternatives: TypeAlias = tuple[DeviceRequest, ...]
"""Alternatives of one request, usually only one; the first that can be satisfied is used."""


class DeviceClaimSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of a claim, which must all be satisfied, and the constraints on them."""

    requests: tuple[Alternatives, ...] = ()
    constraints: tuple[MatchAttribute, ...] = ()
    needs_distinct: bool = False
    """Whether values of an attribute must differ, which is not supported."""

    @property
    def has_alternatives(self) -> bool:
        """Whether a request lists alternatives, even if only one."""
        return any(alternatives[0].parent for alternatives in self.requests if alternatives)

    def preference(self, satisfied: Collection[str]) -> int:
        """Return how preferred the alternatives are that an allocation satisfies.

        Each request with alternatives adds 8 for its first one, 7 for its second one, and so on.

        Args:
            satisfied: the full names of the requests in the allocation.
        """
        return sum(
            ALTERNATIVES_MAX - index
            for alternatives in self.requests
            for index, alternative in enumerate(alternatives)
            if alternative.parent and alternative.full_name in satisfied
        )


class ResourceClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim to devices by one or more pods."""

    namespace: str
    name: str
    uid: str = ""
    spec: DeviceClaimSpec = DeviceClaimSpec()
    is_allocated: bool = False
    devices: tuple[DeviceID, ...] = ()
    """The devices allocated exclusively; devices with admin access are not included."""
    preference: int = 0
    """How preferred the allocated alternatives are (`DeviceClaimSpec.preference`)."""
    node_selector: NodeSelector | None = None
    """The nodes that can access the allocated devices, or None for all nodes."""
    is_awaited: bool = False
    """Whether an allocated device does not yet meet its binding conditions."""
    consumers: int = 0
    """The number of pods for which the claim is reserved."""
    controller_uid: str = ""
    terminating: bool = False

    @property
    def key(self) -> ObjectName:
        """The claim's namespace and name."""
        return self.namespace, self.name


class ResourceClaimTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A template from which a claim is created for each pod that names it."""

    namespace: str
    name: str
    spec: DeviceClaimSpec = DeviceClaimSpec()


DeviceObject: TypeAlias = ResourceSlice | DeviceClass | ResourceClaim | ResourceClaimTemplate


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """A device allocated to a claim."""

    request: str
    """The full name of the request."""
    class_name: str
    device: DeviceID
    admin_access: bool = False
    node_name: str | None = None
    """The only node that can access the device, or None if `node_selector` applies."""
    node_selector: NodeSelector | None = None
    binds_to_node: bool = False
    """Whether the device can be used only on the node for which it is allocated."""

    def on(self, node_name: str) -> "Grant":
        """Return the grant as it is made for a pod on a node."""
        return replace(self, node_name=node_name) if self.binds_to_node else self


class ClaimAllocation(msgspec.Struct, frozen=True, kw_only=True):
    """The devices to allocate to one of a pod's claims."""

    pod_claim: str
    """The claim's name in the pod's spec."""
    claim: str | None
    """The name of the claim, or None if it is yet to be created from its template."""
    grants: tuple[Grant, ...] = ()


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Return whether a toleration matches a taint.

    Source: `k8s.io/dynamic-resource-allocation/resourceclaim.ToleratesTaint`, v1.37.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value


def nodes_of(grants: Iterable[Grant]) -> NodeSelector | None:
    """Return a selector of the nodes that can access all devices of a claim, or None for all.

    As in Kubernetes, the first device tied to a single node determines the result; otherwise all
    distinct requirements are combined.
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


def terms_without_node(grants: Iterable[Grant]) -> int | None:
    """Return the number of terms of the first selector that `nodes_of` cannot combine, or None.

    As in Kubernetes, selectors of several terms are only combined if an earlier device is tied to a
    single node.
    """
    for grant in grants:
        if grant.node_name is not None or grant.binds_to_node:
            return None
        terms = grant.node_selector.node_selector_terms if grant.node_selector else ()
        if len(terms) > 1:
            return len(terms)
    return None


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
