"""The status of pods, as far as scheduling reads it or Moorage writes it."""

from typing import cast

import msgspec

from service.model.core.metadata import Json, in_utc
from service.model.core.resources import zeros_for_nulls
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
_STATUS_LISTS = ("containerStatuses", "initContainerStatuses")
_RESIZED = ("resources", "allocatedResources")
"""What a status says of an in-place resize, of a container and of the pod as a whole."""
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
    """Return the state of an in-place resize, or None if the status says nothing of resources.

    Whether a field is there can decide, even if it is empty; null is as absent.
    """
    lists = {field: items_of(status.get(field)) for field in _STATUS_LISTS}
    reported = any(
        entries_of(container).get(field) is not None
        for containers in lists.values()
        for container in containers
        for field in _RESIZED
    )
    infeasible = _pending_reason(status) == "Infeasible"
    whole = {field: status[field] for field in _RESIZED if status.get(field) is not None}
    if not (reported or whole or infeasible):
        return None
    read = {field: [_with_zeros(entry) for entry in entries] for field, entries in lists.items()}
    present = cast("Json", without_nulls(read | _with_zeros(whole)))
    return msgspec.convert(present | {"infeasible": infeasible}, PodResize)


def _with_zeros(status: object) -> Json:
    """Return the status of a container or pod with zeros in place of quantities that are null."""
    read = dict(entries_of(status))
    if "allocatedResources" in read:
        read["allocatedResources"] = zeros_for_nulls(read["allocatedResources"])
    if isinstance(read.get("resources"), dict):
        stated = entries_of(read["resources"])
        read["resources"] = {name: zeros_for_nulls(amounts) for name, amounts in stated.items()}
    return read


def _pending_reason(status: Json) -> object:
    """Return the reason of the first PodResizePending condition, or None."""
    for condition in map(entries_of, items_of(status.get("conditions"))):
        if condition.get("type") == "PodResizePending":
            return condition.get("reason")
    return None


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
