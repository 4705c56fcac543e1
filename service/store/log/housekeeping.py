"""Compacts the logs of clusters on PostgreSQL, and deletes old idempotency records."""

from datetime import timedelta

from service.model.log.commit import COMPACTION_STEP_ROWS_MAX
from service.store.db.failures import unavailable_on_failure
from service.store.db.pool import ConnectionPool
from service.store.db.rows import gone

SWEEP_ROWS_MAX = 1_000
"""The maximum number of idempotency records that one call of `sweep_answers` deletes."""

_COMPACT = "SELECT floor_revision, rose FROM compact_v1($1, $2, $3, $4)"
_SWEEP = """
    DELETE FROM idempotency WHERE cluster_id = $1 AND ctid = ANY(ARRAY(
        SELECT ctid FROM idempotency
        WHERE cluster_id = $1 AND recorded_at < now() - $2::interval
        ORDER BY recorded_at LIMIT $3
    ))
"""


class Housekeeper:
    """Bounds clusters' logs and idempotency records; every call may raise StorageUnavailable."""

    def __init__(self, connections: ConnectionPool) -> None:
        self._writer = connections

    async def compact(
        self,
        cluster_id: int,
        *,
        keep_changes: int,
        keep_seconds: float,
        rows: int = COMPACTION_STEP_ROWS_MAX,
    ) -> tuple[int, bool]:
        """Do one compaction step; return the log's floor, and whether it rose (protocol rule P12).

        Repeat while it rises. The last `keep_changes` changes are kept, and all younger than
        `keep_seconds`.
        """
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                age = timedelta(seconds=keep_seconds)
                row = await connection.fetchrow(_COMPACT, cluster_id, keep_changes, age, rows)
        if row is None or row["floor_revision"] is None:
            raise gone()
        return row["floor_revision"], row["rose"]

    async def sweep_answers(self, cluster_id: int, *, keep_seconds: float) -> int:
        """Delete some idempotency records older than `keep_seconds` (protocol rule P11).

        Returns how many were deleted; repeat until it returns 0.
        """
        age = timedelta(seconds=keep_seconds)
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                status = await connection.execute(_SWEEP, cluster_id, age, SWEEP_ROWS_MAX)
        return int(status.rpartition(" ")[2])
