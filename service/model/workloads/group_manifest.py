"""Manifests of pod groups.

A group of scheduler-plugins is rendered without `status`, which the replica computes from the
members for each response. A group of Kubernetes itself keeps the `status` that controllers report.
"""

from typing import ClassVar, cast

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from service.model.core import names
from service.model.core.kind_rules import kind_rules
from service.model.core.manifest import Draft, ObjectManifest, head_of, open_draft
from service.model.core.metadata import Json, Metadata, members_of, read_metadata
from service.model.core.resources import quantities
from service.model.core.type_rules import declared
from service.model.core.validators import Limits, entries_of, nullable, one_of, without_nulls
from service.model.pods.pod_group import (
    COSCHEDULING,
    UPSTREAM,
    UPSTREAM_GROUP,
    PodGroup,
    PodGroupSpec,
)
from service.model.pods.scheduling_groups import (
    SCHEDULED_GROUP_SPEC,
    ScheduledGroupSpec,
)

_HEADS = {version: head_of("PodGroup", version) for version in (COSCHEDULING, *UPSTREAM)}
_SPEC = declared(PodGroupSpec, {"minResources": quantities(names.label_key)})
_HINTS = {
    f"{UPSTREAM_GROUP}v1alpha1": "this version has pod groups only within Workloads; write "
    f"{UPSTREAM[-1]} for a PodGroup"
}
_RULES = kind_rules(
    "PodGroup",
    names.dns_subdomain,
    namespaced=True,
    api_version=one_of(COSCHEDULING, *UPSTREAM, hints=_HINTS),
    spec=nullable(_SPEC),
)


class PodGroupManifest(ObjectManifest, frozen=True, kw_only=True):
    """The manifest of a pod group."""

    kind: ClassVar[str] = "PodGroup"
    group: PodGroup
    api_version: str = COSCHEDULING
    """The `apiVersion` that the client sent."""

    @property
    @override
    def head(self) -> bytes:
        """The leading bytes of the manifest: its kind and API version."""
        return _HEADS[self.api_version]

    @property
    def has_own_status(self) -> bool:
        """Whether the group's `status` is stored rather than computed for each response."""
        return self.api_version != COSCHEDULING

    @property
    @override
    def subject(self) -> PodGroup:
        """The parts of the group that scheduling reads."""
        return self.group

    @property
    @override
    def namespace(self) -> str:
        """`metadata.namespace`."""
        return self.group.namespace

    @override
    def named(self, name: str) -> "PodGroupManifest":
        """Return a copy of the group with another name."""
        return replace(self, group=replace(self.group, name=name))

    def with_identity(self, uid: str, created: str) -> "PodGroupManifest":
        """Return a copy of the group with a uid and a creation time (RFC 3339, UTC)."""
        return replace(self, group=replace(self.group, uid=uid), created=created)


def parse_pod_group(
    raw: bytes | object,
    *,
    name: str | None = None,
    namespace: str | None = None,
    limits: Limits | None = None,
) -> PodGroupManifest:
    """Parse a group's manifest, which must have the given name and namespace, if any.

    Raises `MalformedJSON`, or `InvalidManifest` with all errors.
    """
    draft = open_draft(_RULES, raw, limits, name, namespace)
    if str(draft.fields.get("apiVersion")).startswith(UPSTREAM_GROUP):
        SCHEDULED_GROUP_SPEC(draft.fields.get("spec"), "spec", draft.problems)
        draft.problems.raise_any()
        return _upstream(draft.read_metadata(), draft.other_fields(), draft.fields["apiVersion"])
    draft.check_spec()
    _check_name(draft)
    draft.problems.raise_any()
    return _pod_group(draft.read_metadata(), draft.other_fields())


def _check_name(draft: Draft) -> None:
    """Check that a group's name is a valid label value, since pods name their group in a label."""
    name = entries_of(draft.fields.get("metadata")).get("name")
    message = names.label_value(name) if isinstance(name, str) else None
    if message is not None and not draft.problems.errors:
        draft.problems.add("metadata.name", message, name)


def load_pod_group(body: bytes) -> PodGroupManifest:
    """Load a group from a body that Moorage rendered."""
    fields = cast("Json", msgspec.json.decode(body))
    metadata = read_metadata(cast("Json", fields.pop("metadata")), "default")
    rest = {n: v for n, v in fields.items() if n not in ("apiVersion", "kind")}
    if fields["apiVersion"] in UPSTREAM:
        return _upstream(metadata, rest, fields["apiVersion"])
    return _pod_group(metadata, rest)


def _pod_group(metadata: Metadata, rest: Json) -> PodGroupManifest:
    spec = entries_of(without_nulls(rest.get("spec")))
    spec.setdefault("minMember", 1)
    group = PodGroup(
        namespace=metadata.namespace,
        name=metadata.name,
        labels=metadata.labels,
        min_member=cast("int", spec["minMember"]),
        schedule_timeout_seconds=cast("int | None", spec.get("scheduleTimeoutSeconds")),
        uid=metadata.uid,
    )
    kept = {name: value for name, value in rest.items() if name not in ("spec", "status")}
    return PodGroupManifest(
        group=group,
        metadata=metadata.members,
        rest=members_of({"spec": spec} | kept),
        created=metadata.created,
        resource_version=metadata.resource_version,
    )


def _upstream(metadata: Metadata, rest: Json, api_version: object) -> PodGroupManifest:
    spec = msgspec.convert(without_nulls(rest["spec"]), ScheduledGroupSpec)
    gang, key = spec.scheduling_policy.gang, spec.topology_key
    # A basic group has no minimum, but its first placed member chooses the domain for all.
    alone = 0 if key is None else 1
    group = PodGroup(
        namespace=metadata.namespace,
        name=metadata.name,
        labels=metadata.labels,
        min_member=gang.min_count if gang is not None else alone,
        topology_key=key,
        uid=metadata.uid,
    )
    return PodGroupManifest(
        group=group,
        api_version=cast("str", api_version),
        metadata=metadata.members,
        rest=members_of(rest),
        created=metadata.created,
        resource_version=metadata.resource_version,
    )
