"""Reads objects from PostgreSQL, with one statement for each result."""

from collections.abc import Collection, Sequence

import asyncpg

from service.model.core.primitives import ObjectName
from service.model.log.commit import Head, ObjectKey, ObjectRow
from service.model.log.pages import PAGE_BYTES_MAX, ObjectPage, ObjectRead
from service.store.db.failures import unavailable_on_failure
from service.store.db.pool import ConnectionPool
from service.store.db.rows import gone, head_of

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


class Objects:
    """Reads the objects of clusters; every call may raise StorageUnavailable.

    Calls raise NotFound if no cluster has this id.
    """

    def __init__(self, connections: ConnectionPool) -> None:
        self._reader = connections

    async def read(
        self,
        cluster_id: int,
        after: ObjectKey | None,
        limit: int,
        namespaces: Collection[str] | None = None,
    ) -> ObjectPage:
        """Return up to `limit` objects of all kinds after `after`, by key (protocol rule P13).

        The page also ends with the object that reaches `PAGE_BYTES_MAX`. With `namespaces`, it has
        only these namespaces, the objects in them, and all other objects outside of namespaces. One
        statement reads rows and head, so both are of the same instant.
        """
        within = None if namespaces is None else list(namespaces)
        key = after or ObjectKey("", "", "")
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                rows = await connection.fetch(
                    _OBJECTS, cluster_id, *key, limit, PAGE_BYTES_MAX, within
                )
        return ObjectPage(*_split(rows))

    async def get(self, cluster_id: int, kind: str, namespace: str, name: str) -> ObjectRead:
        """Return one object, and the head at the same instant."""
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                rows = await connection.fetch(_OBJECT, cluster_id, kind, namespace, name)
        present, objects = _split(rows)
        return ObjectRead(present, objects[0] if objects else None)

    async def list(
        self,
        cluster_id: int,
        kind: str,
        *,
        namespace: str | None = None,
        node_name: str | None = None,
        after: ObjectName | None = None,
        limit: int,
    ) -> ObjectPage:
        """Return up to `limit` objects of a kind after `after`, ordered by namespace and name.

        The page also ends with the object that reaches `PAGE_BYTES_MAX`.
        """
        from service.store import statements  # noqa: PLC0415 - see there

        start: statements.After = "Start" if after is None else "Key"
        if after is not None and after[0] == namespace:
            start = "Name"
        query = statements.object_list(namespace is not None, node_name is not None, start)
        after_namespace, after_name = after or ("", "")
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
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
        return ObjectPage(*_split(rows))


def _split(rows: Sequence[asyncpg.Record]) -> tuple[Head, list[ObjectRow]]:
    """Return the head, which every row repeats, and the objects, if the rows have any."""
    if not rows:
        raise gone()
    return head_of(rows[0]), [_object(row) for row in rows if row["kind"] is not None]


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
