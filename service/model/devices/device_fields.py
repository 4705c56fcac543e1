"""Wire types of devices and claims, with the fields that rules read.

Validation and the OpenAPI document are derived from these types.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from service.model.core.primitives import NodeSelector, Partial, Strict

Text = str | int | float


class CELDeviceSelector(Partial, frozen=True, kw_only=True):
    """An expression of CEL about one device."""

    expression: str
    """Has to be true of `device`, with its `driver`, `attributes` and `capacity`."""


class DeviceSelector(Partial, frozen=True, kw_only=True):
    """Selects devices."""

    cel: CELDeviceSelector
    """The expression that has to be true of a device."""


class DeviceClassSpec(Partial, frozen=True, kw_only=True):
    """Which devices are of a class. Other fields are kept and returned as they are."""

    selectors: tuple[DeviceSelector, ...] = ()
    """All of them have to select a device."""
    config: tuple[object, ...] = ()
    """What drivers are told of devices that are allocated by the class."""


class DeviceClassBody(Partial, frozen=True, kw_only=True):
    """The fields of a device class that scheduling reads."""

    spec: DeviceClassSpec = DeviceClassSpec()
    """Which devices are of it."""


class DeviceAttribute(Strict, frozen=True, kw_only=True):
    """The value of an attribute; one of these."""

    number: int | None = msgspec.field(default=None, name="int")
    """A number."""
    truth: bool | None = msgspec.field(default=None, name="bool")
    """True or false."""
    string: str | None = None
    """A text."""
    version: str | None = None
    """A semantic version."""


class DeviceCapacity(Partial, frozen=True, kw_only=True):
    """How much a device has of something."""

    value: Text
    """The quantity."""


class Counter(Partial, frozen=True, kw_only=True):
    """An amount of a counter."""

    value: Text
    """The quantity."""


class CounterSet(Partial, frozen=True, kw_only=True):
    """Counters that the devices of a pool share."""

    name: str
    """Its name, unique in the pool."""
    counters: Mapping[str, Counter] = {}
    """How much there is, by name of the counter."""


class CounterConsumption(Partial, frozen=True, kw_only=True):
    """What a device takes of a set of counters."""

    counter_set: str
    """Name of the set."""
    counters: Mapping[str, Counter] = {}
    """How much it takes, by name of the counter."""


class DeviceTaint(Partial, frozen=True, kw_only=True):
    """Keeps claims that do not tolerate it from being given a device."""

    key: str
    """Name of the taint."""
    value: str = ""
    """Value of the taint."""
    effect: Literal["None", "NoSchedule", "NoExecute", ""] = ""
    """NoSchedule, NoExecute: the device is given only to requests that tolerate the taint; None: nothing."""


class DeviceToleration(Partial, frozen=True, kw_only=True):
    """Which taints of devices a request tolerates."""

    key: str = ""
    """Name of the taints tolerated; empty: all."""
    operator: Literal["Equal", "Exists", ""] = "Equal"
    """Equal compares `value`, Exists does not."""
    value: str = ""
    """Value of the taints tolerated."""
    effect: Literal["None", "NoSchedule", "NoExecute", ""] = ""
    """Effect that is tolerated; empty: every effect."""


class SliceDevice(Partial, frozen=True, kw_only=True):
    """A device of a slice."""

    name: str
    """Its name, unique in the pool."""
    attributes: Mapping[str, DeviceAttribute] = {}
    """What the device is like, by name; the domain of a name without one is the driver."""
    capacity: Mapping[str, DeviceCapacity] = {}
    """How much it has, by name."""
    consumes_counters: tuple[CounterConsumption, ...] = ()
    """What it takes of counters that the pool shares. In Kubernetes v1.35 such a device is never given."""
    binding_conditions: tuple[str, ...] = ()
    """Conditions for which binding waits. A device that has any is never given."""
    binds_to_node: bool = False
    """A claim that is given the device can be used only on the node for which it was given."""
    taints: tuple[DeviceTaint, ...] = ()
    """Keep claims that do not tolerate them away; not read in Kubernetes v1.35."""
    node_name: str | None = None
    """The node that reaches the device, in a slice with `perDeviceNodeSelection`."""
    node_selector: NodeSelector | None = None
    """Selects the nodes that reach the device, in a slice with `perDeviceNodeSelection`."""
    all_nodes: bool = False
    """All nodes reach the device, in a slice with `perDeviceNodeSelection`."""


class ResourcePool(Partial, frozen=True, kw_only=True):
    """The pool that a slice is of."""

    name: str
    """Its name, unique for the driver."""
    generation: int = 0
    """Raised by the driver with every change: slices of an older generation do not count."""
    resource_slice_count: int = 1
    """The number of slices of which the pool is made: while some are missing, no device of it is given."""


class ResourceSliceSpec(Partial, frozen=True, kw_only=True):
    """The devices that a driver has somewhere. Other fields are kept and returned as they are."""

    driver: str
    """Name of the driver."""
    pool: ResourcePool
    """The pool of which the devices are."""
    node_name: str | None = None
    """The node that reaches the devices."""
    node_selector: NodeSelector | None = None
    """Selects the nodes that reach the devices."""
    all_nodes: bool = False
    """All nodes reach the devices."""
    per_device_node_selection: bool | None = None
    """Whether each device states the nodes that can access it. In Kubernetes v1.35, such a slice is ignored."""
    shared_counters: tuple[CounterSet, ...] = ()
    """Counters that devices in other slices of the pool consume; such a slice has no devices."""
    devices: tuple[SliceDevice, ...] = ()
    """The devices."""


class ResourceSliceBody(Partial, frozen=True, kw_only=True):
    """The fields of a slice that scheduling reads."""

    spec: ResourceSliceSpec
    """The devices."""


class CapacityRequirements(Partial, frozen=True, kw_only=True):
    """How much of a device's capacities a request needs."""

    requests: Mapping[str, Text] = {}
    """The amount of each capacity. From Kubernetes v1.36 on, a claim with any is given no devices."""


