"""Sort orders for lists of pods and nodes, other than by name.

As with filters, the sort value can be read from a manifest in memory or from its JSON.
"""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import NamedTuple, TypeAlias

import msgspec

from service.model.registry.manifests import NodeManifest, PodManifest
from service.model.selection.selectable_fields import (
    NODE_NAME,
    OBJECT_FIELDS,
    PENDING,
    PHASE,
    Subject,
)

OrderKey: TypeAlias = tuple[str | int, str, str]
"""A unique sort key: the value of the field, then namespace and name."""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    creation_timestamp: str | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str | None = None
    priority: int | None = None


class _Status(msgspec.Struct, frozen=True):
    phase: str | None = None


class _Ordered(msgspec.Struct, frozen=True):
    """The parts of an object's JSON that sort orders read."""

    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status | None = None


class _OrderField(NamedTuple):
    kinds: frozenset[str]
    of_manifest: Callable[[Subject], str | int]
    of_json: Callable[[_Ordered], str | int]


def _created(manifest: Subject) -> str:
    if isinstance(manifest, PodManifest):
        return manifest.pod.created
    return manifest.created if isinstance(manifest, NodeManifest) else ""


def _priority(manifest: Subject) -> int:
    return manifest.pod.priority if isinstance(manifest, PodManifest) else 0


_PRIORITY = "spec.priority"
_POD, _BOTH = frozenset({PodManifest.kind}), frozenset({PodManifest.kind, NodeManifest.kind})

ORDER_FIELDS: Mapping[str, _OrderField] = {
    "metadata.name": _OrderField(_BOTH, attrgetter("name"), attrgetter("metadata.name")),
    "metadata.creationTimestamp": _OrderField(
        _BOTH, _created, lambda o: o.metadata.creation_timestamp or ""
    ),
    NODE_NAME: _OrderField(
        _POD, OBJECT_FIELDS[NODE_NAME].of_manifest, lambda o: o.spec.node_name or ""
    ),
    _PRIORITY: _OrderField(_POD, _priority, lambda o: o.spec.priority or 0),
    PHASE: _OrderField(
        _POD, OBJECT_FIELDS[PHASE].of_manifest, lambda o: (o.status and o.status.phase) or PENDING
    ),
}
"""The fields by which lists can be sorted, with the kinds that have them."""

_decode = msgspec.json.Decoder(_Ordered).decode


class Order(msgspec.Struct, frozen=True):
    """A sort order by a field; objects with equal values are sorted by namespace and name.

    If `descending` is set, the whole order is reversed.
    """

    field: str
    descending: bool

    def key_of(self, manifest: Subject) -> OrderKey:
        """Return the sort key of a manifest in memory."""
        value = ORDER_FIELDS[self.field].of_manifest(manifest)
        return value, manifest.namespace, manifest.name

    def value_in(self, body: bytes) -> str | int:
        """Return the value to sort by, read from an object's JSON."""
        return ORDER_FIELDS[self.field].of_json(_decode(body))

    def may_be(self, value: str | int) -> bool:
        """Return whether a value has the field's type."""
        return isinstance(value, int) == (self.field == _PRIORITY)

    def follows(self, key: OrderKey, after: OrderKey) -> bool:
        """Return whether `key` comes after `after` in this order."""
        return key < after if self.descending else key > after
