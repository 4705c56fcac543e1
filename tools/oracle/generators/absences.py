"""Fields that are absent, null, or empty: each is to be read as Kubernetes reads it."""

from collections.abc import Iterator, Sequence
from copy import copy

from tools.oracle.generators.draws import Draws, Manifest
from tools.oracle.generators.resources import is_strict

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ABSENT = "absent"
"""Stands for a field that is taken away."""
MAP: Sequence[object] = (ABSENT, None, {})
LIST: Sequence[object] = (ABSENT, None, [])
TEXT: Sequence[object] = (ABSENT, None, "")
NULL: Sequence[object] = (ABSENT, None)

_SELECTOR = (("matchLabels", MAP), ("matchExpressions", LIST))
_TERM = (
    ("labelSelector", MAP),
    ("namespaceSelector", MAP),
    ("namespaces", LIST),
    *((f"namespaceSelector.{field}", empties) for field, empties in _SELECTOR),
)
_AFFINITY = "spec.affinity"
_NODE_TERMS = f"{_AFFINITY}.nodeAffinity.{REQUIRED}.nodeSelectorTerms.*"
_PREFERENCES = f"{_AFFINITY}.nodeAffinity.{PREFERRED}.*.preference"
POD_FIELDS: Sequence[tuple[str, Sequence[object]]] = (
    ("metadata.labels", MAP),
    ("spec.nodeSelector", MAP),
    (_AFFINITY, MAP),
    (f"{_AFFINITY}.nodeAffinity", MAP),
    (f"{_AFFINITY}.nodeAffinity.{REQUIRED}", NULL),
    (f"{_AFFINITY}.nodeAffinity.{PREFERRED}", LIST),
    *((f"{place}.matchExpressions", LIST) for place in (_NODE_TERMS, _PREFERENCES)),
    *((f"{place}.matchFields", LIST) for place in (_NODE_TERMS, _PREFERENCES)),
    *(
        (f"{_AFFINITY}.{kind}{rest}", empties)
        for kind in ("podAffinity", "podAntiAffinity")
        for rest, empties in (
            ("", MAP),
            (f".{REQUIRED}", LIST),
            (f".{PREFERRED}", LIST),
            *((f".{REQUIRED}.*.{field}", chosen) for field, chosen in _TERM),
            *((f".{PREFERRED}.*.podAffinityTerm.{field}", chosen) for field, chosen in _TERM),
        )
    ),
    ("spec.tolerations", LIST),
    ("spec.tolerations.*.value", TEXT),
    ("spec.tolerations.*.effect", TEXT),
    ("spec.topologySpreadConstraints", LIST),
    ("spec.topologySpreadConstraints.*.labelSelector", MAP),
    ("spec.topologySpreadConstraints.*.minDomains", NULL),
    ("spec.topologySpreadConstraints.*.nodeAffinityPolicy", NULL),
    ("spec.topologySpreadConstraints.*.nodeTaintsPolicy", NULL),
    ("spec.topologySpreadConstraints.*.matchLabelKeys", LIST),
    ("spec.initContainers", LIST),
    ("spec.overhead", MAP),
    ("spec.volumes", LIST),
    ("spec.resources", MAP),
    ("spec.resources.requests", MAP),
    ("spec.resourceClaims", LIST),
    ("spec.containers.*.resources", MAP),
    ("spec.containers.*.resources.requests", MAP),
    ("spec.containers.*.resources.limits", MAP),
    ("spec.containers.*.ports", LIST),
    ("spec.containers.*.ports.*.hostIP", TEXT),
    ("spec.containers.*.image", TEXT),
    ("status", MAP),
    ("metadata.ownerReferences", LIST),
)
NODE_FIELDS: Sequence[tuple[str, Sequence[object]]] = (
    ("metadata.labels", MAP),
    ("spec", MAP),
    ("spec.taints", LIST),
    ("spec.taints.*.value", TEXT),
    ("spec.unschedulable", (ABSENT, None, False)),
    ("status.images", LIST),
    ("status.images.*.names", LIST),
    ("status.allocatable", MAP),
    ("status.declaredFeatures", LIST),
    ("status", MAP),
)
NAMESPACE_FIELDS: Sequence[tuple[str, Sequence[object]]] = (("metadata.labels", MAP),)
_KEYS = ("matchLabelKeys", "mismatchLabelKeys")


def empty_some(
    draws: Draws, manifest: Manifest, fields: Sequence[tuple[str, Sequence[object]]], share: float
) -> None:
    """Take away, null, or empty this share of the fields, where what holds them exists."""
    for path, empties in fields:
        *way, name = path.split(".")
        for holder in list(_at(manifest, way)):
            known = holder.get(name)
            if draws.happens(share if known else share / 3):
                _replace(holder, name, draws.choice(empties))


def _at(value: object, way: Sequence[str]) -> Iterator[Manifest]:
    """Yield the maps at a path, of which `*` is each item of a list."""
    if not way:
        if isinstance(value, dict):
            yield value
        return
    if way[0] == "*":
        for item in value if isinstance(value, list) else ():
            yield from _at(item, way[1:])
    elif isinstance(value, dict):
        yield from _at(value.get(way[0]), way[1:])


def _replace(holder: Manifest, name: str, empty: object) -> None:
    """Replace a field, with what is only valid beside it or would give it a default.

    A selector into which label keys are merged stays.
    """
    if name == "labelSelector" and any(holder.get(key) for key in _KEYS):
        return
    if name == "requests":
        holder.pop("limits", None)
    if name == "limits" and any(is_strict(resource) for resource in holder.get("requests") or {}):
        return
    if name == "allocatable":
        holder.pop("capacity", None)
    if name == "effect":
        holder.pop("tolerationSeconds", None)
    if empty == ABSENT:
        holder.pop(name, None)
    else:
        holder[name] = copy(empty)
