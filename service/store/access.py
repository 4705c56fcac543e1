"""Principals and their tokens on PostgreSQL."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial

import asyncpg
import msgspec

from service.model.core.access import (
    ADMIN,
    AccessState,
    AccessVersion,
    Grant,
    Precondition,
    PrincipalKind,
    PrincipalRow,
    TokenRow,
)
from service.model.core.errors import NoAdminLeft, NotFound
from service.model.log.audit_chain import ITSELF, AuditedCaller, AuditEntry
from service.store.audit import AuditPolicy, add_rows
from service.store.db.connector import Connection
from service.store.db.failures import unavailable_on_failure
from service.store.db.pool import ConnectionPool

NO_ADMIN_LEFT = "MR003"

_Check = Callable[[Connection], Awaitable[None]]

_VERSION = "SELECT version, tag FROM access_state"
_PRINCIPALS = "SELECT kind, name, grants, created_at FROM principal ORDER BY kind, name"
_PRINCIPAL = "SELECT kind, name, grants, created_at FROM principal WHERE kind = $1 AND name = $2"
_LOCK = "SELECT FROM access_state FOR NO KEY UPDATE"
"""Locks the row that serializes all changes of principals and tokens."""
_TOKENS = """
    SELECT token_id, principal, secret_hash, description, created_at, expires_at, last_used_at
    FROM token ORDER BY created_at, token_id
