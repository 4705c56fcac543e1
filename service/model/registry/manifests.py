"""Conversion between JSON manifests and typed objects.

A manifest is parsed once, on arrival: all errors are reported together, the parts that scheduling
reads become frozen values, and the rest is kept as bytes. Rendering joins those bytes; a spec is
never encoded again. `parse_…` functions accept untrusted manifests; `load_…` functions only accept
bodies that Moorage rendered.

A rendered body starts with `{"apiVersion":"v1","kind":"…","metadata":{` and has no
`resourceVersion`, which `with_resource_version` adds for responses. In a pod's body, `nodeName`
comes first in `spec`, so that the bytes after it are those of the template.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias, TypeVar

from service.model.core.declared_manifest import DeclaredManifest, load_object, parse_object
from service.model.core.errors import FieldError, InvalidManifest
from service.model.core.fast_parse import cut_any
from service.model.core.manifest import (
    DEFAULT_NAMESPACE,
    ObjectManifest,
    decode_object,
    with_resource_version,
)
from service.model.core.strict_json import decode_items, decode_members, decode_strict
from service.model.core.validators import Limits, unknown
from service.model.nodes.namespaces import NamespaceManifest, load_namespace, parse_namespace
from service.model.nodes.node_manifest import (
    NodeManifest,
    load_node,
    parse_node,
    parse_plain_node,
)
from service.model.pods.pod_manifest import PodManifest, load_pod, parse_plain_pod, parse_pod
from service.model.pods.scheduling_groups import COMPOSITE_KIND, NO_COMPOSITES
from service.model.pods.template_cache import PodTemplate, TemplateCache
from service.model.policies.quota_manifest import (
    PriorityClassManifest,
    QuotaManifest,
    load_quota,
    parse_priority_class,
    parse_quota,
)
from service.model.registry.kinds import DECLARED_KINDS
from service.model.workloads.group_manifest import (
    PodGroupManifest,
    load_pod_group,
    parse_pod_group,
)

__all__ = [
    "DEFAULT_NAMESPACE",
    "STORED_KINDS",
    "AnyManifest",
    "Applicable",
    "DeclaredManifest",
    "Limits",
    "NamespaceManifest",
    "NodeManifest",
    "ObjectManifest",
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
    "parse_any_declared",
    "parse_as",
    "parse_declared",
    "parse_namespace",
    "parse_new",
    "parse_node",
    "parse_pod",
    "parse_pod_group",
    "parse_quota",
    "with_resource_version",
]


AnyManifest: TypeAlias = (
    NodeManifest
    | NamespaceManifest
    | PodManifest
    | QuotaManifest
    | PodGroupManifest
    | DeclaredManifest
)
"""A manifest of any kind of object that clients can store."""
Applicable: TypeAlias = AnyManifest | PriorityClassManifest
"""A manifest of any kind of object that `apply` accepts."""


def parse_any(raw: bytes | object, templates: TemplateCache) -> Applicable:
    """Parse a manifest of the kind that it states.

    Raises `MalformedJSON`, or `InvalidManifest`, with the field `kind` if it is missing or unknown.
    """
    plain = cut_any(raw) if isinstance(raw, bytes) else None
    if plain is not None and plain.kind == "Pod":
        return parse_plain_pod(plain, templates) or parse_pod(raw, templates)
    if plain is not None and plain.kind == "Node" and isinstance(raw, bytes):
        return parse_plain_node(plain, raw, templates.node_shapes, templates.limits)
    kind = _kind_of(raw)
    parse = _PARSERS.get(kind) if isinstance(kind, str) else None
    if parse is None:
        raise InvalidManifest([_unknown_kind(kind, _PARSERS)])
    return parse(raw, templates, None, None)


def parse_declared(
    kind: str,
    raw: bytes | object,
    *,
    name: str | None = None,
    namespace: str | None = None,
    limits: Limits | None = None,
) -> DeclaredManifest:
    """Parse a manifest of a declared kind, which must have the given name and namespace, if any.

    Raises `MalformedJSON`, or `InvalidManifest` with all errors.
    """
    declared = DECLARED_KINDS[kind]
    return parse_object(declared, raw, name=name, namespace=namespace, limits=limits)


def parse_any_declared(raw: bytes | object, templates: TemplateCache) -> DeclaredManifest:
    """Parse a manifest of any declared kind.

    Raises `MalformedJSON`, or `InvalidManifest`, with the field `kind` if it is missing or not a
    declared kind.
    """
    kind = _kind_of(raw)
    if not isinstance(kind, str) or kind not in DECLARED_KINDS:
        raise InvalidManifest([_unknown_kind(kind, DECLARED_KINDS)])
    return parse_declared(kind, raw, limits=templates.limits)


def parse_as(
    kind: str, raw: bytes | object, templates: TemplateCache, namespace: str, name: str
) -> AnyManifest:
    """Parse a manifest with a required kind, namespace ("" if cluster-scoped), and name.

    Raises `MalformedJSON`, or `InvalidManifest` with all errors.
    """
    return _STORED[kind](raw, templates, name, namespace or None)


def parse_new(
    kind: str, raw: bytes | object, templates: TemplateCache, namespace: str | None
) -> AnyManifest:
    """Parse a new object's manifest, which states its name, with a required kind and namespace.

    Raises `MalformedJSON`, or `InvalidManifest` with all errors.
    """
    return _STORED[kind](raw, templates, None, namespace)


def load_any(kind: str, body: bytes, templates: TemplateCache) -> AnyManifest:
    """Load an object from a body that Moorage rendered; raises KeyError for an unknown kind."""
    if kind in DECLARED_KINDS:
        return load_object(DECLARED_KINDS[kind], body)
    return _LOADERS[kind](body, templates)


M = TypeVar("M")
Parse: TypeAlias = Callable[[bytes | object, TemplateCache, str | None, str | None], M]
"""A parser of manifests, called with the manifest, the templates, and the required name and
namespace, or None."""


def _as_node(
    raw: bytes | object, templates: TemplateCache, name: str | None, _: str | None
) -> NodeManifest:
    return parse_node(raw, name=name, limits=templates.limits)


def _as_namespace(
    raw: bytes | object, templates: TemplateCache, name: str | None, _: str | None
) -> NamespaceManifest:
    return parse_namespace(raw, name=name, limits=templates.limits)


def _as_pod(
    raw: bytes | object, templates: TemplateCache, name: str | None, namespace: str | None
) -> PodManifest:
    return parse_pod(raw, templates, name=name, namespace=namespace)


def _as_quota(
    raw: bytes | object, templates: TemplateCache, name: str | None, namespace: str | None
) -> QuotaManifest:
    return parse_quota(raw, name=name, namespace=namespace, limits=templates.limits)


def _as_pod_group(
    raw: bytes | object, templates: TemplateCache, name: str | None, namespace: str | None
) -> PodGroupManifest:
    return parse_pod_group(raw, name=name, namespace=namespace, limits=templates.limits)


def _as_kept(kind: str) -> Parse[DeclaredManifest]:
    def parse(
        raw: bytes | object, templates: TemplateCache, name: str | None, namespace: str | None
    ) -> DeclaredManifest:
        return parse_declared(kind, raw, name=name, namespace=namespace, limits=templates.limits)

    return parse


def _as_priority_class(
    raw: bytes | object, templates: TemplateCache, _name: str | None, _namespace: str | None
) -> PriorityClassManifest:
    return parse_priority_class(raw, templates.limits)


_STORED: Mapping[str, Parse[AnyManifest]] = {
    "Node": _as_node,
    "Namespace": _as_namespace,
    "Pod": _as_pod,
    "ResourceQuota": _as_quota,
    "PodGroup": _as_pod_group,
    **{kind: _as_kept(kind) for kind in DECLARED_KINDS},
}
STORED_KINDS = tuple(_STORED)
"""The kinds of objects that clients write and that are stored, in display order."""
_PARSERS: Mapping[str, Parse[Applicable]] = {**_STORED, "PriorityClass": _as_priority_class}
_REFUSED_KINDS: Mapping[str, str] = {
    COMPOSITE_KIND: NO_COMPOSITES,
    "DeviceTaintRule": "rules that taint devices are not supported: claims are given tainted devices, too",
}
"""Why objects of some kinds are refused that Kubernetes' scheduler reads."""
_LOADERS: Mapping[str, Callable[[bytes, TemplateCache], AnyManifest]] = {
    "Node": lambda body, templates: load_node(body, templates.node_shapes),
    "Namespace": lambda body, _: load_namespace(body),
    "Pod": load_pod,
    "ResourceQuota": lambda body, _: load_quota(body),
    "PodGroup": lambda body, _: load_pod_group(body),
}


def _kind_of(raw: bytes | object) -> object:
    """Return the `kind` that an object states; parsing rejects a repeated one later."""
    if not isinstance(raw, bytes):
        return decode_object(raw).get("kind")
    kind = decode_members(raw).get("kind")
    return None if kind is None else decode_strict(kind)


def _unknown_kind(kind: object, kinds: Collection[str]) -> FieldError:
    if kind is None:
        return FieldError("kind", "is required")
    known = ", ".join(kinds)
    if not isinstance(kind, str):
        return FieldError("kind", f"must be one of {known}")
    if kind in _REFUSED_KINDS:
        return FieldError("kind", _REFUSED_KINDS[kind], kind)
    hint = unknown(kind, kinds, {}).removeprefix("unknown field")
    return FieldError("kind", f"must be one of {known}{hint}", kind[:64])
