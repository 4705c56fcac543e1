"""The device kinds: slices, classes, claims, and claim templates.

The wire types are in `service.model.devices.device_fields`, the values that rules read in
`service.model.devices.device`, and the validation rules in `service.model.devices.device_rules`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import cast

import msgspec

from service.model.core.kind import DeclaredObject, KindSpec
from service.model.core.primitives import Partial
from service.model.core.quantity import parse_quantity
from service.model.devices.conversion import V1BETA1, claim_of_v1, slice_of_v1, template_of_v1
from service.model.devices.device import (
    HARD_EFFECTS,
    Alternatives,
    Amounts,
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
from service.model.devices.device_fields import (
    AllocatedDevice,
    Counter,
    DeviceAttribute,
    DeviceClassBody,
    DeviceRequestBody,
    DeviceResult,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaimBody,
    ResourceClaimSpec,
    ResourceClaimTemplateBody,
    ResourceSliceBody,
    SliceDevice,
)
from service.model.devices.device_rules import CLAIM, CLAIM_STATUS, CLASS, SLICE, TEMPLATE
from service.model.devices.device_selectors import full_name

VERSIONS = ("resource.k8s.io/v1", "resource.k8s.io/v1beta2")
"""The API versions that use the supported format of slices, claims, and templates."""


# Conversion from wire types to the values that rules read


def device_object(kept: DeclaredObject[Partial]) -> DeviceObject | None:
    """Convert an object of a device kind to the value that rules read; return None for others."""
    read = _READERS.get(kept.kind)
    return None if read is None else read(kept)


def _class(kept: DeclaredObject[DeviceClassBody]) -> DeviceClass:
    return DeviceClass(name=kept.name, selectors=_expressions(kept.body.spec.selectors))


def _slice(kept: DeclaredObject[ResourceSliceBody]) -> ResourceSlice:
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
        selects_per_device=spec.per_device_node_selection,
        counter_sets=tuple([counters.name for counters in spec.shared_counters]),
        counters=_amounts({counters.name: counters.counters for counters in spec.shared_counters}),
        devices=tuple([_device(device, spec.driver) for device in spec.devices]),
    )


def _device(device: SliceDevice, driver: str) -> Device:
    content = {"attributes": device.attributes, "capacity": device.capacity}
    return Device(
        name=device.name,
        driver=driver,
        content=msgspec.json.encode(content, order="sorted"),
        attributes={
            full_name(name, driver): _value(attribute)
            for name, attribute in device.attributes.items()
        },
        counter_sets=tuple([consumption.counter_set for consumption in device.consumes_counters]),
        consumes=tuple(
            [
                amount
                for consumption in device.consumes_counters
                for amount in _amounts({consumption.counter_set: consumption.counters})
            ]
        ),
        has_conditions=bool(device.binding_conditions),
        binds_to_node=device.binds_to_node,
        taints=tuple([taint for taint in device.taints if taint.effect in HARD_EFFECTS]),
        node_name=device.node_name or None,
        node_selector=device.node_selector,
        all_nodes=device.all_nodes,
    )


def _amounts(counters: Mapping[str, Mapping[str, Counter]]) -> Amounts:
    return tuple(
        [
            ((counter_set, name), parse_quantity(counter.value))
            for counter_set, by_name in counters.items()
            for name, counter in by_name.items()
        ]
    )


def _value(attribute: DeviceAttribute) -> AttributeValue:
    values = {
        "int": attribute.number,
        "bool": attribute.truth,
        "string": attribute.string,
        "version": attribute.version,
    }
    return next((name, value) for name, value in values.items() if value is not None)


def _claim(kept: DeclaredObject[ResourceClaimBody]) -> ResourceClaim:
    status = kept.body.status
    allocation = status.allocation
    results = allocation.devices.results if allocation is not None else ()
    spec = claim_spec(kept.body.spec)
    return ResourceClaim(
        namespace=kept.namespace,
        name=kept.name,
        uid=kept.uid,
        spec=spec,
        is_allocated=allocation is not None,
        devices=tuple(
            [
                DeviceID(result.driver, result.pool, result.device)
                for result in results
                if not result.admin_access
            ]
        ),
        preference=spec.preference({result.request for result in results}),
        node_selector=allocation.node_selector if allocation is not None else None,
        is_awaited=any(not _is_ready(result, status.devices) for result in results),
        consumers=len(status.reserved_for),
        controller_uid=kept.controller.uid if kept.controller is not None else "",
        terminating=kept.terminating,
    )


def _is_ready(result: DeviceResult, devices: Iterable[AllocatedDevice]) -> bool:
    """Return whether all binding conditions of an allocated device are true."""
    own = DeviceID(result.driver, result.pool, result.device)
    met = {
        condition.type
        for device in devices
        if DeviceID(device.driver, device.pool, device.device) == own
        for condition in device.conditions
        if condition.status == "True"
    }
    return met.issuperset(result.binding_conditions)


def _template(kept: DeclaredObject[ResourceClaimTemplateBody]) -> ResourceClaimTemplate:
    return ResourceClaimTemplate(
        namespace=kept.namespace, name=kept.name, spec=claim_spec(kept.body.spec.spec)
    )


def claim_spec(spec: ResourceClaimSpec) -> DeviceClaimSpec:
    """Return the parts of a claim's spec that rules read."""
    devices = spec.devices
    return DeviceClaimSpec(
        requests=tuple([_alternatives(request) for request in devices.requests]),
        constraints=tuple(
            [
                MatchAttribute(
                    attribute=constraint.match_attribute, requests=frozenset(constraint.requests)
                )
                for constraint in devices.constraints
                if constraint.match_attribute is not None
            ]
        ),
        needs_distinct=any(
            constraint.match_attribute is None for constraint in devices.constraints
        ),
    )


