"""Lists, creates, and deletes clusters on PostgreSQL."""

from collections.abc import Callable, Iterable, Mapping

import asyncpg

from service.model.core.errors import Conflict, NotFound
from service.model.core.primitives import CLUSTER_KIND, CLUSTER_NAME
from service.model.log.audit_chain import ITSELF, AuditedCaller
from service.model.log.commit import Head
from service.model.log.pages import NO_OBJECTS, ClusterCounts, ClusterRow
from service.store.audit import AuditPolicy
from service.store.db.failures import unavailable_on_failure
from service.store.db.pool import ConnectionPool
from service.store.db.rows import gone

_CREATE = "SELECT create_cluster_v1($1, $2, gen_random_uuid())"
_DELETE = "SELECT delete_cluster_v1($1)"
_CREATE_AUDITED = "SELECT create_cluster_v2($1, $2, gen_random_uuid(), $3, $4, $5, $6)"
_DELETE_AUDITED = "SELECT delete_cluster_v2($1, $2, $3, $4, $5)"
_LOCK = "SELECT FROM head WHERE cluster_id = $1 FOR UPDATE"
_VERSION = f"""
    SELECT o.revision FROM object AS o
    WHERE o.cluster_id = $1 AND o.kind = '{CLUSTER_KIND}' AND o.namespace = ''
        AND o.name = '{CLUSTER_NAME}'
"""  # noqa: S608 - put together from constants
_IDS = "SELECT cluster_id FROM cluster ORDER BY cluster_id"
_PODS = """
    SELECT o.cluster_id, count(*) AS pods, count(o.node_name) AS placed
    FROM unnest($1::bigint[], $2::text[]) AS w (cluster_id, namespace)
    JOIN object AS o
        ON o.cluster_id = w.cluster_id AND o.kind = 'Pod' AND o.namespace = w.namespace
    GROUP BY o.cluster_id
"""
_FIND = "SELECT cluster_id FROM cluster WHERE name = $1"


DELETION_SECONDS_MAX = 3600
"""The longest that a deletion may take; its one transaction is slow for a large cluster."""
_UNHURRIED = f"""
    SET LOCAL statement_timeout = '{DELETION_SECONDS_MAX}s';
    SET LOCAL lock_timeout = '10s';
    SET LOCAL client_connection_check_interval = '5s'
"""
"""Settings of a deletion: it may run long, waits briefly for locks, and ends with its client."""


class Clusters:
    """Creates, reads, and deletes the clusters of a database.

    Every call may raise StorageUnavailable; `create` and `delete` may also raise OutcomeUnknown.
    """

    def __init__(self, commits: ConnectionPool, reads: ConnectionPool, policy: AuditPolicy) -> None:
        self._writer = commits
        self._reader = reads
        self._policy = policy

    async def all(self) -> list[ClusterRow]:
        """Return all clusters, as of one instant, ordered by name."""
        return await self._clusters()

    async def ids(self) -> list[int]:
        """Return the ids of all clusters, oldest first."""
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                rows = await connection.fetch(_IDS)
        return [row["cluster_id"] for row in rows]

    async def get(self, name: str) -> ClusterRow:
        """Return the cluster that currently has this name.

        Raises:
            NotFound: no cluster has this name.
        """
        for cluster in await self._clusters(number=await self.find(name)):
            return cluster
        raise _unknown(name)

    async def find(self, name: str) -> int:
        """Return the id of the cluster that currently has this name.

        Raises:
            NotFound: no cluster has this name.
        """
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                cluster_id: int | None = await connection.fetchval(_FIND, name)
        if cluster_id is None:
            raise _unknown(name)
        return cluster_id

    async def create(self, name: str, config: bytes, caller: AuditedCaller = ITSELF) -> ClusterRow:
        """Create a cluster whose only object is its configuration.

        It begins at revision 1, or above the last revision of a deleted cluster of the same name.

        Raises:
            Conflict: the name is taken.
        """
        audit = self._audit_arguments(caller)
        statement = _CREATE_AUDITED if audit else _CREATE
        async with self._writer.transaction() as connection:
            try:
                await connection.fetchval(statement, name, config, *audit)
            except asyncpg.UniqueViolationError as error:
                raise Conflict(f"There is a cluster {name!r} already.") from error
        return await self.get(name)

    async def delete(
        self,
        cluster_id: int,
        caller: AuditedCaller = ITSELF,
        only_if: Callable[[int], None] | None = None,
        *,
        dry_run: bool = False,
    ) -> bool:
        """Delete a cluster with everything in it; return False if it does not exist.

        `only_if` is called with the revision of the configuration, which cannot change before the
        deletion. If it raises, nothing is deleted. A dry run deletes nothing either.
        """
        audit = self._audit_arguments(caller)
        statement = _DELETE_AUDITED if audit else _DELETE
        async with self._writer.transaction() as connection:
            await connection.execute(_UNHURRIED)
            if only_if is not None:
                await connection.execute(_LOCK, cluster_id)
                # A separate statement: the one that waited for the lock sees older rows (protocol
                # rule P5).
                version = await connection.fetchval(_VERSION, cluster_id)
                if version is None:
                    return False
                only_if(version)
            if dry_run:
                return True
            deleted: bool = await connection.fetchval(
                statement, cluster_id, *audit, timeout=DELETION_SECONDS_MAX
            )
        return deleted

    def _audit_arguments(self, caller: AuditedCaller) -> tuple[str, ...]:
        """Return the arguments that record the caller, or none if no audit log is kept."""
        if not self._policy.applies_to([caller]):
            return ()
        return (caller.principal, caller.address, caller.operation, caller.request_id)

    async def counts(self, cluster_id: int) -> ClusterCounts:
        """Count the nodes and pods of a cluster.

        Raises:
            NotFound: no such cluster exists.
        """
        for cluster in await self._clusters(number=cluster_id):
            return cluster.counts
        raise gone()

    async def count_pods(self, of: Mapping[int, Iterable[str]]) -> dict[int, ClusterCounts]:
        """Count the pods in the given namespaces of each cluster; nodes are not counted."""
        pairs = [(number, name) for number, namespaces in of.items() for name in set(namespaces)]
        columns = [number for number, _ in pairs], [namespace for _, namespace in pairs]
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                rows = await connection.fetch(_PODS, *columns)
        return dict.fromkeys(of, NO_OBJECTS) | {row["cluster_id"]: _counts(row) for row in rows}

    async def _clusters(self, **values: object) -> list[ClusterRow]:
        """Return all clusters, or the one with the given id."""
        from service.store import statements  # noqa: PLC0415 - see there

        query = statements.clusters("number" if values else "")
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                return [_row(row) for row in await query.fetch(connection, **values)]


def _row(row: asyncpg.Record) -> ClusterRow:
    return ClusterRow(
        cluster_id=row["cluster_id"],
        name=row["name"],
        head=Head(row["revision"], row["tip"], row["at"]),
        config=row["config"],
        counts=_counts(row, row["nodes"]),
    )


def _counts(row: asyncpg.Record, nodes: int = 0) -> ClusterCounts:
    return ClusterCounts(nodes=nodes, pods=row["pods"], pending=row["pods"] - row["placed"])


def _unknown(name: str) -> NotFound:
    return NotFound(f"There is no cluster {name!r}.")
