"""The audit log on PostgreSQL.

Rows come with commits, or in bulk with refusals. They are listed by chain and number, and deleted
by age.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import asyncpg

from service.model.core.access import EVERYBODY
from service.model.log.audit_chain import (
    ITSELF,
    SERVER_CHAIN,
    AuditedCaller,
    AuditEntry,
    AuditRow,
    told_at,
)
from service.store.db import arrays
from service.store.db.connector import Connection
from service.store.db.failures import unavailable_on_failure
from service.store.db.pool import ConnectionPool

SWEEP_AUDIT_MAX = 5_000
"""The maximum number of rows that one call of `sweep` deletes."""

_COLUMN_TYPES = ("text", "text", "text", "text", "bigint", "text", "integer", "bigint")
_LIST = """
    SELECT chain, number, at, principal, address, operation, cluster_id, cluster, revision,
        request_id, status, requests, previous_hash, hash
    FROM audit
    WHERE (chain, number) > ($1, $2) AND ($3::text IS NULL OR cluster = $3)
        AND ($4::timestamptz IS NULL OR at >= $4) AND ($5::timestamptz IS NULL OR at < $5)
    ORDER BY chain, number LIMIT $6
"""
_CHAINS = "SELECT chain FROM audit_chain ORDER BY chain"
# The oldest row of the chain is checked first, since most chains have no old rows.
_SWEEP = """
    DELETE FROM audit
    WHERE chain = $1
        AND (SELECT a.at FROM audit AS a WHERE a.chain = $1 ORDER BY a.number LIMIT 1)
            < now() - $2::interval
        AND number <= (
            SELECT max(old.number) FROM (
                SELECT a.number, a.at FROM audit AS a WHERE a.chain = $1 ORDER BY a.number LIMIT $3
            ) AS old WHERE old.at < now() - $2::interval
        )
"""


AUDIT_COLUMNS = len(_COLUMN_TYPES)
"""The number of columns that callers supply; the rest are derived."""
_ARRAYS = arrays.placeholders(_COLUMN_TYPES, 1)
_ADD = f"SELECT audit_v1({SERVER_CHAIN}, NULL, clock_timestamp(), {_ARRAYS})"


_NOBODY = frozenset({EVERYBODY.name, ITSELF.principal, ""})


class AuditPolicy:
    """Decides whether an audit log is kept: always, never, or from the first known caller on.

    Before any caller is known, every caller is the same admin, so rows would carry no information.
    """

    def __init__(self, *, enabled: bool, may_begin: bool) -> None:
        self.enabled = enabled
        self.may_begin = may_begin
        self.never = not (enabled or may_begin)
        """Whether the audit log can never begin, so that commits need not check."""

    def begin(self) -> None:
        """Start keeping the audit log, if the settings allow it."""
        self.enabled = self.enabled or self.may_begin

    def applies_to(self, callers: Iterable[AuditedCaller]) -> bool:
        """Return whether the audit log is kept for these callers.

        A known caller begins the audit log, even if this process has not seen the first token yet.
        """
        if not self.enabled and any(caller.principal not in _NOBODY for caller in callers):
            self.begin()
        return self.enabled


class Audit:
    """The audit log of the whole server; every call may raise StorageUnavailable."""

    def __init__(self, writer: ConnectionPool, reader: ConnectionPool, policy: AuditPolicy) -> None:
        self._writer = writer
        self._reader = reader
        self._policy = policy

    @property
    def enabled(self) -> bool:
        """Whether the audit log is kept now."""
        return self._policy.enabled

    def begin(self) -> None:
        """Start keeping the audit log, if the settings allow it, because callers are now known."""
        self._policy.begin()

    async def add_refusals(self, entries: Sequence[AuditEntry]) -> None:
        """Add refused requests, which have no commit, to the chain of the server."""
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                await add_rows(connection, entries)

    async def list(
        self,
        *,
        after: tuple[int, int] | None = None,
        cluster: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int,
    ) -> Sequence[AuditRow]:
        """Return up to `limit` rows after the key `after`, ordered by chain and number."""
        key = after or (SERVER_CHAIN, 0)
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                rows = await connection.fetch(_LIST, *key, cluster, since, until, limit)
        return [audit_row(row) for row in rows]

    async def sweep(self, *, keep_seconds: float) -> int:
        """Delete some rows older than `keep_seconds`, oldest first; return how many.

        Repeat until it returns 0.
        """
        age = timedelta(seconds=keep_seconds)
        swept = 0
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                for row in await connection.fetch(_CHAINS):
                    left = SWEEP_AUDIT_MAX - swept
                    if left <= 0:
                        break
                    status = await connection.execute(_SWEEP, row["chain"], age, left)
                    swept += int(status.rpartition(" ")[2])
        return swept


async def add_rows(connection: Connection, entries: Sequence[AuditEntry]) -> None:
    """Add rows to the chain of the server, within the connection's transaction if it has one."""
    await connection.execute(_ADD, *audit_columns(entries))


def audit_columns(entries: Sequence[AuditEntry]) -> tuple[str, ...]:
    """Return entries as the array arguments of the database functions, one per column."""
    callers = [entry.caller for entry in entries]
    return (
        arrays.texts([caller.principal for caller in callers]),
        arrays.texts([caller.address for caller in callers]),
        arrays.texts([caller.operation for caller in callers]),
        arrays.texts_or_null([entry.cluster for entry in entries]),
        arrays.integers_or_null([entry.revision for entry in entries]),
        arrays.texts([caller.request_id for caller in callers]),
        arrays.integers([entry.status for entry in entries]),
        arrays.integers([entry.requests for entry in entries]),
    )


def audit_row(row: asyncpg.Record) -> AuditRow:
    """Return a row of the table as the API's type."""
    hashes = {name: row[name].hex() for name in ("previous_hash", "hash")}
    return AuditRow(**{**dict(row), **hashes, "at": told_at(row["at"])})
