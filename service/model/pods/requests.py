"""The resources and host ports that a pod requests from a node.

Source: `k8s.io/component-helpers/resource` and kube-scheduler's `framework/types.go`, v1.35, with
one deliberate difference: scores of an incoming pod honor pod-level requests, as documented. Sums
are exact, in nanos, and rounded up once per pod.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from service.model.core.primitives import Quantities
from service.model.core.quantity import amount, ceil_milli, ceil_whole, parse_quantity
from service.model.core.resources import NATIVE_RESOURCES, is_pod_level
from service.model.pods.pod import (
    Container,
    ContainerStatus,
    PodResize,
    PodSpec,
    ResourceRequirements,
)

DEFAULT_CPU_MILLI = 100
DEFAULT_MEMORY_BYTES = 200 * 1024**2
"""The default requests that scoring assumes for containers without any (`pkg/scheduler/util`)."""


Nanos = dict[str, int]
"""Exact amounts in nanos, by resource name."""

_DEFAULTS: Nanos = {"cpu": DEFAULT_CPU_MILLI * 10**6, "memory": DEFAULT_MEMORY_BYTES * 10**9}


class PodRequests(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's requests, for filtering and for scoring.

    `amounts` has every resource that the pod requests and scheduling counts, including zeros: cpu
    in milli, all others in whole units. The `nonzero_` amounts are for scoring, with defaults for
    containers that request no cpu or memory.
    """

    amounts: Mapping[str, int]
    nonzero_cpu: int
    nonzero_memory: int


def pod_requests(spec: PodSpec) -> PodRequests:
    """Return the requests of an incoming pod, with defaults for containers without requests."""
    return _requests(spec, None, lambda _: _DEFAULTS)


def placed_requests(spec: PodSpec, resize: PodResize | None) -> PodRequests:
    """Return the requests of a placed pod, which an in-place resize in progress may raise.

    With pod-level requests, only resources missing at both levels get the default.
    """
    return _requests(spec, resize, lambda total: _placed_defaults(spec, total))


def exact_requests(spec: PodSpec, resize: PodResize | None = None) -> Nanos:
    """Return a pod's exact requests for every resource, as charged by quotas."""
    return _pod_total(spec, *_each_container(spec, resize))


def exact_limits(spec: PodSpec) -> Nanos:
    """Return a pod's exact limits, including overhead for resources that have a limit.

    Source: `PodLimits` of `k8s.io/component-helpers/resource`.
    """
    limits = _aggregate(
        [_limited(c.resources) for c in spec.containers],
        [(_limited(c.resources), is_sidecar(c)) for c in spec.init_containers],
    )
    limits |= {n: nanos for n, nanos in _limited(spec.resources).items() if is_pod_level(n)}
    overhead = _exact(spec.overhead)
    return {name: nanos and nanos + overhead.get(name, 0) for name, nanos in limits.items()}


def _each_container(
    spec: PodSpec, resize: PodResize | None
) -> tuple[list[Nanos], list[tuple[Nanos, bool]]]:
    """Return the requests of containers and of init containers, marking those that are sidecars."""
    statuses = _statuses(resize)
    infeasible = resize is not None and resize.infeasible
    containers = [_effective(c, statuses.get(c.name), infeasible) for c in spec.containers]
    inits = [
        (_effective(c, statuses.get(c.name) if sidecar else None, infeasible), sidecar)
        for c, sidecar in ((c, is_sidecar(c)) for c in spec.init_containers)
    ]
    return containers, inits


def _requests(
    spec: PodSpec, resize: PodResize | None, defaults_of: Callable[[Nanos], Nanos]
) -> PodRequests:
    containers, inits = _each_container(spec, resize)
    total = _pod_total(spec, containers, inits)
    defaults = defaults_of(total)
    nonzero = _pod_total(
        spec,
        [defaults | container for container in containers],
        [(defaults | container, sidecar) for container, sidecar in inits],
    )
    return PodRequests(
        amounts={name: amount(name, nanos) for name, nanos in total.items() if is_counted(name)},
        nonzero_cpu=ceil_milli(nonzero.get("cpu", 0)),
        nonzero_memory=ceil_whole(nonzero.get("memory", 0)),
    )


