"""The nodes with pods that use a disk named in the pod itself."""

from collections.abc import Iterable

from service.engine.state.volumes.pod_volumes import DiskKey, DiskUse

Counts = dict[DiskKey, dict[int, int]]
"""Disk to the number of its users by slot."""


class DiskUsers:
    """The users of each disk, and those that write to it."""

    def __init__(self) -> None:
        self._users: Counts = {}
        self._writers: Counts = {}

    def count(self, uses: Iterable[DiskUse], slot: int, pods: int) -> None:
        """Record that pods with these disks were added to a node, or removed from it."""
        for use in uses:
            for key in use.keys:
                _add(self._users, key, slot, pods)
                if not use.only_reads:
                    _add(self._writers, key, slot, pods)

    def conflicts(self, uses: Iterable[DiskUse]) -> set[int]:
        """Return the nodes on which a pod with these disks would share one that is written."""
        slots: set[int] = set()
        for use in uses:
            others = self._writers if use.only_reads else self._users
            for key in use.keys:
                slots.update(others.get(key, ()))
        return slots


def _add(counts: Counts, key: DiskKey, slot: int, pods: int) -> None:
    by_slot = counts.setdefault(key, {})
    after = by_slot.get(slot, 0) + pods
    if after:
        by_slot[slot] = after
        return
    del by_slot[slot]
    if not by_slot:
        del counts[key]
