"""The fields that lists, watches, and deletions can select by.

Each field can be read in two ways: from a manifest in memory, and from an object's JSON.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple, Protocol

import msgspec

from service.model.pods.pod import DEFAULT_SCHEDULER, Affinity
from service.model.registry.kinds import DECLARED_KINDS
from service.model.registry.manifests import STORED_KINDS, NodeManifest, PodManifest


class Subject(Protocol):
    """An object as filters see it; pods and nodes have additional selectable fields."""

    @property
    def namespace(self) -> str:
        """`metadata.namespace`, or "" for cluster-scoped kinds."""
        ...

    @property
    def name(self) -> str:
        """`metadata.name`."""
        ...

    @property
    def labels(self) -> Mapping[str, str]:
        """`metadata.labels`."""
        ...


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str | None = None
    scheduler_name: str | None = None
    unschedulable: bool | None = None
    affinity: Affinity | None = None


class _Status(msgspec.Struct, frozen=True):
    phase: str | None = None


class Listed(msgspec.Struct, frozen=True):
    """The parts of an object's JSON that filters read."""

    metadata: _Metadata = _Metadata()
    spec: _Spec | None = None
    status: _Status | None = None


class ObjectField(NamedTuple):
    """A selectable field: the kinds that have it, and functions that read it as text."""

    kinds: frozenset[str]
    of_manifest: Callable[[Subject], str]
    of_json: Callable[[Listed], str]
    may_change: bool = True
    """Whether the field's value can change during an object's lifetime."""


NODE_NAME, PHASE = "spec.nodeName", "status.phase"
TERMINATING = "metadata.deletionTimestamp"
"""Not selectable, but recorded in `fields_before` as "false" when a pod starts terminating."""
PENDING = "Pending"
"""The phase of a pod that has no reported status, as in kube-apiserver."""

_decode_status = msgspec.json.Decoder(_Status | None).decode


@lru_cache(maxsize=4_096)
def _phase_in(status: bytes) -> str:
    """Return a pod's phase, read from its encoded status."""
    decoded = _decode_status(status)
    return (decoded and decoded.phase) or PENDING


def phase_of(manifest: Subject) -> str:
    """Return a pod's phase."""
    status = manifest.status if isinstance(manifest, PodManifest) else None
    return PENDING if status is None else _phase_in(status)


def _node_name(manifest: Subject) -> str:
    return (isinstance(manifest, PodManifest) and manifest.pod.node_name) or ""


def _scheduler_name(manifest: Subject) -> str:
    name = isinstance(manifest, PodManifest) and manifest.pod.spec.scheduler_name
    return name or DEFAULT_SCHEDULER


def _unschedulable(manifest: Subject) -> str:
    return "true" if isinstance(manifest, NodeManifest) and manifest.node.unschedulable else "false"


def _terminating(manifest: Subject) -> str:
    return "true" if isinstance(manifest, PodManifest) and manifest.pod.terminating else "false"


_POD, _NODE = frozenset({PodManifest.kind}), frozenset({NodeManifest.kind})
_NAMESPACED = frozenset(
    {
        *("Pod", "ResourceQuota", "PodGroup"),
        *(spec.kind for spec in DECLARED_KINDS.values() if spec.namespaced),
    }
)
_ALL = frozenset(STORED_KINDS)

OBJECT_FIELDS: Mapping[str, ObjectField] = {
    "metadata.name": ObjectField(
        _ALL, attrgetter("name"), attrgetter("metadata.name"), may_change=False
    ),
    "metadata.namespace": ObjectField(
        _NAMESPACED, attrgetter("namespace"), attrgetter("metadata.namespace"), may_change=False
    ),
    NODE_NAME: ObjectField(_POD, _node_name, lambda o: (o.spec and o.spec.node_name) or ""),
    "spec.schedulerName": ObjectField(
        _POD,
        _scheduler_name,
        lambda o: (o.spec and o.spec.scheduler_name) or DEFAULT_SCHEDULER,
    ),
    "spec.unschedulable": ObjectField(
        _NODE, _unschedulable, lambda o: "true" if o.spec and o.spec.unschedulable else "false"
    ),
    PHASE: ObjectField(_POD, phase_of, lambda o: (o.status and o.status.phase) or PENDING),
}
"""All selectable fields of stored objects; events have others as well."""

WAS_PENDING = msgspec.json.encode({NODE_NAME: ""})[1:-1]
"""The part of `fields_before` that marks the binding of a pending pod."""

_Reader = tuple[str, Callable[[Subject], str]]


def _changing(kind: str) -> tuple[_Reader, ...]:
    return tuple(
        (name, field.of_manifest)
        for name, field in OBJECT_FIELDS.items()
        if field.may_change and kind in field.kinds
    )


_CHANGING: Mapping[str, tuple[_Reader, ...]] = {
    PodManifest.kind: (*_changing(PodManifest.kind), (TERMINATING, _terminating)),
    NodeManifest.kind: _changing(NodeManifest.kind),
}


def fields_before(kind: str, before: Subject, after: Subject) -> bytes | None:
    """Return the previous values of the selectable fields that a change altered, as a JSON object.

    The result is empty if no field was altered, and None if the kind has no mutable fields.
    """
    changing = _CHANGING.get(kind)
    if changing is None:
        return None
    altered = {name: was for name, read in changing if (was := read(before)) != read(after)}
    return msgspec.json.encode(altered) if altered else b""
