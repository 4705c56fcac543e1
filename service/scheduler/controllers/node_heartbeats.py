"""Stores node heartbeats, batching those that arrive during a write."""

import asyncio
from collections.abc import Sequence

from service.model.log.lease import NodeReports
from service.scheduler.protocol.ports import Store


class NodeReporter:
    """Batches each cluster's heartbeats while a statement with earlier ones is running.

    A report is answered once it is stored. A report that arrives alone does not wait, and five
    hundred simultaneous ones take two statements.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[int, _Gathered] = {}
        self._running: dict[int, asyncio.Task[NodeReports]] = {}

    async def report(self, cluster_id: int, names: Sequence[str]) -> NodeReports:
        """Store heartbeats of nodes; the answer may name others that were stored with them.

        Raises:
            NotFound: the cluster is gone.
            StorageUnavailable: the reports could not be stored.
        """
        gathered = self._waiting.get(cluster_id)
        if gathered is None:
            gathered = self._waiting[cluster_id] = _Gathered()
            gathered.task = asyncio.create_task(self._store_next(cluster_id))
        gathered.names.update(names)
        assert gathered.task is not None
        return await asyncio.shield(gathered.task)

    async def _store_next(self, cluster_id: int) -> NodeReports:
        running = self._running.get(cluster_id)
        if running is not None:
            await asyncio.wait({running})
        gathered = self._waiting.pop(cluster_id)
        assert gathered.task is not None
        self._running[cluster_id] = gathered.task
        try:
            return await self._store.heartbeats.record(cluster_id, sorted(gathered.names))
        finally:
            if self._running.get(cluster_id) is gathered.task:
                del self._running[cluster_id]


class _Gathered:
    """The nodes of the next statement, and the task that will store them."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.task: asyncio.Task[NodeReports] | None = None
