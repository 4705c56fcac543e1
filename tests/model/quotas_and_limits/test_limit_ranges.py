"""What limit ranges add to pods and refuse, compared with the reference, and which are valid."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from service.model.core.errors import InvalidManifest
from service.model.policies.limit_ranges import LimitRangeBody, defaults_of, violations
from service.model.registry.manifests import TemplateCache, parse_declared, parse_pod
from tests.reference.admission import limit_violations, with_container_defaults
from tests.reference.resources import amounts

Manifest = dict[str, Any]

AMOUNTS = st.integers(1, 8).map(str)
RESOURCES = st.dictionaries(st.sampled_from(["cpu", "memory"]), AMOUNTS, max_size=2)


@st.composite
def resources(draw: st.DrawFn) -> Manifest:
    """Requests and limits; what is requested is no more than the limit."""
    requests, limits = draw(RESOURCES), draw(RESOURCES)
    for name in requests.keys() & limits.keys():
        requests[name], limits[name] = sorted((requests[name], limits[name]), key=int)
    return {"requests": requests, "limits": limits}


def container(**fields: Any) -> Manifest:
    return {"resources": resources(), **fields}


CONTAINERS = st.lists(st.fixed_dictionaries(container()), min_size=1, max_size=2)
INIT_CONTAINERS = st.lists(
    st.fixed_dictionaries(container(), optional={"restartPolicy": st.just("Always")}), max_size=2
)
POD_SPECS = st.fixed_dictionaries(
    {"containers": CONTAINERS},
    optional={"initContainers": INIT_CONTAINERS, "overhead": RESOURCES, "resources": resources()},
)


@st.composite
def limit_ranges(draw: st.DrawFn) -> Manifest:
    """Limit ranges whose bounds are in order."""
    items = []
    for type_ in draw(st.lists(st.sampled_from(["Container", "Pod"]), unique=True)):
        item: Manifest = {"type": type_}
        for name in ("cpu", "memory"):
            low, request, limit, high = sorted(draw(st.tuples(*[st.integers(1, 9)] * 4)))
            for field, amount in (
                ("min", low),
                ("defaultRequest", request),
                ("default", limit),
                ("max", high),
            ):
                if draw(st.booleans()) and (type_ == "Container" or "default" not in field):
                    item.setdefault(field, {})[name] = str(amount)
        if draw(st.booleans()):
            item["maxLimitRequestRatio"] = {"cpu": "1"}
        items.append(item)
    return {"metadata": {"name": "usual"}, "spec": {"limits": items}}


def read(limit_range: Manifest) -> LimitRangeBody:
    body = parse_declared("LimitRange", limit_range).kept.body
    assert isinstance(body, LimitRangeBody)
    return body


BOUND = re.compile(r"(minimum|maximum) (\w+) usage|(\w+) max limit to request (ratio)")


def told(message: str) -> tuple[str, str, str]:
    """Where, of which resource and which bound, as the reference says it."""
    where, _, words = message.partition(": ")
    found = BOUND.search(words)
    assert found is not None, message
    bound, resource = (found[1], found[2]) if found[1] else (found[4], found[3])
    return where.partition(".resources")[0], resource, bound


@given(spec=POD_SPECS, limit_range=limit_ranges())
def test_pods_get_and_exceed_what_the_reference_says(spec: Manifest, limit_range: Manifest) -> None:
    templates, body = TemplateCache(), read(limit_range)
    pod = parse_pod({"metadata": {"name": "web"}, "spec": spec}, templates)
    sent = {"metadata": {"name": "web"}, "spec": pod.template.decoded()}
    expected = with_container_defaults(sent, limit_range)
    defaults = defaults_of(body)
    if asks_for_more_than_its_limit(expected["spec"]):
        assert defaults is not None
        with pytest.raises(InvalidManifest, match="less than or equal"):
            pod.amended(defaults, templates)
        return
    amended = pod if defaults is None else pod.amended(defaults, templates)
    if defaults is not None:
        assert amended.amended(defaults, templates) == amended
    full = msgspec.json.decode(amended.template.spec_json)
    assert asked_by_each(full) == asked_by_each(expected["spec"])
    found = violations(amended.pod.spec, body)
    assert sorted(map(told, found)) == sorted(limit_violations({"spec": full}, limit_range))


def asks_for_more_than_its_limit(spec: Manifest) -> bool:
    return any(
        amount > limits.get(name, amount)
        for requests, limits in asked_by_each(spec)
        for name, amount in requests.items()
    )


def asked_by_each(spec: Manifest) -> list[Any]:
    return [
        [amounts((each.get("resources") or {}).get(field)) for field in ("requests", "limits")]
        for each in (*spec["containers"], *(spec.get("initContainers") or []))
    ]


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({"type": "Volume"}, "type"),
        ({}, "type"),
        ({"type": "Container", "max": {"cpu": "x"}}, "max[cpu]"),
        ({"type": "Container", "max": {"storage": "1"}}, "max[storage]"),
        ({"type": "Pod", "default": {"cpu": "1"}}, "default"),
        ({"type": "Pod", "defaultRequest": {"cpu": "1"}}, "defaultRequest"),
        ({"type": "PersistentVolumeClaim", "min": {"cpu": "1"}}, ""),
        ({"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}, "min[cpu]"),
        ({"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}}, "min[cpu]"),
        ({"type": "Container", "default": {"cpu": "2"}, "max": {"cpu": "1"}}, "default[cpu]"),
        (
            {"type": "Container", "defaultRequest": {"cpu": "2"}, "default": {"cpu": "1"}},
            "defaultRequest[cpu]",
        ),
        ({"type": "Pod", "maxLimitRequestRatio": {"cpu": "0.5"}}, "maxLimitRequestRatio[cpu]"),
        (
            {
                "type": "Pod",
                "min": {"cpu": "1"},
                "max": {"cpu": "2"},
                "maxLimitRequestRatio": {"cpu": "3"},
            },
            "maxLimitRequestRatio[cpu]",
        ),
        (
            {"type": "Container", "max": {"gpu/a": "2"}, "defaultRequest": {"gpu/a": "1"}},
            "defaultRequest[gpu/a]",
        ),
        (
            {"type": "Container", "default": {"gpu/a": "2"}, "defaultRequest": {"gpu/a": "1"}},
            "defaultRequest[gpu/a]",
        ),
    ],
)
def test_a_wrong_limit_range_is_refused_with_its_field(item: Manifest, field: str) -> None:
    with pytest.raises(InvalidManifest) as caught:
        read({"metadata": {"name": "usual"}, "spec": {"limits": [item]}})
    where = "spec.limits[0]"
    assert caught.value.errors[0].field == (f"{where}.{field}" if field else where)


def test_each_type_stands_once_in_a_limit_range() -> None:
    with pytest.raises(InvalidManifest) as caught:
        read({"metadata": {"name": "usual"}, "spec": {"limits": [{"type": "Pod"}] * 2}})
    assert [each.field for each in caught.value.errors] == ["spec.limits[1].type"]
