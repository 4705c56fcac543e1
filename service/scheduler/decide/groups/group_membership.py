"""The members of a group: how many need nodes together, and how many have one."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from service.model.core.primitives import ObjectName
from service.model.pods.pod_group import PodGroupStatus, phase_of
from service.model.pods.scheduling_groups import WORKLOAD, WorkloadBody
from service.model.registry.manifests import DeclaredManifest, PodGroupManifest, PodManifest
from service.scheduler.decide.status.references import pod_named
from service.scheduler.replica.pod_groups import GroupRef, group_of
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import WaitingGroup


class Members(NamedTuple):
    """A group with its current members."""

    title: str
    namespaces: frozenset[str]
    """The namespaces of the members; readers of any of them may read messages about the group."""
    min_member: int
    """How many members must get nodes together before any may run; 0 if they do not wait."""
    scheduled: int
    """How many unfinished members have a node."""
    waiting: tuple[PodManifest, ...]
    """The stored members without a node, by descending priority, then oldest first."""
    timeout_seconds: int | None = None
    since: str = ""
    """When the timeout began: the creation of the group or its oldest waiting member, if later."""
    missing: str | None = None
    """A required object that is missing and so blocks placement, or None."""
    topology_key: str | None = None
    """A node label that must have the same value on the nodes of all members."""
    node_names: frozenset[str] = frozenset()
    """The nodes of the members, if `topology_key` is set."""

    @property
    def gated(self) -> int:
        """How many of the waiting members have scheduling gates."""
        return sum(bool(manifest.pod.spec.scheduling_gates) for manifest in self.waiting)

    def deadline(self) -> datetime | None:
        """Return when the group's timeout expires, or None if it has none."""
        if self.timeout_seconds is None or not self.since:
            return None
        return datetime.fromisoformat(self.since) + timedelta(seconds=self.timeout_seconds)


def waits_with(replica: Replica, manifest: PodManifest) -> GroupRef | None:
    """Return the group that a pod waits with (its own or a placement request's), or None."""
    own = group_of(manifest)
    if own is not None:
        return own
    waiting = replica.groups.waiting.get((manifest.namespace, manifest.name))
    return GroupRef("", waiting.name) if waiting is not None else None


def members_of(replica: Replica, group: GroupRef) -> Members:
    """Return the members of a group; if the group does not exist, none of them can be placed."""
    if group.namespace:
        return _of_group(replica, group)
    return _of_waiting(replica, group.name)


def shortage(members: Members, waiting: int, gated: int) -> str | None:
    """Return why a group has too few members to be tried, or None.

    `waiting` counts all members without a node, and `gated` those among them with scheduling gates.
    """
    if members.missing is not None:
        return f"{members.missing} does not exist"
    here = members.scheduled + waiting
    if here - gated >= members.min_member:
        return None
    message = f"{here} of {members.min_member} members of {members.title} are here"
    return message + (f", {gated} of them with scheduling gates" if gated else "")


def waits_for_members(replica: Replica, manifest: PodManifest) -> str | None:
    """Return why a stored pod's group has too few members, or None, also without a group."""
    group = waits_with(replica, manifest)
    if group is None:
        return None
    members = members_of(replica, group)
    return shortage(members, len(members.waiting), members.gated)


def status_of(replica: Replica, manifest: PodGroupManifest) -> PodGroupStatus:
    """Compute the status of a PodGroup from its members."""
    group = manifest.group
    members = members_of(replica, GroupRef(group.namespace, group.name))
    stored = _stored(replica, replica.groups.members(GroupRef(group.namespace, group.name)))
    phases = Counter(manifest.status_fields().get("phase") for manifest in stored)
    counts = {phase.lower(): phases[phase] for phase in ("Running", "Succeeded", "Failed")}
    return PodGroupStatus(
        phase=phase_of(group.min_member, scheduled=members.scheduled, **counts),
        members=len(stored),
        scheduled=members.scheduled,
        schedule_start_time=members.since or None,
        **counts,
    )


