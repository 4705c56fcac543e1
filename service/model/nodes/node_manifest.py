"""Manifests of nodes.

Nodes of one pool usually differ only in names and labels. For plain objects
(`service.model.core.fast_parse`), everything after the metadata is looked up by its bytes instead
of being parsed.
"""

from typing import ClassVar, TypeVar, cast

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from service.model.core.fast_parse import Plain, cut, loaded_metadata, plain_metadata
from service.model.core.manifest import ENVELOPE, ObjectManifest, checked_draft, head_of
from service.model.core.metadata import (
    Json,
    Metadata,
    members_of,
    read_metadata,
    with_condition,
    without_condition,
)
from service.model.core.primitives import ContainerImage, Taint
from service.model.core.validators import Limits, entries_of, items_of, without_nulls
from service.model.nodes.condition_taints import TAINT_IF_TRUE
from service.model.nodes.node import Node, NodeCondition
from service.model.nodes.node_rules import NODE_RULES
from service.model.nodes.shapes import NodeShape, NodeShapes

READY = "Ready"
"""The condition that reports whether a node can run pods."""

T = TypeVar("T")


class NodeManifest(ObjectManifest, frozen=True, kw_only=True):
    """The manifest of a node."""

    kind: ClassVar[str] = "Node"
    head: ClassVar[bytes] = head_of("Node")
    node: Node

    @property
    @override
    def subject(self) -> Node:
        """The parts of the node that scheduling reads."""
        return self.node

    @override
    def named(self, name: str) -> "NodeManifest":
        """Return a copy of the node with another name."""
        return replace(self, node=replace(self.node, name=name))

    def with_identity(self, uid: str, created: str) -> "NodeManifest":
        """Return a copy of the node with a uid and a creation time (RFC 3339, UTC)."""
        return replace(self, node=replace(self.node, uid=uid), created=created)

    def with_taints(self, taints: tuple[Taint, ...]) -> "NodeManifest":
        """Return a copy of the node with all of its taints replaced."""
        fields = self._fields()
        spec = {n: value for n, value in entries_of(fields.get("spec")).items() if n != "taints"}
        added = {"taints": list(map(msgspec.to_builtins, taints))} if taints else {}
        return self._with_fields(fields | {"spec": spec | added})

    def with_cordon(self, *, unschedulable: bool) -> "NodeManifest":
        """Return a copy of the node that is cordoned or uncordoned."""
        fields = self._fields()
        spec = {n: e for n, e in entries_of(fields.get("spec")).items() if n != "unschedulable"}
        added = {"unschedulable": True} if unschedulable else {}
        return self._with_fields(fields | {"spec": spec | added})

    def with_condition(self, condition: NodeCondition) -> "NodeManifest":
        """Return a copy of the node with a condition set in its status."""
        fields = self._fields()
        status = with_condition(entries_of(fields.get("status")), condition)
        return self._with_fields(fields | {"status": status})

    def without_condition(self, type_: str) -> "NodeManifest":
        """Return a copy of the node without its condition of this type."""
        fields = self._fields()
        status = without_condition(entries_of(fields.get("status")), type_)
        return self._with_fields(fields | {"status": status})

    def readiness(self) -> NodeCondition | None:
        """The condition Ready, or None."""
        condition = _ready(entries_of(self._fields().get("status")))
        texts = {name: value for name, value in condition.items() if isinstance(value, str)}
        return msgspec.convert(texts, NodeCondition) if "status" in texts else None

    def _fields(self) -> Json:
        return cast("Json", msgspec.json.decode(b"{" + self.rest + b"}"))

    def _with_fields(self, fields: Json) -> "NodeManifest":
        shape = _shape(fields)
        node = replace(
            self.node,
            taints=shape.taints,
            ready=shape.ready,
            conditions=shape.conditions,
            unschedulable=shape.unschedulable,
        )
        return replace(self, node=node, rest=shape.rest)


