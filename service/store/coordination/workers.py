"""The workers that forward requests to each other, on PostgreSQL."""

from datetime import timedelta

from service.store.coordination.leases import NOT_EXPIRED
from service.store.db.failures import unavailable_on_failure
from service.store.db.pool import ConnectionPool

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
    SELECT l.holder, count(*) AS leases FROM lease AS l WHERE l.name = $1 AND {NOT_EXPIRED}
    GROUP BY l.holder
"""  # noqa: S608 - put together from constants
_WITHDRAW = "DELETE FROM worker WHERE servers = $1 AND name = $2"


class Workers:
    """Stores which workers of all servers run; every call may raise StorageUnavailable."""

    def __init__(self, connections: ConnectionPool) -> None:
        self._writer = connections

    async def register(self, servers: str, name: str, lease: str, seconds: float) -> dict[str, int]:
        """Register a worker for `seconds`; return how many `lease` leases each live worker holds.

        `servers` identifies the group of workers that forward to each other.
        """
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                await connection.execute(_ANNOUNCE, servers, name, timedelta(seconds=seconds))
                await connection.execute(_FORGET, servers, name)
                workers = await connection.fetch(_WORKERS, servers, name)
                held = {
                    row["holder"]: row["leases"] for row in await connection.fetch(_HOLDERS, lease)
                }
        return {row["name"]: held.get(row["name"], 0) for row in workers}

    async def deregister(self, servers: str, name: str) -> None:
        """Deregister a worker that is about to stop."""
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                await connection.execute(_WITHDRAW, servers, name)
