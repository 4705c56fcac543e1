"""The store on PostgreSQL, put together from its parts."""

import asyncio
import importlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import NamedTuple

from service.store.audit import Audit
from service.store.clusters import Clusters
from service.store.connecting.connections import (
    COMMIT_SETTINGS,
    READ_SETTINGS,
    STATEMENT_SECONDS_MAX,
    Connections,
    HistoryGuard,
    PoolUse,
    Takeovers,
    connector,
)
from service.store.connecting.database_hosts import only_host_of
from service.store.connecting.outage_log import Outages
from service.store.events import Events
from service.store.log.commits import Commits
from service.store.log.log_notifications import LogNotifications
from service.store.log.past import Past
from service.store.node_leases import NodeLeases
from service.store.principals import Principals
from service.store.reads import Reads
from service.store.upkeep import StoreUpkeep
from service.store.webhooks import Webhooks
from service.store.whether_audit_is_kept import Keeping


class Pools(NamedTuple):
    """The pools of a store's connections, by purpose (P15)."""

    commits: Connections
    reads: Connections


class PostgresStore(
    Audit, Clusters, Commits, Events, NodeLeases, Past, Principals, Reads, StoreUpkeep, Webhooks
):
    """All clusters of one database.

    `url` is `postgresql://…` (or `postgresql+asyncpg://…`). Connections are opened when they
    are needed, at most `connections` for commits and as many for reads, and two for hints. Commits
    have connections of their own, since their statements are planned differently (P15). With
    `audit` the audit is kept from the start, with `may_audit` once a caller is known. No statement
    takes longer than `statement_seconds_max`, or is waited for much longer. Create the store within the event loop that uses it,
    and `close` it there.
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
        self.guard = HistoryGuard(only_host_of(url))
        """It checks which history the database tells (P3)."""
        self.outages = outages = Outages(host=lambda: self.guard.host)
        """It notes when the database is lost and when it is back."""
        connect = partial(
            connector,
            url,
            guard=self.guard,
            outages=outages,
            statement_seconds_max=statement_seconds_max,
        )
        commits = Connections(connect(COMMIT_SETTINGS), self.guard, size=connections)
        reads = Connections(connect(READ_SETTINGS), self.guard, size=connections)
        self.pools = Pools(commits, reads)
        self.notifications = LogNotifications(connect({}), outages, on_silence=self.guard.end_all)
        self._takeovers = Takeovers(url, self.guard)
        keeping = Keeping(on=audit, may_begin=may_audit)
        Audit.__init__(self, commits, reads, keeping)
        Clusters.__init__(self, commits, reads, keeping)
        Commits.__init__(self, commits, keeping, outages)
        Events.__init__(self, commits, reads)
        NodeLeases.__init__(self, commits, reads)
        Past.__init__(self, reads)
        Principals.__init__(self, commits, reads, keeping)
        Reads.__init__(self, reads)
        StoreUpkeep.__init__(self, commits)
        Webhooks.__init__(self, commits, reads, keeping)

    @property
    def epoch(self) -> int:
        """A number that rises when the database tells another history; drop all replicas then (P3)."""
        return self.guard.epoch

    @property
    def outage(self) -> str | None:
        """Why the database cannot be used now; None if it can."""
        return self.outages.reason

    def pool_uses(self) -> dict[str, PoolUse]:
        """How many connections of each pool are open, by what they are for."""
        return {name: pool.use for name, pool in self.pools._asdict().items()}

    def incidents(self) -> dict[str, int]:
        """How many outages, takeovers by another history and lifts of revisions this process has seen."""
        return {
            "outages": self.outages.count,
            "takeovers": self.guard.epoch,
            "lifts": self.lifts,
        }

    def notify(self, cluster_id: int) -> None:
        """Hint to other processes that a cluster's log has grown (P14)."""
        self.notifications.notify(cluster_id)

    async def listen(self) -> AsyncGenerator[frozenset[int], None]:
        """Yield clusters whose logs have grown, by the hints of other processes (see `LogNotifications.listen`).

        Meanwhile it notices whether another host of the database has taken over.
        """
        looking = asyncio.create_task(self._takeovers.look_on())
        try:
            async with aclosing(self.notifications.listen()) as heard:
                async for grown in heard:
                    yield grown
        finally:
            looking.cancel()
            await asyncio.wait([looking])

    async def close(self) -> None:
        """Wait for commits that still run, and close all connections."""
        await self.finish()
        await self.notifications.close()
        for pool in self.pools:
            await pool.close()


def warm_up() -> None:
    """Import modules that only lists need; call it in a thread of its own, as it takes a while."""
    importlib.import_module("service.store.compiled_statements")
