"""The `metadata` and `status` of manifests, between JSON and what scheduling reads of them.

Metadata is kept as encoded members (the inside of the JSON object) without what Moorage itself
keeps: `name`, `uid` and `creationTimestamp` are put in when a manifest is rendered,
`resourceVersion` when it is answered; `generation` is dropped, and `managedFields` where they are sent. What is left is
the same for all pods of one owner, and in memory once.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Protocol, cast

import msgspec

from service.model.json_and_patches.strict_json import encode
from service.model.objects.pods_and_nodes import OwnerReference, PodResize
from service.model.times import rfc3339
from service.model.validation.combinators import entries_of, items_of, without_nulls

Json = dict[str, object]

_NOT_KEPT = frozenset({"uid", "creationTimestamp", "resourceVersion", "generation"})
FINISHED = frozenset({"Succeeded", "Failed"})
REQUIRED_NODE = "moorage.dev/required-node-name"
"""Annotation of a stored pending pod that is to be placed on this node only."""
CLAIM_STATUSES = "resourceClaimStatuses"
"""The field of a pod's status that names the claims that were made for it."""
DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTED_REASON = "PreemptionByScheduler"
DELETED_NODE_REASON = "DeletionByPodGC"
"""Why a pod has ended whose node was deleted. The words are those of Kubernetes."""
OWN_CONDITIONS = frozenset({"PodScheduled", DISRUPTION_TARGET})
"""Conditions that Moorage writes; a client's update that lacks them does not remove them."""


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """What is read of an object's metadata.

    `members` is all that is kept, encoded: each member with a comma before it.
    """

    name: str
    namespace: str
    labels: Mapping[str, str]
    members: bytes
    uid: str = ""
    created: str = ""
    terminating: bool = False
    resource_version: str = ""
    required_node_name: str | None = None
    annotations: Mapping[str, str] = {}
    """They are left empty where they are plain (`service.model.manifests.unparsed_objects`): none that is read of a pod or a node is."""
    controller: OwnerReference | None = None


def read_metadata(sent: Json, namespace: str) -> Metadata:
    """Read valid metadata; `namespace` is used if it has none ("" for cluster-scoped kinds)."""
    kept = {name: value for name, value in sent.items() if name not in _NOT_KEPT}
    if namespace:
        kept["namespace"] = kept.get("namespace") or namespace
    else:
        kept.pop("namespace", None)
    required_node_name = _take_required_node(kept)
    name = cast("str", kept.pop("name"))
    return Metadata(
        name=name,
        namespace=cast("str", kept.get("namespace") or ""),
        labels=cast("dict[str, str]", kept.get("labels") or {}),
        members=following(kept),
        uid=cast("str", sent.get("uid") or ""),
        created=in_utc(cast("str", sent.get("creationTimestamp") or "")),
        terminating=sent.get("deletionTimestamp") is not None,
        resource_version=cast("str", sent.get("resourceVersion") or ""),
        required_node_name=required_node_name,
        annotations=cast("dict[str, str]", kept.get("annotations") or {}),
        controller=_controller_of(sent.get("ownerReferences")),
    )


def _controller_of(references: object) -> OwnerReference | None:
    """The owner that manages an object: the first that says so, as in kube-scheduler."""
    for each in map(entries_of, items_of(references)):
        if each.get("controller") is True:
            named = (each.get(field) for field in ("apiVersion", "kind", "name", "uid"))
            return _owner(*(text if isinstance(text, str) else "" for text in named))
    return None


@lru_cache(maxsize=4_096)
def _owner(api_version: str, kind: str, name: str, uid: str) -> OwnerReference:
    """An owner, which all that it owns have in common."""
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid=uid)


def _take_required_node(kept: Json) -> str | None:
    """Take the annotation out; it is put back when the manifest is rendered."""
    annotations = entries_of(kept.get("annotations"))
    if REQUIRED_NODE not in annotations:
        return None
    rest = {name: value for name, value in annotations.items() if name != REQUIRED_NODE}
    kept["annotations"] = rest
    if not rest:
        del kept["annotations"]
    return cast("str", annotations[REQUIRED_NODE])


def with_required_node(members: bytes, node_name: str) -> bytes:
    """Kept metadata with the annotation for the node that a pending pod is to be placed on."""
    fields = fields_of(members)
    annotations = entries_of(fields.get("annotations")) | {REQUIRED_NODE: node_name}
    return following(fields | {"annotations": annotations})


