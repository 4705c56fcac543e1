"""Manifests of nodes.

The nodes of a pool differ in name and labels. What they have in common, everything after the
metadata, is looked up by its bytes where the object is plain (`service.model.core.fast_parse`).
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
"""The condition that says whether a node can run pods."""

T = TypeVar("T")


class NodeManifest(ObjectManifest, frozen=True, kw_only=True):
    """A node."""

    kind: ClassVar[str] = "Node"
    head: ClassVar[bytes] = head_of("Node")
    node: Node

    @property
    @override
    def subject(self) -> Node:
        """The node as scheduling reads it."""
        return self.node

    @override
    def named(self, name: str) -> "NodeManifest":
        """Return the object under another name."""
        return replace(self, node=replace(self.node, name=name))

    def with_identity(self, uid: str, created: str) -> "NodeManifest":
        """Return the node with this uid and time of creation (RFC 3339, UTC)."""
        return replace(self, node=replace(self.node, uid=uid), created=created)

    def with_taints(self, taints: tuple[Taint, ...]) -> "NodeManifest":
        """Return the node with these taints in place of all that it has."""
        fields = self._fields()
        spec = {n: value for n, value in entries_of(fields.get("spec")).items() if n != "taints"}
        added = {"taints": list(map(msgspec.to_builtins, taints))} if taints else {}
        return self._with_fields(fields | {"spec": spec | added})

    def with_cordon(self, *, unschedulable: bool) -> "NodeManifest":
        """Return the node as one that takes no new pods, or takes them again."""
        fields = self._fields()
        spec = {n: e for n, e in entries_of(fields.get("spec")).items() if n != "unschedulable"}
        added = {"unschedulable": True} if unschedulable else {}
        return self._with_fields(fields | {"spec": spec | added})

    def with_condition(self, condition: NodeCondition) -> "NodeManifest":
        """Return the node with a condition set in its status."""
        fields = self._fields()
        status = with_condition(entries_of(fields.get("status")), condition)
        return self._with_fields(fields | {"status": status})

    def without_condition(self, type_: str) -> "NodeManifest":
        """Return the node without a condition."""
        fields = self._fields()
        status = without_condition(entries_of(fields.get("status")), type_)
        return self._with_fields(fields | {"status": status})

    def readiness(self) -> NodeCondition | None:
        """Return the condition Ready, or None."""
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
    """Parse a node's manifest; `name` is the one it has to have, which it takes if it has none.

    Raises `MalformedJSON`, or `InvalidManifest` with all that is wrong.
    """
    draft = checked_draft(NODE_RULES, raw, limits, name)
    return _manifest(draft.read_metadata(), _shape(draft.other_fields()))


def parse_plain_node(
    plain: Plain, raw: bytes, shapes: NodeShapes, limits: Limits | None = None
) -> NodeManifest:
    """Parse a node that looks plain; raises as `parse_node`."""
    metadata, shape = plain_metadata(plain.metadata, ""), shapes.find(plain.rest)
    if metadata is not None and shape is not None:
        return _manifest(metadata, shape)
    read = parse_node(raw, limits=limits)
    if metadata is not None:  # then it is complete, and so is the rest
        shapes.add(plain.rest, _shape_of(read))
    return read


def load_node(body: bytes, shapes: NodeShapes) -> NodeManifest:
    """Read a node that was rendered here."""
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
    """Return type and status of each other condition that may ask for a taint."""
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
    """Convert a valid list, with nulls for absent fields, to values."""
    return msgspec.convert(without_nulls(items_of(items)), to)
