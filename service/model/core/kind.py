"""Declared kinds: one `KindSpec` makes a kind known to every layer.

Nodes, namespaces, pods, quotas, and pod groups have code of their own in every layer. Every other
kind has one declaration, which defines how its objects are validated, read, addressed, documented,
and listed by commands.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Generic, TypeVar

import msgspec
from msgspec.structs import replace

from service.model.core import names
from service.model.core.access import Verb
from service.model.core.kind_rules import KindRules, kind_rules
from service.model.core.primitives import OwnerReference, Partial
from service.model.core.validators import RecordCheck, Rule, TextCheck, one_of

B = TypeVar("B", bound=Partial)
Json = Mapping[str, object]


class DeclaredObject(msgspec.Struct, Generic[B], frozen=True, kw_only=True):
    """The parts of an object that rules read: its metadata, and the declared fields in `body`."""

    kind: str
    name: str
    body: B
    namespace: str = ""
    """The namespace, or "" for cluster-scoped kinds."""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    uid: str = ""
    created: str = ""
    """`creationTimestamp`: RFC 3339 in UTC, so that it sorts as a string."""
    terminating: bool = False
    """Whether `deletionTimestamp` is set."""
    controller: OwnerReference | None = None
    """The owner that controls the object, or None."""


def alike(one: DeclaredObject[B], other: DeclaredObject[B]) -> bool:
    """Return whether two versions of one object are equal in everything that rules read."""
    return replace(one, created=other.created) == other


class KindSpec(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The declaration of one kind of object."""

    kind: str
    plural: str
    """The plural name in URL paths, as in Kubernetes."""
    body: type[Partial]
    """The type of the parts that rules read, apart from metadata; other fields are kept as sent."""
    fields: Mapping[str, Rule]
    """The validation rule of each field that `body` reads."""
    required: Sequence[str] = ()
    """The fields that must be present."""
    api_version: str = "v1"
    other_versions: Sequence[str] = ()
    """Other API versions of the kind; an object is returned in the version that was sent."""
    conversions: Mapping[str, Callable[[Json], Json]] = {}
    """API versions of another format, and what converts their objects to `api_version`, in which they
    are stored and returned."""
    version_hints: Mapping[str, str] = {}
    """What to write instead of API versions that are refused."""
    checks: Sequence[RecordCheck] = ()
    """Checks across the fields of an object."""
    namespaced: bool = True
    name_check: TextCheck = names.dns_subdomain
    """The check for valid names."""
    changed_by: Verb = "edit"
    """The verb required to change objects of this kind."""
    computed: bool = False
    """Whether the `status` of objects is computed for each response instead of stored."""
    is_public: bool = False
    """Whether anyone who can read part of a cluster sees all objects; for cluster-scoped kinds."""
    short_names: Sequence[str] = ()
    """Other names that commands accept."""
    description: str
    """What the objects are and which component reads them, for the OpenAPI document."""
    example: Mapping[str, object]
    """An example object, without `apiVersion` and `kind`."""
    examples: Mapping[str, Mapping[str, object]] = {}
    """Examples by name, for kinds that need several; `example` is one of them."""

    @cached_property
    def rules(self) -> KindRules:
        """The validation rules of the kind."""
        rules = kind_rules(
            self.kind,
            self.name_check,
            namespaced=self.namespaced,
            api_version=one_of(self.api_version, *self.other_versions, hints=self.version_hints),
            fields=self.fields,
            required=self.required,
        )
        return rules.also(self.checks)

    def converted(self, fields: Json) -> Json:
        """Return an object of an API version of another format in the kind's own, others unchanged."""
        version = fields.get("apiVersion")
        convert = self.conversions.get(version) if isinstance(version, str) else None
        return fields if convert is None else convert(fields)

    def version_of(self, sent: object) -> str:
        """Return the API version that an object states, or the kind's own if it states none."""
        return next(
            (version for version in self.other_versions if version == sent), self.api_version
        )
