"""The status of pods, as far as scheduling reads it or Moorage writes it."""

from typing import cast

import msgspec

from service.model.core.metadata import Json, in_utc
from service.model.core.validators import entries_of, items_of, without_nulls
from service.model.pods.pod import PodResize

FINISHED = frozenset({"Succeeded", "Failed"})
CLAIM_STATUSES = "resourceClaimStatuses"
"""The field of a pod's status that lists the claims created for it."""
PENDING = "Pending"
READY = "Ready"
"""The condition that reports whether a pod serves; Kubernetes' disruption budgets count it."""
DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTED_REASON = "PreemptionByScheduler"
DELETED_NODE_REASON = "DeletionByPodGC"
"""The reason, in Kubernetes' terms, for the failure of a pod whose node was deleted."""
OWN_CONDITIONS = frozenset({"PodScheduled", DISRUPTION_TARGET})
"""The conditions that Moorage writes; an update by a client cannot remove them."""


def is_finished(status: Json) -> bool:
    """Return whether a pod has finished and no longer holds resources."""
    return status.get("phase") in FINISHED


def is_unready(status: Json) -> bool:
    """Return whether the pod reports that it is not ready; a pod that reports nothing is not unready."""
    for condition in map(entries_of, items_of(status.get("conditions"))):
        if condition.get("type") == READY:
            return condition.get("status") != "True"
    return False


def is_starting(status: Json) -> bool:
    """Return whether the pod reports that it is not ready and not all its containers have started."""
    return status.get("phase") == PENDING and is_unready(status)


def started_at(status: Json) -> str:
    """Return the pod's start time, RFC 3339 in UTC, or "" until it is reported."""
    return in_utc(cast("str", status.get("startTime") or ""))


def nominated_node(status: Json) -> str | None:
    """Return the node on which preemption is making room for the pod, or None."""
    return cast("str | None", status.get("nominatedNodeName")) or None


def is_preempted(status: Json) -> bool:
    """Return whether the pod is being evicted by preemption."""
    return _disruption_reason(status) == PREEMPTED_REASON


def is_ended_with_its_node(status: Json) -> bool:
    """Return whether Moorage marked the pod as Failed because its node was deleted."""
    return status.get("phase") == "Failed" and _disruption_reason(status) == DELETED_NODE_REASON


def _disruption_reason(status: Json) -> object:
    """Return the reason of the first DisruptionTarget condition, or None if it is not True."""
    for condition in map(entries_of, items_of(status.get("conditions"))):
        if condition.get("type") == DISRUPTION_TARGET:
            return condition.get("reason") if condition.get("status") == "True" else None
    return None


def device_claims_of(status: Json) -> tuple[tuple[str, str | None], ...]:
    """Return the claims created from the claim templates in the pod's spec."""
    return tuple(
        [
            (cast("str", entry["name"]), cast("str | None", entry.get("resourceClaimName")))
            for entry in map(entries_of, items_of(status.get(CLAIM_STATUSES)))
        ]
    )


def resize_of(status: Json) -> PodResize | None:
    """Return the state of an in-place resize, or None if no container reports one."""
    fields = ("containerStatuses", "initContainerStatuses")
    lists = {field: items_of(status.get(field)) for field in fields}
    if not any(entries_of(s).get("resources") for both in lists.values() for s in both):
        return None
    infeasible = any(
        (c.get("type"), c.get("reason")) == ("PodResizePending", "Infeasible")
        for c in map(entries_of, items_of(status.get("conditions")))
    )
    return msgspec.convert(
        cast("Json", without_nulls(lists)) | {"infeasible": infeasible}, PodResize
    )


def preserve_server_fields(status: Json, old_status: Json, *, patched: bool = False) -> Json:
    """Return a client's status with the fields that Moorage wrote to the stored status.

    A status that was `patched` lacks claims only if the patch removed them.
    """
    kept = _keeping_conditions(status, old_status)
    made = old_status.get(CLAIM_STATUSES)
    if not made or patched or CLAIM_STATUSES in kept:
        return kept
    return kept | {CLAIM_STATUSES: made}


def _keeping_conditions(status: Json, old_status: Json) -> Json:
    conditions = items_of(status.get("conditions"))
    present = {entries_of(c).get("type") for c in conditions}
    kept = [
        c
        for c in map(entries_of, items_of(old_status.get("conditions")))
        if c.get("type") in OWN_CONDITIONS - present
    ]
    return status | {"conditions": [*conditions, *kept]} if kept else status
