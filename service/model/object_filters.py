"""Which objects a list, a watch or a deletion is about: their labels and some of their fields."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Protocol

import msgspec

from service.model.manifest import NodeManifest, PodManifest
from service.model.namespace_selectors import uses_namespace_selector
from service.model.objects import LabelSelector
from service.model.selectors import matches


class Subject(Protocol):
    """An object as filters see it; pods and nodes have more fields that they can name."""

    @property
    def namespace(self) -> str:
        """`metadata.namespace`; "" if its kind has none."""
        ...

    @property
    def name(self) -> str:
        """`metadata.name`."""
        ...

    @property
    def labels(self) -> Mapping[str, str]:
        """`metadata.labels`."""
        ...


NODE_NAME, PHASE = "spec.nodeName", "status.phase"
PENDING = "Pending"
"""The phase of a pod whose status was never sent, as in kube-apiserver."""
DEFAULT_SCHEDULER = "default-scheduler"


class FieldRequirement(msgspec.Struct, frozen=True):
    """A field has this value as text or, if it is not `wanted`, any other."""

    field: str
    value: str
    wanted: bool = True


class ObjectFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is asked of an object; one that asks nothing lets all objects pass."""

    labels: LabelSelector | None = None
    fields: tuple[FieldRequirement, ...] = ()
    uses_namespace_selector: bool = False

    @property
    def asks_nothing(self) -> bool:
        """Whether all objects pass."""
        return self == EVERYTHING

    def required(self, field: str) -> str | None:
        """The value that a field has to have; None if it may have several."""
        return next(
            (each.value for each in self.fields if each.wanted and each.field == field), None
        )

    def passes(self, manifest: Subject) -> bool:
        """Whether an object is one of those that are asked for."""
        if self.labels is not None and not matches(self.labels, manifest.labels):
            return False
        for each in self.fields:
            if (_FIELDS[each.field](manifest) == each.value) is not each.wanted:
                return False
        return not self.uses_namespace_selector or _uses_namespace_selector(manifest)


EVERYTHING = ObjectFilter()
"""The filter that all objects pass."""


class _Status(msgspec.Struct, frozen=True):
    phase: str | None = None


_decode_status = msgspec.json.Decoder(_Status | None).decode


@lru_cache(maxsize=4_096)
def _phase_in(status: bytes) -> str:
    """Return the phase of a pod with this encoded status."""
    decoded = _decode_status(status)
    return (decoded and decoded.phase) or PENDING


def _node_name(manifest: Subject) -> str:
    return (isinstance(manifest, PodManifest) and manifest.pod.node_name) or ""


def _scheduler_name(manifest: Subject) -> str:
    name = isinstance(manifest, PodManifest) and manifest.pod.spec.scheduler_name
    return name or DEFAULT_SCHEDULER


def phase_of(manifest: Subject) -> str:
    """Return the phase of a pod."""
    status = manifest.status if isinstance(manifest, PodManifest) else None
    return PENDING if status is None else _phase_in(status)


def _unschedulable(manifest: Subject) -> str:
    return "true" if isinstance(manifest, NodeManifest) and manifest.node.unschedulable else "false"


def _uses_namespace_selector(manifest: Subject) -> bool:
    return isinstance(manifest, PodManifest) and uses_namespace_selector(manifest.pod.spec.affinity)


_FIELDS: Mapping[str, Callable[[Subject], str]] = {
    "metadata.name": lambda manifest: manifest.name,
    "metadata.namespace": lambda manifest: manifest.namespace,
    NODE_NAME: _node_name,
    "spec.schedulerName": _scheduler_name,
    "spec.unschedulable": _unschedulable,
    PHASE: phase_of,
}
"""How each field that filters can name is read; events, which are no manifests, have others."""
