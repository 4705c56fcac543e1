"""Finds contradictions in the rows of a database, as of one instant.

Everything is read in one read-only transaction, so concurrent commits are not seen. Rows are read
in slices, and PostgreSQL sorts and joins, on disk where necessary, so the memory of this process is
bounded.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

import asyncpg
import msgspec

from service.model.core.access import ADMIN, Grant
from service.model.log.audit_chain import Verifier
from service.model.log.commit import ObjectRow
from service.model.verification_findings import FINDINGS_MAX, Check, Finding
from service.store.audit import audit_row
from service.store.db.connector import Connection, connector
from service.store.db.failures import unavailable_on_failure

SLICE_ROWS = 1_000
"""The number of rows in memory at once."""

_SETTINGS = {"idle_in_transaction_session_timeout": "0", "statement_timeout": "0"}
"""No time limits: checking a slice may take longer than a server's transaction may be idle."""

_CLUSTERS = "SELECT name, cluster_id FROM cluster ORDER BY name"
_SIZE = """
    SELECT coalesce((SELECT revision FROM head WHERE cluster_id = $1), 0) AS revision,
        (SELECT count(*) FROM change WHERE cluster_id = $1) AS changes
"""

# Each of these statements returns the `subject` and `message` of each finding. OFFSET makes
# PostgreSQL look up commits by their ends: a restored database has no statistics yet, so it would
# compare each commit with all others, and with each change.
_ENDS = """
    SELECT 'head' AS subject, 'The cluster has no head.' AS message
    WHERE NOT EXISTS (SELECT FROM head WHERE cluster_id = $1)
    UNION ALL
    SELECT 'floor', 'The cluster has no floor.'
    WHERE NOT EXISTS (SELECT FROM floor WHERE cluster_id = $1)
    UNION ALL
    SELECT 'floor', format('It is %s, above the head at %s.', f.revision, h.revision)
    FROM floor AS f JOIN head AS h ON h.cluster_id = $1
    WHERE f.cluster_id = $1 AND f.revision > h.revision
    UNION ALL
    SELECT 'head', format('It is revision %s with the tip %s, but no commit of the log ends there.',
        h.revision, h.tip)
    FROM head AS h JOIN floor AS f ON f.cluster_id = $1
    WHERE h.cluster_id = $1
        AND (h.revision > f.revision OR EXISTS (SELECT FROM commit WHERE cluster_id = $1))
        AND NOT EXISTS (SELECT FROM commit AS k WHERE k.cluster_id = $1
            AND k.last_revision = h.revision AND k.commit_id = h.tip)
    UNION ALL
    SELECT format('commit %s', k.commit_id),
        format('It ends at revision %s, beyond the head at %s.', k.last_revision, h.revision)
    FROM commit AS k JOIN head AS h ON h.cluster_id = $1
    WHERE k.cluster_id = $1 AND k.last_revision > h.revision
    LIMIT $2
"""
# The oldest remaining commit follows one that was compacted; it begins at the floor or below.
_CHAIN = """
    WITH alone AS (
        SELECT k.commit_id, k.parent, k.first_revision,
            k.first_revision <= f.revision + 1 AS may_begin,
            row_number() OVER (ORDER BY k.first_revision, k.last_revision, k.at) AS place
        FROM commit AS k JOIN floor AS f ON f.cluster_id = $1
        WHERE k.cluster_id = $1 AND NOT EXISTS (SELECT FROM commit AS p WHERE p.cluster_id = $1
            AND p.last_revision = k.first_revision - 1 AND p.commit_id = k.parent OFFSET 0)
    )
    SELECT format('commit %s', commit_id) AS subject,
        format('It begins at revision %s after commit %s, and the log has no such commit that ends '
            'at %s.', first_revision, parent, first_revision - 1) AS message
    FROM alone WHERE NOT may_begin OR place > 1
    UNION ALL
    SELECT format('commit %s', parent), format('%s commits follow it.', count(*))
    FROM commit WHERE cluster_id = $1 GROUP BY parent HAVING count(*) > 1
    LIMIT $2
"""
_DENSE = """
    WITH ends AS (
        SELECT h.revision AS head, f.revision AS floor
        FROM head AS h JOIN floor AS f ON f.cluster_id = $1 WHERE h.cluster_id = $1
    ), steps AS (
        SELECT c.revision, lag(c.revision, 1, e.floor) OVER (ORDER BY c.revision) AS before
        FROM change AS c, ends AS e WHERE c.cluster_id = $1
    )
    SELECT format('revision %s', before + 1) AS subject,
        format('After revision %s the log goes on at %s.', before, revision) AS message
    FROM steps WHERE revision <> before + 1
    UNION ALL
    SELECT format('revision %s', e.head), format('The last change is at revision %s, the head at %s.',
        coalesce(l.revision, e.floor), e.head)
    FROM ends AS e, (SELECT max(revision) AS revision FROM change WHERE cluster_id = $1) AS l
    WHERE coalesce(l.revision, e.floor) <> e.head
    UNION ALL
    SELECT format('revision %s', c.revision),
        format('The commit %s that it names does not cover it.', c.commit_id)
    FROM change AS c
    WHERE c.cluster_id = $1 AND NOT EXISTS (SELECT FROM commit AS k WHERE k.cluster_id = $1
        AND k.commit_id = c.commit_id AND c.revision BETWEEN k.first_revision AND k.last_revision OFFSET 0)
    LIMIT $2
"""
_SUM = """
    WITH last AS (
        SELECT DISTINCT ON (kind COLLATE "C", namespace COLLATE "C", name COLLATE "C")
            kind COLLATE "C" AS kind, namespace COLLATE "C" AS namespace, name COLLATE "C" AS name,
            revision, verb, uid, node_name, body
        FROM change WHERE cluster_id = $1
        ORDER BY kind COLLATE "C", namespace COLLATE "C", name COLLATE "C", revision DESC
    ), stored AS (
        SELECT kind, namespace, name, revision, uid, node_name, body
        FROM object WHERE cluster_id = $1
    )
    SELECT kind || ' ' || CASE namespace WHEN '' THEN '' ELSE namespace || '/' END || name AS subject,
        CASE
            WHEN l.revision IS NULL THEN
                format('It was last changed at revision %s, of which the log has no change.', o.revision)
            WHEN o.revision IS NULL THEN format('The log puts it at revision %s, but it is not there.',
                l.revision)
            WHEN l.verb = 'Delete' THEN format('The log deletes it at revision %s, but it is there.',
                l.revision)
            WHEN l.revision <> o.revision THEN format('It is of revision %s, but the log changes it '
                'last at %s.', o.revision, l.revision)
            ELSE format('It is not what the log puts at revision %s.', l.revision)
        END AS message
    FROM last AS l FULL JOIN stored AS o USING (kind, namespace, name)
    WHERE CASE
        WHEN l.revision IS NULL
            THEN o.revision > (SELECT revision FROM floor WHERE cluster_id = $1)
        WHEN l.verb = 'Delete' THEN o.revision IS NOT NULL
        ELSE (l.revision, l.uid, l.body, l.node_name COLLATE "C")
            IS DISTINCT FROM (o.revision, o.uid, o.body, o.node_name)
    END
    ORDER BY kind, namespace, name
    LIMIT $2
"""
_STEPS: Mapping[Check, Sequence[str]] = {Check.LOG: (_ENDS, _CHAIN, _DENSE), Check.OBJECTS: (_SUM,)}

