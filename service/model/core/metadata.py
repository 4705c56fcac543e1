"""The `metadata` of manifests, and conditions in `status`, between JSON and what scheduling reads.

Metadata is kept as encoded members (the inside of the JSON object) without what Moorage itself
keeps: `name`, `uid` and `creationTimestamp` are put in when a manifest is rendered,
`resourceVersion` when it is answered; `generation` is dropped, and `managedFields` where they are sent. What is left is
the same for all pods of one owner, and in memory once.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Protocol, cast

import msgspec

from service.model.core.primitives import OwnerReference
from service.model.core.strict_json import encode
from service.model.core.times import rfc3339
from service.model.core.validators import (
    entries_of,
    items_of,
)

Json = dict[str, object]

_NOT_KEPT = frozenset({"uid", "creationTimestamp", "resourceVersion", "generation"})
REQUIRED_NODE = "moorage.dev/required-node-name"
"""Annotation of a stored pending pod that is to be placed on this node only."""

RULES_PREFIX = "rules.moorage.dev/"
"""Begins the annotations that hold a pod's rules, one for each version."""


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of an object's metadata that are read.

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
    """They are left empty where they are plain (`service.model.core.fast_parse`): none that is read of a pod or a node is."""
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
    """Return the managing owner, the first marked as controller, as in kube-scheduler."""
    for reference in map(entries_of, items_of(references)):
        if reference.get("controller") is True:
            named = (reference.get(field) for field in ("apiVersion", "kind", "name", "uid"))
            return _owner(*(text if isinstance(text, str) else "" for text in named))
    return None


@lru_cache(maxsize=4_096)
def _owner(api_version: str, kind: str, name: str, uid: str) -> OwnerReference:
    """Return an owner reference that all objects of the owner share."""
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid=uid)


def _take_required_node(kept: Json) -> str | None:
    """Remove and return the annotation; it is put back when the manifest is rendered."""
    annotations = entries_of(kept.get("annotations"))
    if REQUIRED_NODE not in annotations:
        return None
    rest = {name: value for name, value in annotations.items() if name != REQUIRED_NODE}
    kept["annotations"] = rest
    if not rest:
        del kept["annotations"]
    return cast("str", annotations[REQUIRED_NODE])


def with_required_node(members: bytes, node_name: str) -> bytes:
    """Return metadata with the annotation for the only node a pending pod may be placed on."""
    fields = fields_of(members)
    annotations = entries_of(fields.get("annotations")) | {REQUIRED_NODE: node_name}
    return following(fields | {"annotations": annotations})


def in_utc(time: str) -> str:
    """Return an RFC 3339 time in UTC, which sorts as a string; a malformed one stays as it is."""
    if not time or time.endswith("Z"):
        return time
    try:
        return rfc3339(datetime.fromisoformat(time))
    except (ValueError, OverflowError):
        return time


def members_of(fields: Mapping[str, object]) -> bytes:
    """Encode fields as members: `b'"name":"a","labels":{}'`."""
    return encode(fields)[1:-1]


def following(fields: Mapping[str, object]) -> bytes:
    """Encode fields as members with a comma before each: `b',"namespace":"a","labels":{}'`."""
    return b"," + members_of(fields) if fields else b""


def fields_of(members: bytes) -> Json:
    """Decode members that `following` has encoded."""
    return cast("Json", msgspec.json.decode(b"{" + members[1:] + b"}"))


class Condition(Protocol):
    """A condition of an object of any kind."""

    @property
    def type(self) -> str:
        """What the condition is about."""

    @property
    def status(self) -> str:
        """Whether it holds: True, False, or Unknown."""


def with_condition(status: Json, condition: Condition) -> Json:
    """Return a status with the condition added, or in place of the one of its type.

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
    """Return a status without its condition of a type."""
    kept = [c for c in items_of(status.get("conditions")) if entries_of(c).get("type") != type_]
    return status | {"conditions": kept}


def may_have_rules(annotations: Iterable[str]) -> bool:
    """Return whether any annotation key is one of rules, perhaps of an unknown version."""
    return any(key.startswith(RULES_PREFIX) for key in annotations)
