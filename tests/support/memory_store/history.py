"""Reads earlier revisions of the store in memory, as `service.store.log.history.History` reads them."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from service.model.core.primitives import ObjectName
from service.model.log.commit import Change, ObjectKey, ObjectRow
from service.model.log.history import (
    PastChanges,
    PastIndex,
    PastKey,
    PastSelection,
    PastState,
    ReadableHistory,
)
from service.model.log.pages import first_rows
from service.model.selection.selectable_fields import WAS_PENDING
from tests.support.memory_store.state import ClusterState, MemoryState


class MemoryHistory:
    """The earlier revisions of clusters."""

    def __init__(self, state: MemoryState) -> None:
        self.state = state

    async def index(
        self,
        cluster_id: int,
        selection: PastSelection,
        revision: int,
        *,
        changes_max: int,
        after: ObjectName | None = None,
        node_name: str | None = None,
        limit: int,
    ) -> PastIndex:
        """Up to `limit` objects of a kind that were there at a revision, and follow the key `after`."""
        own = self.state.of(cluster_id)
        reach = _reach(own, changes_max)
        found = {
            key: row
            for key, row in own.objects.items()
            if _is_in(selection, key) and row.revision <= revision
        }
        kept = [each for each in _kept(own, reach) if _is_in(selection, each.key)]
        first, last = _around(kept, revision)
        changed = [key for key, change in first.items() if not change.created]
        for key in changed:
            if key in last and last[key].verb == "Put":
                found[key] = last[key].row()
        keys = sorted(
            PastKey(key.namespace, key.name, row.revision)
            for key, row in found.items()
            if (after is None or (key.namespace, key.name) > after)
            and node_name in (None, row.node_name)
        )
        unknown = sum(key not in last for key in changed)
        return PastIndex(head=own.head, reach=reach, unknown=unknown, keys=keys[:limit])

    async def objects(
        self, cluster_id: int, kind: str, keys: Sequence[PastKey]
    ) -> list[ObjectRow] | None:
        """The objects of these keys as they were; None: one of them is no longer in the log."""
        own = self.state.of(cluster_id)
        rows = [_row(own, kind, key) for key in keys]
        known = [row for row in rows if row is not None]
        return first_rows(known, len(known)) if len(known) == len(rows) else None

    async def changes(
        self,
        cluster_id: int,
        revision: int,
        *,
        changes_max: int,
        limit: int,
        without: Sequence[str] = (),
    ) -> PastChanges:
        """Up to `limit` objects that have changed since a revision, but those of the kinds `without`."""
        own = self.state.of(cluster_id)
        reach = _reach(own, changes_max)
        kept = [change for change in _kept(own, reach) if change.kind not in without]
        first, last = _around(kept, revision)
        states = [
            PastState(*key, last[key].revision if key in last and last[key].verb == "Put" else None)
            for key in first
        ]
        unknown = sum(not change.created and key not in last for key, change in first.items())
        return PastChanges(head=own.head, reach=reach, unknown=unknown, states=states[:limit])

    async def bound_at(
        self, cluster_id: int, namespace: str, name: str, revision: int
    ) -> int | None:
        """The change that gave a pod its node in the commit that a revision is of; None if none did."""
        own, key = self.state.of(cluster_id), ObjectKey("Pod", namespace, name)
        spans = [(k.first, k.last) for k in own.commits if k.first <= revision <= k.last]
        for change in reversed(own.changes):
            if change.key == key and any(a <= change.revision <= b for a, b in spans):
                was_pending = change.created or WAS_PENDING in (change.fields_before or b"")
                if change.verb == "Put" and change.node_name is not None and was_pending:
                    return change.revision
        return None

    async def committed_at(self, cluster_id: int, revision: int) -> datetime | None:
        """When a revision was committed; None if its commit is not, or no longer, in the log."""
        commits = self.state.of(cluster_id).commits
        return next((each.at for each in commits if each.first <= revision <= each.last), None)

    async def readable(
        self, cluster_id: int, selection: PastSelection, *, changes_max: int
    ) -> ReadableHistory:
        """Tell from which revisions on the objects of a selection are known, by the last `changes_max` changes."""
        own = self.state.of(cluster_id)
        reach, first = _reach(own, changes_max), dict[ObjectKey, Change]()
        for change in _kept(own, reach):
            if _is_in(selection, change.key):
                first.setdefault(change.key, change)
        by_kind = dict[str, int]()
        for change in first.values():
            if not change.created:
                by_kind[change.kind] = max(by_kind.get(change.kind, 0), change.revision)
        return ReadableHistory(head=own.head, reach=reach, by_kind=by_kind)


def _reach(own: ClusterState, changes_max: int) -> int:
    return max(own.floor, own.head.revision - changes_max)


def _kept(own: ClusterState, reach: int) -> Iterator[Change]:
    return (change for change in own.changes if change.revision > reach)


def _around(
    changes: Iterable[Change], revision: int
) -> tuple[dict[ObjectKey, Change], dict[ObjectKey, Change]]:
    """The first change after a revision, and the last one up to it, of each object."""
    first, last = dict[ObjectKey, Change](), dict[ObjectKey, Change]()
    for change in changes:
        if change.revision > revision:
            first.setdefault(change.key, change)
        else:
            last[change.key] = change
    return first, last


def _is_in(selection: PastSelection, key: ObjectKey) -> bool:
    return (
        selection.kind in (None, key.kind)
        and selection.namespace in (None, key.namespace)
        and selection.name in (None, key.name)
    )


def _row(own: ClusterState, kind: str, key: PastKey) -> ObjectRow | None:
    row = own.objects.get(ObjectKey(kind, key.namespace, key.name))
    if row is not None and row.revision == key.revision:
        return row
    place = key.revision - own.floor - 1
    return own.changes[place].row() if 0 <= place < len(own.changes) else None
