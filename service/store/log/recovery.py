"""Lifts the revisions of clusters after a restore or a failover that may have lost some."""

import logging

import asyncpg

from service.model.log.commit import RESTORE_LIFT_REVISIONS, Head
from service.store.db.connector import Connection
from service.store.db.failures import unavailable_on_failure
from service.store.db.pool import ConnectionPool
from service.store.db.rows import gone

_log = logging.getLogger(__name__)

_LIFT = "SELECT lift_cluster_v1($1, $2)"
_CONTINUE = "SELECT continue_history_v1($1, $2, $3, $4)"
_NOTED = "SELECT n.system, n.timeline, n.database FROM history AS n WHERE n.cluster_id = $1"
_REVISION = "SELECT h.revision FROM head AS h WHERE h.cluster_id = $1"


class Recovery:
    """Continues or restarts the histories of clusters; every call may raise StorageUnavailable."""

    def __init__(self, connections: ConnectionPool) -> None:
        self._writer = connections
        self.lifts = 0
        """How often this process has lifted revisions because some may be lost."""

    async def lift_revision(self, cluster_id: int) -> None:
        """Begin a new history at a much higher revision, with an empty log (protocol rule P3).

        Call this after a restore. Every replica is reloaded, and every watcher lists again.

        Raises:
            NotFound: no such cluster exists.
        """
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                lifted = await connection.fetchval(_LIFT, cluster_id, RESTORE_LIFT_REVISIONS)
        if not lifted:
            raise gone()

    async def continue_history(self, cluster_id: int, known: Head | None) -> bool:
        """Record the cluster's current history; lift its revisions if some may be lost.

        This is protocol rule P3. `known` is the last head that the caller has seen, or
        None. Revisions are lifted, and this returns True, if the log lacks this head. They are also
        lifted if the database was restored, or a standby promoted, since the history was last
        recorded, unless the log has the head.

        Raises:
            NotFound: no such cluster exists.
        """
        revision, tip = (None, None) if known is None else (known.revision, known.tip)
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                before = await connection.fetchrow(_NOTED, cluster_id)
                lifted: bool | None = await connection.fetchval(
                    _CONTINUE, cluster_id, revision, tip, RESTORE_LIFT_REVISIONS
                )
                if lifted:
                    self.lifts += 1
                    await _log_lift(connection, cluster_id, before, revision)
        if lifted is None:
            raise gone()
        return lifted


async def _log_lift(
    connection: Connection, cluster_id: int, before: asyncpg.Record | None, known: int | None
) -> None:
    """Log why the revisions of a cluster were lifted, and to where.

    `before` is the recorded history, and `known` the last revision that the caller has seen.
    """
    after = await connection.fetchrow(_NOTED, cluster_id)
    fields = {
        "reason": _reason(before, after),
        "known": "nothing" if known is None else known,
        "revision": await connection.fetchval(_REVISION, cluster_id),
    }
    _log.warning(
        "The database was restored, or a standby promoted: the revisions are lifted.", extra=fields
    )


def _reason(before: asyncpg.Record | None, after: asyncpg.Record | None) -> str:
    if before is None or after is None or before == after:
        return "the log lacks a change that this server knows"
    differing = [name for name in before.keys() if before[name] != after[name]]  # noqa: SIM118
    return ", ".join(f"the {name} was {before[name]} and is {after[name]}" for name in differing)
