"""Objects and events as they are read from a store: pages, snapshots, and rows of clusters."""

from collections.abc import Iterable
from itertools import islice

import msgspec

from service.model.log.commit import Head, ObjectRow
from service.model.log.events import EventRow

PAGE_BYTES_MAX = 4 * 1024 * 1024
"""A page of objects, or of the log, ends with the entry that reaches this many bytes."""


class Snapshot(msgspec.Struct, frozen=True):
    """All objects of a cluster at one revision, ordered by kind, namespace and name (P13)."""

    head: Head
    rows: list[ObjectRow]


class ObjectPage(msgspec.Struct, frozen=True):
    """Some objects in the order of their keys, and the head of the same instant."""

    head: Head
    rows: list[ObjectRow]

    def is_last(self, limit: int) -> bool:
        """Return whether this is the last page, ended by neither the limit nor `PAGE_BYTES_MAX`."""
        return len(self.rows) < limit and sum(len(row.body) for row in self.rows) < PAGE_BYTES_MAX


def first_rows(rows: Iterable[ObjectRow], limit: int) -> list[ObjectRow]:
    """Return the rows of one page: at most `limit`, and none after `PAGE_BYTES_MAX` is reached."""
    taken, size = list[ObjectRow](), 0
    for row in islice(rows, limit):
        if size >= PAGE_BYTES_MAX:
            break
        taken.append(row)
        size += len(row.body)
    return taken


class EventPage(msgspec.Struct, frozen=True):
    """Some events in the order of their keys, and the head of the same instant."""

    head: Head
    rows: list[EventRow]


class ObjectRead(msgspec.Struct, frozen=True):
    """One object, or None if there is none, and the head of the same instant."""

    head: Head
    row: ObjectRow | None


class ClusterCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many objects a cluster holds."""

    nodes: int
    """Nodes in the cluster."""
    pods: int
    """Pods in the cluster, pending ones included."""
    pending: int
    """Pods without a node."""


NO_OBJECTS = ClusterCounts(nodes=0, pods=0, pending=0)


class ClusterRow(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster; `cluster_id` is never used again, also not for the same name."""

    cluster_id: int
    name: str
    head: Head
    config: bytes
    """Its configuration as JSON."""
    counts: ClusterCounts
