"""The device kinds: slices, classes, claims, and claim templates.

The wire types are in `service.model.devices.device_fields`, the values that rules read in
`service.model.devices.device`, and the validation rules in `service.model.devices.device_rules`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import cast

import msgspec

from service.model.core.kind import DeclaredObject, KindSpec
from service.model.core.primitives import Partial
from service.model.devices.conversion import V1BETA1, claim_of_v1, slice_of_v1, template_of_v1
from service.model.devices.device import (
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
from service.model.devices.device_fields import (
    DeviceAttribute,
    DeviceClassBody,
    DeviceRequestBody,
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
        is_known=spec.per_device_node_selection is None and not spec.shared_counters,
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
        is_shared=bool(device.consumes_counters),
        has_conditions=bool(device.binding_conditions),
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
    return ResourceClaim(
        namespace=kept.namespace,
        name=kept.name,
        uid=kept.uid,
        spec=claim_spec(kept.body.spec),
        is_allocated=allocation is not None,
        devices=tuple(
            [
                DeviceID(result.driver, result.pool, result.device)
                for result in results
                if not result.admin_access
            ]
        ),
        node_selector=allocation.node_selector if allocation is not None else None,
        consumers=len(status.reserved_for),
        controller_uid=kept.controller.uid if kept.controller is not None else "",
        terminating=kept.terminating,
    )


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
            ]
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
        count=asked.count,
        admin_access=admin_access,
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