class DeviceSubRequest(Partial, frozen=True, kw_only=True):
    """One of several requests of which the first that can be met is met."""

    name: str
    """Its name; allocations name it after that of the request, with a slash between."""
    device_class_name: str
    """Name of the class of which the devices have to be."""
    selectors: tuple[DeviceSelector, ...] = ()
    """All of them have to select a device, besides those of the class."""
    allocation_mode: str = "ExactCount"
    """ExactCount: as many devices as `count`; All: all that match."""
    count: int = 1
    """How many devices."""
    tolerations: tuple[DeviceToleration, ...] = ()
    """The taints of devices that are tolerated; not read in Kubernetes v1.35."""
    capacity: CapacityRequirements | None = None
    """How much of the capacities of a device is needed."""


class ExactDeviceRequest(Partial, frozen=True, kw_only=True):
    """How many devices of which class are asked for."""

    device_class_name: str
    """Name of the class of which the devices have to be."""
    selectors: tuple[DeviceSelector, ...] = ()
    """All of them have to select a device, besides those of the class."""
    allocation_mode: str = "ExactCount"
    """ExactCount: as many devices as `count`; All: all that match."""
    count: int = 1
    """How many devices."""
    tolerations: tuple[DeviceToleration, ...] = ()
    """The taints of devices that are tolerated; not read in Kubernetes v1.35."""
    capacity: CapacityRequirements | None = None
    """How much of the capacities of a device is needed."""
    admin_access: bool = False
    """Devices may be in use, and stay free for others; for namespaces that are labelled for it."""


