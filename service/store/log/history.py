"""Reads earlier revisions from PostgreSQL: from the log, and from objects unchanged since then.

One statement reads the keys of the objects that existed, and another their bodies. The past never
changes, so the second needs no common instant: it either finds the bodies of exactly those
revisions, or they have been compacted.
"""

from collections.abc import Sequence
from datetime import datetime

import asyncpg

from service.model.core.primitives import ObjectName
from service.model.log.commit import Head, ObjectRow
from service.model.log.history import (
    PastChanges,
    PastIndex,
    PastKey,
    PastSelection,
    PastState,
    ReadableHistory,
)
from service.model.log.pages import PAGE_BYTES_MAX
from service.model.selection.selectable_fields import WAS_PENDING
from service.store.db.failures import unavailable_on_failure
from service.store.db.pool import ConnectionPool
from service.store.db.rows import gone, head_of

# `reach` is where the log begins, or how far back it is read.
_BOUNDS = """
    WITH bounds AS MATERIALIZED (
        SELECT h.revision AS head_revision, h.tip AS head_tip, h.at AS head_at,
            greatest(f.revision, h.revision - $2::bigint) AS reach
        FROM head AS h JOIN floor AS f ON f.cluster_id = $1
        WHERE h.cluster_id = $1
    )
"""
# LIMIT and OFFSET make PostgreSQL look up objects and changes by their keys (protocol rule P15):
# for a cluster that it has not counted yet, it expects very few rows, and would compare each of
# them with each key.

