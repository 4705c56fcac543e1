"""Relaxations: the required rules and requests that can be removed from a pod, by manifest path."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from service.engine.plugins import (
    inter_pod_affinity as relations,
    node_affinity as selection,
    node_declared_features as features,
    node_ports as ports,
    pod_topology_spread as spreading,
)
from service.model.pods.declared_features import FeatureNeed, feature_needs, without_need
from service.model.pods.pod import (
    Affinity,
    Container,
    PodAffinity,
    PodSpec,
    ResourceRequirements,
    Toleration,
)

T = TypeVar("T")

Edit = Callable[[PodSpec], PodSpec]
"""Returns a changed copy of a spec."""

_EXECUTIONS = {
    "requiredDuringSchedulingRequiredDuringExecution": (
        "required_during_scheduling_required_during_execution"
    ),
    "requiredDuringSchedulingIgnoredDuringExecution": (
        "required_during_scheduling_ignored_during_execution"
    ),
}


class Relaxation(NamedTuple):
    """One required rule of a pod, and the edit that removes it."""

    plugin: str
    """The filter that judges the rule."""
    path: str
    without: Edit
    label: tuple[str, str] | None = None
    """The node label that satisfies the rule, or None if no single label does."""


def relaxations(spec: PodSpec) -> Iterator[Relaxation]:
    """Yield the required rules that can be removed from a pod."""
    for key, value in (spec.node_selector or {}).items():
        yield Relaxation(
            selection.NAME, f"spec.nodeSelector[{key}]", _without_selector(key), (key, value)
        )
    yield from _affinities(spec)
    for index, constraint in enumerate(spec.topology_spread_constraints):
        if constraint.when_unsatisfiable != "ScheduleAnyway":
            path = f"spec.topologySpreadConstraints[{index}]"
            yield Relaxation(spreading.NAME, path, _soft_constraint_edit(index))
    for list_name, attribute in (
        ("containers", "containers"),
        ("initContainers", "init_containers"),
    ):
        for number, container in enumerate(getattr(spec, attribute)):
            for index, port in enumerate(container.ports):
                if port.host_port:
                    path = f"spec.{list_name}[{number}].ports[{index}].hostPort"
                    yield Relaxation(ports.NAME, path, _without_port(attribute, number, index))
    for need in feature_needs(spec):
        yield Relaxation(features.NAME, need.path, _without_need(need))


def _without_selector(key: str) -> Edit:
    def without(spec: PodSpec) -> PodSpec:
        kept = {name: value for name, value in (spec.node_selector or {}).items() if name != key}
        return replace(spec, node_selector=kept or None)

    return without


def _affinities(spec: PodSpec) -> Iterator[Relaxation]:
    """Yield the required terms of all three kinds of affinity.

    Removing a term leaves the paths of the others unchanged.
    """
    affinity = spec.affinity
    if affinity is None:
        return
    for execution, field in _EXECUTIONS.items():
        if affinity.node_affinity and getattr(affinity.node_affinity, field) is not None:
            path = f"spec.affinity.nodeAffinity.{execution}"
            yield Relaxation(selection.NAME, path, _without_node_affinity(field))
    for name, kind in (("podAffinity", "pod_affinity"), ("podAntiAffinity", "pod_anti_affinity")):
        terms: PodAffinity | None = getattr(affinity, kind)
        for execution, field in _EXECUTIONS.items() if terms else ():
            for index, term in enumerate(getattr(terms, field) or ()):
                path = f"spec.affinity.{name}.{execution}[{index}]"
                yield Relaxation(relations.NAME, path, _without_term(kind, field, term))


def _without_node_affinity(field: str) -> Edit:
    def without(spec: PodSpec) -> PodSpec:
        affinity = spec.affinity or Affinity()
        assert affinity.node_affinity is not None
        rest = replace(affinity.node_affinity, **{field: None})
        return replace(spec, affinity=replace(affinity, node_affinity=rest))

    return without


def _without_term(kind: str, field: str, term: object) -> Edit:
    def without(spec: PodSpec) -> PodSpec:
        affinity = spec.affinity or Affinity()
        terms = getattr(affinity, kind)
        # Compare by identity, because other terms may already be removed.
        kept = tuple(other for other in getattr(terms, field) or () if other is not term)
        return replace(
            spec, affinity=replace(affinity, **{kind: replace(terms, **{field: kept or None})})
        )

    return without


def _soft_constraint_edit(index: int) -> Edit:
    def soften(spec: PodSpec) -> PodSpec:
        constraints = spec.topology_spread_constraints
        soft = replace(constraints[index], when_unsatisfiable="ScheduleAnyway", min_domains=None)
        return replace(spec, topology_spread_constraints=_with(constraints, index, soft))

    return soften


def _without_port(attribute: str, number: int, index: int) -> Edit:
    def without(spec: PodSpec) -> PodSpec:
        containers: tuple[Container, ...] = getattr(spec, attribute)
        container = containers[number]
        port = replace(container.ports[index], host_port=0)
        changed = replace(container, ports=_with(container.ports, index, port))
        return replace(spec, **{attribute: _with(containers, number, changed)})

    return without


def _without_need(need: FeatureNeed) -> Edit:
    return lambda spec: without_need(spec, need)


def _with(items: tuple[T, ...], index: int, item: T) -> tuple[T, ...]:
    return (*items[:index], item, *items[index + 1 :])


def toleration_edit(toleration: Toleration) -> Edit:
    """Return an edit that adds a toleration."""
    return lambda spec: replace(spec, tolerations=(*spec.tolerations, toleration))


def request_edit(resource: str, text: str | None) -> Edit:
    """Return an edit that sets a pod's request of a resource, or removes it if `text` is None.

    The first container then requests the whole amount.
    """

    def set_request(spec: PodSpec) -> PodSpec:
        containers = [_with_request(container, resource) for container in spec.containers]
        overhead = spec.overhead
        if overhead is not None:
            overhead = {name: amount for name, amount in overhead.items() if name != resource}
        if text is not None and containers:
            containers[0] = _with_request(containers[0], resource, text)
        return replace(
            spec,
            containers=tuple(containers),
            init_containers=tuple(
                _with_request(container, resource) for container in spec.init_containers
            ),
            overhead=overhead,
            resources=_amounts(spec.resources, resource, None),
        )

    return set_request


def _with_request(container: Container, resource: str, text: str | None = None) -> Container:
    return replace(container, resources=_amounts(container.resources, resource, text))


def _amounts(
    given: ResourceRequirements | None, resource: str, text: str | None
) -> ResourceRequirements | None:
    if given is None and text is None:
        return None
    requests = dict((given or ResourceRequirements()).requests or {})
    requests.pop(resource, None)
    if text is not None:
        requests[resource] = text
    return replace(given or ResourceRequirements(), requests=requests)


def apply_edits(spec: PodSpec, edits: Sequence[Edit]) -> PodSpec:
    """Apply edits to a spec, in order."""
    for edit in edits:
        spec = edit(spec)
    return spec
