"""Manifests of all kinds: how they are opened, checked, and rendered."""

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
"""The field that an answer to a write adds to the object; it is never stored."""
METADATA = b'"metadata":{'
"""The beginning of the metadata; it occurs once in every rendered object."""
_MANAGED = f'"{MANAGED_FIELDS}":'.encode()


def head_of(kind: str, api_version: str = "v1") -> bytes:
    """Return how the bodies of a kind in an API version begin."""
    return f'{{"apiVersion":"{api_version}","kind":"{kind}","metadata":{{'.encode()


class Subject(Protocol):
    """An object as scheduling reads it."""

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
    """Base of all manifests: an object, and the bytes to render it from.

    `metadata` is the members of the object's metadata without `name`, `uid` and
    `creationTimestamp`, each with a comma before it; `rest` is the members that follow the metadata. `created` is the time of creation, RFC 3339 in
    UTC. `resource_version` is what the client sent, "" if nothing; it is not rendered.
    """

    metadata: bytes
    rest: bytes = b""
    created: str = ""
    resource_version: str = ""

    @property
    def kind(self) -> str:
        """`kind`; a class of objects of one kind has it itself."""
        raise NotImplementedError

    @property
    def head(self) -> bytes:
        """The beginning of bodies of the kind."""
        raise NotImplementedError

    @property
    def subject(self) -> Subject:
        """The object as scheduling reads it."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """`metadata.name`."""
        return self.subject.name

    @property
    def namespace(self) -> str:
        """`metadata.namespace`; "" for kinds that have none."""
        return ""

    @property
    def uid(self) -> str:
        """`metadata.uid`; "" until the object has one."""
        return self.subject.uid

    @property
    def labels(self) -> Mapping[str, str]:
        """`metadata.labels`."""
        return self.subject.labels

    @property
    def warnings(self) -> FieldWarnings:
        """Warnings about ignored fields that do not depend on the cluster."""
        return warnings_in_members(self.kind, self.rest)

    @property
    def managers(self) -> tuple[Manager, ...]:
        """The managers of its fields; empty until it is first applied."""
        if _MANAGED not in self.metadata:
            return ()
        return read_managers(fields_of(self.metadata).get(MANAGED_FIELDS))

    def managed_by(self, managers: tuple[Manager, ...]) -> Self:
        """Return the object with these managers of its fields."""
        fields = fields_of(self.metadata) if self.metadata else {}
        fields.pop(MANAGED_FIELDS, None)
        if managers:
            fields[MANAGED_FIELDS] = written(managers)
        return replace(self, metadata=following(fields))

    def named(self, name: str) -> Self:
        """Return the object under another name."""
        raise NotImplementedError

    def render(self) -> bytes:
        """Return the whole object as canonical JSON, without `resourceVersion`."""
        rest = b"," + self.rest if self.rest else b""
        name, identity = self.name.encode(), self._identity(self.uid).encode()
        return b'%b"name":"%b"%b%b}%b}' % (self.head, name, self.metadata, identity, rest)

    def _identity(self, uid: str) -> str:
        """Return uid and creation time as members with a comma before each, as others come first."""
        created = self.created
        if uid and created:
            return f',"uid":"{uid}","creationTimestamp":"{created}"'
        if uid:
            return f',"uid":"{uid}"'
        return f',"creationTimestamp":"{created}"' if created else ""


class Draft(msgspec.Struct):
    """A decoded object that becomes a manifest; its errors are gathered in `problems`."""

    rules: KindRules
    fields: Json
    problems: Problems

    def read_metadata(self) -> Metadata:
        """Return the metadata, which must be valid by now."""
        namespace = DEFAULT_NAMESPACE if self.rules.namespaced else ""
        sent = cast("Json", self.fields["metadata"])
        if MANAGED_FIELDS in sent:  # clients do not set the managers of fields
            sent = {name: value for name, value in sent.items() if name != MANAGED_FIELDS}
        return read_metadata(sent, namespace)

    def other_fields(self) -> Json:
        """Return the fields other than kind, version, and metadata."""
        apart = ENVELOPE | {WARNINGS}
        return {name: value for name, value in self.fields.items() if name not in apart}

    def check_spec(self) -> None:
        """Note what is wrong with the spec."""
        self.rules.spec(self.fields.get("spec"), "spec", self.problems)


def decode_object(raw: bytes | object) -> Json:
    """Decode an object, or check one that is decoded already, by the same strict rules."""
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
    """Decode an object and check all of it but its spec.

    Args:
        rules: those of the kind that it has to be.
        raw: JSON, or decoded JSON.
        limits: how long its lists may be.
        name: the name it has to have, which it takes if it has none.
        namespace: the namespace it has to have, which it takes if it has none.
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
    """Open a draft like `open_draft` and check its spec, too.

    Raises:
        MalformedJSON: it is not JSON.
        InvalidManifest: with all that is wrong.
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
    """Return a rendered body with `metadata.resourceVersion`, as clients see it."""
    at = body.index(METADATA) + len(METADATA)
    return b'%b"resourceVersion":"%d",%b' % (body[:at], revision, body[at:])