# Each change, joined with the previous change of the same object.
_BEFORE = """
    SELECT revision, verb, created, labels_before, body,
        lag(verb) OVER same AS verb_before, lag(body) OVER same AS body_before
    FROM change WHERE cluster_id = $1
    WINDOW same AS (PARTITION BY kind COLLATE "C", namespace COLLATE "C", name COLLATE "C" ORDER BY revision)
"""
_OBJECTS = """
    SELECT kind, namespace, name, uid, revision, body, node_name FROM object
    WHERE cluster_id = $1 ORDER BY kind, namespace, name
"""
_PRINCIPALS = "SELECT kind, name, grants, admin FROM principal ORDER BY kind, name"
_AUDIT = """
    SELECT chain, number, at, principal, address, operation, cluster_id, cluster, revision,
        request_id, status, requests, previous_hash, hash
    FROM audit ORDER BY chain, number
"""
_AUDIT_ENDS = """
    SELECT format('chain %s of the audit', coalesce(c.chain, a.chain)) AS subject,
        format('Its last row is %s, but its end is noted as %s.', a.number,
            coalesce(c.number::text, 'nothing')) AS message
    FROM audit_chain AS c FULL JOIN (
        SELECT DISTINCT ON (chain) chain, number, hash FROM audit ORDER BY chain, number DESC
    ) AS a ON a.chain = c.chain
    WHERE a.chain IS NOT NULL AND (a.number, a.hash) IS DISTINCT FROM (c.number, c.hash)
    ORDER BY 1 LIMIT $1
"""


