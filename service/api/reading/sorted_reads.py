"""Reads one page of a list in another order than that of names, from the replica or any other list."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from service.api.reading.filtered_reads import LOOKS_BETWEEN, SLICE_SECONDS, row_of
from service.api.reading.reads import ClusterReads, Wanted
from service.model.log import Head, ObjectPage, ObjectRow
from service.model.object_filters import ObjectFilter
from service.model.object_order import Order, OrderKey
from service.scheduler.replica.replica import Stored
from service.scheduler.service import Scheduler

SORTED_LIMIT_MAX = 1_000
"""How many objects a page of a sorted list may have."""
_SORTED_AT_ONCE = 500
_ROWS_AT_ONCE = 100

Placed: TypeAlias = tuple[OrderKey, ObjectRow]
Batches: TypeAlias = Callable[[Wanted], AsyncIterator[ObjectPage]]
"""Reads the objects that a part of a list shall have, in batches."""


class SortedPage(NamedTuple):
    """The first objects behind a place, and whether there are more."""

    head: Head
    placed: list[Placed]
    more: bool


class SortedReads:
    """It reads pages in one order; `passes` says which bodies pass the filter.

    `turns` lets one list of the process look through objects at a time.
    """

    def __init__(
        self,
        reads: ClusterReads,
        scheduler: Scheduler,
        turns: asyncio.Lock,
        wanted: ObjectFilter,
        order: Order,
    ) -> None:
        self._reads = reads
        self._scheduler = scheduler
        self._turns = turns
        self._filter = wanted
        self._order = order

    async def page(
        self,
        cluster: str,
        kind: str,
        parts: Sequence[Wanted],
        *,
        after: OrderKey | None,
        limit: int,
        batches: Batches,
        present: bool,
    ) -> SortedPage:
        """Up to `limit` objects behind the place `after`.

        They come from the replica if they are to be the `present` ones and this process has it, else
        from `batches`, of which at most as many as two pages are held.
        """
        first: Head | None = None
        found = list[Placed]()
        for part in parts:
            told = await self._in_memory(cluster, kind, part, after, limit + 1) if present else None
            if told is None:
                told = await self._in_batches(batches(part), after, limit + 1)
            first = first or told[0]
            found += told[1]
        assert first is not None
        found = self._first(found, limit + 1)
        return SortedPage(first, found[:limit], len(found) > limit)

    async def _in_memory(
        self, cluster: str, kind: str, part: Wanted, after: OrderKey | None, limit: int
    ) -> tuple[Head, list[Placed]] | None:
        cluster_id, head = await self._reads.position(cluster, at_least=part.at_least)
        loop = await self._scheduler.loop_here(cluster, cluster_id)
        told = None
        if loop is not None:
            told = await loop.committed(head, kind, self._filter, part.namespace)
        if told is None:
            return None
        async with self._turns:
            runs = await self._runs(told[1], part, after)
        behind = merge(*runs, key=itemgetter(0), reverse=self._order.descending)
        placed = list[Placed]()
        for number, (key, stored) in enumerate(islice(behind, limit), start=1):
            placed.append((key, row_of(stored)))
            if number % _ROWS_AT_ONCE == 0:
                await asyncio.sleep(0)
        return told[0], placed

    async def _runs(
        self, candidates: Sequence[Stored], part: Wanted, after: OrderKey | None
    ) -> list[list[tuple[OrderKey, Stored]]]:
        """The objects behind a place in lists each of which is sorted; others have turns meanwhile."""
        order, run, clock = self._order, list[tuple[OrderKey, Stored]](), _clock()
        runs, end = [run], clock() + SLICE_SECONDS
        for index, stored in enumerate(candidates):
            if self._is_wanted(stored, part):
                key = order.key_of(stored.manifest)
                if after is None or order.follows(key, after):
                    run.append((key, stored))
            if len(run) == _SORTED_AT_ONCE:
                run.sort(key=itemgetter(0), reverse=order.descending)
                run = []
                runs.append(run)
            if index % LOOKS_BETWEEN == 0 and clock() >= end:
                await asyncio.sleep(0)
                end = clock() + SLICE_SECONDS
        run.sort(key=itemgetter(0), reverse=order.descending)
        return runs

    def _is_wanted(self, stored: Stored, part: Wanted) -> bool:
        manifest = stored.manifest
        return part.namespace in (None, manifest.namespace) and self._filter.passes(manifest)

    async def _in_batches(
        self, pages: AsyncIterator[ObjectPage], after: OrderKey | None, limit: int
    ) -> tuple[Head, list[Placed]]:
        head: Head | None = None
        found, order, clock = list[Placed](), self._order, _clock()
        end = clock() + SLICE_SECONDS
        async for page in pages:
            head = head or page.head
            for row in page.rows:
                key = order.value_in(row.body), row.namespace, row.name
                if after is None or order.follows(key, after):
                    found.append((key, row))
                if clock() >= end:
                    await asyncio.sleep(0)
                    end = clock() + SLICE_SECONDS
            if len(found) > limit:
                found = self._first(found, limit)
        assert head is not None
        return head, found

    def _first(self, found: list[Placed], limit: int) -> list[Placed]:
        return sorted(found, key=itemgetter(0), reverse=self._order.descending)[:limit]


def _clock() -> Callable[[], float]:
    return asyncio.get_running_loop().time
