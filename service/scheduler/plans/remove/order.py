"""Which of several pods goes first if they are equal otherwise: Kubernetes' order of a ReplicaSet.

The source is `ActivePodsWithRanks` of its `pkg/controller`. Times of readiness are compared exactly,
where Kubernetes puts them on a logarithmic scale.
"""

from typing import Any

import msgspec

from service.model.manifests.manifest import PodManifest
from service.scheduler.decide.node_lifecycle.taints import parsed

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1}
_RUNNING = 2
_COST_MAX = 2**31 - 1

RemovalOrder = tuple[bool, int, bool, int, int, float, int, float, str, str]
"""The least one goes first."""


def removal_order_of(manifest: PodManifest, beside: int) -> RemovalOrder:
    """Return what pods are sorted by; `beside` is how many others of them are on the pod's node.

    Pods without a node go first, then those that do not run or are not ready, that cost less by
    their annotation, that have more others beside them, that were ready later, that were restarted
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
    """Whether a pod is reported as ready, by the condition of that name in its status."""
    return _readiness(manifest.status_fields())[0]


def _readiness(status: dict[str, Any]) -> tuple[bool, float]:
    for each in _dicts(status.get("conditions")):
        if each.get("type") == "Ready" and each.get("status") == "True":
            return True, _seconds(each.get("lastTransitionTime"))
    return False, 0.0


def _restarts(status: dict[str, Any]) -> int:
    counts = [each.get("restartCount") for each in _dicts(status.get("containerStatuses"))]
    return max((each for each in counts if isinstance(each, int)), default=0)


def _deletion_cost(manifest: PodManifest) -> int:
    """Return the annotated cost; like Kubernetes, 0 for what is no whole number of 32 bits."""
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
    """Return a time in seconds; 0 where it is not given, or not as RFC 3339 has it."""
    try:
        return parsed(str(time)).timestamp() if time else 0.0
    except ValueError:
        return 0.0


def _dicts(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
