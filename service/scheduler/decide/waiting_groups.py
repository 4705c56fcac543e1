"""Pods that were to be placed all or none, and wait for that together."""

from collections.abc import Sequence

from msgspec.structs import replace

from service.model.objects import ObjectName
from service.scheduler.decide.context import DecisionContext
from service.scheduler.replica.kinds import WaitingGroup
from service.scheduler.replica.replica import Replica


def wait_together(context: DecisionContext, keys: Sequence[ObjectName]) -> None:
    """Note that these pods wait for each other, and no more for those that they waited with.

    Members may be absent, but not all of them. The same pods asked for again stay the group that they are.
    """
    replica, members = context.replica, tuple(keys)
    groups = {each.name: each for key in keys if (each := replica.groups.waiting_with(key))}
    if any(sorted(each.members) == sorted(members) for each in groups.values()):
        return
    for key in keys:
        leave_waiting(replica, key)
    _forget_abandoned(replica)
    if len(members) > 1 and _somebody_waits(replica, members):
        replica.put(WaitingGroup(name=context.ids.uid(), members=members))


def leave_waiting(replica: Replica, key: ObjectName) -> None:
    """Take a pod out of the group that it waits with, and end the group if nobody is left."""
    group = replica.groups.waiting_with(key)
    if group is None:
        return
    rest = tuple(each for each in group.members if each != key)
    if _somebody_waits(replica, rest):
        replica.put(replace(group, members=rest))
    else:
        replica.delete(group.kind, "", group.name)


def end_waiting(replica: Replica, key: ObjectName) -> None:
    """A pod has its node: end the group that it waited with if all others have theirs."""
    group = replica.groups.waiting_with(key)
    if group is not None and not _somebody_waits(replica, group.members):
        replica.delete(group.kind, "", group.name)


def _forget_abandoned(replica: Replica) -> None:
    for group in replica.groups.all_waiting():
        if not _somebody_waits(replica, group.members):
            replica.delete(group.kind, "", group.name)


def _somebody_waits(replica: Replica, keys: Sequence[ObjectName]) -> bool:
    pods = (replica.pod(*key) for key in keys)
    return any(each is not None and each.pod.wants_node for each in pods)
