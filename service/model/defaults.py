"""What kube-apiserver fills into a pod's spec when it is created, done on decoded JSON.

All functions change the (already validated) spec that they are given and, applied again, change
nothing more. Sources: `pkg/apis/core/v1/defaults.go` and `pkg/registry/core/pod/strategy.go`, v1.35;
`maxSkew`, `whenUnsatisfiable` and the policies have the defaults that their documentation states.
"""

from collections.abc import Iterator, Mapping
from typing import cast

import msgspec

from service.model.objects import Container
from service.model.quantity import format_quantity
from service.model.requests import container_requests, is_pod_level
from service.model.validation.rules import without_nulls

Json = dict[str, object]
LabelKeys = tuple[str, ...]

_SPREAD_DEFAULTS: Json = {
    "maxSkew": 1,
    "whenUnsatisfiable": "DoNotSchedule",
    "nodeAffinityPolicy": "Honor",
    "nodeTaintsPolicy": "Ignore",
}
_REQUIRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "requiredDuringSchedulingRequiredDuringExecution",
)
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def fill_defaults(spec: Json, labels: Mapping[str, str]) -> None:
    """Fill in everything, for a pod with these labels."""
    host_network = spec.get("hostNetwork") is True
    for container in _containers(spec):
        _requests_from_limits(container)
        if host_network:
            _host_ports(container)
    _pod_requests_from_limits(spec)
    for constraint in _objects(spec.get("topologySpreadConstraints")):
        _set_absent(constraint, _SPREAD_DEFAULTS)
    for term in pod_terms(spec):
        _merge_label_keys(term, labels)


def label_keys(spec: Json) -> LabelKeys:
    """The labels whose values the result for this spec depends on.

    A spread constraint's keys are not merged, but whether they are allowed can depend on the
    pod's labels where the selector mentions them.
    """
    keys: dict[str, None] = {}
    for term in pod_terms(spec):
        keys |= dict.fromkeys([*_texts(term, "matchLabelKeys"), *_texts(term, "mismatchLabelKeys")])
    for constraint in _objects(spec.get("topologySpreadConstraints")):
        mentioned = _mentioned_keys(constraint.get("labelSelector"))
        keys |= {key: None for key in _texts(constraint, "matchLabelKeys") if key in mentioned}
    return tuple(keys)


def pod_terms(spec: Json) -> Iterator[Json]:
    """All terms in the six lists of pod affinity and anti-affinity."""
    affinity = _object(spec.get("affinity"))
    for side in ("podAffinity", "podAntiAffinity"):
        lists = _object(affinity.get(side))
        for name in _REQUIRED:
            yield from _objects(lists.get(name))
        for weighted in _objects(lists.get(_PREFERRED)):
            yield _object(weighted.get("podAffinityTerm"))


def _merge_label_keys(term: Json, labels: Mapping[str, str]) -> None:
    selector = term.get("labelSelector")
    if not isinstance(selector, dict):
        return
    wanted = [("In", key) for key in _texts(term, "matchLabelKeys")]
    wanted += [("NotIn", key) for key in _texts(term, "mismatchLabelKeys")]
    merged = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for operator, key in wanted
        if key in labels
    ]
    present = list(_objects(selector.get("matchExpressions")))
    missing = [requirement for requirement in merged if requirement not in present]
    if missing:
        selector["matchExpressions"] = present + missing


def _requests_from_limits(container: Json) -> None:
    resources = container.get("resources")
    if not isinstance(resources, dict) or not resources.get("limits"):
        return
    requests = _object(resources.get("requests"))
    resources["requests"] = requests | {
        name: limit for name, limit in resources["limits"].items() if name not in requests
    }


def _host_ports(container: Json) -> None:
    for port in _objects(container.get("ports")):
        if not port.get("hostPort"):
            port["hostPort"] = port.get("containerPort")


def _pod_requests_from_limits(spec: Json) -> None:
    """Pod-level requests that are silent take the containers' sum, or else the pod's limit."""
    resources = spec.get("resources")
    if not isinstance(resources, dict) or not resources.get("limits"):
        return
    summed = {
        name: format_quantity(nanos)
        for name, nanos in _container_sum(spec).items()
        if is_pod_level(name) and not name.startswith("hugepages-")
    }
    limits = {name: limit for name, limit in resources["limits"].items() if is_pod_level(name)}
    resources["requests"] = limits | summed | _object(resources.get("requests"))


def _container_sum(spec: Json) -> dict[str, int]:
    containers, inits = (
        msgspec.convert(without_nulls(spec.get(field) or []), list[Container])
        for field in ("containers", "initContainers")
    )
    return container_requests(containers, inits)


def _containers(spec: Json) -> Iterator[Json]:
    for field in ("containers", "initContainers"):
        yield from _objects(spec.get(field))


def _mentioned_keys(selector: object) -> set[object]:
    fields = _object(selector)
    expressions = _objects(fields.get("matchExpressions"))
    return {*_object(fields.get("matchLabels")), *(e.get("key") for e in expressions)}


def _set_absent(target: Json, defaults: Json) -> None:
    for name, value in defaults.items():
        if target.get(name) is None:
            target[name] = value


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> Iterator[Json]:
    return (
        (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())
    )


def _texts(value: Json, field: str) -> list[str]:
    return cast("list[str]", value.get(field) or [])