# An object that has changed since the revision had the state that its last change before left, or
# did not exist if its first change afterwards created it. All others are as they are now. The log
# is aggregated in one pass, since reads join by index alone: `later` is twice the revision of that
# first change, plus one if that change created the object.
_LATER = """
            min(c.revision * 2 + c.created::int) FILTER (WHERE c.revision > $3) AS later,
            max(c.revision) FILTER (WHERE c.revision <= $3) AS earlier
        FROM change AS c
        WHERE c.cluster_id = $1 AND c.revision > (SELECT reach FROM bounds)
"""
_INDEX = f"""
    {_BOUNDS}
    , changed AS MATERIALIZED (
        SELECT c.namespace, c.name, {_LATER} AND c.kind = $4
            AND ($5::text IS NULL OR c.namespace = $5) AND ($6::text IS NULL OR c.name = $6)
        GROUP BY c.namespace, c.name HAVING max(c.revision) > $3::bigint
    ), present AS (
        SELECT o.namespace, o.name, o.revision FROM object AS o
        WHERE o.cluster_id = $1 AND o.kind = $4 AND o.revision <= $3
            AND ($5::text IS NULL OR o.namespace = $5) AND ($6::text IS NULL OR o.name = $6)
            AND ($7::text IS NULL OR o.node_name = $7)
        UNION ALL
        SELECT c.namespace, c.name, c.revision
        FROM changed, LATERAL (
            SELECT * FROM change WHERE cluster_id = $1 AND revision = changed.earlier LIMIT 1) AS c
        WHERE changed.later % 2 = 0 AND c.verb = 'Put' AND ($7::text IS NULL OR c.node_name = $7)
    ), page AS (
        SELECT p.namespace COLLATE "C" AS namespace, p.name COLLATE "C" AS name, p.revision
        FROM present AS p
        WHERE (p.namespace COLLATE "C", p.name COLLATE "C") > ($8::text, $9::text)
        ORDER BY 1, 2
        LIMIT $10
    )
    SELECT b.*, (SELECT count(*) FROM changed WHERE later % 2 = 0 AND earlier IS NULL) AS unknown,
        page.namespace, page.name, page.revision
    FROM bounds AS b LEFT JOIN page ON true
    ORDER BY page.namespace, page.name
"""  # noqa: S608 - put together from constants
_READABLE = f"""
    {_BOUNDS}
    , first AS (
        SELECT c.kind, min(c.revision * 2 + c.created::int) AS change
        FROM change AS c
        WHERE c.cluster_id = $1 AND c.revision > (SELECT reach FROM bounds)
            AND ($3::text IS NULL OR c.kind = $3)
            AND ($4::text IS NULL OR c.namespace = $4) AND ($5::text IS NULL OR c.name = $5)
        GROUP BY c.kind, c.namespace, c.name
    )
    SELECT b.*, first.kind, max(first.change / 2) AS revision
    FROM bounds AS b LEFT JOIN first ON first.change % 2 = 0
    GROUP BY b.head_revision, b.head_tip, b.head_at, b.reach, first.kind
"""  # noqa: S608 - put together from constants
_CHANGED = f"""
    {_BOUNDS}
    , changed AS MATERIALIZED (
        SELECT c.kind, c.namespace, c.name, {_LATER} AND c.kind <> ALL($4::text[])
        GROUP BY c.kind, c.namespace, c.name HAVING max(c.revision) > $3::bigint
    ), states AS (
        SELECT changed.kind, changed.namespace, changed.name, c.revision
        FROM changed LEFT JOIN LATERAL (
            SELECT * FROM change
            WHERE changed.later % 2 = 0 AND cluster_id = $1 AND revision = changed.earlier
            LIMIT 1) AS c ON c.verb = 'Put'
        LIMIT $5
    )
    SELECT b.*, (SELECT count(*) FROM changed WHERE later % 2 = 0 AND earlier IS NULL) AS unknown,
        s.kind, s.namespace, s.name, s.revision
    FROM bounds AS b LEFT JOIN states AS s ON true
"""  # noqa: S608 - put together from constants
# The commit of a revision. A fence has no changes, so it ends before it begins.
_ITS_COMMIT = """
    k.cluster_id = $1 AND k.first_revision <= $2 AND k.last_revision = (
        SELECT min(last_revision) FROM commit
        WHERE cluster_id = $1 AND last_revision >= $2 AND last_revision >= first_revision)
"""
_COMMITTED_AT = f"SELECT k.at FROM commit AS k WHERE {_ITS_COMMIT}"  # noqa: S608 - put together from constants
_BOUND_AT = f"""
    SELECT c.revision
    FROM commit AS k, LATERAL (
        SELECT * FROM change
        WHERE cluster_id = $1 AND revision BETWEEN k.first_revision AND k.last_revision
        OFFSET 0) AS c
    WHERE {_ITS_COMMIT}
        AND c.kind = 'Pod' AND c.namespace = $3 AND c.name = $4
        AND c.verb = 'Put' AND c.node_name IS NOT NULL
        AND (c.created OR position($5::bytea IN c.fields_before) > 0)
    ORDER BY c.revision DESC LIMIT 1
"""  # noqa: S608 - put together from constants
_BODIES = """
    SELECT * FROM (
        SELECT w.namespace, w.name, w.revision, w.place,
            coalesce(o.uid, c.uid) AS uid, coalesce(o.body, c.body) AS body,
            CASE WHEN o.revision IS NULL THEN c.node_name ELSE o.node_name END AS node_name,
            sum(octet_length(coalesce(o.body, c.body))) OVER (ORDER BY w.place)
                - octet_length(coalesce(o.body, c.body)) AS bytes_before
        FROM unnest($3::text[], $4::text[], $5::bigint[]) WITH ORDINALITY
            AS w (namespace, name, revision, place)
        LEFT JOIN LATERAL (
            SELECT * FROM object
            WHERE cluster_id = $1 AND kind = $2 AND namespace = w.namespace AND name = w.name
                AND revision = w.revision
            LIMIT 1) AS o ON true
        LEFT JOIN LATERAL (
            SELECT * FROM change
            WHERE o.revision IS NULL AND cluster_id = $1 AND revision = w.revision
            LIMIT 1) AS c ON true
    ) AS found
    WHERE bytes_before < $6 OR body IS NULL
    ORDER BY place
"""


