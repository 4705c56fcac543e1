"""The taints that a node's conditions require.

Keys and statuses are those of `nodeConditionToTaintKeyStatusMap` in Kubernetes'
`pkg/controller/nodelifecycle`, v1.35. An absent condition requires nothing, and taints with its key
are then left to their owners. `node.kubernetes.io/unschedulable` is not included, because the
NodeUnschedulable filter reads the field itself and applies the same tolerations.
"""

from msgspec.structs import replace

from service.model.core.primitives import Taint, TaintEffect
from service.model.nodes.node import Node

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
TAINT_OF = {"False": NOT_READY, "Unknown": UNREACHABLE}
"""The taint key for each unhealthy status of the condition Ready."""
READINESS_KEYS = frozenset(TAINT_OF.values())
TAINT_IF_TRUE = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
"""The taint key for each other condition, which is unhealthy if True."""

CONDITION_KEYS = READINESS_KEYS.union(TAINT_IF_TRUE.values())


def asked_keys(node: Node) -> frozenset[str]:
    """Return the keys of the taints that a node's conditions require."""
    keys = READINESS_KEYS if node.ready in TAINT_OF else frozenset[str]()
    true = {TAINT_IF_TRUE[kind] for kind, status in node.conditions if status == "True"}
    return keys | true if true else keys


def with_condition_taints(node: Node, now: str) -> tuple[Taint, ...]:
    """Return a node's taints with those that its conditions require and without those they exclude.

    No NoExecute taint is added, because its timing depends on all nodes of the zone. An existing
    one is updated to match the condition Ready.
    """
    taints = with_readiness(node.taints, node.ready, now)
    for kind, status in node.conditions:
        taints = _with_one(taints, TAINT_IF_TRUE[kind], now, asked=status == "True")
    return taints


def with_readiness(
    taints: tuple[Taint, ...], ready: str, now: str, *, evicting: bool = False
) -> tuple[Taint, ...]:
    """Return taints as the condition Ready requires; `evicting` allows adding NoExecute."""
    own = [taint for taint in taints if taint.key in READINESS_KEYS]
    if ready == "" or (ready not in TAINT_OF and not own):
        return taints
    others = [taint for taint in taints if taint.key not in READINESS_KEYS]
    if ready not in TAINT_OF:
        return tuple(others)
    kept = [taint for taint in own if taint.effect not in ("NoSchedule", "NoExecute")]
    kept += _one(own, TAINT_OF[ready], "NoSchedule", now, may_add=True)
    kept += _one(own, TAINT_OF[ready], "NoExecute", now, may_add=evicting)
    return taints if set(kept) == set(own) else (*others, *kept)


def without_condition_taints(node: Node) -> tuple[Taint, ...]:
    """Return a node's taints without those that its conditions require."""
    asked = asked_keys(node)
    return tuple(taint for taint in node.taints if taint.key not in asked)


def _one(
    own: list[Taint], key: str, effect: TaintEffect, now: str, *, may_add: bool
) -> list[Taint]:
    """Return the single taint with this effect; a replaced key keeps the previous taint's time."""
    before = [taint for taint in own if taint.effect == effect]
    right = [taint for taint in before if taint.key == key]
    if right:
        return right[:1]
    if before:
        return [replace(before[0], key=key)]
    return [Taint(key=key, effect=effect, time_added=now)] if may_add else []


def _with_one(taints: tuple[Taint, ...], key: str, now: str, *, asked: bool) -> tuple[Taint, ...]:
    wrong = [taint for taint in taints if taint.key == key and taint.effect == "NoSchedule"]
    if bool(wrong) == asked:
        return taints
    if asked:
        return (*taints, Taint(key=key, effect="NoSchedule", time_added=now))
    return tuple(taint for taint in taints if taint not in wrong)
