"""Which fields of a stored pod may change."""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from service.model.core.errors import FieldError, InvalidManifest
from service.model.core.primitives import Quantities
from service.model.core.quantity import parse_quantity
from service.model.pods.annotated_rules import PATH, annotation_of
from service.model.pods.connections import stated_affinity
from service.model.pods.pod import (
    Container,
    DataAffinity,
    NodeAffinity,
    PodAffinity,
    PodSpec,
    ResourceRequirements,
    Toleration,
)
from service.model.pods.requests import host_ports
from service.model.registry.manifests import PodManifest

FIXED = "may not change in a placed pod"
NO_NODE_AFFINITY, NO_POD_AFFINITY = NodeAffinity(), PodAffinity()


def check_update(stored: PodManifest, updated: PodManifest) -> None:
    """Refuse changes to a placed pod's spec that would invalidate earlier decisions.

    Tolerations may be added and gates removed; container resources and fields that scheduling
    ignores may change. A pod on another node is an observed fact, so all its fields may differ.

    Raises:
        InvalidManifest: with the fields of `spec` that may not change in this way.
    """
    old_node = stored.pod.node_name
    if old_node is None or updated.pod.node_name != old_node:
        return
    group = stored.template.group or updated.template.group
    if group is not None and stored.template.group != updated.template.group:
        raise InvalidManifest([FieldError(group.field, FIXED)])
    old, new = stored.pod.spec, updated.pod.spec
    if old is new:
        return
    if annotation_of(old) != annotation_of(new):
        raise InvalidManifest([FieldError(PATH, FIXED)])
    errors = [
        FieldError(f"spec.{field}", _MESSAGES.get(field, FIXED))
        for field, read in _FIXED.items()
        if read(old) != read(new)
    ]
    if not set(map(_toleration, new.tolerations)).issuperset(map(_toleration, old.tolerations)):
        errors.append(FieldError("spec.tolerations", "may only be added to in a placed pod"))
    if not set(old.scheduling_gates).issuperset(new.scheduling_gates):
        errors.append(FieldError("spec.schedulingGates", "may only be removed in a placed pod"))
    if errors:
        raise InvalidManifest(errors)


def check_reserved_update(stored: PodManifest, updated: PodManifest) -> None:
    """Refuse changes to a pod with a reserved node if its binding would not take them into account.

    The binding of a reserved pod binds no volumes and does not check required nodes again.

    Raises:
        InvalidManifest: the update has such fields.
    """
    errors = []
    if updated.pod.claims or updated.pod.spec.volumes:
        errors.append(FieldError("spec.volumes", "may not be added while a node is reserved"))
    if updated.pod.required_node_name not in (None, stored.pod.required_node_name):
        errors.append(FieldError("spec.nodeName", "may not change while a node is reserved"))
    if errors:
        raise InvalidManifest(errors)


def _containers(containers: tuple[Container, ...]) -> object:
    """Return the fixed fields of containers. Requests may change, by in-place resize."""
    return [
        (container.name, container.restart_policy == "Always", _host_ports(container))
        for container in containers
    ]


def _host_ports(container: Container) -> object:
    return sorted(host_ports(PodSpec(containers=(container,))))


def _affinity(spec: PodSpec) -> object:
    """Return all lists of affinity rules, treating an absent list like an empty one."""
    affinity = stated_affinity(spec)
    nodes = affinity.node_affinity or NO_NODE_AFFINITY
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity)
    return (
        nodes.required_during_scheduling_required_during_execution,
        nodes.required_during_scheduling_ignored_during_execution,
        nodes.preferred_during_scheduling_ignored_during_execution or (),
        [_pod_affinity(side or NO_POD_AFFINITY) for side in sides],
    )


def _pod_affinity(side: PodAffinity) -> object:
    return (
        side.required_during_scheduling_required_during_execution or (),
        side.required_during_scheduling_ignored_during_execution or (),
        side.preferred_during_scheduling_ignored_during_execution or (),
        side.tolerance_seconds,
    )


def _resources(spec: PodSpec) -> object:
    own = spec.resources or ResourceRequirements()
    return _amounts(own.requests), _amounts(own.limits)


def _amounts(quantities: Quantities | None) -> object:
    """Return the amounts as numbers, since an API server may write 0.5 as 500m."""
    return {name: parse_quantity(text) for name, text in (quantities or {}).items()}


def _toleration(toleration: Toleration) -> Toleration:
    """Return a toleration without its duration, which may change, as in kube-apiserver."""
    operator = toleration.operator or "Equal"
    return replace(toleration, operator=operator, toleration_seconds=None)


_FIXED: Mapping[str, Callable[[PodSpec], object]] = {
    "affinity": _affinity,
    "connections": lambda spec: spec.connections,
    "containers": lambda spec: _containers(spec.containers),
    "dataAffinity": lambda spec: spec.data_affinity or DataAffinity(),
    "initContainers": lambda spec: _containers(spec.init_containers),
    "nodeSelector": lambda spec: spec.node_selector or {},
    "overhead": lambda spec: _amounts(spec.overhead),
    "priority": lambda spec: spec.priority or 0,
    "priorityClassName": lambda spec: spec.priority_class_name,
    "resourceClaims": lambda spec: spec.resource_claims,
    "resources": _resources,
    "schedulerName": lambda spec: spec.scheduler_name,
    "topologySpreadConstraints": lambda spec: spec.topology_spread_constraints,
}
"""The fields of a placed pod that scheduling reads, on which decisions may rest."""
_MESSAGES = dict.fromkeys(
    ("containers", "initContainers"),
    "may change in a placed pod only in resources and in what scheduling does not read",
)
