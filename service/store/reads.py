"""Reads objects on PostgreSQL; every answer comes from one statement."""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

import asyncpg

from service.model.core.errors import NotFound
from service.model.core.primitives import ObjectName
from service.model.log.commit import (
    ALL_BODIES,
    BodySelection,
    Diverged,
    Head,
    LogPage,
    ObjectKey,
    ObjectRow,
)
from service.model.log.pages import PAGE_BYTES_MAX, ObjectPage, ObjectRead
from service.store.connecting.connections import Connections
from service.store.connecting.failures import unavailable_on_failure
from service.store.log.log_reads import read_page

_HEAD = "SELECT revision, tip, at FROM head WHERE cluster_id = $1"
_HEADS = "SELECT cluster_id, revision, tip, at FROM head WHERE cluster_id = ANY($1)"
_OBJECTS = """
    SELECT h.revision AS head_revision, h.tip AS head_tip, h.at AS head_at,
        o.kind, o.namespace, o.name, o.uid, o.revision, o.body, o.node_name
    FROM head AS h
    LEFT JOIN LATERAL (
        SELECT * FROM (
            SELECT *, sum(octet_length(body)) OVER (ORDER BY kind, namespace, name) - octet_length(body) AS bytes_before
            FROM object
            WHERE cluster_id = $1 AND (kind, namespace, name) > ($2, $3, $4)
                AND ($7::text[] IS NULL OR namespace = ANY($7)
                    OR namespace = '' AND (kind <> 'Namespace' OR name = ANY($7)))
            ORDER BY kind, namespace, name
            LIMIT $5
        ) AS page
        WHERE bytes_before < $6
    ) AS o ON true
    WHERE h.cluster_id = $1
    ORDER BY o.kind, o.namespace, o.name
"""

_OBJECT = """
    SELECT h.revision AS head_revision, h.tip AS head_tip, h.at AS head_at,
        o.kind, o.namespace, o.name, o.uid, o.revision, o.body, o.node_name
    FROM head AS h
    LEFT JOIN object AS o ON o.cluster_id = $1 AND o.kind = $2 AND o.namespace = $3
        AND o.name = $4
    WHERE h.cluster_id = $1
"""


class Reads:
    """The part of the store that only reads. Every call may raise StorageUnavailable.

    Calls that name a cluster raise NotFound if there is none with that number.
    """

    def __init__(self, connections: Connections) -> None:
        self._reads = connections

    async def now(self) -> datetime:
        """The database's clock, by which due times and leases are judged (P16)."""
        with unavailable_on_failure():
            async with self._reads.driver() as connection:
                now: datetime = await connection.fetchval("SELECT clock_timestamp()")
                return now

    async def head(self, cluster_id: int) -> Head:
        """The head, at which the log ends, read after this call began (P8)."""
        with unavailable_on_failure():
            async with self._reads.driver() as connection:
                row = await connection.fetchrow(_HEAD, cluster_id)
        return _head(cluster_id, row)

    async def heads(self, cluster_ids: Sequence[int]) -> dict[int, Head]:
        """The heads of several logs, read in one statement; clusters that are gone are absent."""
        with unavailable_on_failure():
            async with self._reads.driver() as connection:
                rows = await connection.fetch(_HEADS, list(cluster_ids))
        return {row["cluster_id"]: Head(row["revision"], row["tip"], row["at"]) for row in rows}

    async def read_log(
        self,
        cluster_id: int,
        after: int,
        tip: UUID | None,
        limit: int,
        *,
        bytes_max: int = PAGE_BYTES_MAX,
        bodies: BodySelection = ALL_BODIES,
    ) -> LogPage | Diverged:
        """Whole commits after a revision whose last commit was `tip` (P3, P12).

        A page has at least `limit` changes, or bodies of `bytes_max` bytes, unless it reaches the
        head, and never part of a commit. A caller that knows no tip (a watch may begin in the middle of a commit) gives
        None, and only the revision is compared.

        Raises:
            ReplicaMismatch: the log has a gap.
        """
        with unavailable_on_failure():
            async with self._reads.driver() as connection:
                return await read_page(
                    *(connection, cluster_id, after, tip, limit),
                    bytes_max=bytes_max,
                    bodies=bodies,
                )

    async def read_objects(
        self,
        cluster_id: int,
        after: ObjectKey | None,
        limit: int,
        namespaces: Collection[str] | None = None,
    ) -> ObjectPage:
        """At most `limit` objects of all kinds that follow the key `after`, ordered by their keys (P13).

        The page ends, too, with the object that reaches `PAGE_BYTES_MAX`. With `namespaces` it has
        only these namespaces, the objects in them, and all objects that are neither namespaces nor
        in one. One statement reads rows and head, so both are of the same instant.
        """
        within = None if namespaces is None else list(namespaces)
        key = after or ObjectKey("", "", "")
        with unavailable_on_failure():
            async with self._reads.driver() as connection:
                rows = await connection.fetch(
                    _OBJECTS, cluster_id, *key, limit, PAGE_BYTES_MAX, within
                )
        return ObjectPage(*_split(cluster_id, rows))

    async def get_object(self, cluster_id: int, kind: str, namespace: str, name: str) -> ObjectRead:
        """One object, and the head of the same instant."""
        with unavailable_on_failure():
            async with self._reads.driver() as connection:
                rows = await connection.fetch(_OBJECT, cluster_id, kind, namespace, name)
        present, found = _split(cluster_id, rows)
        return ObjectRead(present, found[0] if found else None)

    async def list_objects(
        self,
        cluster_id: int,
        kind: str,
        *,
        namespace: str | None = None,
        node_name: str | None = None,
        after: ObjectName | None = None,
        limit: int,
    ) -> ObjectPage:
        """At most `limit` objects that follow the key `after`, ordered by namespace and name.

        The page ends, too, with the object that reaches `PAGE_BYTES_MAX`.
        """
        from service.store import compiled_statements  # noqa: PLC0415 - see there

        start: compiled_statements.After = "Start" if after is None else "Key"
        if after is not None and after[0] == namespace:
            start = "Name"
        query = compiled_statements.object_list(namespace is not None, node_name is not None, start)
        after_namespace, after_name = after or ("", "")
        with unavailable_on_failure():
            async with self._reads.driver() as connection:
                rows = await query.fetch(
                    connection,
                    cluster=cluster_id,
                    kind=kind,
                    namespace=namespace,
                    node_name=node_name,
                    after_namespace=after_namespace,
                    after_name=after_name,
                    limit=limit,
                    bytes_max=PAGE_BYTES_MAX,
                )
        return ObjectPage(*_split(cluster_id, rows))


def _split(cluster_id: int, rows: Sequence[asyncpg.Record]) -> tuple[Head, list[ObjectRow]]:
    """The head, which every row repeats, and the objects; if there is none, one row has the head alone."""
    if not rows:
        raise _gone(cluster_id)
    first = rows[0]
    present = Head(first["head_revision"], first["head_tip"], first["head_at"])
    return present, [_object(row) for row in rows if row["kind"] is not None]


def _object(row: asyncpg.Record) -> ObjectRow:
    return ObjectRow(
        kind=row["kind"],
        namespace=row["namespace"],
        name=row["name"],
        uid=row["uid"],
        revision=row["revision"],
        body=row["body"],
        node_name=row["node_name"],
    )


def _head(cluster_id: int, row: asyncpg.Record | None) -> Head:
    if row is None:
        raise _gone(cluster_id)
    return Head(row["revision"], row["tip"], row["at"])


def _gone(cluster_id: int) -> NotFound:
    return NotFound(f"There is no cluster {cluster_id}.")
