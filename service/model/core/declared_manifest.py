"""Manifests of declared kinds."""

from collections.abc import Callable
from functools import lru_cache
from typing import cast

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from service.model.core.errors import FieldError, InvalidManifest
from service.model.core.kind import DeclaredObject, KindSpec
from service.model.core.manifest import (
    DEFAULT_NAMESPACE,
    ENVELOPE,
    ObjectManifest,
    checked_draft,
    decode_object,
    head_of,
)
from service.model.core.metadata import Json, Metadata, members_of, read_metadata
from service.model.core.primitives import Partial
from service.model.core.strict_json import encode
from service.model.core.validators import Limits, entries_of, without_nulls


class DeclaredManifest(ObjectManifest, frozen=True, kw_only=True):
    """An object of a declared kind."""

    declared: KindSpec
    """The declaration of the object's kind."""
    kept: DeclaredObject[Partial]
    api_version: str
    """The `apiVersion` that the client sent."""

    @property
    @override
    def kind(self) -> str:
        """`kind`."""
        return self.kept.kind

    @property
    @override
    def head(self) -> bytes:
        """The leading bytes of the manifest: its kind and API version."""
        return _head(self.kept.kind, self.api_version)

    @property
    @override
    def subject(self) -> DeclaredObject[Partial]:
        """The parts of the object that scheduling reads."""
        return self.kept

    @property
    @override
    def namespace(self) -> str:
        """`metadata.namespace`, or "" for cluster-scoped kinds."""
        return self.kept.namespace

    @override
    def named(self, name: str) -> "DeclaredManifest":
        """Return a copy of the object with another name."""
        return replace(self, kept=replace(self.kept, name=name))

    def with_identity(self, uid: str, created: str) -> "DeclaredManifest":
        """Return a copy of the object with a uid and a creation time (RFC 3339, UTC)."""
        return replace(self, kept=replace(self.kept, uid=uid, created=created), created=created)


@lru_cache
def _head(kind: str, api_version: str) -> bytes:
    return head_of(kind, api_version)


def parse_object(
    declared: KindSpec,
    raw: bytes | object,
    *,
    name: str | None = None,
    namespace: str | None = None,
    limits: Limits | None = None,
) -> DeclaredManifest:
    """Parse a manifest of a declared kind, which must have the given name and namespace, if any.

    Raises:
        MalformedJSON: the manifest is not JSON.
        InvalidManifest: the manifest is invalid; the exception lists all errors.
    """
    draft = checked_draft(declared.rules, _converted(declared, raw), limits, name, namespace)
    try:
        version = draft.fields.get("apiVersion")
        return _manifest(declared, draft.read_metadata(), draft.other_fields(), version)
    except msgspec.ValidationError as error:
        # The kind's rules may accept what its type cannot hold; report it as a client's error.
        raise InvalidManifest([FieldError("", str(error))]) from None


def _converted(declared: KindSpec, raw: bytes | object) -> bytes | object:
    if isinstance(raw, bytes):
        if not any(version.encode() in raw for version in declared.conversions):
            return raw
        raw = decode_object(raw)
    return declared.converted(raw) if isinstance(raw, dict) else raw


def load_object(declared: KindSpec, body: bytes) -> DeclaredManifest:
    """Load an object from a body that Moorage rendered."""
    fields = cast("Json", msgspec.json.decode(body))
    namespace = DEFAULT_NAMESPACE if declared.namespaced else ""
    metadata = read_metadata(cast("Json", fields["metadata"]), namespace)
    rest = {name: value for name, value in fields.items() if name not in ENVELOPE}
    return _manifest(declared, metadata, rest, fields["apiVersion"])


def _manifest(
    declared: KindSpec, metadata: Metadata, rest: Json, version: object
) -> DeclaredManifest:
    kept = DeclaredObject(
        kind=declared.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        labels=metadata.labels,
        annotations=metadata.annotations,
        uid=metadata.uid,
        created=metadata.created,
        terminating=metadata.terminating,
        controller=metadata.controller,
        body=msgspec.convert(entries_of(without_nulls(rest)), declared.body),
    )
    return DeclaredManifest(
        declared=declared,
        kept=kept,
        api_version=declared.version_of(version),
        metadata=metadata.members,
        rest=members_of(rest),
        created=metadata.created,
        resource_version=metadata.resource_version,
    )


def edited(manifest: DeclaredManifest, edit: Callable[[Json], None]) -> DeclaredManifest:
    """Return a copy of an object after `edit` has changed its decoded fields."""
    fields = cast("Json", msgspec.json.decode(manifest.render()))
    edit(fields)
    return load_object(manifest.declared, encode(fields))


def part_of(fields: Json, name: str) -> Json:
    """Return a member that is an object, adding an empty one if it is absent."""
    part = entries_of(fields.get(name))
    fields[name] = part
    return part
