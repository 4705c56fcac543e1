"""Validation rules of slices, device classes, and device claims.

Source: `pkg/apis/resource/validation`, v1.35. Fields of features that are off in that version are
ignored with a warning (`service.model.core.field_warnings`).
"""

import re
from collections.abc import Iterator, Mapping

from service.model.cel.evaluation import written_out
from service.model.core import names
from service.model.core.resources import quantity
from service.model.core.selector_rules import NODE_SELECTOR
from service.model.core.type_rules import declared, fields_of
from service.model.core.validators import (
    Problems,
    Record,
    Rule,
    at,
    entries_of,
    items_of,
    list_of,
    map_of,
    one_of,
    record,
    text,
    whole_number,
)
from service.model.devices.device import ALTERNATIVES_MAX, CONSUMERS_MAX, RESULTS_MAX
from service.model.devices.device_fields import (
    AllocatedDevice,
    AllocationResult,
    CapacityRequirements,
    CELDeviceSelector,
    ConsumerReference,
    Counter,
    CounterConsumption,
    CounterSet,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClassSpec,
    DeviceCondition,
    DeviceConstraint,
    DeviceRequestBody,
    DeviceResult,
    DeviceResults,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSliceSpec,
    SliceDevice,
    TemplateSpec,
)
from service.model.devices.device_selectors import SELECTOR_LENGTH_MAX, is_version, selector_problem

INT64_MAX = 2**63 - 1
DRIVER_LENGTH_MAX = 63
ID_LENGTH_MAX = 32
VALUE_LENGTH_MAX = 64
DEVICES_MAX = 128
ATTRIBUTES_MAX = 32
TAINTS_MAX = 16
"""The most taints of a device, and tolerations of a request."""
ITEMS_MAX = 32
"""The most items in a list of selectors, requests, or constraints."""
SELECTORS_LENGTH_MAX = 32 * 1024
"""The maximum total length of the expressions of one class, claim, or template, macros expanded."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEVICE_NODES = ("nodeName", "nodeSelector", "allNodes")
_NODES = (*_DEVICE_NODES, "perDeviceNodeSelection")


def _few_expressions(rule: Rule) -> Rule:
    """Return a rule that limits the total length of an object's expressions to bound its checks."""

    def checked(value: object, path: str, problems: Problems) -> None:
        length = sum(map(written_out, _expressions_in(value)))
        if length > SELECTORS_LENGTH_MAX:
            message = f"must have expressions of at most {SELECTORS_LENGTH_MAX} characters in all"
            problems.add(path, f"{message}; they have {length}")
        else:
            rule(value, path, problems)

    return checked


