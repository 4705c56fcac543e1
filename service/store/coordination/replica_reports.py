"""Reports of processes on their replicas, on PostgreSQL."""

from collections.abc import Mapping
from datetime import timedelta

from service.model.log.lease import REPORT_SECONDS_MAX, ReplicaReport, ReplicaState
from service.store.db.failures import unavailable_on_failure
from service.store.db.pool import ConnectionPool

_REPORT = """
    WITH gone AS (
        DELETE FROM replica_report
        WHERE (process = $1 AND cluster_id <> ALL($2)) OR at < clock_timestamp() - $5::interval
    )
    INSERT INTO replica_report AS r (process, cluster_id, revision, hash, at)
    SELECT $1, cluster_id, revision, hash, clock_timestamp()
    FROM unnest($2::bigint[], $3::bigint[], $4::text[]) AS t (cluster_id, revision, hash)
    ON CONFLICT (process, cluster_id) DO UPDATE
    SET revision = excluded.revision, hash = excluded.hash, at = excluded.at
"""
_REPORTS = """
    SELECT r.process, c.name AS cluster, r.revision, r.hash
    FROM replica_report AS r JOIN cluster AS c USING (cluster_id)
    WHERE r.at > clock_timestamp() - $1::interval ORDER BY c.name, r.process
"""
_FORGOTTEN = timedelta(minutes=1)
"""The age at which a report is deleted by the next process that reports."""


class ReplicaReports:
    """Stores processes' reports on their replicas; every call may raise StorageUnavailable."""

    def __init__(self, connections: ConnectionPool) -> None:
        self._writer = connections

    async def report(self, process: str, states: Mapping[int, ReplicaState]) -> None:
        """Replace the report of a process; `states` maps cluster ids to replica states."""
        revisions = [state.revision for state in states.values()]
        hashes = [state.hash for state in states.values()]
        values = (process, list(states), revisions, hashes, _FORGOTTEN)
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                await connection.execute(_REPORT, *values)

    async def latest(self) -> list[ReplicaReport]:
        """Return the latest reports of running processes, ordered by cluster and process."""
        fresh = timedelta(seconds=REPORT_SECONDS_MAX)
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                rows = await connection.fetch(_REPORTS, fresh)
        return [ReplicaReport(**dict(row)) for row in rows]
