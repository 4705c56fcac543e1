"""Reads the log on PostgreSQL: floor, head, and a page in one statement (protocol rule P12)."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from service.model.log.commit import (
    ALL_BODIES,
    BodySelection,
    Change,
    CommitInfo,
    Diverged,
    LogPage,
)
from service.model.log.pages import PAGE_BYTES_MAX
from service.store.db.connector import Connection
from service.store.db.rows import gone, head_of
from service.store.log.paging import LogRows, build_page

# Each table's cluster is named, so that one server can be asked (see `distribution`). With two
# statements, a compaction in between would leave an unnoticed gap. The page includes the commit
# that ends at the requested revision, and fences; its last commit is the one that reaches or passes
# the limit of changes, or of bytes. PostgreSQL looks at the lengths of all bodies up to the first
# limit, but reads only those that it returns. OFFSET makes it look up the changes of each commit by
# their keys (protocol rule P15): for a cluster that it has not counted yet, it expects one change,
# and would compare each commit with the whole log.
_PAGE = """
    SELECT * FROM (
        SELECT
            f.revision AS floor, h.revision AS head_revision, h.tip AS head_tip, h.at AS head_at,
            k.commit_id, k.parent, k.first_revision, k.last_revision, k.planned_at,
            k.kind AS commit_kind, k.at AS commit_at,
            c.revision, c.verb, c.kind, c.namespace, c.name, c.uid, c.body, c.created, c.node_name,
            c.labels_before, c.fields_before,
            coalesce(sum(octet_length(c.body)) OVER (
                ORDER BY k.last_revision RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), 0) AS bytes_before
        FROM head AS h
        JOIN floor AS f ON f.cluster_id = $1
        LEFT JOIN commit AS k ON k.cluster_id = $1
            AND k.last_revision BETWEEN $2 AND coalesce(
                (SELECT last_revision FROM commit WHERE cluster_id = $1 AND last_revision >= $3
                 ORDER BY last_revision LIMIT 1), (SELECT revision FROM head WHERE cluster_id = $1))
        LEFT JOIN LATERAL (
            SELECT revision, verb, kind, namespace, name, uid, created, node_name, labels_before,
                fields_before,
                CASE WHEN ($5::text[] IS NULL OR kind = ANY($5))
                    AND ($6::text IS NULL OR namespace = $6) THEN body ELSE '' END AS body
            FROM change
            WHERE cluster_id = $1
                AND revision BETWEEN greatest(k.first_revision, $2 + 1) AND k.last_revision
            OFFSET 0) AS c ON true
        WHERE h.cluster_id = $1
    ) AS page
    WHERE bytes_before < $4
"""


async def read_page(
    connection: Connection,
    cluster_id: int,
    after: int,
    tip: UUID | None,
    limit: int,
    *,
    bytes_max: int = PAGE_BYTES_MAX,
    bodies: BodySelection = ALL_BODIES,
) -> LogPage | Diverged:
    """Return whole commits after (`after`, `tip`): about `limit` changes, at least one commit.

    The page also ends with the commit that reaches `bytes_max`.

    Raises:
        NotFound: no such cluster exists.
        ReplicaMismatch: the log has a gap.
    """
    kinds = None if bodies.kinds is None else sorted(bodies.kinds)
    values = (cluster_id, after, after + limit, bytes_max, kinds, bodies.namespace)
    rows = await connection.fetch(_PAGE, *values)
    if not rows:
        raise gone()
    return build_page(_extract(rows), after, tip, limit, bytes_max)


def _extract(rows: Sequence[asyncpg.Record]) -> LogRows:
    first = rows[0]
    head = head_of(first)
    commits = {row["commit_id"]: row for row in rows if row["commit_id"] is not None}
    changes = [_change(row) for row in rows if row["revision"] is not None]
    return LogRows(first["floor"], head, [_commit(row) for row in commits.values()], changes)


def _commit(row: asyncpg.Record) -> CommitInfo:
    return CommitInfo(
        commit_id=row["commit_id"],
        parent=row["parent"],
        first=row["first_revision"],
        last=row["last_revision"],
        planned_at=row["planned_at"],
        kind=row["commit_kind"],
        at=row["commit_at"],
    )


def _change(row: asyncpg.Record) -> Change:
    return Change(
        revision=row["revision"],
        verb=row["verb"],
        kind=row["kind"],
        namespace=row["namespace"],
        name=row["name"],
        uid=row["uid"],
        body=row["body"],
        created=row["created"],
        node_name=row["node_name"],
        labels_before=row["labels_before"],
        fields_before=row["fields_before"],
    )
