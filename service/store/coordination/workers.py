"""Workers that forward requests to each other, on PostgreSQL: which of them are there."""

from datetime import timedelta

from service.store.coordination.leases import LASTS
from service.store.db.failures import unavailable_on_failure
from service.store.db.pool import Connections

_ANNOUNCE = """
    INSERT INTO worker (servers, name, until) VALUES ($1, $2, clock_timestamp() + $3::interval)
    ON CONFLICT (servers, name) DO UPDATE SET until = excluded.until
"""
_FORGET = """
    DELETE FROM worker WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM worker WHERE until <= clock_timestamp() AND NOT (servers = $1 AND name = $2)
        ORDER BY servers, name FOR UPDATE SKIP LOCKED
    ))
"""
_WORKERS = """
    SELECT name FROM worker WHERE servers = $1 AND (until > clock_timestamp() OR name = $2)
"""
_HOLDERS = f"""
    SELECT l.holder, count(*) AS leases FROM lease AS l WHERE l.name = $1 AND {LASTS}
    GROUP BY l.holder
"""  # noqa: S608 - put together from constants
_WITHDRAW = "DELETE FROM worker WHERE servers = $1 AND name = $2"


class Workers:
    """The workers of all servers. Every call may raise StorageUnavailable."""

    def __init__(self, connections: Connections) -> None:
        self._writer = connections

    async def announce(self, servers: str, name: str, lease: str, seconds: float) -> dict[str, int]:
        """Say that a worker is there for so long; how many leases of a name each worker holds that is there.

        `servers` is what workers that forward to each other have in common.
        """
        with unavailable_on_failure():
            async with self._writer.driver() as connection:
                await connection.execute(_ANNOUNCE, servers, name, timedelta(seconds=seconds))
                await connection.execute(_FORGET, servers, name)
                workers = await connection.fetch(_WORKERS, servers, name)
                held = {
                    row["holder"]: row["leases"] for row in await connection.fetch(_HOLDERS, lease)
                }
        return {row["name"]: held.get(row["name"], 0) for row in workers}

    async def withdraw(self, servers: str, name: str) -> None:
        """Say that a worker is about to end."""
        with unavailable_on_failure():
            async with self._writer.driver() as connection:
                await connection.execute(_WITHDRAW, servers, name)
