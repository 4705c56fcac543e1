"""Read filtered lists from the replica in short time slices, or else from the tables."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from heapq import merge

from service.api.http.pause import Pause
from service.api.reads.stored import ClusterReads, Wanted
from service.model.core.primitives import ObjectName
from service.model.log.commit import ObjectRow
from service.model.log.pages import PAGE_BYTES_MAX, ObjectPage
from service.model.selection.object_filters import ObjectFilter
from service.scheduler.replica.committed_view import INDEXED_KINDS
from service.scheduler.replica.replica import Stored
from service.scheduler.scheduler import Scheduler

__all__ = ["INDEXED_KINDS", "FilteredReads"]

SLICE_SECONDS = 0.00025
"""How long a list occupies the event loop at a time; several such slices may delay a decision."""
LOOKS_BETWEEN = 20
"""The number of objects between two checks of the time."""
_SORTED_AT_ONCE = 500
_ROWS_AT_ONCE = 100
"""How many objects are encoded in one slice."""


class FilteredReads:
    """Replaces `ClusterReads` for lists with a filter, omitting the objects that it rejects.

    `turns` is a lock that lets one list per process scan objects at a time, so that concurrent
    lists occupy the event loop no longer at a time than a single list.
    """

    def __init__(
        self,
        reads: ClusterReads,
        scheduler: Scheduler,
        turns: asyncio.Lock,
        wanted: ObjectFilter,
        passes: Callable[[bytes], bool],
    ) -> None:
        self._reads = reads
        self._scheduler = scheduler
        self._turns = turns
        self._filter = wanted
        self._passes = passes

    async def batches(self, cluster: str, kind: str, wanted: Wanted) -> AsyncIterator[ObjectPage]:
        """Yield the objects that pass, in batches; from the replica, all at one revision."""
        cluster_id, head = await self._reads.position(cluster, at_least=wanted.at_least)
        loop = await self._scheduler.loop_here(cluster, cluster_id)
        committed = None
        if loop is not None:
            committed = await loop.committed(head, kind, self._filter, wanted.namespace)
        if committed is None:
            async for page in self._reads.batches(cluster, kind, wanted):
                yield ObjectPage(page.head, [row for row in page.rows if self._passes(row.body)])
            return
        head, candidates = committed
        async with self._turns:
            runs = await sorted_runs(candidates, lambda stored: self._is_wanted(stored, wanted))
        del candidates, committed
        async for rows in batches_of(runs, wanted.rows):
            yield ObjectPage(head, rows)

    def _is_wanted(self, stored: Stored, wanted: Wanted) -> bool:
        if wanted.namespace not in (None, stored.manifest.namespace):
            return False
        if wanted.after is not None and _key(stored) <= wanted.after:
            return False
        return self._filter.passes(stored.manifest)


async def sorted_runs(
    candidates: Sequence[Stored], is_wanted: Callable[[Stored], bool]
) -> list[list[Stored]]:
    """Return the selected objects in several sorted lists, yielding to other tasks in between."""
    runs, run, pause = list[list[Stored]](), list[Stored](), Pause(SLICE_SECONDS)
    for index, stored in enumerate(candidates):
        if is_wanted(stored):
            run.append(stored)
        if len(run) == _SORTED_AT_ONCE:
            runs.append(sorted(run, key=_key))
            run = []
        if index % LOOKS_BETWEEN == 0:
            await pause.after_some()
    return [*runs, sorted(run, key=_key)]


async def batches_of(runs: list[list[Stored]], rows: int) -> AsyncIterator[list[ObjectRow]]:
    """Merge sorted lists and yield their objects encoded, in at least one batch."""
    batch, size, most = list[ObjectRow](), 0, min(rows, _ROWS_AT_ONCE)
    for stored in merge(*runs, key=_key):
        row = row_of(stored)
        batch.append(row)
        size += len(row.body)
        if len(batch) >= most or size >= PAGE_BYTES_MAX:
            yield batch
            batch, size = [], 0
            await asyncio.sleep(0)
    yield batch


def _key(stored: Stored) -> ObjectName:
    return stored.manifest.namespace, stored.manifest.name


def row_of(stored: Stored) -> ObjectRow:
    """Convert an object in memory to a row as the store returns it."""
    manifest = stored.manifest
    return ObjectRow(
        kind=manifest.kind,
        namespace=manifest.namespace,
        name=manifest.name,
        uid=manifest.uid,
        revision=stored.revision,
        body=manifest.render(),
    )
