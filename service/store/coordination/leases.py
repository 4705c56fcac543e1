"""Leases on PostgreSQL, which assign parts of a cluster's work to processes."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta

from service.model.log.lease import LEASE_SECONDS_MAX, HeldLeases, Lease
from service.store.db.failures import unavailable_on_failure
from service.store.db.pool import ConnectionPool


def _not_expired(until: str, now: str) -> str:
    """Return SQL that is true for a current lease, but not for one that ends implausibly late.

    Such a lease was taken before the clock was set back.
    """
    return f"({until} > {now} AND {until} <= {now} + '{LEASE_SECONDS_MAX} s')"


NOT_EXPIRED = _not_expired("l.until", "clock_timestamp()")
"""SQL that is true if the lease `l` has not expired."""

_TAKE = "SELECT lease_holder, lease_until FROM take_lease_v1($1, $2, $3, $4, $5)"
_EXPIRED = f"""
    SELECT l.name AS lease, c.name AS cluster
    FROM lease AS l JOIN cluster AS c USING (cluster_id)
    WHERE l.name = ANY($1)
        AND NOT {NOT_EXPIRED}
    ORDER BY l.name, c.name
"""  # noqa: S608 - put together from constants
_UNATTENDED = """
    SELECT c.name FROM head AS h JOIN cluster AS c ON c.cluster_id = h.cluster_id
    WHERE NOT EXISTS (SELECT FROM lease AS l WHERE l.cluster_id = h.cluster_id AND l.name = $1)
        AND EXISTS (
            SELECT FROM object AS o
            WHERE o.cluster_id = h.cluster_id AND o.kind = $3 AND position($2 IN o.body) > 0
        )
    ORDER BY c.name
"""
_HELD = f"""
    SELECT l.name FROM lease AS l
    WHERE l.cluster_id = $1 AND l.name = ANY($2) AND l.holder = $3
        AND {NOT_EXPIRED}
    FOR NO KEY UPDATE
"""  # noqa: S608 - put together from constants
# now() is the time at which the transaction began.
_PROLONG = """
    UPDATE lease SET until = now() + $3::interval WHERE cluster_id = $1 AND name = ANY($2)
"""
_RELEASE = "DELETE FROM lease WHERE cluster_id = $1 AND name = $2 AND holder = $3"
_TRANSFER = f"""
    UPDATE lease SET holder = $4, until = now() + $5::interval
    WHERE cluster_id = $1 AND name = $2 AND holder = $3
        AND {_not_expired("until", "now()")}
    RETURNING name
"""  # noqa: S608 - put together from constants


class Leases:
    """Stores the leases of clusters; every call may raise StorageUnavailable."""

    def __init__(self, connections: ConnectionPool) -> None:
        self._writer = connections

    async def acquire(
        self, cluster_id: int, name: str, holder: str, seconds: float
    ) -> Lease | None:
        """Acquire or extend a lease; return None if another holds it or the cluster is gone."""
        lease = await self._take(cluster_id, name, holder, seconds)
        return lease if lease is not None and lease.holder == holder else None

    async def claim(self, cluster_id: int, name: str, holder: str, seconds: float) -> Lease | None:
        """Acquire or extend a lease, or return its current holder's; None without a cluster."""
        lease = await self._take(cluster_id, name, holder, seconds)
        return lease or await self._take(cluster_id, name, holder, seconds)

    async def _take(self, cluster_id: int, name: str, holder: str, seconds: float) -> Lease | None:
        """Acquire or extend a lease, or return its current holder's.

        Returns None if the cluster does not exist, or if the holder has just released the lease.
        """
        lengths = timedelta(seconds=seconds), timedelta(seconds=LEASE_SECONDS_MAX)
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                row = await connection.fetchrow(_TAKE, cluster_id, name, holder, *lengths)
        if row is None:
            return None
        return Lease(
            cluster_id=cluster_id, name=name, holder=row["lease_holder"], until=row["lease_until"]
        )

    async def prolong(self, held: HeldLeases, seconds: float) -> bool:
        """Extend all of these leases; if any has been lost, extend none and return False."""
        by_cluster = defaultdict[int, list[str]](list)
        for cluster_id, lease in sorted(held.names):
            by_cluster[cluster_id].append(lease)
        length = timedelta(seconds=seconds)
        async with self._writer.transaction() as connection:
            for cluster_id, names in by_cluster.items():
                still = await connection.fetch(_HELD, cluster_id, names, held.holder)
                if len(still) < len(names):
                    return False
            for cluster_id, names in by_cluster.items():
                await connection.execute(_PROLONG, cluster_id, names, length)
        return True

    async def transfer(
        self, cluster_id: int, name: str, holder: str, to: str, seconds: float
    ) -> bool:
        """Transfer a lease to another holder; return False if `holder` no longer has it."""
        values = (cluster_id, name, holder, to, timedelta(seconds=seconds))
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                return await connection.fetchval(_TRANSFER, *values) is not None

    async def release(self, cluster_id: int, name: str, holder: str) -> None:
        """Release a lease, if the holder still has it."""
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                await connection.execute(_RELEASE, cluster_id, name, holder)

    async def expired(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """Return the names of leases that expired unreleased, each with its cluster's name."""
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                rows = await connection.fetch(_EXPIRED, names)
        return [(row["lease"], row["cluster"]) for row in rows]

    async def unattended(self, name: str, mention: bytes, kind: str = "Pod") -> list[str]:
        """Return the clusters without such a lease whose objects contain `mention`.

        All objects of the kind in these clusters are scanned: two to three seconds per million.
        """
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                rows = await connection.fetch(_UNATTENDED, name, mention, kind)
        return [row["name"] for row in rows]
