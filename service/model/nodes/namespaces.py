"""Manifests of namespaces."""

from typing import ClassVar, cast

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from service.model.core.manifest import (
    ObjectManifest,
    checked_draft,
    head_of,
)
from service.model.core.metadata import Json, Metadata, members_of, read_metadata
from service.model.core.validators import Limits
from service.model.nodes.node import Namespace
from service.model.nodes.node_rules import NAMESPACE_RULES


class NamespaceManifest(ObjectManifest, frozen=True, kw_only=True):
    """The manifest of a namespace."""

    kind: ClassVar[str] = "Namespace"
    head: ClassVar[bytes] = head_of("Namespace")
    namespace_object: Namespace

    @property
    @override
    def subject(self) -> Namespace:
        """The parts of the namespace that scheduling reads."""
        return self.namespace_object

    @override
    def named(self, name: str) -> "NamespaceManifest":
        """Return a copy of the namespace with another name."""
        return replace(self, namespace_object=replace(self.namespace_object, name=name))

    def with_identity(self, uid: str, created: str) -> "NamespaceManifest":
        """Return a copy of the namespace with a uid and a creation time (RFC 3339, UTC)."""
        renewed = replace(self.namespace_object, uid=uid)
        return replace(self, namespace_object=renewed, created=created)


def parse_namespace(
    raw: bytes | object, *, name: str | None = None, limits: Limits | None = None
) -> NamespaceManifest:
    """Parse a namespace's manifest, which must have the given name or none.

    Raises `MalformedJSON`, or `InvalidManifest` with all errors.
    """
    draft = checked_draft(NAMESPACE_RULES, raw, limits, name)
    return _namespace(draft.read_metadata(), draft.other_fields())


def load_namespace(body: bytes) -> NamespaceManifest:
    """Load a namespace from a body that Moorage rendered."""
    return _namespace(*_loaded(body))


def _loaded(body: bytes) -> tuple[Metadata, Json]:
    fields = cast("Json", msgspec.json.decode(body))
    metadata = read_metadata(cast("Json", fields.pop("metadata")), "")
    return metadata, {n: v for n, v in fields.items() if n not in ("apiVersion", "kind")}


def _namespace(metadata: Metadata, rest: Json) -> NamespaceManifest:
    namespace = Namespace(name=metadata.name, labels=metadata.labels, uid=metadata.uid)
    return NamespaceManifest(
        namespace_object=namespace,
        metadata=metadata.members,
        rest=members_of(rest),
        created=metadata.created,
        resource_version=metadata.resource_version,
    )
