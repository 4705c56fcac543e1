"""Pending pods that one request asked to be placed all or none: they wait together."""

from collections.abc import Sequence

from msgspec.structs import replace

from service.model.core.primitives import ObjectName
from service.scheduler.decide.context import DecisionContext
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import WaitingGroup


def wait_together(context: DecisionContext, keys: Sequence[ObjectName]) -> None:
    """Have these pods wait for each other, and take them out of groups in which they waited before.

    Some of the pods may not be stored, but not all. If they are the members of one group already,
    nothing changes.
    """
    replica, members = context.replica, tuple(keys)
    groups = {each.name: each for key in keys if (each := replica.groups.waiting.get(key))}
    if any(sorted(each.members) == sorted(members) for each in groups.values()):
        return
    for key in keys:
        leave_waiting(replica, key)
    _forget_abandoned(replica)
    if len(members) > 1 and _somebody_waits(replica, members):
        replica.put(WaitingGroup(name=context.ids.uid(), members=members))


def leave_waiting(replica: Replica, key: ObjectName) -> None:
    """Take a pod out of the group that it waits with; delete the group if no other member waits."""
    group = replica.groups.waiting.get(key)
    if group is None:
        return
    rest = tuple(each for each in group.members if each != key)
    if _somebody_waits(replica, rest):
        replica.put(replace(group, members=rest))
    else:
        replica.delete(group.kind, "", group.name)


def end_waiting(replica: Replica, key: ObjectName) -> None:
    """Delete the group of a pod that has got its node, if no other member waits any more."""
    group = replica.groups.waiting.get(key)
    if group is not None and not _somebody_waits(replica, group.members):
        replica.delete(group.kind, "", group.name)


def _forget_abandoned(replica: Replica) -> None:
    for group in replica.groups.all_waiting():
        if not _somebody_waits(replica, group.members):
            replica.delete(group.kind, "", group.name)


def _somebody_waits(replica: Replica, keys: Sequence[ObjectName]) -> bool:
    pods = (replica.pod(*key) for key in keys)
    return any(each is not None and each.pod.wants_node for each in pods)
