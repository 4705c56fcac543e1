"""Opening, checking, and rendering manifests of all kinds."""

from collections.abc import Mapping
from typing import Protocol, Self, cast

import msgspec
from msgspec.structs import replace

from service.model.core.errors import FieldError, InvalidManifest
from service.model.core.field_warnings import FieldWarnings, warnings_in_members
from service.model.core.kind_rules import KindRules
from service.model.core.managers import MANAGED_FIELDS, Manager, read_managers, written
from service.model.core.metadata import (
    Json,
    Metadata,
    fields_of,
    following,
    read_metadata,
)
from service.model.core.strict_json import decode_strict, encode
from service.model.core.validators import Limits, Problems, entries_of

DEFAULT_NAMESPACE = "default"
ENVELOPE = frozenset({"apiVersion", "kind", "metadata"})
WARNINGS = "warnings"
"""The field of a write's response that holds its warnings; it is never stored."""
METADATA = b'"metadata":{'
"""The bytes that begin the metadata; they occur exactly once in every rendered object."""
_MANAGED = f'"{MANAGED_FIELDS}":'.encode()


def head_of(kind: str, api_version: str = "v1") -> bytes:
    """Return the leading bytes of manifests of a kind: its kind and API version."""
    return f'{{"apiVersion":"{api_version}","kind":"{kind}","metadata":{{'.encode()


class Subject(Protocol):
    """The parts of an object that scheduling reads."""

    @property
    def name(self) -> str:
        """`metadata.name`."""

    @property
    def uid(self) -> str:
        """`metadata.uid`."""

    @property
    def labels(self) -> Mapping[str, str]:
        """`metadata.labels`."""


