"""The store on PostgreSQL, put together from its parts."""

import importlib
from collections.abc import AsyncGenerator
from typing import NamedTuple

from service.store.audit import Audit
from service.store.clusters import Clusters
from service.store.commits import Commits
from service.store.connections import (
    COMMIT_SETTINGS,
    READ_SETTINGS,
    STATEMENT_SECONDS_MAX,
    Connections,
    HistoryGuard,
    bounded,
    connector,
)
from service.store.events import Events
from service.store.hints import Hints
from service.store.keeping import Keeping
from service.store.principals import Principals
from service.store.reads import Reads
from service.store.upkeep import Upkeep


class Pools(NamedTuple):
    """The connections of a store, by what they are for (P15)."""

    commits: Connections
    reads: Connections


class PostgresStore(Audit, Clusters, Commits, Events, Principals, Reads, Upkeep):
    """All clusters of one database.

    `url` is `postgresql://…` (or `postgresql+asyncpg://…`). Connections are made when they are
    needed, at most `connections` for commits and as many for reads, and two for hints. Commits
    have connections of their own, since they are planned differently (P15). With `audit` it is kept
    who asked for each commit, with `may_audit` once somebody is known. Create it within the event loop that uses it, and `close` it there. No
    statement takes longer than `statement_seconds_max`.
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
        self.guard = HistoryGuard()
        """What is known of the history that the database tells (P3)."""
        to_commit = bounded(COMMIT_SETTINGS, statement_seconds_max)
        to_read = bounded(READ_SETTINGS, statement_seconds_max)
        commits = Connections(url, to_commit, self.guard, size=connections)
        reads = Connections(url, to_read, self.guard, size=connections)
        self.pools = Pools(commits, reads)
        self.hints = Hints(connector(url, {}, self.guard))
        keeping = Keeping(on=audit, may_begin=may_audit)
        Audit.__init__(self, commits, reads, keeping)
        Clusters.__init__(self, commits, reads, keeping)
        Commits.__init__(self, commits, keeping)
        Events.__init__(self, commits, reads)
        Principals.__init__(self, commits, reads, keeping)
        Reads.__init__(self, reads)
        Upkeep.__init__(self, commits)

    @property
    def epoch(self) -> int:
        """Rises when the database turns out to tell another history: drop all replicas (P3)."""
        return self.guard.epoch

    def notify(self, cluster_id: int) -> None:
        """Let other processes know, soon, that a cluster's log has grown: a hint (P14)."""
        self.hints.notify(cluster_id)

    def listen(self) -> AsyncGenerator[frozenset[int], None]:
        """Clusters whose logs have grown, as far as anybody said so: see `Hints.listen`."""
        return self.hints.listen()

    async def close(self) -> None:
        """Let commits that still run come to their end, and close all connections."""
        await self.finish()
        await self.hints.close()
        for pool in self.pools:
            await pool.close()


def warm_up() -> None:
    """Import what only lists need; for a thread of its own, as it takes a while."""
    importlib.import_module("service.store.queries")
