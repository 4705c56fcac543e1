"""Which pods are in a group, how many have to get nodes together, and how many have some."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from service.model.core.primitives import ObjectName
from service.model.kinds_kept_for_rules.scheduling_groups import WORKLOAD, WorkloadBody
from service.model.manifests.manifest import KeptManifest, PodGroupManifest, PodManifest
from service.model.objects.pod_group import PodGroupStatus, phase_of
from service.scheduler.decide.status.references import pod_named
from service.scheduler.replica.pod_groups import GroupRef, group_of
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import WaitingGroup


class Members(NamedTuple):
    """A group with its members at present."""

    title: str
    namespaces: frozenset[str]
    """The namespaces of the members: who may read one of these may read messages on the group."""
    min_member: int
    """So many members have to have nodes before any of them may have one; 0: they do not wait."""
    scheduled: int
    """How many members have a node and have not ended."""
    waiting: tuple[PodManifest, ...]
    """Stored members without a node: highest priority first, then oldest."""
    timeout_seconds: int | None = None
    since: str = ""
    """When the timeout began: when the group or its oldest waiting member came, whichever is later."""
    missing: str | None = None
    """The object without which no member may be placed, if it does not exist."""
    topology_key: str | None = None
    """All members have to be on nodes that have the same value of this label."""
    node_names: frozenset[str] = frozenset()
    """The nodes of members that hold one, if there is such a label."""

    @property
    def gated(self) -> int:
        """How many of the waiting members are held back by scheduling gates."""
        return sum(bool(each.pod.spec.scheduling_gates) for each in self.waiting)

    def deadline(self) -> datetime | None:
        """Return when the group will have waited too long; None if it has no timeout."""
        if self.timeout_seconds is None or not self.since:
            return None
        return datetime.fromisoformat(self.since) + timedelta(seconds=self.timeout_seconds)


def waits_with(replica: Replica, manifest: PodManifest) -> GroupRef | None:
    """Return the group that a pod waits with: its own, or the pods of one placement request."""
    own = group_of(manifest)
    if own is not None:
        return own
    waiting = replica.groups.waiting.get((manifest.namespace, manifest.name))
    return GroupRef("", waiting.name) if waiting is not None else None


def members_of(replica: Replica, group: GroupRef) -> Members:
    """Return the members of a group; if the group does not exist, none of them may be placed."""
    if group.namespace:
        return _of_group(replica, group)
    return _of_waiting(replica, group.name)


def shortage(members: Members, waiting: int, gated: int) -> str | None:
    """Say why a group has too few members to be tried; None if it has enough.

    `waiting` is the number of all members without a node, of which `gated` have scheduling gates.
    """
    if members.missing is not None:
        return f"{members.missing} does not exist"
    here = members.scheduled + waiting
    if here - gated >= members.min_member:
        return None
    told = f"{here} of {members.min_member} members of {members.title} are here"
    return told + (f", {gated} of them with scheduling gates" if gated else "")


def waits_for_members(replica: Replica, manifest: PodManifest) -> str | None:
    """Say why a stored pod's group has too few members; None if it has enough, or is no group."""
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
    phases = Counter(each.status_fields().get("phase") for each in stored)
    counts = {phase.lower(): phases[phase] for phase in ("Running", "Succeeded", "Failed")}
    return PodGroupStatus(
        phase=phase_of(group.min_member, scheduled=members.scheduled, **counts),
        members=len(stored),
        scheduled=members.scheduled,
        schedule_start_time=members.since or None,
        **counts,
    )


class _Terms(NamedTuple):
    """What a group demands, by the object that describes it."""

    min_member: int = 0
    missing: str | None = None
    topology_key: str | None = None
    timeout_seconds: int | None = None
    created: str = ""


def _of_group(replica: Replica, group: GroupRef) -> Members:
    terms = _terms_of_workload(replica, group) if group.workload else _terms_of(replica, group)
    pods = _stored(replica, replica.groups.members(group))
    waiting = _in_order(replica, pods)
    oldest = min((each.pod.created for each in waiting), default="")
    holding = [each.pod.node_name for each in pods if _holds_a_node(each)]
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
    found = stored.manifest.group
    return _Terms(
        min_member=found.min_member,
        topology_key=found.topology_key,
        timeout_seconds=found.schedule_timeout_seconds,
        created=stored.manifest.created,
    )


def _terms_of_workload(replica: Replica, group: GroupRef) -> _Terms:
    stored = replica.get(WORKLOAD.kind, group.namespace, group.workload)
    if stored is None:
        return _Terms(missing=f"Workload {group.workload}")
    assert isinstance(stored.manifest, KeptManifest)
    body = stored.manifest.kept.body
    assert isinstance(body, WorkloadBody)
    found = body.pod_group(group.name)
    if found is None:
        return _Terms(missing=_title(group))
    gang = found.policy.gang
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
        scheduled=sum(_holds_a_node(each) for each in pods),
        waiting=_in_order(replica, pods),
    )


def _stored(replica: Replica, keys: Iterable[ObjectName]) -> list[PodManifest]:
    found = [pod for key in keys if (pod := replica.pod(*key)) is not None]
    if not replica.reservations:
        return found
    return [replace(each, pod=replica.counted(each)) for each in found]


def _holds_a_node(manifest: PodManifest) -> bool:
    return manifest.pod.node_name is not None and not manifest.pod.finished


def _in_order(replica: Replica, pods: list[PodManifest]) -> tuple[PodManifest, ...]:
    def order(manifest: PodManifest) -> tuple[int, str, str, str]:
        pod = manifest.pod
        priority = pod.spec.priority
        if priority is None:
            priority = replica.config.priority_of(pod.spec.priority_class_name) or 0
        return -priority, pod.created, pod.namespace, pod.name

    return tuple(sorted((each for each in pods if each.pod.wants_node), key=order))
