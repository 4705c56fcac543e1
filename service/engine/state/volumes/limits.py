"""The attached volumes of each node, and the attach limits of its CSI drivers.

The volumes attached to a node are recomputed on demand from its pods after a change to a pod with
volumes, its claims or volumes, an attachment, or the drivers. A volume shared by several pods
counts once, so sums over pods would not be enough.
"""

from collections import Counter
from collections.abc import Container, Iterable, Set as AbstractSet
from typing import Final

import numpy as np

from service.engine.state.nodes.columns import Column, Mask
from service.engine.state.nodes.node_table import NodeTable
from service.model.volumes.volume import DiskName

UNLIMITED: Final = 2**62
AMPLE: Final = 16
"""The number of attachments that every node must have left for a pod with at most this many volumes
to need no check."""


class VolumeUser:
    """A group of pods with the same volumes."""

    def attached(self) -> set[DiskName]:
        """Return the volumes that count towards a node's limits if it has one of the pods."""
        raise NotImplementedError


class _DriverColumns:
    """The number of volumes of one driver that each node can still attach."""

    __slots__ = ("left", "nearly_full")

    def __init__(self, size: int) -> None:
        self.left = Column(np.int64, UNLIMITED, size)
        self.nearly_full = 0
        """The number of nodes that can attach fewer than AMPLE more volumes."""

    def resize(self, size: int) -> None:
        self.left.resize(size)

    def put(self, slot: int, left: int) -> None:
        before = int(self.left.cells[slot])
        self.nearly_full += (left < AMPLE) - (before < AMPLE)
        self.left.cells[slot] = left

    def exceeded(self, count: int) -> Mask | None:
        """Return the nodes where `count` more volumes are too many, shape (nodes,), or None."""
        if not self.nearly_full and count <= AMPLE:
            return None
        return self.left.values < count


class VolumeLimits:
    """The attached volumes per node and driver, and the limits on them."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._size = 0
        self._drivers: dict[str, _DriverColumns] = {}
        self._limits: dict[str, dict[str, int]] = {}
        """The limits of each driver, by node name."""
        self._attachments: dict[str, Counter[DiskName]] = {}
        """The VolumeAttachments of each node, by node name."""
        self._placed: dict[int, dict[VolumeUser, int]] = {}
        self._used: dict[int, set[DiskName]] = {}
        """The volumes used by pods, by slot, for nodes with limits."""
        self._users: dict[DiskName, set[int]] = {}
        self._stale: set[int] = set()

    # Updates

    def count(self, user: VolumeUser, slot: int, pods: int) -> None:
        """Record that pods with volumes were added to or removed from a node."""
        placed = self._placed.setdefault(slot, {})
        before = placed.get(user, 0)
        if before + pods:
            placed[user] = before + pods
            if not before:
                self._join(user, slot)
            return
        del placed[user]
        if not placed:
            del self._placed[slot]
        self._stale.add(slot)

    def touch(self, slots: Iterable[int]) -> None:
        """Record that nodes, or their pods' volumes, may have changed."""
        self._stale.update(slots)

    def touch_all(self) -> None:
        """Record that the volumes of any pod may have changed."""
        self._stale.update(self._placed)

    def limit(self, node_name: str, limits: dict[str, int] | None) -> None:
        """Set a node's driver limits, or remove them if `limits` is None."""
        if limits is None:
            self._limits.pop(node_name, None)
        else:
            self._limits[node_name] = limits
        self.touch_node(node_name)

    def attach(self, node_name: str, disk: DiskName, times: int) -> None:
        """Record that a volume was attached to a node (`times` = 1) or detached (`times` = -1)."""
        attachments = self._attachments.setdefault(node_name, Counter())
        attachments[disk] += times
        if not attachments[disk]:
            del attachments[disk]
            if not attachments:
                del self._attachments[node_name]
        self.touch_node(node_name)

    def touch_node(self, node_name: str) -> None:
        """Record that the attached volumes of a node have changed, if the node exists."""
        slot = self._nodes.slots.get(node_name)
        if slot is not None:
            self._stale.add(slot)

    def _join(self, user: VolumeUser, slot: int) -> None:
        """Add the volumes of new pods without recomputing those of other pods."""
        node = self._nodes.nodes[slot]
        if node is None or slot in self._stale or self._size != self._nodes.size:
            self._stale.add(slot)
            return
        limits = self._limits.get(node.name)
        if not limits:
            return
        attachments: Container[DiskName] = self._attachments.get(node.name, ())
        used = self._used.setdefault(slot, set())
        for disk in user.attached() - used:
            used.add(disk)
            self._users.setdefault(disk, set()).add(slot)
            if disk.driver in limits and disk not in attachments:
                columns = self._drivers[disk.driver]
                columns.put(slot, columns.left.cells[slot] - 1)

    # Queries

    def exceeded(self, disks: Iterable[DiskName]) -> Mask | None:
        """Return the nodes where volumes would exceed a limit, shape (nodes,), or None."""
        wanted = frozenset(disks)
        if not self._limits or not wanted:
            return None
        self._refresh()
        exceeded: Mask | None = None
        for driver, count in _by_driver(wanted).items():
            columns = self._drivers.get(driver)
            over = None if columns is None else columns.exceeded(count)
            if over is not None:
                exceeded = over if exceeded is None else exceeded | over
        if exceeded is None:
            return None
        for disk in wanted:
            for slot in self._users.get(disk, ()):
                exceeded[slot] = self._exceeds(slot, wanted)
        return exceeded if exceeded.any() else None

    def users(self, disks: Iterable[DiskName]) -> set[int]:
        """Return the nodes with limits and with pods that use any of these volumes."""
        self._refresh()
        return {slot for disk in disks for slot in self._users.get(disk, ())}

    def _exceeds(self, slot: int, wanted: frozenset[DiskName]) -> bool:
        """Return whether volumes exceed the limits of a node that already uses some of them."""
        new = _by_driver(wanted - self._used.get(slot, set()))
        for driver, count in new.items():
            columns = self._drivers.get(driver)
            if columns is not None and int(columns.left.cells[slot]) < count:
                return True
        return False

    def _refresh(self) -> None:
        if self._size != self._nodes.size:
            self._size = self._nodes.size
            for columns in self._drivers.values():
                columns.resize(self._size)
        for slot in self._stale:
            self._recompute(slot)
        self._stale.clear()

    def _recompute(self, slot: int) -> None:
        node = self._nodes.nodes[slot] if slot < len(self._nodes.nodes) else None
        limits = self._limits.get(node.name, {}) if node is not None else {}
        for columns in self._drivers.values():
            columns.put(slot, UNLIMITED)
        used = self._disks_of_pods(slot) if limits else set[DiskName]()
        if used or slot in self._used:
            self._note(slot, used)
        if node is None or not limits:
            return
        taken = _by_driver(used.union(self._attachments.get(node.name, ())))
        for driver, limit in limits.items():
            columns = self._drivers.get(driver) or self._columns(driver)
            columns.put(slot, limit - taken.get(driver, 0))

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


def _by_driver(disks: AbstractSet[DiskName]) -> dict[str, int]:
    """Count volumes by driver; a Counter would take several times as long."""
    counts: dict[str, int] = {}
    for disk in disks:
        counts[disk.driver] = counts.get(disk.driver, 0) + 1
    return counts