class _Metadata(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Labelled(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_labelled = msgspec.json.Decoder(_Labelled)
_labels = msgspec.json.Decoder(dict[str, str])


class Size(msgspec.Struct, frozen=True):
    """The extent of a cluster's log."""

    revision: int
    changes: int
    """The number of changes in the log."""


class DatabaseSnapshot:
    """All rows of a database, as of one instant."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def clusters(self) -> dict[str, int]:
        """Return the ids of all clusters, by name."""
        rows = await self._connection.fetch(_CLUSTERS)
        return {row["name"]: row["cluster_id"] for row in rows}

    async def size(self, cluster_id: int) -> Size:
        """Return the last revision of a cluster, and the length of its log."""
        row = await self._connection.fetchrow(_SIZE, cluster_id)
        assert row is not None
        return Size(row["revision"], row["changes"])

    async def row_findings(self, cluster_id: int, check: Check) -> list[Finding]:
        """Check a cluster's log, or its objects against the log."""
        findings: list[Finding] = []
        for statement in _STEPS[check]:
            rows = await self._connection.fetch(statement, cluster_id, FINDINGS_MAX)
            findings += _findings(check, rows)
        return findings[:FINDINGS_MAX]

    async def change_findings(self, cluster_id: int) -> list[Finding]:
        """Check that changes in the log describe the previous state of their object correctly."""
        findings: list[Finding] = []
        async for rows in self._slices(_BEFORE, cluster_id):
            for row in rows:
                message = _contradiction(row)
                if message and len(findings) < FINDINGS_MAX:
                    subject = f"revision {row['revision']}"
                    findings.append(Finding(check=Check.COPIES, subject=subject, message=message))
        return findings

    async def objects(self, cluster_id: int) -> AsyncIterator[list[ObjectRow]]:
        """Yield all objects of a cluster in slices, in the order of their keys."""
        async for rows in self._slices(_OBJECTS, cluster_id):
            yield [ObjectRow(**dict(row)) for row in rows]

    async def access_findings(self) -> list[Finding]:
        """Check the principals and the audit log."""
        findings = [_access_finding(*fault) async for fault in self._faulty_principals()]
        verifier = Verifier()
        async for rows in self._slices(_AUDIT):
            broken = verifier.follow(audit_row(row) for row in rows)
            if broken is not None:
                subject = f"row {broken.number} of chain {broken.chain} of the audit"
                findings.append(
                    _access_finding(subject, f"It is not what was written: {broken.reason}.")
                )
                break
        findings += _findings(Check.ACCESS, await self._connection.fetch(_AUDIT_ENDS, FINDINGS_MAX))
        return findings[:FINDINGS_MAX]

    async def _faulty_principals(self) -> AsyncIterator[tuple[str, str]]:
        async for rows in self._slices(_PRINCIPALS):
            for row in rows:
                subject = f"{row['kind']} {row['name']}"
                try:
                    grants = msgspec.json.decode(row["grants"], type=tuple[Grant, ...])
                except (msgspec.MsgspecError, UnicodeDecodeError):
                    yield subject, "Its grants cannot be read."
                    continue
                if (ADMIN in grants) != row["admin"]:
                    noted = "an" if row["admin"] else "no"
                    yield subject, f"It is noted as {noted} admin, and its grants say otherwise."

    async def _slices(
        self, statement: str, *arguments: object
    ) -> AsyncIterator[list[asyncpg.Record]]:
        cursor = await self._connection.cursor(statement, *arguments)
        while rows := await cursor.fetch(SLICE_ROWS):
            yield rows


@asynccontextmanager
async def database_snapshot(url: str) -> AsyncIterator[DatabaseSnapshot]:
    """Open a snapshot of the database at this URL; while it is open, nothing is vacuumed.

    Raises:
        StorageUnavailable: the database cannot be reached, or failed during a read.
    """
    with unavailable_on_failure():
        connection = await connector(url, _SETTINGS)()
        try:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                yield DatabaseSnapshot(connection)
        finally:
            connection.terminate()


def _findings(check: Check, rows: Iterable[asyncpg.Record]) -> list[Finding]:
    return [Finding(check=check, subject=row["subject"], message=row["message"]) for row in rows]


def _access_finding(subject: str, message: str) -> Finding:
    return Finding(check=Check.ACCESS, subject=subject, message=message)


def _contradiction(row: asyncpg.Record) -> str:
    """Return how a change misdescribes the previous state of its object, or ""."""
    before = row["verb_before"]
    if before is None:  # The log does not reach back that far.
        return ""
    if row["created"] != (before == "Delete" and row["verb"] == "Put"):
        said = "created" if row["created"] else "known"
        return f"The object is said to be {said}, but the change before it is a {before}."
    try:
        changed = _label_change(row)
        recorded = None if row["labels_before"] is None else _labels.decode(row["labels_before"])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return "The object, or its labels, cannot be read."
    return (
        "" if recorded == changed else "The labels that it had before are not those that are told."
    )


def _label_change(row: asyncpg.Record) -> dict[str, str] | None:
    """Return the labels before a Put that changed them, or None for any other change."""
    if row["verb_before"] != "Put" or row["verb"] != "Put":
        return None
    before, after = (_labelled.decode(row[name]) for name in ("body_before", "body"))
    labels = before.metadata.labels or {}
    return None if labels == (after.metadata.labels or {}) else labels