def _alternatives(request: DeviceRequestBody) -> Alternatives:
    if request.exactly is not None:
        exact = request.exactly
        return (_request(request.name, exact, admin_access=exact.admin_access),)
    return tuple(
        [
            _request(alternative.name, alternative, parent=request.name)
            for alternative in request.first_available
        ]
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
        count=asked.count or 1,  # Kubernetes cannot tell 0 from an absent count.
        admin_access=admin_access,
        tolerations=asked.tolerations,
        needs_capacity=asked.capacity is not None and bool(asked.capacity.requests),
    )


def _expressions(selectors: Iterable[DeviceSelector]) -> tuple[str, ...]:
    return tuple([selector.cel.expression for selector in selectors])


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

DEVICE_CLASS = KindSpec(
    kind="DeviceClass",
    plural="deviceclasses",
    api_version="resource.k8s.io/v1",
    other_versions=("resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1"),
    namespaced=False,
    changed_by="observe",
    is_public=True,
    body=DeviceClassBody,
    fields={"spec": CLASS},
    required=("spec",),
    description="Classes of devices, which claims ask for.",
    example={
        "metadata": {"name": "gpu.example.com"},
        "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
    },
)
RESOURCE_SLICE = KindSpec(
    kind="ResourceSlice",
    plural="resourceslices",
    api_version=VERSIONS[0],
    other_versions=VERSIONS[1:],
    namespaced=False,
    changed_by="observe",
    is_public=True,
    conversions={V1BETA1: slice_of_v1},
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
RESOURCE_CLAIM = KindSpec(
    kind="ResourceClaim",
    plural="resourceclaims",
    api_version=VERSIONS[0],
    other_versions=VERSIONS[1:],
    conversions={V1BETA1: claim_of_v1},
    body=ResourceClaimBody,
    fields={"spec": CLAIM, "status": CLAIM_STATUS},
    required=("spec",),
    description="Claims to devices. A claim is given its devices, and reserved for the pod that "
    "uses it, in one change with the pod's node.",
    example={"metadata": {"name": "training-gpu", "namespace": "shop"}, "spec": _GPU},
)
RESOURCE_CLAIM_TEMPLATE = KindSpec(
    kind="ResourceClaimTemplate",
    plural="resourceclaimtemplates",
    api_version=VERSIONS[0],
    other_versions=VERSIONS[1:],
    conversions={V1BETA1: template_of_v1},
    body=ResourceClaimTemplateBody,
    fields={"spec": TEMPLATE},
    required=("spec",),
    description="From which a claim is made for each pod that names the template, in one change "
    "with the pod's node.",
    example={"metadata": {"name": "one-gpu", "namespace": "shop"}, "spec": {"spec": _GPU}},
)

DEVICE_KINDS = (DEVICE_CLASS, RESOURCE_SLICE, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE)
_READERS = cast(
    "Mapping[str, Callable[[DeclaredObject[Partial]], DeviceObject]]",
    {
        DEVICE_CLASS.kind: _class,
        RESOURCE_SLICE.kind: _slice,
        RESOURCE_CLAIM.kind: _claim,
        RESOURCE_CLAIM_TEMPLATE.kind: _template,
    },
)
