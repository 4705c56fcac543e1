"""Events on PostgreSQL: added in bulk, listed by key, and bounded by age and number."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import asyncpg

from service.model.core.primitives import ObjectName
from service.model.core.times import rfc3339
from service.model.log.events import Event, EventRow, rows_of
from service.model.log.pages import EventPage
from service.store.db import arrays
from service.store.db.failures import unavailable_on_failure
from service.store.db.pool import ConnectionPool
from service.store.db.rows import gone, head_of

SWEEP_EVENTS_MAX = 5_000
"""The maximum number of events that one call of `sweep` deletes."""

_COLUMN_TYPES = (*("text",) * 7, *("bigint",) * 2, *("timestamptz",) * 2)
EVENT_COLUMNS = len(_COLUMN_TYPES)
"""The number of columns of an event."""
_LIST = """
    SELECT h.revision AS head_revision, h.tip AS head_tip, h.at AS head_at,
        e.namespace, e.name, e.pod, e.uid, e.type, e.reason, e.message, e.revision, e.count,
        e.first_at, e.last_at
    FROM head AS h
    LEFT JOIN LATERAL (
        SELECT * FROM event
        WHERE cluster_id = $1 AND ($2::text IS NULL OR namespace = $2)
            AND ($3::text IS NULL OR (namespace, name) > ($3, $4))
        ORDER BY namespace, name LIMIT $5
    ) AS e ON true
    WHERE h.cluster_id = $1
    ORDER BY e.namespace, e.name
"""
_SWEEP = """
    DELETE FROM event WHERE cluster_id = $1 AND (namespace, name) IN (
        SELECT namespace, name FROM (
            SELECT namespace, name, last_at,
                row_number() OVER (PARTITION BY reason ORDER BY last_at DESC) AS place
            FROM event WHERE cluster_id = $1
        ) AS e
        WHERE last_at < now() - $2::interval OR place > $3 LIMIT $4
    )
"""


_ARRAYS = arrays.placeholders(_COLUMN_TYPES, 2)
_ADD = f"SELECT add_events_v1($1, {_ARRAYS})"


class Events:
    """Stores the events of clusters; every call may raise StorageUnavailable."""

    def __init__(self, writer: ConnectionPool, reader: ConnectionPool) -> None:
        self._writer = writer
        self._reader = reader

    async def add(self, cluster_id: int, events: Sequence[Event]) -> None:
        """Add events, or increment the counts of equal ones; ignore a missing cluster."""
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                await connection.execute(_ADD, cluster_id, *event_columns(events))

    async def list(
        self,
        cluster_id: int,
        *,
        namespace: str | None = None,
        after: ObjectName | None = None,
        limit: int,
    ) -> EventPage:
        """Return up to `limit` events after the key `after`, ordered by namespace and name."""
        key = after or (None, None)
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                rows = await connection.fetch(_LIST, cluster_id, namespace, *key, limit)
        if not rows:
            raise gone()
        return EventPage(head_of(rows[0]), [_row(row) for row in rows if row["name"] is not None])

    async def sweep(self, cluster_id: int, *, keep_seconds: float, keep_rows: int) -> int:
        """Delete events older than `keep_seconds`, or beyond `keep_rows` per reason.

        Returns how many were deleted; repeat until it returns 0.
        """
        age = timedelta(seconds=keep_seconds)
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                status = await connection.execute(
                    _SWEEP, cluster_id, age, keep_rows, SWEEP_EVENTS_MAX
                )
        return int(status.rpartition(" ")[2])


def event_columns(events: Sequence[Event]) -> tuple[str, ...]:
    """Return events as the array arguments of the database functions, one per column."""
    rows = rows_of(events)
    events = [row.event for row in rows]
    return (
        arrays.texts([event.namespace for event in events]),
        arrays.texts([row.name for row in rows]),
        arrays.texts([event.pod for event in events]),
        arrays.texts([event.uid for event in events]),
        arrays.texts([event.type for event in events]),
        arrays.texts([event.reason for event in events]),
        arrays.texts([event.message for event in events]),
        arrays.integers([event.revision for event in events]),
        arrays.integers([event.count for event in events]),
        arrays.texts([event.first for event in events]),
        arrays.texts([event.last for event in events]),
    )


def _row(row: asyncpg.Record) -> EventRow:
    event = Event(
        namespace=row["namespace"],
        pod=row["pod"],
        uid=row["uid"],
        type=row["type"],
        reason=row["reason"],
        message=row["message"],
        revision=row["revision"],
        first=_timestamp(row["first_at"]),
        last=_timestamp(row["last_at"]),
        count=row["count"],
    )
    return EventRow(name=row["name"], event=event)


def _timestamp(at: datetime) -> str:
    return rfc3339(at, "seconds")
