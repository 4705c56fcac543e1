"""The PostgreSQL store: log, objects, leases, events, and more, on shared connection pools."""

import asyncio
import importlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import NamedTuple

from service.store.access import Access
from service.store.audit import Audit, AuditPolicy
from service.store.clusters import Clusters
from service.store.coordination.heartbeats import NodeHeartbeats
from service.store.coordination.leases import Leases
from service.store.coordination.replica_reports import ReplicaReports
from service.store.coordination.workers import Workers
from service.store.db.connector import (
    COMMIT_SETTINGS,
    READ_SETTINGS,
    STATEMENT_SECONDS_MAX,
    FailoverWatcher,
    connector,
)
from service.store.db.failures import unavailable_on_failure
from service.store.db.hosts import single_host
from service.store.db.outages import Outages
from service.store.db.pool import ConnectionPool, PoolUse
from service.store.db.timeline import HistoryGuard
from service.store.events import Events
from service.store.log.commits import Log
from service.store.log.history import History
from service.store.log.housekeeping import Housekeeper
from service.store.log.notify import LogNotifications
from service.store.log.recovery import Recovery
from service.store.objects import Objects
from service.store.webhooks import Webhooks


class Pools(NamedTuple):
    """The pools of a store's connections, by purpose (protocol rule P15)."""

    commits: ConnectionPool
    reads: ConnectionPool


class PostgresStore:
    """All clusters of one database.

    `url` is `postgresql://…` (or `postgresql+asyncpg://…`). Connections are opened on demand, up to
    `connections` for commits, as many for reads, and two for hints. Commits have connections of
    their own, since their statements are planned differently (protocol rule P15). With `audit`, the
    audit is kept from the start; with `may_audit`, once a caller is known. No statement runs longer
    than `statement_seconds_max`. Create the store within the event loop that uses it, and `close`
    it there.
    """

    def __init__(
        self,
        url: str,
        *,
        connections: int = 8,
        statement_seconds_max: float = STATEMENT_SECONDS_MAX,
        audit: bool = False,
        may_audit: bool = False,
    ) -> None:
        self.guard = HistoryGuard(single_host(url))
        """Checks which history the database shows (protocol rule P3)."""
        self.outages = outages = Outages(host=lambda: self.guard.host)
        """Tracks when the database is lost and when it is back."""
        connect = partial(
            connector,
            url,
            guard=self.guard,
            outages=outages,
            statement_seconds_max=statement_seconds_max,
        )
        commits = ConnectionPool(connect(COMMIT_SETTINGS), self.guard, size=connections)
        reads = ConnectionPool(connect(READ_SETTINGS), self.guard, size=connections)
        self.pools = Pools(commits, reads)
        self.notifications = LogNotifications(
            connect({}), outages, on_silence=self.guard.terminate_all
        )
        self._failovers = FailoverWatcher(url, self.guard)
        policy = AuditPolicy(enabled=audit, may_begin=may_audit)
        self.log = Log(commits, reads, policy, outages)
        self.objects = Objects(reads)
        self.history = History(reads)
        self.clusters = Clusters(commits, reads, policy)
        self.leases = Leases(commits)
        self.workers = Workers(commits)
        self.heartbeats = NodeHeartbeats(commits, reads)
        self.replica_reports = ReplicaReports(commits)
        self.events = Events(commits, reads)
        self.audit = Audit(commits, reads, policy)
        self.access = Access(commits, reads, policy)
        self.webhooks = Webhooks(commits, reads, policy)
        self.housekeeping = Housekeeper(commits)
        self.recovery = Recovery(commits)

    @property
    def epoch(self) -> int:
        """A number that rises when the database's history changes; then drop all replicas.

        See protocol rule P3.
        """
        return self.guard.epoch

    @property
    def outage(self) -> str | None:
        """Why the database cannot be used now, or None if it can."""
        return self.outages.reason

    def pool_uses(self) -> dict[str, PoolUse]:
        """Return the connections of each pool, by its purpose."""
        return {name: pool.use for name, pool in self.pools._asdict().items()}

    def incidents(self) -> dict[str, int]:
        """Return how many outages, takeovers, and lifts of revisions this process has seen."""
        return {
            "outages": self.outages.count,
            "takeovers": self.guard.epoch,
            "lifts": self.recovery.lifts,
        }

    async def now(self) -> datetime:
        """Return the database's time, which governs due times and leases (protocol rule P16)."""
        with unavailable_on_failure():
            async with self.pools.reads.acquire() as connection:
                now: datetime = await connection.fetchval("SELECT clock_timestamp()")
                return now

    def notify(self, cluster_id: int) -> None:
        """Hint to other processes that a cluster's log has grown (protocol rule P14)."""
        self.notifications.notify(cluster_id)

    async def listen(self) -> AsyncGenerator[frozenset[int], None]:
        """Yield clusters whose logs have grown, as hinted by other processes.

        Also watch for a failover to another host of the database.
        """
        watching = asyncio.create_task(self._failovers.run())
        try:
            async with aclosing(self.notifications.listen()) as hints:
                async for grown in hints:
                    yield grown
        finally:
            watching.cancel()
            await asyncio.wait([watching])

    async def close(self) -> None:
        """Wait for running commits, and close all connections."""
        await self.log.finish()
        await self.notifications.close()
        for pool in self.pools:
            await pool.close()


def warm_up() -> None:
    """Import modules that only lists need; call it in a separate thread, since it is slow."""
    importlib.import_module("service.store.statements")
