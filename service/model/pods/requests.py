"""The resources and host ports that a pod requests from a node.

Source: `k8s.io/component-helpers/resource` and kube-scheduler's `framework/types.go`, v1.35 to
v1.37. Sums are exact, in nanos, and rounded up once per pod.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import NamedTuple, TypeAlias

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


class ResizeRules(NamedTuple):
    """How a version of Kubernetes counts a pod that is resized in place."""

    pod_level: bool = False
    """Whether the pod's own resources in its status count, and not only those of its containers."""
    by_sum: bool = False
    """Whether the largest of several sums over the containers counts, and not the sum of each
    container's largest amounts."""


BY_CONTAINER = ResizeRules()
"""The rules of the oldest version, 1.35."""
_RULES = (BY_CONTAINER, ResizeRules(pod_level=True), ResizeRules(pod_level=True, by_sum=True))
"""The rules of all versions."""


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
    return _requests(spec, _specified(spec, _requested), None, BY_CONTAINER, lambda _: _DEFAULTS)


def placed_requests(
    spec: PodSpec, resize: PodResize | None, rules: ResizeRules = BY_CONTAINER
) -> PodRequests:
    """Return the requests of a placed pod, which an in-place resize in progress may raise.

    With pod-level requests, only resources missing at both levels get the default.
    """
    claims = _claims(spec, resize, rules)
    return _requests(spec, claims, resize, rules, lambda total: _placed_defaults(spec, total))


def amounts_by_rules(spec: PodSpec, resize: PodResize | None) -> tuple[Mapping[str, int], ...]:
    """Return the amounts that a placed pod requests, by the rules of each version in turn."""
    if resize is None:
        return (placed_requests(spec, None).amounts,) * len(_RULES)
    return tuple(placed_requests(spec, resize, rules).amounts for rules in _RULES)


def exact_requests(
    spec: PodSpec, resize: PodResize | None = None, rules: ResizeRules = BY_CONTAINER
) -> Nanos:
    """Return a pod's exact requests for every resource, as charged by quotas."""
    return _pod_total(spec, _claims(spec, resize, rules), resize, rules, {})


def exact_limits(
    spec: PodSpec, resize: PodResize | None = None, rules: ResizeRules = BY_CONTAINER
) -> Nanos:
    """Return a pod's exact limits, including overhead for resources that have a limit.

    Source: `PodLimits` of `k8s.io/component-helpers/resource`. The pod's own limits in its status
    do not count, as for kube-apiserver's quotas.
    """
    limits = _greatest_sum(_limit_claims(spec, resize, rules), {})
    limits = limits | {n: nanos for n, nanos in _limited(spec.resources).items() if is_pod_level(n)}
    overhead = _exact(spec.overhead)
    return {name: nanos and nanos + overhead.get(name, 0) for name, nanos in limits.items()}


class _Claims(NamedTuple):
    """What the containers of a pod request or are limited to, seen in one way."""

    containers: Sequence[Nanos]
    inits: Sequence[tuple[Nanos, bool]]
    """The amounts of each init container, and whether it is a sidecar."""


_ClaimsInSum: TypeAlias = Sequence[_Claims | Nanos]
"""The views of a pod of which the one with the largest sum counts, resource by resource. A view
may also be a sum that the pod's status gives for all containers."""


def _view(spec: PodSpec, amounts: Callable[[Container, bool], Nanos]) -> _Claims:
    """Return the amounts of all containers.

    `amounts` also gets whether the container runs as long as the pod does.
    """
    inits = [(container, is_sidecar(container)) for container in spec.init_containers]
    return _Claims(
        [amounts(container, True) for container in spec.containers],  # noqa: FBT003
        [(amounts(container, sidecar), sidecar) for container, sidecar in inits],
    )


def _specified(
    spec: PodSpec, amounts: Callable[[ResourceRequirements | None], Nanos]
) -> _ClaimsInSum:
    return (_view(spec, lambda container, _: amounts(container.resources)),)


def _claims(spec: PodSpec, resize: PodResize | None, rules: ResizeRules) -> _ClaimsInSum:
    if resize is None:
        return _specified(spec, _requested)
    if rules.by_sum:
        return _claims_by_sum(spec, resize, rules)
    return (_greatest_view(spec, resize, _requested, _held_requests),)


def _limit_claims(spec: PodSpec, resize: PodResize | None, rules: ResizeRules) -> _ClaimsInSum:
    if resize is None:
        return _specified(spec, _limited)
    if not rules.by_sum:
        return (_greatest_view(spec, resize, _limited, _held_limits),)
    statuses = _statuses(resize)

    def actual(container: Container, _running: bool) -> Nanos:  # noqa: FBT001
        status = statuses.get(container.name)
        if status is not None and status.resources and status.resources.limits is not None:
            return _limited(status.resources)
        return {} if resize.infeasible else _limited(container.resources)

    actuals = _view(spec, actual)
    return (actuals,) if resize.infeasible else (*_specified(spec, _limited), actuals)