def container_requests(
    containers: Iterable[Container], init_containers: Iterable[Container]
) -> Nanos:
    """Return the containers' total requests, without pod-level requests and overhead."""
    return _aggregate(
        [_effective(c, None, infeasible=False) for c in containers],
        [(_effective(c, None, infeasible=False), is_sidecar(c)) for c in init_containers],
    )


def requirements(spec: PodSpec) -> object:
    """Return all requests and limits of a pod, for comparison."""
    containers = (*spec.containers, *spec.init_containers)
    return [container.resources for container in containers], spec.resources


def is_sidecar(container: Container) -> bool:
    """Return whether an init container keeps running alongside the main containers."""
    return container.restart_policy == "Always"


def is_counted(resource: str) -> bool:
    """Return whether kube-scheduler counts a resource; it ignores unknown resources."""
    return (
        resource in NATIVE_RESOURCES
        or "/" in resource
        or resource.startswith(("hugepages-", "attachable-volumes-"))
    )


def host_ports(spec: PodSpec) -> tuple[tuple[str, str, int], ...]:
    """Return all host ports as (ip, protocol, port), without those of ordinary init containers."""
    running = (*spec.containers, *(c for c in spec.init_containers if is_sidecar(c)))
    return tuple(
        (port.host_ip or "0.0.0.0", port.protocol, port.host_port)  # noqa: S104 - the wildcard
        for container in running
        for port in container.ports
        if port.host_port > 0
    )


def _exact(quantities: Quantities | None) -> Nanos:
    return {name: parse_quantity(text) for name, text in (quantities or {}).items()}


def _requested(resources: ResourceRequirements | None) -> Nanos:
    return _exact(resources.requests) if resources is not None else {}


def _limited(resources: ResourceRequirements | None) -> Nanos:
    return _exact(resources.limits) if resources is not None else {}


def _statuses(resize: PodResize | None) -> dict[str, ContainerStatus]:
    if resize is None:
        return {}
    both = (*resize.container_statuses, *resize.init_container_statuses)
    return {status.name: status for status in both if status.resources is not None}


def _effective(container: Container, status: ContainerStatus | None, infeasible: bool) -> Nanos:  # noqa: FBT001
    """Return a container's requests: the maximum of spec, actual, and allocated during a resize.

    If the resize is infeasible, it never happens, so the spec is ignored.
    """
    if status is None:
        return _requested(container.resources)
    held = _greatest(_requested(status.resources), _exact(status.allocated_resources))
    return held if infeasible else _greatest(_requested(container.resources), held)


def _greatest(one: Nanos, other: Nanos) -> Nanos:
    return {name: max(one.get(name, n), other.get(name, n)) for name, n in (one | other).items()}


def _sum(one: Nanos, other: Nanos) -> Nanos:
    if not (one and other):
        return one or other
    return {name: one.get(name, 0) + other.get(name, 0) for name in one | other}


def _aggregate(containers: Iterable[Nanos], inits: Sequence[tuple[Nanos, bool]]) -> Nanos:
    """Sum containers and sidecars; each init container runs alongside the earlier sidecars."""
    running: Nanos = {}
    for container in containers:
        running = _sum(running, container)
    if not inits:
        return running
    sidecars: Nanos = {}
    peak: Nanos = {}
    for init, sidecar in inits:
        starting = _sum(sidecars, init)
        if sidecar:
            running, sidecars = _sum(running, init), starting
        peak = _greatest(peak, starting)
    return _greatest(running, peak)


def _pod_total(spec: PodSpec, containers: list[Nanos], inits: list[tuple[Nanos, bool]]) -> Nanos:
    """Return the total: pod-level requests or the containers' sum, plus overhead."""
    total = _aggregate(containers, inits) | _pod_level(spec)
    return _sum(total, _exact(spec.overhead))


def _pod_level(spec: PodSpec) -> Nanos:
    if spec.resources is None:
        return {}
    requests = _requested(spec.resources)
    return {name: nanos for name, nanos in requests.items() if is_pod_level(name)}


def _placed_defaults(spec: PodSpec, total: Nanos) -> Nanos:
    """Return a placed pod's scoring defaults for resources that its containers do not request."""
    if not _pod_level(spec):
        return _DEFAULTS
    return {name: nanos for name, nanos in _DEFAULTS.items() if name not in total}
