"""Read a page of a list in an order other than by name, from the replica or from another list."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from operator import itemgetter
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from service.api.http.pause import Pause
from service.api.reads.filtered import LOOKS_BETWEEN, row_of
from service.api.reads.stored import ClusterReads, Wanted
from service.model.log.commit import Head, ObjectRow
from service.model.log.pages import ObjectPage
from service.model.selection.object_filters import ObjectFilter
from service.model.selection.object_order import Order, OrderKey
from service.scheduler.replica.replica import Stored
from service.scheduler.scheduler import Scheduler

SORTED_LIMIT_MAX = 1_000
"""The maximum number of objects in a page of a sorted list."""
_SLICE_SECONDS = 0.0005
"""How long objects are scanned at a time."""
_PAUSE_SECONDS = 0.001
"""The pause after each slice.

A sorted list without filters looks at all objects: without pauses the server's own threads, which
receive requests, would get the interpreter only every five milliseconds.
"""
_BEYOND = 400
"""How many more objects than needed are gathered before they are sorted."""
_ROWS_AT_ONCE = 100

Placed: TypeAlias = tuple[OrderKey, ObjectRow]
Batches: TypeAlias = Callable[[Wanted], AsyncIterator[ObjectPage]]
"""Reads the objects of a part of a list, in batches."""


class SortedPage(NamedTuple):
    """The first objects after a position, and whether there are more."""

    head: Head
    placed: list[Placed]
    more: bool


class SortedReads:
    """Reads pages of a filtered list in one order.

    `turns` is a lock that lets one list per process scan objects at a time.
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
        """Return up to `limit` objects after the position `after`.

        They are read from the replica if `present` is true and this process has the replica, or
        else from `batches`; at most two pages' worth of objects is held.
        """
        first: Head | None = None
        placed = list[Placed]()
        for part in parts:
            result = (
                await self._in_memory(cluster, kind, part, after, limit + 1) if present else None
            )
            if result is None:
                result = await self._in_batches(batches(part), after, limit + 1)
            first = first or result[0]
            placed += result[1]
        assert first is not None
        placed.sort(key=itemgetter(0), reverse=self._order.descending)
        return SortedPage(first, placed[:limit], len(placed) > limit)

    async def _in_memory(
        self, cluster: str, kind: str, part: Wanted, after: OrderKey | None, limit: int
    ) -> tuple[Head, list[Placed]] | None:
        cluster_id, head = await self._reads.position(cluster, at_least=part.at_least)
        loop = await self._scheduler.loop_here(cluster, cluster_id)
        snapshot = None
        if loop is not None:
            snapshot = await loop.committed(head, kind, self._filter, part.namespace)
        if snapshot is None:
            return None
        async with self._turns:
            behind = await self._behind(snapshot[1], part, after, limit)
        placed = list[Placed]()
        for number, (key, stored) in enumerate(behind, start=1):
            placed.append((key, row_of(stored)))
            if number % _ROWS_AT_ONCE == 0:
                await asyncio.sleep(0)
        return snapshot[0], placed

    async def _behind(
        self, candidates: Sequence[Stored], part: Wanted, after: OrderKey | None, limit: int
    ) -> list[tuple[OrderKey, Stored]]:
        """Return the first objects after a position, in order, yielding to other tasks in between.

        Few more objects than these are ever held: many thousands of new objects at once would make
        the garbage collector scan the whole process.
        """
        order, first, pause = self._order, First[Stored](self._order, limit), _pause()
        everything = self._filter.asks_nothing and part.namespace is None
        for index, stored in enumerate(candidates):
            if everything or self._is_wanted(stored, part):
                key = order.key_of(stored.manifest)
                if after is None or order.follows(key, after):
                    first.add(key, stored)
            if index % LOOKS_BETWEEN == 0:
                await pause.after_some()
        return first.in_order()

    def _is_wanted(self, stored: Stored, part: Wanted) -> bool:
        manifest = stored.manifest
        return part.namespace in (None, manifest.namespace) and self._filter.passes(manifest)

    async def _in_batches(
        self, pages: AsyncIterator[ObjectPage], after: OrderKey | None, limit: int
    ) -> tuple[Head, list[Placed]]:
        head: Head | None = None
        order, first, pause = self._order, First[ObjectRow](self._order, limit), _pause()
        async for page in pages:
            head = head or page.head
            for row in page.rows:
                key = order.value_in(row.body), row.namespace, row.name
                if after is None or order.follows(key, after):
                    first.add(key, row)
                await pause.after_some()
        assert head is not None
        return head, first.in_order()


T = TypeVar("T")


class First(Generic[T]):
    """Collects the first `limit` of all added objects, in an order."""

    def __init__(self, order: Order, limit: int) -> None:
        self._order = order
        self._limit = limit
        self._found: list[tuple[OrderKey, T]] = []
        self._last: OrderKey | None = None
        """The key after which no object is among the first, or None while any object may be."""

    def add(self, key: OrderKey, item: T) -> None:
        """Add an object, unless `limit` others are known to precede it."""
        if self._last is not None and self._order.follows(key, self._last):
            return
        self._found.append((key, item))
        if len(self._found) >= self._limit + _BEYOND:
            self._found = self.in_order()
            self._last = self._found[-1][0]

    def in_order(self) -> list[tuple[OrderKey, T]]:
        """Return the first objects, in order."""
        ordered = sorted(self._found, key=itemgetter(0), reverse=self._order.descending)
        return ordered[: self._limit]


def _pause() -> Pause:
    return Pause(_SLICE_SECONDS, _PAUSE_SECONDS)