def _greatest_view(
    spec: PodSpec,
    resize: PodResize,
    asked: Callable[[ResourceRequirements | None], Nanos],
    held: Callable[[ContainerStatus], Nanos],
) -> _Claims:
    """Return the maximum of spec and status for each container that has `resources` in its status.

    If the resize is infeasible, it never happens, so that the spec is ignored. Init containers
    other than sidecars are not resized.
    """
    statuses = _statuses(resize)

    def greatest(container: Container, running: bool) -> Nanos:  # noqa: FBT001
        status = statuses.get(container.name) if running else None
        if status is None or status.resources is None:
            return asked(container.resources)
        if resize.infeasible:
            return held(status)
        return _greatest(asked(container.resources), held(status))

    return _view(spec, greatest)


def _claims_by_sum(spec: PodSpec, resize: PodResize, rules: ResizeRules) -> _ClaimsInSum:
    """Return what is specified, allocated, and in use; what is missing counts as specified.

    If the resize is infeasible, it never happens, so that the spec is ignored.
    """
    specified = () if resize.infeasible else _specified(spec, _requested)
    if rules.pod_level and resize.states_requests:
        return (*specified, _exact(resize.allocated_resources), _requested(resize.resources))
    statuses = _statuses(resize)

    def allocated(container: Container, _running: bool) -> Nanos:  # noqa: FBT001
        status = statuses.get(container.name)
        if status is not None and status.allocated_resources is not None:
            return _exact(status.allocated_resources)
        return {} if resize.infeasible else _requested(container.resources)

    def actual(container: Container, running: bool) -> Nanos:  # noqa: FBT001
        status = statuses.get(container.name)
        if status is not None and status.resources and status.resources.requests is not None:
            return _requested(status.resources)
        return allocated(container, running)

    return (*specified, _view(spec, allocated), _view(spec, actual))


def _requests(
    spec: PodSpec,
    claims: _ClaimsInSum,
    resize: PodResize | None,
    rules: ResizeRules,
    defaults_of: Callable[[Nanos], Nanos],
) -> PodRequests:
    total = _pod_total(spec, claims, resize, rules, {})
    nonzero = _pod_total(spec, claims, resize, rules, defaults_of(total))
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
        [_requested(c.resources) for c in containers],
        [(_requested(c.resources), is_sidecar(c)) for c in init_containers],
    )


def container_limits(
    containers: Iterable[Container], init_containers: Iterable[Container]
) -> Nanos:
    """Return the containers' total limits, without pod-level limits and overhead."""
    return _aggregate(
        [_limited(c.resources) for c in containers],
        [(_limited(c.resources), is_sidecar(c)) for c in init_containers],
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


def _statuses(resize: PodResize) -> dict[str, ContainerStatus]:
    both = (*resize.container_statuses, *resize.init_container_statuses)
    return {status.name: status for status in both}


def _held_requests(status: ContainerStatus) -> Nanos:
    return _greatest(_requested(status.resources), _exact(status.allocated_resources))


def _held_limits(status: ContainerStatus) -> Nanos:
    return _limited(status.resources)


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


def _greatest_sum(claims: _ClaimsInSum, defaults: Nanos) -> Nanos:
    """Return the largest of several sums, where `defaults` stand for what containers lack."""
    return reduce(_greatest, [_sum_of(view, defaults) for view in claims])


def _sum_of(view: _Claims | Nanos, defaults: Nanos) -> Nanos:
    if not isinstance(view, _Claims):
        return view
    if not defaults:
        return _aggregate(view.containers, view.inits)
    return _aggregate(
        [defaults | container for container in view.containers],
        [(defaults | container, sidecar) for container, sidecar in view.inits],
    )


def _pod_total(
    spec: PodSpec,
    claims: _ClaimsInSum,
    resize: PodResize | None,
    rules: ResizeRules,
    defaults: Nanos,
) -> Nanos:
    """Return the total: pod-level requests or the containers' sum, plus overhead."""
    total = _greatest_sum(claims, defaults) | _pod_level(spec, resize, rules)
    return _sum(total, _exact(spec.overhead))


def _pod_level(spec: PodSpec, resize: PodResize | None, rules: ResizeRules) -> Nanos:
    """Return the pod-level requests, raised by a resize in progress if the rules read that.

    A resource that an infeasible resize alone requests is zero, or with `by_sum` left to the
    containers.
    """
    specified = _specified_level(spec)
    if not specified or not rules.pod_level or resize is None or resize.resources is None:
        return specified
    held = _greatest(_requested(resize.resources), _exact(resize.allocated_resources))
    effective = held if resize.infeasible else _greatest(specified, held)
    if rules.by_sum:
        return {name: nanos for name, nanos in effective.items() if is_pod_level(name)}
    return {name: effective.get(name, 0) for name in specified}


def _specified_level(spec: PodSpec) -> Nanos:
    if spec.resources is None:
        return {}
    requests = _requested(spec.resources)
    return {name: nanos for name, nanos in requests.items() if is_pod_level(name)}


def _placed_defaults(spec: PodSpec, total: Nanos) -> Nanos:
    """Return a placed pod's scoring defaults for resources that its containers do not request."""
    if not _specified_level(spec):
        return _DEFAULTS
    return {name: nanos for name, nanos in _DEFAULTS.items() if name not in total}