class ObjectManifest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base class of manifests: an object, and the bytes from which it is rendered.

    `metadata` holds the encoded members of the metadata except `name`, `uid`, and
    `creationTimestamp`, each preceded by a comma; `rest` holds the members after the metadata.
    `created` is the creation time, RFC 3339 in UTC. `resource_version` is the value that the client
    sent, or ""; it is not rendered.
    """

    metadata: bytes
    rest: bytes = b""
    created: str = ""
    resource_version: str = ""

    @property
    def kind(self) -> str:
        """The object's `kind`; classes for a single kind define it as a constant."""
        raise NotImplementedError

    @property
    def head(self) -> bytes:
        """The leading bytes of the manifest: its kind and API version."""
        raise NotImplementedError

    @property
    def subject(self) -> Subject:
        """The parts of the object that scheduling reads."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """`metadata.name`."""
        return self.subject.name

    @property
    def namespace(self) -> str:
        """`metadata.namespace`, or "" for cluster-scoped kinds."""
        return ""

    @property
    def uid(self) -> str:
        """`metadata.uid`, or "" before one is assigned."""
        return self.subject.uid

    @property
    def labels(self) -> Mapping[str, str]:
        """`metadata.labels`."""
        return self.subject.labels

    @property
    def warnings(self) -> FieldWarnings:
        """Warnings about ignored fields, apart from those that depend on the cluster."""
        return warnings_in_members(self.kind, self.rest)

    @property
    def managers(self) -> tuple[Manager, ...]:
        """The field managers; empty until the object is first applied."""
        if _MANAGED not in self.metadata:
            return ()
        return read_managers(fields_of(self.metadata).get(MANAGED_FIELDS))

    def managed_by(self, managers: tuple[Manager, ...]) -> Self:
        """Return a copy of the object with these field managers."""
        fields = fields_of(self.metadata) if self.metadata else {}
        fields.pop(MANAGED_FIELDS, None)
        if managers:
            fields[MANAGED_FIELDS] = written(managers)
        return replace(self, metadata=following(fields))

    def named(self, name: str) -> Self:
        """Return a copy of the object with another name."""
        raise NotImplementedError

    def render(self) -> bytes:
        """Render the whole object as canonical JSON, without `resourceVersion`."""
        rest = b"," + self.rest if self.rest else b""
        name, identity = self.name.encode(), self._identity(self.uid).encode()
        return b'%b"name":"%b"%b%b}%b}' % (self.head, name, self.metadata, identity, rest)

    def _identity(self, uid: str) -> str:
        """Return uid and creation time as encoded members, each preceded by a comma."""
        created = self.created
        if uid and created:
            return f',"uid":"{uid}","creationTimestamp":"{created}"'
        if uid:
            return f',"uid":"{uid}"'
        return f',"creationTimestamp":"{created}"' if created else ""


class Draft(msgspec.Struct):
    """A decoded object on its way to a manifest; `problems` collects its errors."""

    rules: KindRules
    fields: Json
    problems: Problems

    def read_metadata(self) -> Metadata:
        """Return the metadata, which must already be valid."""
        namespace = DEFAULT_NAMESPACE if self.rules.namespaced else ""
        sent = cast("Json", self.fields["metadata"])
        if MANAGED_FIELDS in sent:  # clients cannot set managedFields
            sent = {name: value for name, value in sent.items() if name != MANAGED_FIELDS}
        return read_metadata(sent, namespace)

    def other_fields(self) -> Json:
        """Return all fields except kind, API version, and metadata."""
        apart = ENVELOPE | {WARNINGS}
        return {name: value for name, value in self.fields.items() if name not in apart}

    def check_spec(self) -> None:
        """Check the spec, and add its errors to `problems`."""
        self.rules.spec(self.fields.get("spec"), "spec", self.problems)


def decode_object(raw: bytes | object) -> Json:
    """Decode an object strictly, or check an already decoded one by the same rules."""
    try:
        value = decode_strict(raw if isinstance(raw, bytes) else encode(raw))
    except RecursionError:
        raise InvalidManifest([FieldError("", "must not be nested that deeply")]) from None
    if not isinstance(value, dict):
        raise InvalidManifest([FieldError("", "must be an object")])
    return value


def open_draft(
    rules: KindRules,
    raw: bytes | object,
    limits: Limits | None,
    name: str | None,
    namespace: str | None = None,
) -> Draft:
    """Decode an object and check everything but its spec.

    Args:
        rules: the rules of the expected kind.
        raw: JSON, or decoded JSON.
        limits: the limits on the lengths of lists.
        name: the required name, also used if the object has none.
        namespace: the required namespace, also used if the object has none.
    """
    draft = Draft(rules, decode_object(raw), Problems(limits))
    _expect(draft, "name", name)
    _expect(draft, "namespace", namespace)
    rules.envelope(draft.fields, "", draft.problems)
    return draft


def checked_draft(
    rules: KindRules,
    raw: bytes | object,
    limits: Limits | None,
    name: str | None = None,
    namespace: str | None = None,
) -> Draft:
    """Open a draft with `open_draft`, and check its spec, too.

    Raises:
        MalformedJSON: the manifest is not JSON.
        InvalidManifest: the manifest is invalid; the exception lists all errors.
    """
    draft = open_draft(rules, raw, limits, name, namespace)
    draft.check_spec()
    draft.problems.raise_any()
    return draft


def _expect(draft: Draft, field: str, expected: str | None) -> None:
    metadata = draft.fields.get("metadata")
    if expected is None or not isinstance(metadata, dict | None):
        return
    sent = entries_of(metadata).get(field)
    if sent is None:
        draft.fields["metadata"] = {field: expected, **entries_of(metadata)} | {field: expected}
    elif sent != expected:
        draft.problems.add(f"metadata.{field}", f"must be {expected}, as in the address", sent)


def with_resource_version(body: bytes, revision: int) -> bytes:
    """Return a rendered body with `metadata.resourceVersion` added, as clients see it."""
    at = body.index(METADATA) + len(METADATA)
    return b'%b"resourceVersion":"%d",%b' % (body[:at], revision, body[at:])