class History:
    """Reads earlier revisions of clusters; every call may raise StorageUnavailable.

    Calls raise NotFound if no cluster has this id.
    """

    def __init__(self, connections: ConnectionPool) -> None:
        self._reader = connections

    async def index(
        self,
        cluster_id: int,
        selection: PastSelection,
        revision: int,
        *,
        changes_max: int,
        after: ObjectName | None = None,
        node_name: str | None = None,
        limit: int,
    ) -> PastIndex:
        """Return up to `limit` objects of a kind that existed at a revision, after the key `after`.

        At most the last `changes_max` changes of the log are read.
        """
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                rows = await connection.fetch(
                    _INDEX,
                    cluster_id,
                    changes_max,
                    revision,
                    selection.kind,
                    selection.namespace,
                    selection.name,
                    node_name,
                    *(after or ("", "")),
                    limit,
                )
        head, reach = _bounds(rows)
        keys = [
            PastKey(row["namespace"], row["name"], row["revision"])
            for row in rows
            if row["revision"] is not None
        ]
        return PastIndex(head=head, reach=reach, unknown=rows[0]["unknown"], keys=keys)

    async def objects(
        self, cluster_id: int, kind: str, keys: Sequence[PastKey]
    ) -> list[ObjectRow] | None:
        """Return the past objects of these keys, up to the one that reaches `PAGE_BYTES_MAX`.

        Returns None if one of them is no longer in the log.
        """
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                rows = await connection.fetch(
                    _BODIES,
                    cluster_id,
                    kind,
                    [key.namespace for key in keys],
                    [key.name for key in keys],
                    [key.revision for key in keys],
                    PAGE_BYTES_MAX,
                )
        if any(row["body"] is None for row in rows):
            return None
        return [
            ObjectRow(
                kind=kind,
                namespace=row["namespace"],
                name=row["name"],
                uid=row["uid"],
                revision=row["revision"],
                body=row["body"],
                node_name=row["node_name"],
            )
            for row in rows
        ]

    async def changes(
        self,
        cluster_id: int,
        revision: int,
        *,
        changes_max: int,
        limit: int,
        without: Sequence[str] = (),
    ) -> PastChanges:
        """Return up to `limit` objects changed since a revision, of all kinds but `without`."""
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                rows = await connection.fetch(
                    _CHANGED, cluster_id, changes_max, revision, list(without), limit
                )
        head, reach = _bounds(rows)
        states = [
            PastState(row["kind"], row["namespace"], row["name"], row["revision"])
            for row in rows
            if row["kind"] is not None
        ]
        return PastChanges(head=head, reach=reach, unknown=rows[0]["unknown"], states=states)

    async def bound_at(
        self, cluster_id: int, namespace: str, name: str, revision: int
    ) -> int | None:
        """Return the change that bound a pod in the commit of a revision, or None."""
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                bound: int | None = await connection.fetchval(
                    _BOUND_AT, cluster_id, revision, namespace, name, WAS_PENDING
                )
        return bound

    async def committed_at(self, cluster_id: int, revision: int) -> datetime | None:
        """Return when a revision was committed, or None if its commit is not in the log."""
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                at: datetime | None = await connection.fetchval(_COMMITTED_AT, cluster_id, revision)
        return at

    async def readable(
        self, cluster_id: int, selection: PastSelection, *, changes_max: int
    ) -> ReadableHistory:
        """Return how far back the selected objects can be read, within `changes_max` changes."""
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                rows = await connection.fetch(
                    _READABLE,
                    cluster_id,
                    changes_max,
                    selection.kind,
                    selection.namespace,
                    selection.name,
                )
        head, reach = _bounds(rows)
        by_kind = {row["kind"]: row["revision"] for row in rows if row["kind"] is not None}
        return ReadableHistory(head=head, reach=reach, by_kind=by_kind)


def _bounds(rows: Sequence[asyncpg.Record]) -> tuple[Head, int]:
    """Return the head and how far back the log is read, which every row repeats."""
    if not rows:
        raise gone()
    return head_of(rows[0]), rows[0]["reach"]
