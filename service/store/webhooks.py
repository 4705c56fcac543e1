"""Webhooks, in a table of their own, since deliveries are not changes of the cluster."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta

import asyncpg
import msgspec

from service.model.log.audit_chain import AuditedCaller, AuditEntry
from service.model.log.lease import LEASE_SECONDS_MAX
from service.model.webhooks import Change, Settled, WebhookRow
from service.store.audit import AuditPolicy, add_rows
from service.store.db.connector import Connection
from service.store.db.failures import unavailable_on_failure
from service.store.db.pool import ConnectionPool
from service.store.db.rows import gone

_COLUMNS = WebhookRow.__struct_fields__
_NAMED = ", ".join(_COLUMNS)
_VALUES = ", ".join(f"${place}" for place in range(1, len(_COLUMNS) + 1))
_UPDATES = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS[2:])

_LIST = f"SELECT {_NAMED} FROM webhook WHERE cluster_id = $1 ORDER BY name"  # noqa: S608 - of columns
_READ = f"SELECT {_NAMED} FROM webhook WHERE cluster_id = $1 AND name = $2 FOR UPDATE"  # noqa: S608
# The cluster's row, which commits do not touch, serializes changes of its webhooks.
_LOCK = "SELECT FROM cluster WHERE cluster_id = $1 FOR NO KEY UPDATE"
_AROUND = """
    SELECT h.revision AS head, clock_timestamp() AS now,
        (SELECT count(*) FROM webhook WHERE cluster_id = $1 AND name <> $2) AS others
    FROM head AS h WHERE h.cluster_id = $1
"""
_WRITE = f"""
    INSERT INTO webhook ({_NAMED}) VALUES ({_VALUES})
    ON CONFLICT (cluster_id, name) DO UPDATE SET {_UPDATES}
"""  # noqa: S608 - of columns
_DELETE = "DELETE FROM webhook WHERE cluster_id = $1 AND name = $2"
# A lease that ends implausibly late was taken before the database's clock was set back.
_IS_DUE = f"""
    NOT d.disabled AND NOT d.stopped AND d.attempt_at <= clock_timestamp() AND (
        d.held_until IS NULL
        OR d.held_until NOT BETWEEN clock_timestamp()
            AND clock_timestamp() + '{LEASE_SECONDS_MAX} s'
    )
"""
_DUE = f"""
    SELECT d.cluster_id, d.name, h.revision AS head
    FROM webhook AS d JOIN head AS h ON h.cluster_id = d.cluster_id
    WHERE d.revision <> h.revision AND {_IS_DUE}
    ORDER BY d.attempt_at LIMIT $1
"""  # noqa: S608 - of constants
# Excludes webhooks that a concurrent delivery has advanced to the head that was read before.
_FREE = f"""
    SELECT d.name FROM webhook AS d
    WHERE d.cluster_id = $1 AND d.name = ANY($2) AND d.revision <> $3 AND {_IS_DUE}
    ORDER BY d.name
    FOR NO KEY UPDATE SKIP LOCKED
"""  # noqa: S608 - of constants
_CLAIM = f"""
    UPDATE webhook AS w SET holder = $3, held_until = now() + $4::interval
    WHERE w.cluster_id = $1 AND w.name = ANY($2)
    RETURNING {", ".join(f"w.{name}" for name in _COLUMNS)}
"""  # noqa: S608 - of columns


class Webhooks:
    """Stores the webhooks of clusters; every call may raise StorageUnavailable."""

    def __init__(self, writer: ConnectionPool, reader: ConnectionPool, policy: AuditPolicy) -> None:
        self._writer = writer
        self._reader = reader
        self._policy = policy

    async def list(self, cluster_id: int) -> Sequence[WebhookRow]:
        """Return all webhooks of a cluster, ordered by name."""
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                rows = await connection.fetch(_LIST, cluster_id)
        return [_row(row) for row in rows]

    async def change(
        self,
        cluster_id: int,
        name: str,
        change: Change,
        *,
        caller: AuditedCaller | None = None,
        dry_run: bool = False,
    ) -> WebhookRow | None:
        """Replace a webhook with the result of `change`; audit the caller; return the result.

        Raises what `change` raises, NotFound if no such cluster exists, and OutcomeUnknown if the
        database fails at its COMMIT.
        """
        async with self._writer.transaction() as connection:
            await connection.execute(_LOCK, cluster_id)
            around = await connection.fetchrow(_AROUND, cluster_id, name)
            if around is None:
                raise gone()
            before = await connection.fetchrow(_READ, cluster_id, name)
            after = change(Settled(row=_row(before) if before else None, **dict(around)))
            if not dry_run:
                await _write(connection, cluster_id, name, after)
                if caller is not None and self._policy.applies_to([caller]):
                    cluster = await connection.fetchval(
                        "SELECT name FROM cluster WHERE cluster_id = $1", cluster_id
                    )
                    await add_rows(connection, [AuditEntry(caller=caller, cluster=cluster)])
        return after

    async def claim(self, holder: str, seconds: float, limit: int) -> Sequence[WebhookRow]:
        """Claim up to `limit` due webhooks with undelivered changes, exclusively for `holder`."""
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                due = await connection.fetch(_DUE, limit)
        names = defaultdict[tuple[int, int], list[str]](list)
        for row in due:
            names[row["cluster_id"], row["head"]].append(row["name"])
        length = timedelta(seconds=seconds)
        claimed: list[WebhookRow] = []
        for (cluster_id, head), due_names in names.items():
            claimed += await self._claim(cluster_id, head, due_names, holder, length)
        return claimed

    async def _claim(
        self, cluster_id: int, head: int, names: Sequence[str], holder: str, length: timedelta
    ) -> Sequence[WebhookRow]:
        """Claim the webhooks of a cluster that no other process has claimed."""
        async with self._writer.transaction() as connection:
            free = await connection.fetch(_FREE, cluster_id, names, head)
            taken = [row["name"] for row in free]
            rows = await connection.fetch(_CLAIM, cluster_id, taken, holder, length)
        return [_row(row) for row in rows]


async def _write(
    connection: Connection, cluster_id: int, name: str, row: WebhookRow | None
) -> None:
    if row is None:
        await connection.execute(_DELETE, cluster_id, name)
    else:
        await connection.execute(_WRITE, *msgspec.structs.astuple(row))


def _row(row: asyncpg.Record) -> WebhookRow:
    return WebhookRow(**dict(row))
