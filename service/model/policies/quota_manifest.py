"""Manifests of resource quotas and priority classes.

A quota is rendered without `status`: the replica tracks usage and adds it to responses. Scopes are
renamed to their final Kubernetes names, and operators get their default.
"""

from typing import ClassVar, cast

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from service.model.core.field_warnings import FieldWarnings, warnings_in
from service.model.core.manifest import ObjectManifest, checked_draft, head_of
from service.model.core.metadata import Json, Metadata, members_of, read_metadata
from service.model.core.primitives import Quantities
from service.model.core.quantity import parse_quantity
from service.model.core.validators import Limits, entries_of, items_of, without_nulls
from service.model.policies.priority_classes import PriorityClassEntry
from service.model.policies.quota import ResourceQuota, shipped_scope
from service.model.policies.quota_rules import PRIORITY_CLASS_RULES, QUOTA_RULES
from service.model.policies.quota_spec import MatchScope


class QuotaManifest(ObjectManifest, frozen=True, kw_only=True):
    """The manifest of a resource quota."""

    kind: ClassVar[str] = "ResourceQuota"
    head: ClassVar[bytes] = head_of("ResourceQuota")
    quota: ResourceQuota

    @property
    @override
    def subject(self) -> ResourceQuota:
        """The parts of the quota that scheduling reads."""
        return self.quota

    @property
    @override
    def namespace(self) -> str:
        """`metadata.namespace`."""
        return self.quota.namespace

    @override
    def named(self, name: str) -> "QuotaManifest":
        """Return a copy of the quota with another name."""
        return replace(self, quota=replace(self.quota, name=name))

    def with_identity(self, uid: str, created: str) -> "QuotaManifest":
        """Return a copy of the quota with a uid and a creation time (RFC 3339, UTC)."""
        return replace(self, quota=replace(self.quota, uid=uid), created=created)


class PriorityClassManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A priority class, which is stored as an entry of `priorityClasses`, not as an object."""

    kind: ClassVar[str] = "PriorityClass"
    namespace: ClassVar[str] = ""
    name: str
    priority_class: PriorityClassEntry
    warnings: FieldWarnings = ()
    """Warnings about ignored fields."""


def parse_quota(
    raw: bytes | object,
    *,
    name: str | None = None,
    namespace: str | None = None,
    limits: Limits | None = None,
) -> QuotaManifest:
    """Parse a quota's manifest, which must have the given name and namespace, if any.

    Raises `MalformedJSON`, or `InvalidManifest` with all errors.
    """
    draft = checked_draft(QUOTA_RULES, raw, limits, name, namespace)
    return _quota(draft.read_metadata(), draft.other_fields())


def load_quota(body: bytes) -> QuotaManifest:
    """Load a quota from a body that Moorage rendered."""
    fields = cast("Json", msgspec.json.decode(body))
    metadata = read_metadata(cast("Json", fields.pop("metadata")), "default")
    return _quota(metadata, {n: v for n, v in fields.items() if n not in ("apiVersion", "kind")})


def parse_priority_class(
    raw: bytes | object, limits: Limits | None = None
) -> PriorityClassManifest:
    """Parse a priority class's manifest; raises the errors of `parse_quota`."""
    draft = checked_draft(PRIORITY_CLASS_RULES, raw, limits)
    stated = {name: draft.fields.get(name) for name in PriorityClassEntry.__struct_encode_fields__}
    return PriorityClassManifest(
        name=draft.read_metadata().name,
        priority_class=msgspec.convert(without_nulls(stated), PriorityClassEntry),
        warnings=warnings_in("PriorityClass", draft.fields),
    )


def _quota(metadata: Metadata, rest: Json) -> QuotaManifest:
    spec = entries_of(without_nulls(rest.get("spec")))
    _ship(spec)
    sent = cast("Quantities", spec.get("hard") or {})
    quota = ResourceQuota(
        namespace=metadata.namespace,
        name=metadata.name,
        labels=metadata.labels,
        hard={resource: parse_quantity(text) for resource, text in sent.items()},
        sent=sent,
        scopes=_scopes(spec),
        uid=metadata.uid,
    )
    kept = {name: value for name, value in rest.items() if name not in ("spec", "status")}
    return QuotaManifest(
        quota=quota,
        metadata=metadata.members,
        rest=members_of({"spec": spec} | kept),
        created=metadata.created,
        resource_version=metadata.resource_version,
    )


def _ship(spec: Json) -> None:
    """Set final scope names and default operators in a valid spec, in place; idempotent."""
    if scopes := items_of(spec.get("scopes")):
        spec["scopes"] = [shipped_scope(cast("str", scope)) for scope in scopes]
    for item in items_of(entries_of(spec.get("scopeSelector")).get("matchExpressions")):
        expression = entries_of(item)
        expression["scopeName"] = shipped_scope(cast("str", expression["scopeName"]))
        expression.setdefault("operator", "Exists")


def _scopes(spec: Json) -> tuple[MatchScope, ...]:
    named = [MatchScope(scope_name=cast("str", scope)) for scope in items_of(spec.get("scopes"))]
    expressions = items_of(entries_of(spec.get("scopeSelector")).get("matchExpressions"))
    return (*named, *msgspec.convert(expressions, list[MatchScope]))
