"""Declared kinds: one `KindSpec` makes a kind known to every layer.

Nodes, namespaces, pods, quotas and pod groups have code of their own in every layer. All other
kinds have one declaration each, from which follows how their objects are validated, read, addressed,
described, and listed by commands.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Generic, TypeVar

import msgspec
from msgspec.structs import replace

from service.model.core import names
from service.model.core.access import Verb
from service.model.core.kind_rules import KindRules, kind_rules
from service.model.core.primitives import OwnerReference, Partial
from service.model.core.validators import Rule, TextCheck

B = TypeVar("B", bound=Partial)


class DeclaredObject(msgspec.Struct, Generic[B], frozen=True, kw_only=True):
    """The parts of an object that rules read: `body` as its kind declares it, and the metadata."""

    kind: str
    name: str
    body: B
    namespace: str = ""
    """"" for kinds that have none."""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    uid: str = ""
    created: str = ""
    """`creationTimestamp`, RFC 3339 in UTC, so that it sorts as a string."""
    terminating: bool = False
    """A `deletionTimestamp` is set."""
    controller: OwnerReference | None = None
    """The owner that manages the object, if one does."""


def alike(one: DeclaredObject[B], other: DeclaredObject[B]) -> bool:
    """Return whether rules read the same from two objects of one key, whatever else differs."""
    return replace(one, created=other.created) == other


class KindSpec(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The declaration of one kind of objects."""

    kind: str
    plural: str
    """The name in paths, as Kubernetes has it."""
    body: type[Partial]
    """The parts of an object, other than metadata, that rules read; all other fields are kept."""
    fields: Mapping[str, Rule]
    """A rule for each field that `body` reads."""
    required: Sequence[str] = ()
    """The fields that have to be there."""
    api_version: str = "v1"
    other_versions: Sequence[str] = ()
    """Other API versions of the kind; an object is returned in the version in which it was sent."""
    namespaced: bool = True
    name_check: TextCheck = names.dns_subdomain
    """Which names are valid."""
    changed_by: Verb = "edit"
    """The verb that lets a caller change objects of this kind."""
    computed: bool = False
    """Whether the `status` of objects is not stored but computed for each answer."""
    is_public: bool = False
    """Whether every reader of a part of the cluster sees all objects; for cluster-scoped kinds."""
    short_names: Sequence[str] = ()
    """Other names that commands take."""
    description: str
    """What the objects are and who reads them, for the OpenAPI document."""
    example: Mapping[str, object]
    """An object without `apiVersion` and `kind`."""
    examples: Mapping[str, Mapping[str, object]] = {}
    """More of them by name, if one does not show everything; `example` is one of these."""

    @cached_property
    def rules(self) -> KindRules:
        """The rules of valid objects of the kind."""
        return kind_rules(
            self.kind,
            self.name_check,
            namespaced=self.namespaced,
            versions=(self.api_version, *self.other_versions),
            fields=self.fields,
            required=self.required,
        )

    def version_of(self, sent: object) -> str:
        """Return the API version of an object that states this one, by default the kind's own."""
        return next(
            (version for version in self.other_versions if version == sent), self.api_version
        )
