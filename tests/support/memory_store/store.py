"""A store in memory that keeps the promises of the one on PostgreSQL, for simulations and tests.

No call waits for anything, so no call sees another one half done.
"""

from collections.abc import AsyncGenerator, Callable
from datetime import datetime
from uuid import UUID

from service.store.audit import AuditPolicy
from service.store.db.pool import PoolUse
from tests.support.memory_store.access import MemoryAccess
from tests.support.memory_store.audit import MemoryAudit
from tests.support.memory_store.clusters import MemoryClusters
from tests.support.memory_store.events import MemoryEvents
from tests.support.memory_store.heartbeats import MemoryHeartbeats
from tests.support.memory_store.hints import Hints
from tests.support.memory_store.history import MemoryHistory
from tests.support.memory_store.housekeeping import (
    MemoryHousekeeper,
    MemoryRecovery,
    MemoryReports,
)
from tests.support.memory_store.leases import MemoryLeases, MemoryWorkers
from tests.support.memory_store.log import MemoryLog
from tests.support.memory_store.objects import MemoryObjects
from tests.support.memory_store.state import ClusterState, MemoryState
from tests.support.memory_store.webhooks import MemoryWebhooks

PARTS = frozenset(
    {
        *("log", "objects", "history", "clusters", "leases", "workers", "heartbeats", "events"),
        *("replica_reports", "audit", "access", "webhooks", "housekeeping", "recovery"),
    }
)
"""The parts of a store, by their names."""


class MemoryStore:
    """A store in memory that keeps the contract of `service.store.postgres.PostgresStore` call by call.

    `clock` is the database's clock, `new_id` makes the ids that PostgreSQL would make. The
    cluster `default` exists from the start.
    """

    epoch = 0
    outage: str | None = None
    """Why the database cannot be used; tests may set it."""

    def __init__(
        self,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        *,
        audit: bool = False,
        may_audit: bool = False,
    ) -> None:
        self.policy = AuditPolicy(enabled=audit, may_begin=may_audit)
        """Whether the audit is kept, as far as this process knows."""
        self.state = state = MemoryState(clock, new_id, self.policy)
        self.log = MemoryLog(state)
        self.objects = MemoryObjects(state)
        self.history = MemoryHistory(state)
        self.clusters = MemoryClusters(state)
        self.leases = MemoryLeases(state)
        self.workers = MemoryWorkers(state)
        self.heartbeats = MemoryHeartbeats(state)
        self.replica_reports = MemoryReports(state)
        self.events = MemoryEvents(state)
        self.audit = MemoryAudit(state)
        self.access = MemoryAccess(state)
        self.webhooks = MemoryWebhooks(state)
        self.housekeeping = MemoryHousekeeper(state)
        self.recovery = MemoryRecovery(state)
        self._hints = Hints()

    @property
    def states(self) -> dict[int, ClusterState]:
        """All that each cluster has, by the cluster's number; simulations look at it directly."""
        return self.state.states

    async def close(self) -> None:
        """Do nothing, since a store in memory has nothing to close."""

    def pool_uses(self) -> dict[str, PoolUse]:
        """Nothing, since a store in memory has no connections."""
        return {}

    def incidents(self) -> dict[str, int]:
        """Nothing, since a store in memory has no database that could be lost."""
        return {}

    async def now(self) -> datetime:
        """The clock by which due times and leases are judged (P16)."""
        return self.state.clock()

    def notify(self, cluster_id: int) -> None:
        """Let listeners know that a cluster's log has grown (P14)."""
        self._hints.notify(cluster_id)

    def listen(self) -> AsyncGenerator[frozenset[int], None]:
        """Yield clusters whose logs have grown; first an empty set, as earlier hints may have been missed."""
        return self._hints.listen()
