"""The removal order of otherwise equal pods, as in a Kubernetes ReplicaSet.

The source is `ActivePodsWithRanks` in its `pkg/controller`. Readiness times are compared exactly,
while Kubernetes uses a logarithmic scale.
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
"""A sort key; the pod with the lowest value is removed first."""


def removal_order_of(manifest: PodManifest, beside: int) -> RemovalOrder:
    """Return a pod's sort key; `beside` is the number of other pods on its node.

    Pods without a node come first, then pods that are not running or not ready, have a lower
    annotated cost, share their node with more pods, became ready later, restarted more often, or
    are younger.
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
    """Return whether a pod's Ready condition is true."""
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
    """Return the annotated cost, or 0 unless it is a 32-bit integer, as in Kubernetes."""
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