def _expressions_in(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _expressions_in(item)
    for name, item in entries_of(value).items():
        if name == "expression" and isinstance(item, str):
            yield item
        elif name != "config":  # driver configuration is opaque
            yield from _expressions_in(item)


def _at_most(limit: int, rule: Rule) -> Rule:
    def checked(value: object, path: str, problems: Problems) -> None:
        count = len(value) if isinstance(value, list | dict) else 0
        if count > limit:
            problems.add(path, f"must have at most {limit} items; it has {count}", count)
        else:
            rule(value, path, problems)

    return checked


# Names


def _driver(name: str) -> str | None:
    if len(name) > DRIVER_LENGTH_MAX:
        return f"must be no more than {DRIVER_LENGTH_MAX} characters"
    return names.dns_subdomain(name)


def _pool(name: str) -> str | None:
    """Check a pool name: one or more DNS subdomains, separated by slashes."""
    return next(filter(None, map(names.dns_subdomain, name.split("/"))), None)


def _qualified(name: str) -> str | None:
    """Check the name of an attribute or a capacity, with or without a domain."""
    domain, slash, identifier = name.rpartition("/")
    if slash and (_driver(domain) is not None):
        return "must have a lowercase DNS subdomain before the '/'"
    if len(identifier) > ID_LENGTH_MAX or not _IDENTIFIER.fullmatch(identifier):
        return f"must be an identifier of C with at most {ID_LENGTH_MAX} characters"
    return None


def _full(name: str) -> str | None:
    return _qualified(name) if "/" in name else "must include a domain"


def _short(value: str) -> str | None:
    fits = len(value) <= VALUE_LENGTH_MAX
    return None if fits else f"must be no more than {VALUE_LENGTH_MAX} characters"


def _semantic(value: str) -> str | None:
    return None if is_version(value) else "must be a semantic version, such as 1.2.3"


# Selectors


def _expression(value: object, path: str, problems: Problems) -> None:
    if not isinstance(value, str):
        problems.add(path, "must be a string", value)
        return
    if len(value) > SELECTOR_LENGTH_MAX:
        problems.add(path, f"must be no more than {SELECTOR_LENGTH_MAX} characters")
        return
    problem = selector_problem(value)
    if problem is not None:
        problems.add(path, problem, value)


_SELECTORS = _at_most(
    ITEMS_MAX,
    list_of(
        declared(DeviceSelector, {"cel": declared(CELDeviceSelector, {"expression": _expression})})
    ),
)
_OPEN = record({}, closed=False)
CLASS = _few_expressions(
    declared(DeviceClassSpec, {"selectors": _SELECTORS, "config": list_of(_OPEN)})
)


# Slices


_VALUES = fields_of(DeviceAttribute)


def _one_value(attribute: Record, path: str, problems: Problems) -> None:
    stated = [name for name in _VALUES if attribute.get(name) is not None]
    if len(stated) != 1:
        problems.add(path, "must have exactly one of int, bool, string and version")


_ATTRIBUTE = declared(
    DeviceAttribute,
    {"string": text(_short), "version": text(_short, _semantic)},
    also=(_one_value,),
)
_CAPACITY = declared(DeviceCapacity, {"value": quantity})
_COUNTERS = map_of(names.dns_label, declared(Counter, {"value": quantity}))
_TAINT = declared(
    DeviceTaint,
    {
        "key": text(names.label_key),
        "value": text(names.label_value, empty_ok=True),
        "effect": one_of("None", "NoSchedule", "NoExecute"),
    },
    required=("effect",),
)
_DEVICE = declared(
    SliceDevice,
    {
        "name": text(names.dns_label),
        "attributes": _at_most(ATTRIBUTES_MAX, map_of(_qualified, _ATTRIBUTE)),
        "capacity": _at_most(ATTRIBUTES_MAX, map_of(_qualified, _CAPACITY)),
        "consumesCounters": list_of(
            declared(
                CounterConsumption, {"counterSet": text(names.dns_label), "counters": _COUNTERS}
            )
        ),
        "bindingConditions": list_of(text()),
        "taints": _at_most(TAINTS_MAX, list_of(_TAINT)),
        "nodeName": text(names.dns_subdomain),
        "nodeSelector": NODE_SELECTOR,
    },
)


def _reached_by(slice_spec: Record, path: str, problems: Problems) -> None:
    stated = [name for name in _NODES if slice_spec.get(name) not in (None, False, "")]
    if len(stated) != 1 and not items_of(slice_spec.get("sharedCounters")):
        message = f"must have exactly one of {', '.join(_NODES)}"
        problems.add(path, message, ", ".join(stated) or None)


def _devices_reached(slice_spec: Record, path: str, problems: Problems) -> None:
    """Check that each device states the nodes that can access it, or that none does."""
    per_device = slice_spec.get("perDeviceNodeSelection") is True
    for index, device in enumerate(map(entries_of, items_of(slice_spec.get("devices")))):
        stated = [name for name in _DEVICE_NODES if device.get(name) not in (None, False, "")]
        where = f"{at(path, 'devices')}[{index}]"
        if per_device and len(stated) != 1:
            problems.add(where, f"must have exactly one of {', '.join(_DEVICE_NODES)}")
        elif stated and not per_device:
            message = "can only be set if the slice has perDeviceNodeSelection"
            problems.add(at(where, stated[0]), message)


def _one_term(slice_spec: Record, path: str, problems: Problems) -> None:
    selector = entries_of(slice_spec.get("nodeSelector"))
    if selector and len(items_of(selector.get("nodeSelectorTerms"))) != 1:
        where = at(at(path, "nodeSelector"), "nodeSelectorTerms")
        problems.add(where, "must have exactly one node selector term")


def _names_differ(owner: Record, field: str, path: str, problems: Problems) -> None:
    seen = set()
    for index, item in enumerate(items_of(owner.get(field))):
        name = entries_of(item).get("name")
        if isinstance(name, str) and name in seen:
            problems.add(f"{at(path, field)}[{index}].name", "is that of another one", name)
        seen.add(name if isinstance(name, str) else None)


def _devices_differ(slice_spec: Record, path: str, problems: Problems) -> None:
    _names_differ(slice_spec, "devices", path, problems)


_RESOURCE_POOL = declared(
    ResourcePool,
    {
        "name": text(_pool),
        "generation": whole_number(0, INT64_MAX),
        "resourceSliceCount": whole_number(1, INT64_MAX, "must be greater than 0"),
    },
    required=("resourceSliceCount",),
)
SLICE = declared(
    ResourceSliceSpec,
    {
        "driver": text(_driver),
        "pool": _RESOURCE_POOL,
        "nodeName": text(names.dns_subdomain, empty_ok=True),
        "nodeSelector": NODE_SELECTOR,
        "sharedCounters": list_of(
            declared(CounterSet, {"name": text(names.dns_label), "counters": _COUNTERS})
        ),
        "devices": _at_most(DEVICES_MAX, list_of(_DEVICE)),
    },
    also=(_reached_by, _devices_reached, _one_term, _devices_differ),
)


# Claims


def _count_fits_mode(request: Record, path: str, problems: Problems) -> None:
    if request.get("allocationMode") == "All" and request.get("count"):
        problems.add(at(path, "count"), "must not be set if allocationMode is All")


def _value_fits_operator(toleration: Record, path: str, problems: Problems) -> None:
    if toleration.get("operator") == "Exists" and toleration.get("value"):
        problems.add(at(path, "value"), "must be empty if operator is Exists")


_TOLERATION = declared(
    DeviceToleration,
    {
        "key": text(names.label_key, empty_ok=True),
        "value": text(names.label_value, empty_ok=True),
    },
    also=(_value_fits_operator,),
)
_ASKED: Mapping[str, Rule] = {
    "deviceClassName": text(names.dns_subdomain),
    "selectors": _SELECTORS,
    "allocationMode": one_of("ExactCount", "All", ""),
    "count": whole_number(0, INT64_MAX, "must be greater than 0"),
    "tolerations": _at_most(TAINTS_MAX, list_of(_TOLERATION)),
    "capacity": declared(CapacityRequirements, {"requests": map_of(_qualified, quantity)}),
}
_EXACT_REQUEST = declared(ExactDeviceRequest, _ASKED, also=(_count_fits_mode,))
_SUBREQUEST = declared(
    DeviceSubRequest, {**_ASKED, "name": text(names.dns_label)}, also=(_count_fits_mode,)
)


def _one_way(request: Record, path: str, problems: Problems) -> None:
    ways = [request.get("exactly") is not None, bool(items_of(request.get("firstAvailable")))]
    if sum(ways) != 1:
        problems.add(path, "must have exactly one of exactly and firstAvailable")


def _alternatives_differ(request: Record, path: str, problems: Problems) -> None:
    _names_differ(request, "firstAvailable", path, problems)


_REQUEST = declared(
    DeviceRequestBody,
    {
        "name": text(names.dns_label),
        "exactly": _EXACT_REQUEST,
        "firstAvailable": _at_most(ALTERNATIVES_MAX, list_of(_SUBREQUEST)),
    },
    mistakes={"deviceClassName": "exactly.deviceClassName"},
    also=(_one_way, _alternatives_differ),
)


def _one_attribute(constraint: Record, path: str, problems: Problems) -> None:
    stated = [name for name in _COMPARED if constraint.get(name) is not None]
    if len(stated) != 1:
        problems.add(path, f"must have exactly one of {', '.join(_COMPARED)}")


_COMPARED = ("matchAttribute", "distinctAttribute")
_CONSTRAINT = declared(
    DeviceConstraint,
    {
        "requests": list_of(text(), values=True),
        "matchAttribute": text(_full),
        "distinctAttribute": text(_full),
    },
    also=(_one_attribute,),
)
_CONFIG = record({"requests": list_of(text(), values=True)}, closed=False)


def _requests_differ(devices: Record, path: str, problems: Problems) -> None:
    _names_differ(devices, "requests", path, problems)


def _names_of(devices: Record) -> Iterator[object]:
    for request in map(entries_of, items_of(devices.get("requests"))):
        yield request.get("name")
        for other in map(entries_of, items_of(request.get("firstAvailable"))):
            yield f"{request.get('name')}/{other.get('name')}"


def _requests_are_there(devices: Record, path: str, problems: Problems) -> None:
    known = {name for name in _names_of(devices) if isinstance(name, str)}
    for field in ("constraints", "config"):
        for index, item in enumerate(map(entries_of, items_of(devices.get(field)))):
            for number, name in enumerate(items_of(item.get("requests"))):
                if isinstance(name, str) and name not in known:
                    where = f"{at(path, field)}[{index}].requests[{number}]"
                    problems.add(where, "must be the name of a request in the claim", name)


_DEVICES = declared(
    DeviceClaim,
    {
        "requests": _at_most(RESULTS_MAX, list_of(_REQUEST)),
        "constraints": _at_most(ITEMS_MAX, list_of(_CONSTRAINT)),
        "config": _at_most(ITEMS_MAX, list_of(_CONFIG)),
    },
    also=(_requests_differ, _requests_are_there),
)
CLAIM = _few_expressions(declared(ResourceClaimSpec, {"devices": _DEVICES}))
TEMPLATE = declared(TemplateSpec, {"spec": CLAIM}, required=("spec",))
_RESULT = declared(
    DeviceResult,
    {
        "driver": text(_driver),
        "pool": text(_pool),
        "device": text(names.dns_label),
        "bindingConditions": list_of(text()),
    },
)
_RESULTS = declared(DeviceResults, {"results": _at_most(RESULTS_MAX, list_of(_RESULT))})
_ALLOCATION = declared(AllocationResult, {"devices": _RESULTS, "nodeSelector": NODE_SELECTOR})
_CONSUMER = declared(ConsumerReference, {}, required=("resource", "name", "uid"))
CLAIM_STATUS = declared(
    ResourceClaimStatus,
    {
        "allocation": _ALLOCATION,
        "reservedFor": _at_most(CONSUMERS_MAX, list_of(_CONSUMER)),
        "devices": list_of(
            declared(AllocatedDevice, {"conditions": list_of(declared(DeviceCondition, {}))})
        ),
    },
)
