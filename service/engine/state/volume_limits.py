"""How many volumes are attached to each node, beside how many of each driver can be.

What is attached to a node is worked out from its pods when somebody asks and something there
changed: a pod with volumes, one of their claims or volumes, an attachment, the drivers. A volume
that several pods share counts once, so that sums would not do.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import numpy as np

from service.engine.state.columns import Column, Mask
from service.engine.state.nodes import NodeTable
from service.model.volumes import DiskName

UNLIMITED: Final = 2**62


class DiskUser:
    """Pods that have the same volumes."""

    def attached(self) -> set[DiskName]:
        """What counts towards the limits of a node where one of them is."""
        raise NotImplementedError


class _DriverColumns:
    """Of one driver: how many volumes each node has, and how many it takes."""

    __slots__ = ("limit", "taken")

    def __init__(self, size: int) -> None:
        self.taken = Column(np.int64, 0, size)
        self.limit = Column(np.int64, UNLIMITED, size)

    def resize(self, size: int) -> None:
        self.taken.resize(size)
        self.limit.resize(size)


class VolumeLimits:
    """Volumes per node and driver, and their limits."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._size = 0
        self._drivers: dict[str, _DriverColumns] = {}
        self._limits: dict[str, dict[str, int]] = {}
        """Node name to the limits of drivers there."""
        self._attachments: dict[str, Counter[DiskName]] = {}
        """Node name to what is attached there, whoever uses it."""
        self._placed: dict[int, dict[DiskUser, int]] = {}
        self._used: dict[int, set[DiskName]] = {}
        """Slot to what its pods use, for nodes with limits."""
        self._users: dict[DiskName, set[int]] = {}
        self._stale: set[int] = set()

    # What changes

    def count(self, user: DiskUser, slot: int, pods: int) -> None:
        """Pods with volumes come to a node, or leave it."""
        placed = self._placed.setdefault(slot, {})
        placed[user] = placed.get(user, 0) + pods
        if not placed[user]:
            del placed[user]
            if not placed:
                del self._placed[slot]
        self._stale.add(slot)

    def touch(self, slots: Iterable[int]) -> None:
        """What the pods there use, or the node itself, may be another."""
        self._stale.update(slots)

    def touch_all(self) -> None:
        """What any pod uses may be another."""
        self._stale.update(self._placed)

    def limit(self, node_name: str, limits: dict[str, int] | None) -> None:
        """A node has other drivers; None: none that are known."""
        if limits is None:
            self._limits.pop(node_name, None)
        else:
            self._limits[node_name] = limits
        self.touch_node(node_name)

    def attach(self, node_name: str, disk: DiskName, times: int) -> None:
        """A volume is attached to a node (1), or no longer (-1)."""
        attachments = self._attachments.setdefault(node_name, Counter())
        attachments[disk] += times
        if not attachments[disk]:
            del attachments[disk]
            if not attachments:
                del self._attachments[node_name]
        self.touch_node(node_name)

    def touch_node(self, node_name: str) -> None:
        """The same for a node that may be there."""
        slot = self._nodes.slots.get(node_name)
        if slot is not None:
            self._stale.add(slot)

    # What is asked

    def exceeded(self, disks: Iterable[DiskName]) -> Mask | None:
        """Shape (nodes,): where these volumes would be too many; None: nowhere."""
        wanted = frozenset(disks)
        if not self._limits or not wanted:
            return None
        self._refresh()
        exceeded: Mask | None = None
        for driver, count in Counter(disk.driver for disk in wanted).items():
            columns = self._drivers.get(driver)
            if columns is not None:
                over = columns.taken.values + count > columns.limit.values
                exceeded = over if exceeded is None else exceeded | over
        if exceeded is None:
            return None
        for disk in wanted:
            for slot in self._users.get(disk, ()):
                exceeded[slot] = self._exceeds(slot, wanted)
        return exceeded if exceeded.any() else None

    def users(self, disks: Iterable[DiskName]) -> set[int]:
        """The nodes with limits on which pods use any of these volumes."""
        self._refresh()
        return {slot for disk in disks for slot in self._users.get(disk, ())}

    def _exceeds(self, slot: int, wanted: frozenset[DiskName]) -> bool:
        """The same for a node that has some of the volumes."""
        new = Counter(disk.driver for disk in wanted - self._used.get(slot, set()))
        for driver, count in new.items():
            columns = self._drivers.get(driver)
            if columns is not None:
                over: bool = columns.taken.cells[slot] + count > columns.limit.cells[slot]
                if over:
                    return True
        return False

    def _refresh(self) -> None:
        if self._size != self._nodes.size:
            self._size = self._nodes.size
            for columns in self._drivers.values():
                columns.resize(self._size)
        for slot in self._stale:
            self._work_out(slot)
        self._stale.clear()

    def _work_out(self, slot: int) -> None:
        node = self._nodes.nodes[slot] if slot < len(self._nodes.nodes) else None
        limits = self._limits.get(node.name, {}) if node is not None else {}
        for columns in self._drivers.values():
            columns.limit.cells[slot] = UNLIMITED
            columns.taken.cells[slot] = 0
        used = self._disks_of_pods(slot) if limits else set[DiskName]()
        self._note(slot, used)
        if node is None or not limits:
            return
        taken = Counter(disk.driver for disk in used.union(self._attachments.get(node.name, ())))
        for driver, limit in limits.items():
            columns = self._drivers.get(driver) or self._columns(driver)
            columns.limit.cells[slot] = limit
            columns.taken.cells[slot] = taken[driver]

    def _columns(self, driver: str) -> _DriverColumns:
        made = self._drivers[driver] = _DriverColumns(self._size)
        return made

    def _disks_of_pods(self, slot: int) -> set[DiskName]:
        used: set[DiskName] = set()
        for user in self._placed.get(slot, ()):
            used |= user.attached()
        return used

    def _note(self, slot: int, used: set[DiskName]) -> None:
        before = self._used.get(slot, set())
        for disk in before - used:
            users = self._users[disk]
            users.discard(slot)
            if not users:
                del self._users[disk]
        for disk in used - before:
            self._users.setdefault(disk, set()).add(slot)
        if used:
            self._used[slot] = used
        else:
            self._used.pop(slot, None)