"""
_PUT = "SELECT put_principal_v1($1, $2, $3, $4, $5)"
_DELETE = "SELECT delete_principal_v1($1, $2, $3)"
_ISSUE = "SELECT created_at, expires_at FROM create_token_v1($1, $2, $3, $4, $5, $6)"
_REVOKE = "SELECT delete_token_v1($1, $2)"
_NOTE_USE = "SELECT note_use_v1($1, $2)"


class Access:
    """Stores principals and their tokens.

    Every call may raise StorageUnavailable, and a change also OutcomeUnknown, if the database fails
    at its COMMIT. With `keep_admin`, a change raises NoAdminLeft if tokens are, or were, in use and
    no admin would have a token afterwards. With `dry_run`, a change is rolled back, but returns and
    raises the same.
    """

    def __init__(self, writer: ConnectionPool, reader: ConnectionPool, policy: AuditPolicy) -> None:
        self._writer = writer
        self._reader = reader
        self._policy = policy

    async def version(self) -> AccessVersion:
        """Return the version, which changes with every change of principals and tokens."""
        with unavailable_on_failure():
            async with self._reader.acquire() as connection:
                return _version(await connection.fetchrow(_VERSION))

    async def state(self) -> AccessState:
        """Return all principals and tokens, as of one instant."""
        with unavailable_on_failure():
            async with (
                self._reader.acquire() as connection,
                connection.transaction(isolation="repeatable_read", readonly=True),
            ):
                version = _version(await connection.fetchrow(_VERSION))
                principals = await connection.fetch(_PRINCIPALS)
                tokens = await connection.fetch(_TOKENS)
        return AccessState(
            version=version,
            principals=[_principal(row) for row in principals],
            tokens=[TokenRow(**dict(row)) for row in tokens],
        )

    async def put_principal(
        self,
        kind: PrincipalKind,
        name: str,
        grants: Sequence[Grant],
        *,
        keep_admin: bool,
        caller: AuditedCaller = ITSELF,
        precondition: Precondition | None = None,
        dry_run: bool = False,
    ) -> bool:
        """Create or update a principal if the precondition holds; return whether it is new."""
        body = msgspec.json.encode(grants)
        values = (kind, name, body, ADMIN in grants, keep_admin)
        check = precondition and partial(_check, kind, name, precondition)
        row = await self._change(caller, _PUT, *values, check=check, dry_run=dry_run)
        return bool(row[0])

    async def delete_principal(
        self,
        kind: PrincipalKind,
        name: str,
        *,
        keep_admin: bool,
        caller: AuditedCaller = ITSELF,
        precondition: Precondition | None = None,
        dry_run: bool = False,
    ) -> bool:
        """Delete a principal and its tokens if the precondition holds; return False if missing."""
        check = precondition and partial(_check, kind, name, precondition)
        values = (kind, name, keep_admin)
        row = await self._change(caller, _DELETE, *values, check=check, dry_run=dry_run)
        return bool(row[0])

    async def create_token(  # noqa: PLR0913 - the fields of one, by name
        self,
        token_id: str,
        principal: str,
        secret_hash: bytes,
        *,
        description: str,
        expires_in: timedelta | None,
        keep_admin: bool,
        caller: AuditedCaller = ITSELF,
        dry_run: bool = False,
    ) -> TokenRow:
        """Add a token to a user.

        Raises:
            NotFound: no such user exists.
        """
        values = (token_id, principal, secret_hash, description, expires_in, keep_admin)
        row = await self._change(caller, _ISSUE, *values, dry_run=dry_run)
        if row["created_at"] is None:
            raise NotFound(f"There is no principal {principal!r}.")
        return TokenRow(
            token_id=token_id,
            principal=principal,
            secret_hash=secret_hash,
            description=description,
            created_at=row["created_at"],
            expires_at=row["expires_at"],
        )

    async def delete_token(
        self,
        token_id: str,
        *,
        keep_admin: bool,
        caller: AuditedCaller = ITSELF,
        dry_run: bool = False,
    ) -> bool:
        """Revoke a token; return False if none exists."""
        row = await self._change(caller, _REVOKE, token_id, keep_admin, dry_run=dry_run)
        return bool(row[0])

    async def record_use(self, used_at: Mapping[str, datetime]) -> None:
        """Store when tokens were last used; `used_at` maps token ids to times.

        Rows are locked in the order of their ids, so that no two processes deadlock.
        """
        token_ids = sorted(used_at)
        values = (token_ids, [used_at[token_id] for token_id in token_ids])
        with unavailable_on_failure():
            async with self._writer.acquire() as connection:
                await connection.execute(_NOTE_USE, *values)

    async def _change(
        self,
        caller: AuditedCaller,
        statement: str,
        *values: object,
        check: _Check | None = None,
        dry_run: bool = False,
    ) -> asyncpg.Record:
        """Run a statement, add a row to the audit log if it changed something, and return its row.

        The first token is audited as well, since callers are known from then on.
        """
        async with self._writer.transaction() as connection:
            if check is not None:
                await check(connection)
            with _admin_required():
                row = await (_dry_run if dry_run else _execute)(connection, statement, *values)
            if dry_run:
                return row
            changed = statement == _PUT or row[0]
            begins = statement == _ISSUE and changed and self._policy.may_begin
            if changed and (begins or self._policy.applies_to([caller])):
                await add_rows(connection, [AuditEntry(caller=caller, cluster="")])
        if begins:
            self._policy.begin()
        return row


async def _execute(connection: Connection, statement: str, *values: object) -> asyncpg.Record:
    """Run a statement and return its one row."""
    row = await connection.fetchrow(statement, *values)
    assert row is not None
    return row


async def _dry_run(connection: Connection, statement: str, *values: object) -> asyncpg.Record:
    """Run a statement, roll it back, and return its one row."""
    changes = connection.transaction()
    await changes.start()
    row = await _execute(connection, statement, *values)
    await changes.rollback()
    return row


async def _check(
    kind: PrincipalKind, name: str, precondition: Precondition, connection: Connection
) -> None:
    """Check the precondition on a principal, which stays locked until the transaction ends."""
    await connection.execute(_LOCK)
    row = await connection.fetchrow(_PRINCIPAL, kind, name)
    precondition(_principal(row) if row else None)


@contextmanager
def _admin_required() -> Iterator[None]:
    try:
        yield
    except asyncpg.PostgresError as error:
        if error.sqlstate != NO_ADMIN_LEFT:
            raise
        raise NoAdminLeft from error


def _version(row: asyncpg.Record | None) -> AccessVersion:
    assert row is not None
    return AccessVersion(row["version"], row["tag"])


def _principal(row: asyncpg.Record) -> PrincipalRow:
    grants = _grants(row["grants"])
    return PrincipalRow(
        kind=row["kind"],
        name=row["name"],
        grants=grants or (),
        created_at=row["created_at"],
        is_readable=grants is not None,
    )


def _grants(stored: bytes) -> tuple[Grant, ...] | None:
    """Return a principal's grants, or None if they are unreadable; others are not affected."""
    try:
        return msgspec.json.decode(stored, type=tuple[Grant, ...])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
