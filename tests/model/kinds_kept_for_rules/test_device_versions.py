"""Slices and claims of `resource.k8s.io/v1beta1`, which are stored in the format of v1."""

from typing import Any

import msgspec
import pytest

from service.model.core.errors import InvalidManifest
from service.model.registry.manifests import DeclaredManifest, parse_declared

DEVICES = {"requests": [{"name": "gpu", "deviceClassName": "gpu.example.com", "count": 2}]}
DEVICES_OF_V1 = {
    "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 2}}]
}
ALTERNATIVES = {
    "requests": [
        {"name": "gpu", "firstAvailable": [{"name": "a", "deviceClassName": "gpu.example.com"}]}
    ]
}
POOL = {
    "driver": "d.example.com",
    "nodeName": "n1",
    "pool": {"name": "n1", "resourceSliceCount": 1},
}
CONTENT = {"attributes": {"model": {"string": "a100"}}, "capacity": {"memory": {"value": "80Gi"}}}


def manifest(kind: str, version: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "a"} | ({} if kind == "ResourceSlice" else {"namespace": "shop"})
    version = f"resource.k8s.io/{version}"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


SENT = {
    "a claim": ("ResourceClaim", {"devices": DEVICES}, {"devices": DEVICES_OF_V1}),
    "a claim with alternatives": (
        "ResourceClaim",
        {"devices": ALTERNATIVES},
        {"devices": ALTERNATIVES},
    ),
    "a template": (
        "ResourceClaimTemplate",
        {"spec": {"devices": DEVICES}},
        {"spec": {"devices": DEVICES_OF_V1}},
    ),
    "a slice": (
        "ResourceSlice",
        POOL | {"devices": [{"name": "gpu-0", "basic": CONTENT}]},
        POOL | {"devices": [{"name": "gpu-0", **CONTENT}]},
    ),
}


@pytest.mark.parametrize("case", SENT)
def test_an_object_of_v1beta1_is_what_it_is_in_v1(case: str) -> None:
    kind, spec, spec_of_v1 = SENT[case]
    sent = manifest(kind, "v1beta1", spec)
    parsed = parse_declared(kind, sent)
    assert parse_declared(kind, msgspec.json.encode(sent)) == parsed
    expected = manifest(kind, "v1", spec_of_v1)
    assert parsed == parse_declared(kind, expected)
    assert isinstance(parsed, DeclaredManifest)
    assert msgspec.json.decode(parsed.render()) == expected


WRONG = {
    "a request of both formats": (
        {"devices": {"requests": [{**DEVICES_OF_V1["requests"][0], "deviceClassName": "a"}]}},
        "spec.devices.requests[0].deviceClassName",
    ),
    "a wrong count": (
        {"devices": {"requests": [{**DEVICES["requests"][0], "count": "2"}]}},
        "spec.devices.requests[0].exactly.count",
    ),
    "no list": ({"devices": {"requests": {}}}, "spec.devices.requests"),
    "no request": ({"devices": {"requests": [1]}}, "spec.devices.requests[0]"),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_are_named_by_the_fields_of_v1(case: str) -> None:
    spec, field = WRONG[case]
    with pytest.raises(InvalidManifest) as refused:
        parse_declared("ResourceClaim", manifest("ResourceClaim", "v1beta1", spec))
    assert [error.field for error in refused.value.errors] == [field]
