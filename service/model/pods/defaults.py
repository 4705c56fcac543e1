"""The defaults that kube-apiserver sets in the spec of a new pod.

The functions modify a decoded, validated spec in place, and are idempotent. Sources:
`pkg/apis/core/v1/defaults.go` and `pkg/registry/core/pod/strategy.go`, v1.35; `maxSkew`,
`whenUnsatisfiable`, and the policies get their documented defaults.
"""

from collections.abc import Iterator

import msgspec

from service.model.core.quantity import format_quantity
from service.model.core.resources import is_pod_level, zeros_for_nulls
from service.model.core.validators import without_nulls
from service.model.pods.pod import DEFAULT_SCHEDULER, Container
from service.model.pods.requests import container_limits, container_requests

Json = dict[str, object]

_SPREAD_DEFAULTS: Json = {
    "maxSkew": 1,
    "whenUnsatisfiable": "DoNotSchedule",
    "nodeAffinityPolicy": "Honor",
    "nodeTaintsPolicy": "Ignore",
}


def fill_defaults(spec: Json) -> None:
    """Set all defaults that do not depend on the pod's labels."""
    host_network = spec.get("hostNetwork") is True
    _zeros_for_nulls(spec)
    if spec.get("schedulerName") == "":
        spec["schedulerName"] = DEFAULT_SCHEDULER
    for container in _containers(spec):
        _requests_from_limits(container)
        _protocols(container)
        if host_network:
            _host_ports(container)
    _pod_limits_of_huge_pages(spec)
    _pod_requests_from_limits(spec)
    for constraint in _objects(spec.get("topologySpreadConstraints")):
        _set_absent(constraint, _SPREAD_DEFAULTS)


def _zeros_for_nulls(spec: Json) -> None:
    for owner in (*_containers(spec), spec):
        resources = _object(owner.get("resources"))
        for field in ("requests", "limits"):
            if field in resources:
                resources[field] = zeros_for_nulls(resources[field])
    if "overhead" in spec:
        spec["overhead"] = zeros_for_nulls(spec["overhead"])


def _requests_from_limits(container: Json) -> None:
    resources = container.get("resources")
    if not isinstance(resources, dict) or not resources.get("limits"):
        return
    requests = _object(resources.get("requests"))
    resources["requests"] = requests | {
        name: limit for name, limit in resources["limits"].items() if name not in requests
    }


def _protocols(container: Json) -> None:
    """Replace empty protocols, which mean TCP, as an absent one does."""
    for port in _objects(container.get("ports")):
        if port.get("protocol") == "":
            port["protocol"] = "TCP"


def _host_ports(container: Json) -> None:
    for port in _objects(container.get("ports")):
        if not port.get("hostPort"):
            port["hostPort"] = port.get("containerPort")


def _pod_limits_of_huge_pages(spec: Json) -> None:
    """Set absent pod-level limits of huge pages to the containers' sum, if anything is pod-level."""
    resources = spec.get("resources")
    if not isinstance(resources, dict):
        return
    requests, limits = _object(resources.get("requests")), _object(resources.get("limits"))
    if not (requests or limits):
        return
    summed = {
        name: format_quantity(nanos)
        for name, nanos in container_limits(*_typed_containers(spec)).items()
        if name.startswith("hugepages-") and name not in requests
    }
    if summed:
        resources["limits"] = summed | limits


def _pod_requests_from_limits(spec: Json) -> None:
    """Set absent pod-level requests to the containers' sum, or else to the pod-level limit."""
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
    return container_requests(*_typed_containers(spec))


def _typed_containers(spec: Json) -> tuple[list[Container], list[Container]]:
    """Return the containers and the init containers."""
    containers, inits = (
        msgspec.convert(without_nulls(spec.get(field) or []), list[Container])
        for field in ("containers", "initContainers")
    )
    return containers, inits


def _containers(spec: Json) -> Iterator[Json]:
    for field in ("containers", "initContainers"):
        yield from _objects(spec.get(field))


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