class _Terms(NamedTuple):
    """A group's requirements, read from the object that describes the group."""

    min_member: int = 0
    missing: str | None = None
    topology_key: str | None = None
    timeout_seconds: int | None = None
    created: str = ""


def _of_group(replica: Replica, group: GroupRef) -> Members:
    terms = _terms_of_workload(replica, group) if group.workload else _terms_of(replica, group)
    pods = _stored(replica, replica.groups.members(group))
    waiting = _in_order(replica, pods)
    oldest = min((manifest.pod.created for manifest in waiting), default="")
    holding = [manifest.pod.node_name for manifest in pods if _holds_a_node(manifest)]
    return Members(
        title=_title(group),
        namespaces=frozenset({group.namespace}),
        min_member=terms.min_member,
        scheduled=len(holding),
        waiting=waiting,
        timeout_seconds=terms.timeout_seconds,
        since=max(oldest, terms.created) if oldest and terms.created else "",
        missing=terms.missing,
        topology_key=terms.topology_key,
        node_names=frozenset(filter(None, holding)) if terms.topology_key else frozenset(),
    )


def _title(group: GroupRef) -> str:
    if not group.workload:
        return f"group {group.name}"
    replica_key = f", replica {group.replica_key}" if group.replica_key else ""
    return f"group {group.name} of Workload {group.workload}{replica_key}"


def _terms_of(replica: Replica, group: GroupRef) -> _Terms:
    stored = replica.get("PodGroup", group.namespace, group.name)
    if stored is None:
        return _Terms(missing=_title(group))
    assert isinstance(stored.manifest, PodGroupManifest)
    pod_group = stored.manifest.group
    return _Terms(
        min_member=pod_group.min_member,
        topology_key=pod_group.topology_key,
        timeout_seconds=pod_group.schedule_timeout_seconds,
        created=stored.manifest.created,
    )


def _terms_of_workload(replica: Replica, group: GroupRef) -> _Terms:
    stored = replica.get(WORKLOAD.kind, group.namespace, group.workload)
    if stored is None:
        return _Terms(missing=f"Workload {group.workload}")
    assert isinstance(stored.manifest, DeclaredManifest)
    body = stored.manifest.kept.body
    assert isinstance(body, WorkloadBody)
    pod_group = body.pod_group(group.name)
    if pod_group is None:
        return _Terms(missing=_title(group))
    gang = pod_group.policy.gang
    return _Terms(min_member=gang.min_count if gang is not None else 0)


def _of_waiting(replica: Replica, name: str) -> Members:
    stored = replica.get(WaitingGroup.kind, "", name)
    assert stored is not None
    assert isinstance(stored.manifest, WaitingGroup)
    keys = stored.manifest.members
    pods = _stored(replica, keys)
    namespaces = frozenset(namespace for namespace, _ in keys)
    return Members(
        title=f"the group of {pod_named(*keys[0], told_in=namespaces)}",
        namespaces=namespaces,
        min_member=len(keys),
        scheduled=sum(_holds_a_node(manifest) for manifest in pods),
        waiting=_in_order(replica, pods),
    )


def _stored(replica: Replica, keys: Iterable[ObjectName]) -> list[PodManifest]:
    manifests = [pod for key in keys if (pod := replica.pod(*key)) is not None]
    if not replica.reservations:
        return manifests
    return [replace(manifest, pod=replica.counted(manifest)) for manifest in manifests]


def _holds_a_node(manifest: PodManifest) -> bool:
    return manifest.pod.node_name is not None and not manifest.pod.finished


def _in_order(replica: Replica, pods: list[PodManifest]) -> tuple[PodManifest, ...]:
    def order(manifest: PodManifest) -> tuple[int, str, str, str]:
        pod = manifest.pod
        priority = pod.spec.priority
        if priority is None:
            priority = replica.config.priority_of(pod.spec.priority_class_name) or 0
        return -priority, pod.created, pod.namespace, pod.name

    return tuple(sorted((manifest for manifest in pods if manifest.pod.wants_node), key=order))
