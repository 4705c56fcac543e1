"""Keeps a cluster's storage in order on PostgreSQL: leases, compaction, the sweeper."""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta

import asyncpg

from service.model.core.errors import NotFound
from service.model.log.commit import COMPACTION_STEP_ROWS_MAX, RESTORE_LIFT_REVISIONS, Head
from service.model.log.lease import (
    LEASE_SECONDS_MAX,
    REPORT_SECONDS_MAX,
    HeldLeases,
    Lease,
    ReplicaReport,
    ReplicaState,
)
from service.store.connecting.connections import Connections, Driver
from service.store.connecting.failures import unavailable_on_failure

_log = logging.getLogger(__name__)

SWEEP_ROWS_MAX = 1_000
"""How many idempotency records one step of the sweeper deletes at most."""


def _lasts(until: str, now: str) -> str:
    """Whether a lease has not ended; one that ends later than any can is of a clock that was set back."""
    return f"({until} > {now} AND {until} <= {now} + '{LEASE_SECONDS_MAX} s')"


LASTS = _lasts("l.until", "clock_timestamp()")
"""Whether the lease `l` has not ended."""

_COMPACT = "SELECT floor_revision, rose FROM compact_v1($1, $2, $3, $4)"
_LIFT = "SELECT lift_cluster_v1($1, $2)"
_CONTINUE = "SELECT continue_history_v1($1, $2, $3, $4)"
_NOTED = "SELECT n.system, n.timeline, n.database FROM history AS n WHERE n.cluster_id = $1"
_REVISION = "SELECT h.revision FROM head AS h WHERE h.cluster_id = $1"
_SWEEP = """
    DELETE FROM idempotency WHERE cluster_id = $1 AND ctid = ANY(ARRAY(
        SELECT ctid FROM idempotency
        WHERE cluster_id = $1 AND recorded_at < now() - $2::interval
        ORDER BY recorded_at LIMIT $3
    ))
"""
_TAKE = "SELECT lease_holder, lease_until FROM take_lease_v1($1, $2, $3, $4, $5)"
_EXPIRED = f"""
    SELECT l.name AS lease, c.name AS cluster
    FROM lease AS l JOIN cluster AS c USING (cluster_id)
    WHERE l.name = ANY($1)
        AND NOT {LASTS}
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
        AND {LASTS}
    FOR NO KEY UPDATE
"""  # noqa: S608 - put together from constants
# The time is that at which the transaction began.
_PROLONG = """
    UPDATE lease SET until = now() + $3::interval WHERE cluster_id = $1 AND name = ANY($2)
"""
_RELEASE = "DELETE FROM lease WHERE cluster_id = $1 AND name = $2 AND holder = $3"
_TRANSFER = f"""
    UPDATE lease SET holder = $4, until = now() + $5::interval
    WHERE cluster_id = $1 AND name = $2 AND holder = $3
        AND {_lasts("until", "now()")}
    RETURNING name
"""  # noqa: S608 - put together from constants
_ANNOUNCE = """
    INSERT INTO worker (servers, name, until) VALUES ($1, $2, clock_timestamp() + $3::interval)
    ON CONFLICT (servers, name) DO UPDATE SET until = excluded.until
"""
_FORGET_WORKERS = """
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
"""How old the report of a process gets before whichever process reports next removes it."""


class StoreUpkeep:
    """The part of the store that background work uses. Every call may raise StorageUnavailable."""

    def __init__(self, connections: Connections) -> None:
        self._writer = connections
        self.lifts = 0
        """How often this process has lifted revisions, as some may be lost."""

    async def acquire_lease(
        self, cluster_id: int, name: str, holder: str, seconds: float
    ) -> Lease | None:
        """Take or prolong a lease; returns None if another holder has it or the cluster is gone."""
        lease = await self._take_lease(cluster_id, name, holder, seconds)
        return lease if lease is not None and lease.holder == holder else None

    async def claim_lease(
        self, cluster_id: int, name: str, holder: str, seconds: float
    ) -> Lease | None:
        """Take or prolong a lease, or return that of its holder; None if the cluster is gone."""
        lease = await self._take_lease(cluster_id, name, holder, seconds)
        return lease or await self._take_lease(cluster_id, name, holder, seconds)

    async def _take_lease(
        self, cluster_id: int, name: str, holder: str, seconds: float
    ) -> Lease | None:
        """Take or prolong a lease, or return that of its holder.

        None: the cluster is gone, or the holder gave the lease back meanwhile.
        """
        lengths = timedelta(seconds=seconds), timedelta(seconds=LEASE_SECONDS_MAX)
        with unavailable_on_failure():
            async with self._writer.driver() as connection:
                row = await connection.fetchrow(_TAKE, cluster_id, name, holder, *lengths)
        if row is None:
            return None
        return Lease(
            cluster_id=cluster_id, name=name, holder=row["lease_holder"], until=row["lease_until"]
        )

    async def prolong_leases(self, held: HeldLeases, seconds: float) -> bool:
        """Prolong leases that are held still; False: at least one is not, and none is prolonged."""
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

    async def expired_leases(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """The leases of these names that have expired, so that their holders neither prolonged nor released them.

        Each comes with the name of its cluster.
        """
        with unavailable_on_failure():
            async with self._writer.driver() as connection:
                rows = await connection.fetch(_EXPIRED, names)
        return [(row["lease"], row["cluster"]) for row in rows]

    async def unattended(self, name: str, mention: bytes, kind: str = "Pod") -> list[str]:
        """The clusters whose lease of this name nobody holds, and that have an object with these bytes in its body.

        All objects of the kind in these clusters are read, which takes two or three seconds for a million.
        """
        with unavailable_on_failure():
            async with self._writer.driver() as connection:
                rows = await connection.fetch(_UNATTENDED, name, mention, kind)
        return [row["name"] for row in rows]

    async def pass_lease(
        self, cluster_id: int, name: str, holder: str, to: str, seconds: float
    ) -> bool:
        """Give a lease to another holder, if the holder still has it; return whether that was done."""
        values = (cluster_id, name, holder, to, timedelta(seconds=seconds))
        with unavailable_on_failure():
            async with self._writer.driver() as connection:
                return await connection.fetchval(_TRANSFER, *values) is not None

    async def announce_worker(
        self, servers: str, name: str, lease: str, seconds: float
    ) -> dict[str, int]:
        """Say that a worker is there for so long; how many leases of a name each worker holds that is there.

        `servers` is what workers that forward to each other have in common.
        """
        with unavailable_on_failure():
            async with self._writer.driver() as connection:
                await connection.execute(_ANNOUNCE, servers, name, timedelta(seconds=seconds))
                await connection.execute(_FORGET_WORKERS, servers, name)
                workers = await connection.fetch(_WORKERS, servers, name)
                held = {
                    row["holder"]: row["leases"] for row in await connection.fetch(_HOLDERS, lease)
                }
        return {row["name"]: held.get(row["name"], 0) for row in workers}

    async def withdraw_worker(self, servers: str, name: str) -> None:
        """Say that a worker is about to end."""
        with unavailable_on_failure():
            async with self._writer.driver() as connection:
                await connection.execute(_WITHDRAW, servers, name)

    async def release_lease(self, cluster_id: int, name: str, holder: str) -> None:
        """Give a lease back, if the holder still has it."""
        with unavailable_on_failure():
            async with self._writer.driver() as connection:
                await connection.execute(_RELEASE, cluster_id, name, holder)

    async def report_replicas(self, process: str, states: Mapping[int, ReplicaState]) -> None:
        """Store the state of a process's replicas, by cluster, in place of its earlier report."""
        revisions = [state.revision for state in states.values()]
        hashes = [state.hash for state in states.values()]
        values = (process, list(states), revisions, hashes, _FORGOTTEN)
        with unavailable_on_failure():
            async with self._writer.driver() as connection:
                await connection.execute(_REPORT, *values)

    async def replica_reports(self) -> list[ReplicaReport]:
        """The latest reports of running processes, ordered by cluster and process."""
        fresh = timedelta(seconds=REPORT_SECONDS_MAX)
        with unavailable_on_failure():
            async with self._writer.driver() as connection:
                rows = await connection.fetch(_REPORTS, fresh)
        return [ReplicaReport(**dict(row)) for row in rows]

    async def compact(
        self,
        cluster_id: int,
        *,
        keep_changes: int,
        keep_seconds: float,
        rows: int = COMPACTION_STEP_ROWS_MAX,
    ) -> tuple[int, bool]:
        """Make one step of compaction; returns the log's floor, and whether it rose (P12).

        If it rose, call this again. The last `keep_changes` changes are kept, and all that are
        younger than `keep_seconds`.
        """
        with unavailable_on_failure():
            async with self._writer.driver() as connection:
                age = timedelta(seconds=keep_seconds)
                row = await connection.fetchrow(_COMPACT, cluster_id, keep_changes, age, rows)
        if row is None or row["floor_revision"] is None:
            raise NotFound(f"There is no cluster {cluster_id}.")
        return row["floor_revision"], row["rose"]

    async def sweep_answers(self, cluster_id: int, *, keep_seconds: float) -> int:
        """Delete idempotency records that are older, and return how many; call it again until 0 (P11)."""
        age = timedelta(seconds=keep_seconds)
        with unavailable_on_failure():
            async with self._writer.driver() as connection:
                status = await connection.execute(_SWEEP, cluster_id, age, SWEEP_ROWS_MAX)
        return int(status.rpartition(" ")[2])

    async def lift_revision(self, cluster_id: int) -> None:
        """Begin a new history at a much higher revision, with an empty log, after a restore (P3).

        Every replica is loaded anew and every watcher lists anew. Raises NotFound if there is no
        such cluster.
        """
        with unavailable_on_failure():
            async with self._writer.driver() as connection:
                lifted = await connection.fetchval(_LIFT, cluster_id, RESTORE_LIFT_REVISIONS)
        if not lifted:
            raise NotFound(f"There is no cluster {cluster_id}.")

    async def continue_history(self, cluster_id: int, known: Head | None) -> bool:
        """Note of which history the cluster's revisions are; lift them if some may be lost (P3).

        `known` is the last head of which the caller has proof, None if it has none. Revisions are
        lifted, and this returns True, if the log lacks this head. They are lifted as well if the
        database was restored, or a standby was promoted, since a caller last noted the history,
        unless the log still has the head. Raises NotFound if there is no such cluster.
        """
        revision, tip = (None, None) if known is None else (known.revision, known.tip)
        with unavailable_on_failure():
            async with self._writer.driver() as connection:
                before = await connection.fetchrow(_NOTED, cluster_id)
                lifted: bool | None = await connection.fetchval(
                    _CONTINUE, cluster_id, revision, tip, RESTORE_LIFT_REVISIONS
                )
                if lifted:
                    self.lifts += 1
                    await _tell_lift(connection, cluster_id, before, revision)
        if lifted is None:
            raise NotFound(f"There is no cluster {cluster_id}.")
        return lifted


async def _tell_lift(
    connection: Driver, cluster_id: int, before: asyncpg.Record | None, known: int | None
) -> None:
    """Log why the revisions of a cluster were lifted, and from where to where.

    `before` is the history that was noted, and `known` the last revision that the caller knew.
    """
    after = await connection.fetchrow(_NOTED, cluster_id)
    told = {
        "reason": _reason(before, after),
        "known": "nothing" if known is None else known,
        "revision": await connection.fetchval(_REVISION, cluster_id),
    }
    _log.warning(
        "The database was restored, or a standby promoted: the revisions are lifted.", extra=told
    )


def _reason(before: asyncpg.Record | None, after: asyncpg.Record | None) -> str:
    if before is None or after is None or before == after:
        return "the log lacks a change that this server knows"
    differing = [name for name in before.keys() if before[name] != after[name]]  # noqa: SIM118
    return ", ".join(f"the {name} was {before[name]} and is {after[name]}" for name in differing)