class DeviceRequestBody(Partial, frozen=True, kw_only=True):
    """A request for devices."""

    name: str
    """Its name, which containers and constraints use."""
    exactly: ExactDeviceRequest | None = None
    """What is asked for."""
    first_available: tuple[DeviceSubRequest, ...] = ()
    """What is asked for, in order of preference."""


class DeviceConstraint(Partial, frozen=True, kw_only=True):
    """A condition on the devices of several requests together."""

    requests: tuple[str, ...] = ()
    """Names of the requests; none: all."""
    match_attribute: str | None = None
    """Full name of the attribute that has to be the same for all devices."""
    distinct_attribute: str | None = None
    """Full name of an attribute that has to differ. A claim with such a condition is given no devices."""


class DeviceClaim(Partial, frozen=True, kw_only=True):
    """Which devices are claimed. Other fields are kept and returned as they are."""

    requests: tuple[DeviceRequestBody, ...] = ()
    """All of them have to be met."""
    constraints: tuple[DeviceConstraint, ...] = ()
    """All of them have to hold."""
    config: tuple[object, ...] = ()
    """What drivers are told of the devices, perhaps of those for some of the requests."""


class ResourceClaimSpec(Partial, frozen=True, kw_only=True):
    """What is claimed."""

    devices: DeviceClaim = DeviceClaim()
    """The devices."""


class DeviceResult(Partial, frozen=True, kw_only=True):
    """A device that a claim was given."""

    request: str
    """Name of the request that it meets."""
    driver: str
    """Name of its driver."""
    pool: str
    """Name of its pool."""
    device: str
    """Its name."""
    admin_access: bool = False
    """Whether it stays free for others."""
    binding_conditions: tuple[str, ...] = ()
    """Conditions that have to be true of the device before pods may use it."""


class DeviceCondition(Partial, frozen=True, kw_only=True):
    """A condition of a device that was given to a claim."""

    type: str = ""
    """What it is about."""
    status: str = ""
    """True, False, or Unknown."""


class AllocatedDevice(Partial, frozen=True, kw_only=True):
    """What a driver says about a device that was given to a claim."""

    driver: str = ""
    """Name of its driver."""
    pool: str = ""
    """Name of its pool."""
    device: str = ""
    """Its name."""
    conditions: tuple[DeviceCondition, ...] = ()
    """Conditions of the device, among which may be those for which binding waits."""


class DeviceResults(Partial, frozen=True, kw_only=True):
    """The devices that a claim was given."""

    results: tuple[DeviceResult, ...] = ()
    """The devices."""


class AllocationResult(Partial, frozen=True, kw_only=True):
    """What a claim was given."""

    devices: DeviceResults = DeviceResults()
    """The devices."""
    node_selector: NodeSelector | None = None
    """The nodes that reach all the devices; absent: all do."""


class ConsumerReference(Partial, frozen=True, kw_only=True):
    """A pod that may use what a claim was given."""

    resource: str = "pods"
    """What it is: pods."""
    name: str = ""
    """Its name."""
    uid: str = ""
    """Its uid."""


class ResourceClaimStatus(Partial, frozen=True, kw_only=True):
    """What a claim was given, and for whom."""

    allocation: AllocationResult | None = None
    """What it was given; absent: nothing yet."""
    reserved_for: tuple[ConsumerReference, ...] = ()
    """Who may use it; at most 256."""
    devices: tuple[AllocatedDevice, ...] = ()
    """What drivers say about the devices."""


class ResourceClaimBody(Partial, frozen=True, kw_only=True):
    """The fields of a device claim that scheduling reads."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    """What is claimed."""
    status: ResourceClaimStatus = ResourceClaimStatus()
    """What it was given."""


class TemplateSpec(Partial, frozen=True, kw_only=True):
    """The claims that are made."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    """What they claim."""


class ResourceClaimTemplateBody(Partial, frozen=True, kw_only=True):
    """The fields of a claim template that scheduling reads."""

    spec: TemplateSpec = TemplateSpec()
    """The claims that are made, each for one pod."""
