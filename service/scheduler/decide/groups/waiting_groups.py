"""Waiting groups: pending pods that one request asked to be placed all or none."""

from collections.abc import Sequence

from msgspec.structs import replace

from service.model.core.primitives import ObjectName
from service.scheduler.decide.context import DecisionContext
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import WaitingGroup


def wait_together(context: DecisionContext, keys: Sequence[ObjectName]) -> None:
    """Make these pods wait for each other, and remove them from earlier waiting groups.

    At least one of the pods must be stored. If the pods are exactly the members of one group
    already, nothing changes.
    """
    replica, members = context.replica, tuple(keys)
    groups = {
        grouping.name: grouping for key in keys if (grouping := replica.groups.waiting.get(key))
    }
    if any(sorted(group.members) == sorted(members) for group in groups.values()):
        return
    for key in keys:
        leave_waiting(replica, key)
    _forget_abandoned(replica)
    if len(members) > 1 and _somebody_waits(replica, members):
        replica.put(WaitingGroup(name=context.ids.uid(), members=members))


def leave_waiting(replica: Replica, key: ObjectName) -> None:
    """Remove a pod from its waiting group; delete the group if no other member waits."""
    group = replica.groups.waiting.get(key)
    if group is None:
        return
    rest = tuple(member for member in group.members if member != key)
    if _somebody_waits(replica, rest):
        replica.put(replace(group, members=rest))
    else:
        replica.delete(group.kind, "", group.name)


def end_waiting(replica: Replica, key: ObjectName) -> None:
    """Delete the waiting group of a placed pod once no other member is waiting."""
    group = replica.groups.waiting.get(key)
    if group is not None and not _somebody_waits(replica, group.members):
        replica.delete(group.kind, "", group.name)


def _forget_abandoned(replica: Replica) -> None:
    for group in replica.groups.all_waiting():
        if not _somebody_waits(replica, group.members):
            replica.delete(group.kind, "", group.name)


def _somebody_waits(replica: Replica, keys: Sequence[ObjectName]) -> bool:
    pods = (replica.pod(*key) for key in keys)
    return any(manifest is not None and manifest.pod.wants_node for manifest in pods)
