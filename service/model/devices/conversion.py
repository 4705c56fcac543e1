"""Converts objects of `resource.k8s.io/v1beta1` to v1.

Source: `pkg/apis/resource/v1beta1/conversion.go`, v1.37. A request for devices has its fields in
`exactly` in v1, and a device of a slice has those of `basic` itself; everything else is equal.
"""

from collections.abc import Callable, Mapping, Sequence

Json = Mapping[str, object]

V1 = "resource.k8s.io/v1"
V1BETA1 = "resource.k8s.io/v1beta1"

_EXACT = frozenset(
    {
        "adminAccess",
        "allocationMode",
        "capacity",
        "count",
        "derivedAttributes",
        "deviceClassName",
        "selectors",
        "tolerations",
    }
)
"""The fields of a request that are in its `exactly` in v1."""


def claim_of_v1(claim: Json) -> Json:
    """Convert a ResourceClaim of v1beta1."""
    return _converted(claim, ("spec", "devices", "requests"), _request)


def template_of_v1(template: Json) -> Json:
    """Convert a ResourceClaimTemplate of v1beta1."""
    return _converted(template, ("spec", "spec", "devices", "requests"), _request)


def slice_of_v1(resource_slice: Json) -> Json:
    """Convert a ResourceSlice of v1beta1."""
    return _converted(resource_slice, ("spec", "devices"), _device)


def _converted(fields: Json, path: Sequence[str], change: Callable[[Json], Json]) -> Json:
    return {**_changed(fields, path, change), "apiVersion": V1}


def _changed(fields: Json, path: Sequence[str], change: Callable[[Json], Json]) -> Json:
    """Change the items of the list at a path; parts of other types stay, for validation to report."""
    name, *rest = path
    part = fields.get(name)
    if rest and isinstance(part, dict):
        return {**fields, name: _changed(part, rest, change)}
    if not rest and isinstance(part, list):
        return {**fields, name: [change(item) if isinstance(item, dict) else item for item in part]}
    return fields


def _request(request: Json) -> Json:
    exact = {name: value for name, value in request.items() if name in _EXACT}
    if "exactly" in request or all(value is None for value in exact.values()):
        return request
    return {name: value for name, value in request.items() if name not in exact} | {
        "exactly": exact
    }


def _device(device: Json) -> Json:
    basic = device.get("basic")
    if not isinstance(basic, dict):
        return device
    return {**{name: value for name, value in device.items() if name != "basic"}, **basic}
