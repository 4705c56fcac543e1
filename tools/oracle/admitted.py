"""What kube-apiserver fills in: an object that lacks it is none that a scheduler sees."""

from collections.abc import Iterator
from typing import Any

Case = dict[str, Any]

NAMESPACED = (
    "persistentVolumeClaims",
    "csiStorageCapacities",
    "podDisruptionBudgets",
    "services",
    "replicationControllers",
    "replicaSets",
    "statefulSets",
    "resourceClaims",
)
"""Lists of a case whose objects are in namespaces."""


def is_admitted(case: Case) -> bool:
    """Return whether all objects of a case have the defaults that decisions depend on."""
    pods = [case["pod"], *case["pods"]]
    others = [item for name in NAMESPACED for item in case.get(name, ())]
    return (
        all(map(_has_namespace, [*pods, *others]))
        and all(_has_requests(pod) and _is_summed_up(pod) for pod in pods)
        and all(map(_has_room, case["nodes"]))
    )


def _has_requests(pod: Case) -> bool:
    """Return whether all that is limited is also requested."""
    return all(
        set(_map(resources, "limits")) <= set(_map(resources, "requests"))
        for resources in _resources_of(pod)
    )


def _has_room(node: Case) -> bool:
    """Return whether a node with a capacity also says how much of it is allocatable."""
    status = _map(node, "status")
    return "allocatable" in status or not status.get("capacity")


def _is_summed_up(pod: Case) -> bool:
    """Return whether a pod with limits as a whole also has the requests that they imply."""
    whole = _map(_map(pod, "spec"), "resources")
    asked = {name for resources in _resources_of(pod) for name in _map(resources, "requests")}
    return not whole.get("limits") or asked & {"cpu", "memory"} <= set(_map(whole, "requests"))


def _has_namespace(item: Case) -> bool:
    return bool(_map(item, "metadata").get("namespace"))


def _resources_of(pod: Case) -> Iterator[Case]:
    spec = _map(pod, "spec")
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    yield from (_map(holder, "resources") for holder in (spec, *containers))


def _map(holder: Case, name: str) -> Case:
    value = holder.get(name)
    return value if isinstance(value, dict) else {}