def in_utc(time: str) -> str:
    """An RFC 3339 time in UTC, so that it sorts as a string; a wrong one stays as it is."""
    if not time or time.endswith("Z"):
        return time
    try:
        return rfc3339(datetime.fromisoformat(time))
    except (ValueError, OverflowError):
        return time


def members_of(fields: Mapping[str, object]) -> bytes:
    """Encoded members: `b'"name":"a","labels":{}'`."""
    return encode(fields)[1:-1]


def following(fields: Mapping[str, object]) -> bytes:
    """Encoded members, each with a comma before it: `b',"namespace":"a","labels":{}'`."""
    return b"," + members_of(fields) if fields else b""


def fields_of(members: bytes) -> Json:
    """Decode members that `following` has encoded."""
    return cast("Json", msgspec.json.decode(b"{" + members[1:] + b"}"))


def is_finished(status: Json) -> bool:
    """Whether a pod has run to its end and holds nothing any more."""
    return status.get("phase") in FINISHED


def started_at(status: Json) -> str:
    """Since when the pod runs, RFC 3339 in UTC; "" where nobody has reported it."""
    return in_utc(cast("str", status.get("startTime") or ""))


def nominated_node(status: Json) -> str | None:
    """The node on which preemption makes room for the pod; None where there is none."""
    return cast("str | None", status.get("nominatedNodeName")) or None


def is_preempted(status: Json) -> bool:
    """Whether the pod has to go because preemption needs its place."""
    return _disruption_reason(status) == PREEMPTED_REASON


def is_ended_with_its_node(status: Json) -> bool:
    """Whether Moorage has said that the pod ended because its node was deleted."""
    return status.get("phase") == "Failed" and _disruption_reason(status) == DELETED_NODE_REASON


def _disruption_reason(status: Json) -> object:
    """Return why the pod has to go; None if it need not. The first such condition counts."""
    for condition in map(entries_of, items_of(status.get("conditions"))):
        if condition.get("type") == DISRUPTION_TARGET:
            return condition.get("reason") if condition.get("status") == "True" else None
    return None


def device_claims_of(status: Json) -> tuple[tuple[str, str | None], ...]:
    """Which claim to devices was made for each that the pod's spec has a template for."""
    return tuple(
        [
            (cast("str", each["name"]), cast("str | None", each.get("resourceClaimName")))
            for each in map(entries_of, items_of(status.get(CLAIM_STATUSES)))
        ]
    )


def resize_of(status: Json) -> PodResize | None:
    """Read the state of an in-place resize; None if no container reports its actual resources."""
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


class Condition(Protocol):
    """What the conditions of all kinds have in common."""

    @property
    def type(self) -> str:
        """What the condition is about."""

    @property
    def status(self) -> str:
        """Whether it is so: True, False or Unknown."""


def with_condition(status: Json, condition: Condition) -> Json:
    """A status with the condition added, or put in place of the one of its type.

    The time of transition stays what it was where the condition's status does not change.
    """
    conditions = [entries_of(c) for c in items_of(status.get("conditions"))]
    new = cast("Json", msgspec.to_builtins(condition))
    for index, old in enumerate(conditions):
        if old.get("type") == condition.type:
            if old.get("status") == condition.status and old.get("lastTransitionTime"):
                new["lastTransitionTime"] = old["lastTransitionTime"]
            conditions[index] = new
            return status | {"conditions": conditions}
    return status | {"conditions": [*conditions, new]}


def without_condition(status: Json, type_: str) -> Json:
    """A status without its condition of a type."""
    kept = [c for c in items_of(status.get("conditions")) if entries_of(c).get("type") != type_]
    return status | {"conditions": kept}


def keeping_what_was_written(status: Json, old_status: Json) -> Json:
    """A client's status with what Moorage wrote into the stored one: conditions, and claims it made."""
    kept = _keeping_conditions(status, old_status)
    made = old_status.get(CLAIM_STATUSES)
    return kept | {CLAIM_STATUSES: made} if made and CLAIM_STATUSES not in kept else kept


def _keeping_conditions(status: Json, old_status: Json) -> Json:
    conditions = items_of(status.get("conditions"))
    present = {entries_of(c).get("type") for c in conditions}
    kept = [
        c
        for c in map(entries_of, items_of(old_status.get("conditions")))
        if c.get("type") in OWN_CONDITIONS - present
    ]
    return status | {"conditions": [*conditions, *kept]} if kept else status
