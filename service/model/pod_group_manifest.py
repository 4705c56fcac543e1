"""Pod groups between JSON and objects.

A group is rendered without `status`: the replica computes it from the members when somebody asks.
"""

from typing import ClassVar, cast

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from service.model.manifest_base import ObjectManifest, head_of, open_draft
from service.model.metadata import Json, Metadata, members_of, read_metadata
from service.model.pod_group import PodGroup
from service.model.validation.kinds import KINDS
from service.model.validation.rules import Limits, entries_of, without_nulls


class PodGroupManifest(ObjectManifest, frozen=True, kw_only=True):
    """A pod group."""

    kind: ClassVar[str] = "PodGroup"
    head: ClassVar[bytes] = head_of("PodGroup")
    group: PodGroup

    @property
    @override
    def subject(self) -> PodGroup:
        """The group as scheduling reads it."""
        return self.group

    @property
    @override
    def namespace(self) -> str:
        """`metadata.namespace`."""
        return self.group.namespace

    def with_identity(self, uid: str, created: str) -> "PodGroupManifest":
        """Return the group with this uid and time of creation (RFC 3339, UTC)."""
        return replace(self, group=replace(self.group, uid=uid), created=created)


def parse_pod_group(
    raw: bytes | object,
    *,
    name: str | None = None,
    namespace: str | None = None,
    limits: Limits | None = None,
) -> PodGroupManifest:
    """Parse a group's manifest; name and namespace, where given, are those it has to have.

    Raises `MalformedJSON`, or `InvalidManifest` with all that is wrong.
    """
    draft = open_draft("PodGroup", raw, limits, name, namespace)
    KINDS["PodGroup"].spec(draft.fields.get("spec"), "spec", draft.problems)
    draft.problems.raise_any()
    return _pod_group(draft.read_metadata(), draft.other_fields())


def load_pod_group(body: bytes) -> PodGroupManifest:
    """Read a group that was rendered here."""
    fields = cast("Json", msgspec.json.decode(body))
    metadata = read_metadata(cast("Json", fields.pop("metadata")), "default")
    return _pod_group(
        metadata, {n: v for n, v in fields.items() if n not in ("apiVersion", "kind")}
    )


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
