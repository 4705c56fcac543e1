"""The order in which otherwise equal pods are removed: that of a Kubernetes ReplicaSet.

The source is `ActivePodsWithRanks` in its `pkg/controller`. Times of readiness are compared
exactly, where Kubernetes puts them on a logarithmic scale.
"""

from typing import Any

import msgspec

from service.model.registry.manifests import PodManifest
from service.scheduler.decide.node_lifecycle.taints import parse_time

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1}
_RUNNING = 2
_COST_MAX = 2**31 - 1

RemovalOrder = tuple[bool, int, bool, int, int, float, int, float, str, str]
"""The pod with the least value is removed first."""


def removal_order_of(manifest: PodManifest, beside: int) -> RemovalOrder:
    """Return a pod's sort key; `beside` is how many of the other pods are on its node.

    Pods without a node go first, then those that do not run or are not ready, that cost less by
    their annotation, that have more others on their node, that became ready later, that restarted
    more often, and the youngest.
    """
    status = manifest.status_fields()
    ready, since = _readiness(status)
    return (
        manifest.pod.node_name is not None,
        _PHASES.get(str(status.get("phase") or "Pending"), _RUNNING),
        ready,
        _deletion_cost(manifest),
        -beside,
        -since if ready else 0.0,
        -_restarts(status),
        -_seconds(manifest.pod.created),
        manifest.namespace,
        manifest.name,
    )


def is_ready(manifest: PodManifest) -> bool:
    """Return whether a pod's condition Ready is true."""
    return _readiness(manifest.status_fields())[0]


def _readiness(status: dict[str, Any]) -> tuple[bool, float]:
    for condition in _dicts(status.get("conditions")):
        if condition.get("type") == "Ready" and condition.get("status") == "True":
            return True, _seconds(condition.get("lastTransitionTime"))
    return False, 0.0


def _restarts(status: dict[str, Any]) -> int:
    counts = [
        status_of_container.get("restartCount")
        for status_of_container in _dicts(status.get("containerStatuses"))
    ]
    return max((restarts for restarts in counts if isinstance(restarts, int)), default=0)


def _deletion_cost(manifest: PodManifest) -> int:
    """Return the annotated cost; like Kubernetes, 0 unless it is a 32-bit integer."""
    if DELETION_COST.encode() not in manifest.metadata:
        return 0
    members = msgspec.json.decode(b"{" + manifest.metadata.removeprefix(b",") + b"}")
    text = str((members.get("annotations") or {}).get(DELETION_COST, "0"))
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or (digits != "0" and digits[0] == "0"):
        return 0
    cost = int(text)
    return cost if -_COST_MAX - 1 <= cost <= _COST_MAX else 0


def _seconds(time: object) -> float:
    """Return a time in seconds, or 0 if it is missing or not RFC 3339."""
    try:
        return parse_time(str(time)).timestamp() if time else 0.0
    except ValueError:
        return 0.0


def _dicts(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
