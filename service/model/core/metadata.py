"""The `metadata` and status conditions of manifests: conversion from and to JSON.

Metadata is kept as encoded members (the inside of the JSON object) without the fields that Moorage
manages: `name`, `uid`, and `creationTimestamp` are added when a manifest is rendered, and
`resourceVersion` when it is returned to a client; `generation` and `managedFields` sent by clients
are dropped. The remaining members are the same for all pods of one owner, and are held in memory
once.
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
"""The annotation that names the only node on which a stored pending pod may be placed."""

RULES_PREFIX = "rules.moorage.dev/"
"""The prefix of annotations that hold a pod's rules; there is one annotation per version."""


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of an object's metadata that Moorage reads.

    `members` holds all stored members in encoded form, each preceded by a comma.
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
    """The annotations; left empty for plain metadata (`service.model.core.fast_parse`), where
    Moorage reads none of them."""
    controller: OwnerReference | None = None


def read_metadata(sent: Json, namespace: str) -> Metadata:
    """Read valid metadata; `namespace` is the default namespace ("" for cluster-scoped kinds)."""
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
    """Return the first owner marked as controller, as kube-scheduler does, or None."""
    for reference in map(entries_of, items_of(references)):
        if reference.get("controller") is True:
            named = (reference.get(field) for field in ("apiVersion", "kind", "name", "uid"))
            return _owner(*(text if isinstance(text, str) else "" for text in named))
    return None


@lru_cache(maxsize=4_096)
def _owner(api_version: str, kind: str, name: str, uid: str) -> OwnerReference:
    """Return an owner reference, cached so that all objects of the owner share it."""
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid=uid)


def _take_required_node(kept: Json) -> str | None:
    """Remove the required-node annotation and return its value or None; rendering restores it."""
    annotations = entries_of(kept.get("annotations"))
    if REQUIRED_NODE not in annotations:
        return None
    rest = {name: value for name, value in annotations.items() if name != REQUIRED_NODE}
    kept["annotations"] = rest
    if not rest:
        del kept["annotations"]
    return cast("str", annotations[REQUIRED_NODE])


def with_required_node(members: bytes, node_name: str) -> bytes:
    """Return metadata with an annotation for the only node on which to place a pending pod."""
    fields = fields_of(members)
    annotations = entries_of(fields.get("annotations")) | {REQUIRED_NODE: node_name}
    return following(fields | {"annotations": annotations})


def in_utc(time: str) -> str:
    """Convert an RFC 3339 time to UTC, so that it sorts as a string; keep a malformed one."""
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
    """Encode fields as members, each preceded by a comma: `b',"namespace":"a","labels":{}'`."""
    return b"," + members_of(fields) if fields else b""


def fields_of(members: bytes) -> Json:
    """Decode members that `following` encoded."""
    return cast("Json", msgspec.json.decode(b"{" + members[1:] + b"}"))


class Condition(Protocol):
    """A condition of an object of any kind."""

    @property
    def type(self) -> str:
        """The condition type, such as `Ready`."""

    @property
    def status(self) -> str:
        """The condition's status: True, False, or Unknown."""


def with_condition(status: Json, condition: Condition) -> Json:
    """Return a status with a condition added, replacing any condition of the same type.

    The transition time is kept if the condition's status does not change.
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
    """Return a status without its condition of this type."""
    kept = [c for c in items_of(status.get("conditions")) if entries_of(c).get("type") != type_]
    return status | {"conditions": kept}


def may_have_rules(annotations: Iterable[str]) -> bool:
    """Return whether any annotation key holds rules, possibly of an unknown version."""
    return any(key.startswith(RULES_PREFIX) for key in annotations)
