"""Heartbeats of nodes, in a table of their own, since they are not changes of the cluster."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from service.model.log.lease import UNREADY, NodeLeases, NodeReports
from service.store.db.failures import unavailable_on_failure
from service.store.db.pool import ConnectionPool
from service.store.db.rows import gone

_RENEW = "SELECT head_revision, reported_at, known FROM renew_node_leases_v1($1, $2)"
_READ = "SELECT renewed_at FROM node_lease WHERE cluster_id = $1 AND node = $2"
_LOOK = """
    SELECT clock_timestamp() AS now,
        EXISTS (SELECT FROM node_lease WHERE cluster_id = $1) AS any,
        ARRAY(
            SELECT node FROM node_lease
            WHERE cluster_id = $1 AND renewed_at < clock_timestamp() - $2::interval
        ) AS silent
"""
_FORGET = "DELETE FROM node_lease WHERE cluster_id = $1 AND node = ANY($2)"
_UNATTENDED = """
    SELECT c.name FROM head AS h JOIN cluster AS c ON c.cluster_id = h.cluster_id
    WHERE NOT EXISTS (SELECT FROM lease AS l WHERE l.cluster_id = h.cluster_id AND l.name = $1)
        AND (
            EXISTS (SELECT FROM node_lease AS n WHERE n.cluster_id = h.cluster_id)
            OR EXISTS (
                SELECT FROM object AS o WHERE o.cluster_id = h.cluster_id AND o.kind = 'NodeState'
            )
            OR EXISTS (
                SELECT FROM object AS o
                WHERE o.cluster_id = h.cluster_id AND o.kind = 'Node' AND (
                    position($2 IN o.body) > 0 OR encode(o.body, 'escape') ~ $3
                )
            )
        )
    ORDER BY c.name
"""


class NodeHeartbeats:
    """Stores when nodes last reported; every call may raise StorageUnavailable."""

    def __init__(self, writer: ConnectionPool, reader: ConnectionPool) -> None:
        self._writer = writer
        self._reader = reader

    async def record(self, cluster_id: int, names: Sequence[str]) -> NodeReports:
        """Record that nodes have reported now; names of unknown nodes are ignored."""
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                row = await connection.fetchrow(_RENEW, cluster_id, names)
        if row is None or row["head_revision"] is None:
            raise gone()
        return NodeReports(frozenset(row["known"]), row["reported_at"], row["head_revision"])

    async def last(self, cluster_id: int, name: str) -> datetime | None:
        """Return when a node last reported, or None if it never did, or was forgotten."""
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                at: datetime | None = await connection.fetchval(_READ, cluster_id, name)
        return at

    async def check(self, cluster_id: int, grace_seconds: float) -> NodeLeases:
        """Find the nodes that have reported before, but not within `grace_seconds`."""
        grace = timedelta(seconds=grace_seconds)
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                row = await connection.fetchrow(_LOOK, cluster_id, grace)
        assert row is not None
        return NodeLeases(row["now"], row["any"], frozenset(row["silent"]))

    async def forget(self, cluster_id: int, names: Sequence[str]) -> None:
        """Delete the heartbeats of deleted nodes."""
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                await connection.execute(_FORGET, cluster_id, names)

    async def unattended(self, name: str) -> list[str]:
        """Return the clusters without a lease of this name whose nodes need a controller.

        All nodes of these clusters are scanned.
        """
        sought = (name, b'"NoExecute"', UNREADY.pattern.decode())
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                rows = await connection.fetch(_UNATTENDED, *sought)
        return [row["name"] for row in rows]