def parse_node(
    raw: bytes | object, *, name: str | None = None, limits: Limits | None = None
) -> NodeManifest:
    """Parse a node's manifest, which must have the given name or none.

    Raises `MalformedJSON`, or `InvalidManifest` with all errors.
    """
    draft = checked_draft(NODE_RULES, raw, limits, name)
    return _manifest(draft.read_metadata(), _shape(draft.other_fields()))


def parse_plain_node(
    plain: Plain, raw: bytes, shapes: NodeShapes, limits: Limits | None = None
) -> NodeManifest:
    """Parse a node that appears to be plain; raises the errors of `parse_node`."""
    metadata, shape = plain_metadata(plain.metadata, ""), shapes.find(plain.rest)
    if metadata is not None and shape is not None:
        return _manifest(metadata, shape)
    read = parse_node(raw, limits=limits)
    if metadata is not None:  # then the metadata is complete, so the rest is everything else
        shapes.add(plain.rest, _shape_of(read))
    return read


def load_node(body: bytes, shapes: NodeShapes) -> NodeManifest:
    """Load a node from a body that Moorage rendered."""
    plain = cut(body)
    metadata = loaded_metadata(plain.metadata, "") if plain is not None else None
    if plain is None or metadata is None:
        fields = cast("Json", msgspec.json.decode(body))
        rest = {n: v for n, v in fields.items() if n not in ENVELOPE}
        return _manifest(read_metadata(cast("Json", fields["metadata"]), ""), _shape(rest))
    shape = shapes.find(plain.rest)
    if shape is None:
        shape = _shape(cast("Json", msgspec.json.decode(b"{" + plain.rest + b"}")))
        shapes.add(plain.rest, shape)
    return _manifest(metadata, shape)


def _shape(rest: Json) -> NodeShape:
    spec, status = entries_of(rest.get("spec")), entries_of(rest.get("status"))
    allocatable = status.get("allocatable")
    if allocatable is None:
        allocatable = status.get("capacity")
    return NodeShape(
        rest=members_of(rest),
        allocatable=cast("dict[str, str | int | float]", entries_of(allocatable)),
        taints=_convert(spec.get("taints"), tuple[Taint, ...]),
        unschedulable=spec.get("unschedulable") is True,
        images=_convert(status.get("images"), tuple[ContainerImage, ...]),
        ready=ready if isinstance(ready := _ready(status).get("status"), str) else "",
        conditions=_others(status),
    )


def _ready(status: Json) -> Json:
    """Return the condition Ready, or an empty object."""
    for condition in map(entries_of, items_of(status.get("conditions"))):
        if condition.get("type") == READY:
            return condition
    return {}


def _others(status: Json) -> tuple[tuple[str, str], ...]:
    """Return the type and status of each other condition that may require a taint."""
    statuses: dict[str, str] = {}
    for condition in map(entries_of, items_of(status.get("conditions"))):
        kind, state = condition.get("type"), condition.get("status")
        if isinstance(kind, str) and kind in TAINT_IF_TRUE and isinstance(state, str):
            statuses.setdefault(kind, state)
    return tuple(statuses.items())


def _shape_of(manifest: NodeManifest) -> NodeShape:
    node = manifest.node
    return NodeShape(
        rest=manifest.rest,
        allocatable=node.allocatable,
        taints=node.taints,
        unschedulable=node.unschedulable,
        images=node.images,
        ready=node.ready,
        conditions=node.conditions,
    )


def _manifest(metadata: Metadata, shape: NodeShape) -> NodeManifest:
    node = Node(
        name=metadata.name,
        labels=metadata.labels,
        allocatable=shape.allocatable,
        taints=shape.taints,
        unschedulable=shape.unschedulable,
        images=shape.images,
        uid=metadata.uid,
        ready=shape.ready,
        conditions=shape.conditions,
    )
    return NodeManifest(
        node=node,
        metadata=metadata.members,
        rest=shape.rest,
        created=metadata.created,
        resource_version=metadata.resource_version,
    )


def _convert(items: object, to: type[tuple[T, ...]]) -> tuple[T, ...]:
    """Convert a valid list to a tuple of typed values, treating nulls as absent fields."""
    return msgspec.convert(without_nulls(items_of(items)), to)
