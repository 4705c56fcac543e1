"""The nodes with pods that use a disk named in the pod spec itself."""

from collections.abc import Iterable

from service.engine.state.volumes.pod_volumes import DiskKey, DiskUse

Counts = dict[DiskKey, dict[int, int]]
"""The number of users of each disk, by slot."""


class DiskUsers:
    """The users of each disk, and the users that write to it."""

    def __init__(self) -> None:
        self._users: Counts = {}
        self._writers: Counts = {}

    def count(self, uses: Iterable[DiskUse], slot: int, pods: int) -> None:
        """Record that pods with these disks were added to or removed from a node."""
        for use in uses:
            for key in use.keys:
                _add(self._users, key, slot, pods)
                if not use.only_reads:
                    _add(self._writers, key, slot, pods)

    def conflicts(self, uses: Iterable[DiskUse]) -> set[int]:
        """Return the nodes where a pod with these disks would share a disk that is written to."""
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
