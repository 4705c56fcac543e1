"""JSON manifests to objects and back.

A manifest is parsed once, at the door: everything wrong in it is reported together, what scheduling
reads becomes frozen values, and the rest is kept as bytes. Rendering joins those bytes; a spec is
never encoded again. `parse_…` is for manifests from anyone, `load_…` for those rendered here.

A rendered body starts with `{"apiVersion":"v1","kind":"…","metadata":{` and has no
`resourceVersion`, which `with_resource_version` adds for an answer. In a pod's body `nodeName`
comes first in `spec`, so that the bytes after it are those of the template.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar, TypeAlias, cast

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from service.model.errors import FieldError, InvalidManifest
from service.model.manifest_base import (
    DEFAULT_NAMESPACE,
    Draft,
    ObjectManifest,
    decode_object,
    head_of,
    open_draft,
    with_resource_version,
)
from service.model.metadata import Json, Metadata, PodCondition, members_of, read_metadata
from service.model.node_manifest import NodeManifest, load_node, parse_node, parse_plain_node
from service.model.objects import Namespace
from service.model.plain import cut_any
from service.model.pod_group_manifest import PodGroupManifest, load_pod_group, parse_pod_group
from service.model.pod_manifest import PodManifest, load_pod, parse_plain_pod, parse_pod
from service.model.quota_manifest import (
    PriorityClassManifest,
    QuotaManifest,
    load_quota,
    parse_priority_class,
    parse_quota,
)
from service.model.strict_json import decode_items, decode_members, decode_strict
from service.model.templates import PodTemplate, TemplateCache
from service.model.validation.kinds import KINDS
from service.model.validation.rules import Limits, unknown

__all__ = [
    "DEFAULT_NAMESPACE",
    "AnyManifest",
    "Applicable",
    "Limits",
    "NamespaceManifest",
    "NodeManifest",
    "ObjectManifest",
    "PodCondition",
    "PodGroupManifest",
    "PodManifest",
    "PodTemplate",
    "PriorityClassManifest",
    "QuotaManifest",
    "TemplateCache",
    "decode_items",
    "decode_members",
    "decode_strict",
    "load_any",
    "load_namespace",
    "load_node",
    "load_pod",
    "load_pod_group",
    "load_quota",
    "parse_any",
    "parse_namespace",
    "parse_node",
    "parse_pod",
    "parse_pod_group",
    "parse_quota",
    "with_resource_version",
]


class NamespaceManifest(ObjectManifest, frozen=True, kw_only=True):
    """A namespace."""

    kind: ClassVar[str] = "Namespace"
    head: ClassVar[bytes] = head_of("Namespace")
    namespace_object: Namespace

    @property
    @override
    def subject(self) -> Namespace:
        """The namespace as scheduling reads it."""
        return self.namespace_object

    def with_identity(self, uid: str, created: str) -> "NamespaceManifest":
        """Return the namespace with this uid and time of creation (RFC 3339, UTC)."""
        renewed = replace(self.namespace_object, uid=uid)
        return replace(self, namespace_object=renewed, created=created)


AnyManifest: TypeAlias = (
    NodeManifest | NamespaceManifest | PodManifest | QuotaManifest | PodGroupManifest
)
"""Every kind of object that clients can store."""
Applicable: TypeAlias = AnyManifest | PriorityClassManifest
"""Every kind of object that `apply` takes."""


def parse_namespace(
    raw: bytes | object, *, name: str | None = None, limits: Limits | None = None
) -> NamespaceManifest:
    """Parse a namespace's manifest; `name` is the one it has to have, which it takes if it has none.

    Raises `MalformedJSON`, or `InvalidManifest` with all that is wrong.
    """
    draft = _checked("Namespace", raw, limits, name)
    return _namespace(draft.read_metadata(), draft.other_fields())


def load_namespace(body: bytes) -> NamespaceManifest:
    """Read a namespace that was rendered here."""
    return _namespace(*_loaded(body))


def parse_any(raw: bytes | object, templates: TemplateCache) -> Applicable:
    """Parse a manifest of whatever kind it says it is.

    Raises `MalformedJSON`, or `InvalidManifest`, naming `kind` if that is missing or unknown.
    """
    plain = cut_any(raw) if isinstance(raw, bytes) else None
    if plain is not None and plain.kind == "Pod":
        return parse_plain_pod(plain, templates) or parse_pod(raw, templates)
    if plain is not None and plain.kind == "Node" and isinstance(raw, bytes):
        return parse_plain_node(plain, raw, templates)
    kind = _kind_of(raw)
    parse = _PARSERS.get(kind) if isinstance(kind, str) else None
    if parse is None:
        raise InvalidManifest([_unknown_kind(kind)])
    return parse(raw, templates)


def load_any(kind: str, body: bytes, templates: TemplateCache) -> AnyManifest:
    """Read an object that was rendered here; KeyError for a kind that has no manifest."""
    return _LOADERS[kind](body, templates)


_PARSERS: Mapping[str, Callable[[bytes | object, TemplateCache], Applicable]] = {
    "Node": lambda raw, templates: parse_node(raw, limits=templates.limits),
    "Namespace": lambda raw, templates: parse_namespace(raw, limits=templates.limits),
    "Pod": parse_pod,
    "ResourceQuota": lambda raw, templates: parse_quota(raw, limits=templates.limits),
    "PodGroup": lambda raw, templates: parse_pod_group(raw, limits=templates.limits),
    "PriorityClass": lambda raw, templates: parse_priority_class(raw, templates.limits),
}
_LOADERS: Mapping[str, Callable[[bytes, TemplateCache], AnyManifest]] = {
    "Node": lambda body, templates: load_node(body, templates.node_shapes),
    "Namespace": lambda body, _: load_namespace(body),
    "Pod": load_pod,
    "ResourceQuota": lambda body, _: load_quota(body),
    "PodGroup": lambda body, _: load_pod_group(body),
}


def _kind_of(raw: bytes | object) -> object:
    """Return the `kind` that an object states; if it states it twice, parsing refuses it later."""
    if not isinstance(raw, bytes):
        return decode_object(raw).get("kind")
    kind = decode_members(raw).get("kind")
    return None if kind is None else decode_strict(kind)


def _unknown_kind(kind: object) -> FieldError:
    if kind is None:
        return FieldError("kind", "is required")
    known = ", ".join(_PARSERS)
    if not isinstance(kind, str):
        return FieldError("kind", f"must be one of {known}")
    hint = unknown(kind, _PARSERS, {}).removeprefix("unknown field")
    return FieldError("kind", f"must be one of {known}{hint}", kind[:64])


def _checked(kind: str, raw: bytes | object, limits: Limits | None, name: str | None) -> Draft:
    draft = open_draft(kind, raw, limits, name)
    KINDS[kind].spec(draft.fields.get("spec"), "spec", draft.problems)
    draft.problems.raise_any()
    return draft


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
