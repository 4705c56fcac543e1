"""The kinds of objects that say which devices there are, who claims them and who was given which.

Here is what rules read of each as it is written; `service.model.objects.devices` has what follows from that,
and `service.model.validation.devices` which objects are valid.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import cast

import msgspec

from service.model.kinds_kept_for_rules.object_kept_for_rules import KeptKind, KeptObject
from service.model.objects.device_selectors import full_name
from service.model.objects.devices import (
    Alternatives,
    AttributeValue,
    Device,
    DeviceClaimSpec,
    DeviceClass,
    DeviceID,
    DeviceObject,
    DeviceRequest,
    MatchAttribute,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from service.model.objects.pods_and_nodes import NodeSelector, Partial, Strict
from service.model.validation.devices import CLAIM, CLAIM_STATUS, CLASS, SLICE, TEMPLATE

Text = str | int | float
VERSIONS = ("resource.k8s.io/v1", "resource.k8s.io/v1beta2")
"""The API versions in which slices, claims and templates have the shape that is read here."""


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
    """What scheduling reads of a class of devices."""

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


class SliceDevice(Partial, frozen=True, kw_only=True):
    """A device of a slice."""

    name: str
    """Its name, of which there is one in the pool."""
    attributes: Mapping[str, DeviceAttribute] = {}
    """What the device is like, by name; the domain of a name without one is the driver."""
    capacity: Mapping[str, DeviceCapacity] = {}
    """How much it has, by name."""
    consumes_counters: tuple[object, ...] = ()
    """A device that shares counters is never given: the feature is off in Kubernetes v1.35."""
    binding_conditions: tuple[str, ...] = ()
    """A device with such conditions is never given: the feature is off in Kubernetes v1.35."""


class ResourcePool(Partial, frozen=True, kw_only=True):
    """The pool that a slice is of."""

    name: str
    """Its name, of which there is one for each driver."""
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
    """A slice with this field is passed over: the feature is off in Kubernetes v1.35."""
    shared_counters: tuple[object, ...] = ()
    """A slice with shared counters is passed over: the feature is off in Kubernetes v1.35."""
    devices: tuple[SliceDevice, ...] = ()
    """The devices."""


class ResourceSliceBody(Partial, frozen=True, kw_only=True):
    """What scheduling reads of a slice."""

    spec: ResourceSliceSpec
    """The devices."""


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
    match_attribute: str
    """Full name of the attribute that has to be the same for all devices."""


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


class ResourceClaimBody(Partial, frozen=True, kw_only=True):
    """What scheduling reads of a claim."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    """What is claimed."""
    status: ResourceClaimStatus = ResourceClaimStatus()
    """What it was given."""


class TemplateSpec(Partial, frozen=True, kw_only=True):
    """The claims that are made."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    """What they claim."""


class ResourceClaimTemplateBody(Partial, frozen=True, kw_only=True):
    """What scheduling reads of a template of claims."""

    spec: TemplateSpec = TemplateSpec()
    """The claims that are made, each for one pod."""


# From what is written to what follows


def device_object(kept: KeptObject[Partial]) -> DeviceObject | None:
    """What rules read of an object of these kinds; None for one of any other kind."""
    read = _READERS.get(kept.kind)
    return None if read is None else read(kept)


def _class(kept: KeptObject[DeviceClassBody]) -> DeviceClass:
    return DeviceClass(name=kept.name, selectors=_expressions(kept.body.spec.selectors))


def _slice(kept: KeptObject[ResourceSliceBody]) -> ResourceSlice:
    spec = kept.body.spec
    return ResourceSlice(
        name=kept.name,
        driver=spec.driver,
        pool=spec.pool.name,
        generation=spec.pool.generation,
        slice_count=spec.pool.resource_slice_count,
        node_name=spec.node_name or None,
        node_selector=spec.node_selector,
        all_nodes=spec.all_nodes,
        is_known=spec.per_device_node_selection is None and not spec.shared_counters,
        devices=tuple([_device(each, spec.driver) for each in spec.devices]),
    )


def _device(device: SliceDevice, driver: str) -> Device:
    content = {"attributes": device.attributes, "capacity": device.capacity}
    return Device(
        name=device.name,
        driver=driver,
        content=msgspec.json.encode(content, order="sorted"),
        attributes={
            full_name(name, driver): _value(each) for name, each in device.attributes.items()
        },
        is_shared=bool(device.consumes_counters),
        has_conditions=bool(device.binding_conditions),
    )


def _value(attribute: DeviceAttribute) -> AttributeValue:
    told = {
        "int": attribute.number,
        "bool": attribute.truth,
        "string": attribute.string,
        "version": attribute.version,
    }
    return next((name, value) for name, value in told.items() if value is not None)


def _claim(kept: KeptObject[ResourceClaimBody]) -> ResourceClaim:
    status = kept.body.status
    allocation = status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return ResourceClaim(
        namespace=kept.namespace,
        name=kept.name,
        uid=kept.uid,
        spec=claim_spec(kept.body.spec),
        is_allocated=allocation is not None,
        devices=tuple(
            [
                DeviceID(each.driver, each.pool, each.device)
                for each in results
                if not each.admin_access
            ]
        ),
        node_selector=allocation.node_selector if allocation is not None else None,
        consumers=len(status.reserved_for),
        controller_uid=kept.controller.uid if kept.controller is not None else "",
        terminating=kept.terminating,
    )


def _template(kept: KeptObject[ResourceClaimTemplateBody]) -> ResourceClaimTemplate:
    return ResourceClaimTemplate(
        namespace=kept.namespace, name=kept.name, spec=claim_spec(kept.body.spec.spec)
    )


def claim_spec(spec: ResourceClaimSpec) -> DeviceClaimSpec:
    """What rules read of the spec of a claim."""
    devices = spec.devices
    return DeviceClaimSpec(
        requests=tuple([_alternatives(each) for each in devices.requests]),
        constraints=tuple(
            [
                MatchAttribute(attribute=each.match_attribute, requests=frozenset(each.requests))
                for each in devices.constraints
            ]
        ),
    )


def _alternatives(request: DeviceRequestBody) -> Alternatives:
    if request.exactly is not None:
        exact = request.exactly
        return (_request(request.name, exact, admin_access=exact.admin_access),)
    return tuple(
        [_request(each.name, each, parent=request.name) for each in request.first_available]
    )


def _request(
    name: str,
    asked: ExactDeviceRequest | DeviceSubRequest,
    *,
    parent: str = "",
    admin_access: bool = False,
) -> DeviceRequest:
    return DeviceRequest(
        name=name,
        parent=parent,
        class_name=asked.device_class_name,
        selectors=_expressions(asked.selectors),
        takes_all=asked.allocation_mode == "All",
        count=asked.count,
        admin_access=admin_access,
    )


def _expressions(selectors: Iterable[DeviceSelector]) -> tuple[str, ...]:
    return tuple([each.cel.expression for each in selectors])


_GPU = {
    "devices": {
        "requests": [
            {
                "name": "gpu",
                "exactly": {
                    "deviceClassName": "gpu.example.com",
                    "selectors": [
                        {
                            "cel": {
                                "expression": 'device.capacity["gpu.example.com"].memory'
                                '.compareTo(quantity("40Gi")) >= 0'
                            }
                        }
                    ],
                },
            }
        ]
    }
}

DEVICE_CLASS = KeptKind(
    kind="DeviceClass",
    plural="deviceclasses",
    api_version="resource.k8s.io/v1",
    other_versions=("resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1"),
    namespaced=False,
    changed_by="observe",
    everybodys=True,
    body=DeviceClassBody,
    fields={"spec": CLASS},
    required=("spec",),
    description="Classes of devices, which claims ask for.",
    example={
        "metadata": {"name": "gpu.example.com"},
        "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
    },
)
RESOURCE_SLICE = KeptKind(
    kind="ResourceSlice",
    plural="resourceslices",
    api_version=VERSIONS[0],
    other_versions=VERSIONS[1:],
    namespaced=False,
    changed_by="observe",
    everybodys=True,
    body=ResourceSliceBody,
    fields={"spec": SLICE},
    required=("spec",),
    description="The devices that a driver has on a node, or that several nodes reach.",
    example={
        "metadata": {"name": "node-7-gpus"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "node-7",
            "pool": {"name": "node-7", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": "gpu-0",
                    "attributes": {"model": {"string": "a100"}},
                    "capacity": {"memory": {"value": "80Gi"}},
                }
            ],
        },
    },
)
RESOURCE_CLAIM = KeptKind(
    kind="ResourceClaim",
    plural="resourceclaims",
    api_version=VERSIONS[0],
    other_versions=VERSIONS[1:],
    body=ResourceClaimBody,
    fields={"spec": CLAIM, "status": CLAIM_STATUS},
    required=("spec",),
    description="Claims to devices. A claim is given its devices, and reserved for the pod that "
    "uses it, in one change with the pod's node.",
    example={"metadata": {"name": "training-gpu", "namespace": "shop"}, "spec": _GPU},
)
RESOURCE_CLAIM_TEMPLATE = KeptKind(
    kind="ResourceClaimTemplate",
    plural="resourceclaimtemplates",
    api_version=VERSIONS[0],
    other_versions=VERSIONS[1:],
    body=ResourceClaimTemplateBody,
    fields={"spec": TEMPLATE},
    required=("spec",),
    description="From which a claim is made for each pod that names the template, in one change "
    "with the pod's node.",
    example={"metadata": {"name": "one-gpu", "namespace": "shop"}, "spec": {"spec": _GPU}},
)

DEVICE_KINDS = (DEVICE_CLASS, RESOURCE_SLICE, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE)
_READERS = cast(
    "Mapping[str, Callable[[KeptObject[Partial]], DeviceObject]]",
    {
        DEVICE_CLASS.kind: _class,
        RESOURCE_SLICE.kind: _slice,
        RESOURCE_CLAIM.kind: _claim,
        RESOURCE_CLAIM_TEMPLATE.kind: _template,
    },
)
