"""Results of reading a store: pages of objects and events, snapshots, and cluster rows."""

from collections.abc import Iterable
from itertools import islice

import msgspec

from service.model.log.commit import Head, ObjectRow
from service.model.log.events import EventRow

PAGE_BYTES_MAX = 4 * 1024 * 1024
"""The size, in bytes, at which a page of objects or of the log ends."""


class Snapshot(msgspec.Struct, frozen=True):
    """All objects of a cluster at one revision, ordered by kind, namespace, and name (P13)."""

    head: Head
    rows: list[ObjectRow]


class ObjectPage(msgspec.Struct, frozen=True):
    """A page of objects in key order, and the log's head at the same instant."""

    head: Head
    rows: list[ObjectRow]

    def is_last(self, limit: int) -> bool:
        """Return whether this is the last page, ended by neither the limit nor `PAGE_BYTES_MAX`."""
        return len(self.rows) < limit and sum(len(row.body) for row in self.rows) < PAGE_BYTES_MAX


def first_rows(rows: Iterable[ObjectRow], limit: int) -> list[ObjectRow]:
    """Return the rows of one page: at most `limit`, ending once `PAGE_BYTES_MAX` is reached."""
    taken, size = list[ObjectRow](), 0
    for row in islice(rows, limit):
        if size >= PAGE_BYTES_MAX:
            break
        taken.append(row)
        size += len(row.body)
    return taken


class EventPage(msgspec.Struct, frozen=True):
    """A page of events in key order, and the log's head at the same instant."""

    head: Head
    rows: list[EventRow]


class ObjectRead(msgspec.Struct, frozen=True):
    """One object, or None if it does not exist, and the log's head at the same instant."""

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
    """A stored cluster; its `cluster_id` is never reused, not even for the same name."""

    cluster_id: int
    name: str
    head: Head
    config: bytes
    """The cluster's configuration as JSON."""
    counts: ClusterCounts
