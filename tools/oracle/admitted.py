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
    return (
        all(map(_has_namespace, pods))
        and all(
            set(_map(resources, "limits")) <= set(_map(resources, "requests"))
            for pod in pods
            for resources in _resources_of(pod)
        )
        and all(
            "allocatable" in _map(node, "status") or not _map(node, "status").get("capacity")
            for node in case["nodes"]
        )
    )


def _has_namespace(item: Case) -> bool:
    return bool(_map(item, "metadata").get("namespace"))


def _resources_of(pod: Case) -> Iterator[Case]:
    spec = _map(pod, "spec")
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    yield from (_map(holder, "resources") for holder in (spec, *containers))


def _map(holder: Case, name: str) -> Case:
    value = holder.get(name)
    return value if isinstance(value, dict) else {}
