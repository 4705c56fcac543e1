"""Objects of the kinds that are declared in `service.model.manifests.all_kinds_kept_for_rules`, between JSON and values."""

from collections.abc import Callable, Mapping
from typing import cast

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from service.model.core.primitives import Partial
from service.model.errors import FieldError, InvalidManifest
from service.model.json_and_patches.strict_json import encode
from service.model.kinds_kept_for_rules.object_kept_for_rules import KeptKind, KeptObject
from service.model.manifests.all_kinds_kept_for_rules import KEPT_KINDS
from service.model.manifests.manifest_base import (
    DEFAULT_NAMESPACE,
    ENVELOPE,
    ObjectManifest,
    draft_by,
    head_of_version,
)
from service.model.manifests.metadata_and_status import Json, Metadata, members_of, read_metadata
from service.model.validation.combinators import Limits, entries_of, without_nulls
from service.model.validation.kinds import KindRules, kind_rules


def _rules(declared: KeptKind) -> KindRules:
    return kind_rules(
        declared.kind,
        declared.name_check,
        namespaced=declared.namespaced,
        api_version=declared.api_version,
        other_versions=declared.other_versions,
        fields=declared.fields,
        required=declared.required,
    )


_RULES: Mapping[str, KindRules] = {kind: _rules(each) for kind, each in KEPT_KINDS.items()}
_HEADS: Mapping[tuple[str, str], bytes] = {
    (kind, version): head_of_version(version, kind)
    for kind, each in KEPT_KINDS.items()
    for version in (each.api_version, *each.other_versions)
}


class KeptManifest(ObjectManifest, frozen=True, kw_only=True):
    """An object of any of these kinds."""

    kept: KeptObject[Partial]
    api_version: str
    """`apiVersion`, as it was sent."""

    @property
    @override
    def kind(self) -> str:
        """`kind`."""
        return self.kept.kind

    @property
    @override
    def head(self) -> bytes:
        """How the bodies of the kind begin."""
        return _HEADS[self.kept.kind, self.api_version]

    @property
    @override
    def subject(self) -> KeptObject[Partial]:
        """The object as scheduling reads it."""
        return self.kept

    @property
    @override
    def namespace(self) -> str:
        """`metadata.namespace`; "" for kinds that have none."""
        return self.kept.namespace

    @override
    def named(self, name: str) -> "KeptManifest":
        """Return the object under another name."""
        return replace(self, kept=replace(self.kept, name=name))

    def with_identity(self, uid: str, created: str) -> "KeptManifest":
        """Return the object with this uid and time of creation (RFC 3339, UTC)."""
        return replace(self, kept=replace(self.kept, uid=uid, created=created), created=created)


def parse_kept(
    kind: str,
    raw: bytes | object,
    *,
    name: str | None = None,
    namespace: str | None = None,
    limits: Limits | None = None,
) -> KeptManifest:
    """Parse an object's manifest; name and namespace, where given, are those it has to have.

    Raises `MalformedJSON`, or `InvalidManifest` with all that is wrong.
    """
    draft = draft_by(_RULES[kind], raw, limits, name, namespace)
    draft.problems.raise_any()
    try:
        version = draft.fields.get("apiVersion")
        return _manifest(KEPT_KINDS[kind], draft.read_metadata(), draft.other_fields(), version)
    except msgspec.ValidationError as error:
        # A rule lets through what the kind's type does not: that is no reason to fail.
        raise InvalidManifest([FieldError("", str(error))]) from None


def load_kept(kind: str, body: bytes) -> KeptManifest:
    """Read an object that was rendered here."""
    fields = cast("Json", msgspec.json.decode(body))
    namespace = DEFAULT_NAMESPACE if KEPT_KINDS[kind].namespaced else ""
    metadata = read_metadata(cast("Json", fields["metadata"]), namespace)
    rest = {name: value for name, value in fields.items() if name not in ENVELOPE}
    return _manifest(KEPT_KINDS[kind], metadata, rest, fields["apiVersion"])


def _manifest(declared: KeptKind, metadata: Metadata, rest: Json, version: object) -> KeptManifest:
    kept = KeptObject(
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
    return KeptManifest(
        kept=kept,
        api_version=declared.version_of(version),
        metadata=metadata.members,
        rest=members_of(rest),
        created=metadata.created,
        resource_version=metadata.resource_version,
    )


def edited(manifest: KeptManifest, edit: Callable[[Json], None]) -> KeptManifest:
    """Return an object whose decoded fields were changed by `edit`."""
    fields = cast("Json", msgspec.json.decode(manifest.render()))
    edit(fields)
    return load_kept(manifest.kind, encode(fields))


def part_of(fields: Json, name: str) -> Json:
    """Return a member that is an object, made if it is absent."""
    part = entries_of(fields.get(name))
    fields[name] = part
    return part
