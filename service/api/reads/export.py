"""Read all objects of a cluster at one revision from its replica, without copying them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from service.api.reads.filtered import batches_of, sorted_runs
from service.api.reads.stored import BATCH_ROWS, ClusterReads
from service.model.log.commit import Head, ObjectKey, ObjectRow
from service.scheduler.replica.replica import Stored
from service.scheduler.scheduler import Scheduler

Wants = Callable[[ObjectKey], bool]


class Exports:
    """Encodes objects while they are sent, keeping replaced versions in memory until the end.

    `turns` is a lock that lets one list per process scan objects at a time.
    """

    def __init__(self, reads: ClusterReads, scheduler: Scheduler, turns: asyncio.Lock) -> None:
        self._reads = reads
        self._scheduler = scheduler
        self._turns = turns

    async def begin(
        self, cluster: str, wants: Wants
    ) -> tuple[Head, AsyncIterator[list[ObjectRow]]] | None:
        """Return the head and the selected objects in batches, ordered by key, or None.

        None means that this process does not have the cluster in memory, so read the tables
        instead.
        """
        cluster_id, head = await self._reads.position(cluster)
        loop = await self._scheduler.loop_here(cluster, cluster_id)
        snapshot = None if loop is None else await loop.snapshot(head)
        return None if snapshot is None else (snapshot[0], self._batches(snapshot[1], wants))

    async def _batches(
        self, objects: Mapping[str, Sequence[Stored]], wants: Wants
    ) -> AsyncIterator[list[ObjectRow]]:
        for kind in sorted(objects):
            async with self._turns:
                runs = await sorted_runs(objects[kind], lambda stored: wants(_key(stored)))
            async for rows in batches_of(runs, BATCH_ROWS):
                yield rows


def _key(stored: Stored) -> ObjectKey:
    manifest = stored.manifest
    return ObjectKey(manifest.kind, manifest.namespace, manifest.name)
