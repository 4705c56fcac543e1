"""Read objects as of an earlier revision, as far back as the log reaches."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial

from service.api.http.pause import Pause
from service.api.http.problems import MalformedRequest
from service.api.reads.filtered import SLICE_SECONDS
from service.api.reads.stored import ClusterReads, Wanted, require_readable
from service.model.core.errors import Compacted, FieldError, Overloaded
from service.model.core.primitives import ObjectName
from service.model.log.commit import Head, ObjectRow
from service.model.log.history import PastIndex, PastKey, PastSelection, ReadableHistory
from service.model.log.pages import ObjectPage, ObjectRead

KEYS_AT_ONCE = 10_000
"""The maximum number of objects for which the log is searched at once."""
_ROWS_AT_ONCE = 100
"""How many bodies are read at once; reading them on the event loop delays placements."""
_WAITING_PER_READ = 10

Passes = Callable[[bytes], bool] | None
"""Returns whether an object with this body is selected; None selects every object."""


class PastReads:
    """Reads earlier revisions of clusters, with a bounded number of concurrent and waiting reads.

    The database searches the log, so that decisions are not delayed. At most the last `changes_max`
    changes are searched.
    """

    def __init__(self, reads: ClusterReads, changes_max: int, reads_max: int) -> None:
        self._reads = reads
        self._changes_max = changes_max
        self._turns = asyncio.Semaphore(reads_max)
        self._waiting = 0
        self._waiting_max = reads_max * (1 + _WAITING_PER_READ)

    async def readable(self, cluster: str, selection: PastSelection) -> ReadableHistory:
        """Return how far back the objects of a selection can be read.

        Raises:
            Overloaded: too many reads of earlier revisions are waiting.
        """
        cluster_id, _ = await self._reads.position(cluster)
        async with self._turn():
            return await self._reads.store.history.readable(
                cluster_id, selection, changes_max=self._changes_max
            )

    async def committed_at(self, cluster: str, revision: int) -> datetime | None:
        """Return when a revision was committed, or None if the log does not contain it.

        Raises:
            MalformedRequest: the cluster has not reached that revision.
        """
        cluster_id, head = await self._reads.position(cluster)
        _refuse_future(revision, head)
        return await self._reads.store.history.committed_at(cluster_id, revision)

    async def head_from(self, cluster: str, revision: int) -> int:
        """Return the head's revision, after checking that it has reached `revision`.

        Raises:
            MalformedRequest: the cluster has not reached that revision.
        """
        _, head = await self._reads.position(cluster)
        _refuse_future(revision, head)
        return head.revision

    async def get_object(
        self, cluster: str, kind: str, namespace: str, name: str, revision: int, at_least: int
    ) -> ObjectRead:
        """Return one object as of a revision; its row is None if it did not exist.

        Raises:
            MalformedRequest: the cluster has not reached that revision.
            Compacted: the log no longer contains the object's earlier state.
            Overloaded: too many reads of earlier revisions are waiting.
        """
        selection = PastSelection(kind=kind, namespace=namespace, name=name)
        cluster_id, head = await self._reads.position(cluster, at_least=at_least)
        _refuse_future(revision, head)
        index = await self._index(cluster_id, selection, revision, limit=1)
        rows = await self._objects(cluster_id, selection, revision, index.keys)
        require_readable(rows)
        return ObjectRead(index.head, rows[0] if rows else None)

    def lists(self, revision: int, passes: Passes) -> "PastLists":
        """Return a reader of lists as of a revision, of the objects that pass the filter."""
        return PastLists(self, revision, passes)

    async def batches(
        self, cluster: str, kind: str, wanted: Wanted, revision: int, passes: Passes
    ) -> AsyncIterator[ObjectPage]:
        """Yield the objects of a kind as of a revision, in batches.

        Raises what `get_object` raises; after the first batch only Compacted and
        StorageUnavailable.
        """
        selection = PastSelection(kind=kind, namespace=wanted.namespace)
        cluster_id, head = await self._reads.position(cluster, at_least=wanted.at_least)
        _refuse_future(revision, head)
        after, most = wanted.after, wanted.rows
        read = partial(self._index, cluster_id, selection, revision, limit=most)
        while True:
            index = await read(after=after, node_name=wanted.node_name)
            keys = index.keys
            while True:
                rows = await self._objects(cluster_id, selection, revision, keys[:_ROWS_AT_ONCE])
                yield ObjectPage(index.head, await _passing(wanted.readable(rows), passes))
                keys = keys[len(rows) :]
                if not keys:
                    break
            if len(index.keys) < most:
                return
            after = (index.keys[-1].namespace, index.keys[-1].name)

    async def _index(
        self,
        cluster_id: int,
        selection: PastSelection,
        revision: int,
        *,
        limit: int,
        after: ObjectName | None = None,
        node_name: str | None = None,
    ) -> PastIndex:
        async with self._turn():
            index = await self._reads.store.history.index(
                cluster_id,
                selection,
                revision,
                changes_max=self._changes_max,
                after=after,
                node_name=node_name,
                limit=limit,
            )
        if revision < index.reach or index.unknown:
            raise await self._too_old(cluster_id, selection, revision)
        return index

    async def _objects(
        self, cluster_id: int, selection: PastSelection, revision: int, keys: Sequence[PastKey]
    ) -> list[ObjectRow]:
        if not keys:
            return []
        assert selection.kind is not None
        rows = await self._reads.store.history.objects(cluster_id, selection.kind, keys)
        if rows is None:
            raise await self._too_old(cluster_id, selection, revision)
        return rows

    async def _too_old(self, cluster_id: int, selection: PastSelection, revision: int) -> Compacted:
        async with self._turn():
            history = await self._reads.store.history.readable(
                cluster_id, selection, changes_max=self._changes_max
            )
        assert selection.kind is not None
        oldest = history.oldest_of(selection.kind)
        return Compacted(
            f"The log no longer tells what was at revision {revision}: the oldest revision that can be read here "
            f"is {oldest}."
        )

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self._waiting >= self._waiting_max:
            raise Overloaded("Too many reads of earlier revisions are waiting.")
        self._waiting += 1
        try:
            async with self._turns:
                yield
        finally:
            self._waiting -= 1


class PastLists:
    """Replaces `ClusterReads` for lists as of an earlier revision."""

    def __init__(self, past: PastReads, revision: int, passes: Passes) -> None:
        self._past = past
        self._revision = revision
        self._passes = passes

    def batches(self, cluster: str, kind: str, wanted: Wanted) -> AsyncIterator[ObjectPage]:
        """Yield the objects of a kind that pass the filter, in batches."""
        return self._past.batches(cluster, kind, wanted, self._revision, self._passes)


def _refuse_future(revision: int, head: Head) -> None:
    if revision > head.revision:
        message = f"is newer than the cluster's head, which is {head.revision}"
        raise MalformedRequest(
            f"Query parameter revision: {message}.",
            [FieldError("revision", message, str(revision))],
        )


async def _passing(rows: list[ObjectRow], passes: Passes) -> list[ObjectRow]:
    """Return the rows that pass the filter, yielding to other tasks in between."""
    if passes is None:
        return rows
    selected, pause = list[ObjectRow](), Pause(SLICE_SECONDS)
    for row in rows:
        if passes(row.body):
            selected.append(row)
        await pause.after_some()
    return selected
