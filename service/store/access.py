"""Keeps principals and their tokens on PostgreSQL."""

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
from service.store.db.connector import Driver
from service.store.db.failures import unavailable_on_failure
from service.store.db.pool import Connections

NO_ADMIN_LEFT = "MR003"

_Check = Callable[[Driver], Awaitable[None]]

_VERSION = "SELECT version, tag FROM access_state"
_PRINCIPALS = "SELECT kind, name, grants, created_at FROM principal ORDER BY kind, name"
_PRINCIPAL = "SELECT kind, name, grants, created_at FROM principal WHERE kind = $1 AND name = $2"
_LOCK = "SELECT FROM access_state FOR NO KEY UPDATE"
"""It locks the row at which all changes of principals and tokens queue up."""
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
    """The principals and tokens: who may make requests.

    Every call may raise StorageUnavailable, and a change also OutcomeUnknown, if the database fails
    at its COMMIT. With `keep_admin` a change raises NoAdminLeft if tokens are, or were, in use, and
    it would leave no token of an admin. With `dry_run` it raises and returns the same, and is undone.
    """

    def __init__(self, writer: Connections, reader: Connections, policy: AuditPolicy) -> None:
        self._writer = writer
        self._reader = reader
        self._policy = policy

    async def version(self) -> AccessVersion:
        """Return the version, which is another one after each change of principals and tokens."""
        with unavailable_on_failure():
            async with self._reader.driver() as connection:
                return _version(await connection.fetchrow(_VERSION))

    async def state(self) -> AccessState:
        """All principals and tokens as they are at one instant."""
        with unavailable_on_failure():
            async with (
                self._reader.driver() as connection,
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
        """Make a principal or replace its grants, if the precondition holds; returns whether it is new."""
        body = msgspec.json.encode(grants)
        values = (kind, name, body, ADMIN in grants, keep_admin)
        check = precondition and partial(_check, kind, name, precondition)
        row = await self._changed(caller, _PUT, *values, check=check, dry_run=dry_run)
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
        """Delete a principal with its tokens, if the precondition holds; returns False if there was none."""
        check = precondition and partial(_check, kind, name, precondition)
        values = (kind, name, keep_admin)
        row = await self._changed(caller, _DELETE, *values, check=check, dry_run=dry_run)
        return bool(row[0])

    async def create_token(  # noqa: PLR0913 - all that is told of one, by name
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
        """Give a user one more token; raises NotFound if there is no such user."""
        values = (token_id, principal, secret_hash, description, expires_in, keep_admin)
        row = await self._changed(caller, _ISSUE, *values, dry_run=dry_run)
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
        """Revoke a token; returns False if there was none."""
        row = await self._changed(caller, _REVOKE, token_id, keep_admin, dry_run=dry_run)
        return bool(row[0])

    async def note_use(self, used_at: Mapping[str, datetime]) -> None:
        """Store when tokens were used last; `used_at` has the times by token id.

        Rows are locked in the order of their ids, so that no two processes wait for each other.
        """
        token_ids = sorted(used_at)
        values = (token_ids, [used_at[token_id] for token_id in token_ids])
        with unavailable_on_failure():
            async with self._writer.driver() as connection:
                await connection.execute(_NOTE_USE, *values)

    async def _changed(
        self,
        caller: AuditedCaller,
        statement: str,
        *values: object,
        check: _Check | None = None,
        dry_run: bool = False,
    ) -> asyncpg.Record:
        """Run a statement that changes something, add a row to the audit if it did, and return its one row.

        The first token is in the audit, too, as callers are known from then on.
        """
        async with self._writer.transaction() as connection:
            if check is not None:
                await check(connection)
            with _kept_admin():
                row = await (_undone if dry_run else _made)(connection, statement, *values)
            if dry_run:
                return row
            changed = statement == _PUT or row[0]
            begins = statement == _ISSUE and changed and self._policy.may_begin
            if changed and (begins or self._policy.applies_to([caller])):
                await add_rows(connection, [AuditEntry(caller=caller, cluster="")])
        if begins:
            self._policy.begin()
        return row


async def _made(connection: Driver, statement: str, *values: object) -> asyncpg.Record:
    """Run a statement and return its one row."""
    row = await connection.fetchrow(statement, *values)
    assert row is not None
    return row


async def _undone(connection: Driver, statement: str, *values: object) -> asyncpg.Record:
    """Run a statement, undo what it changed, and return its one row."""
    changes = connection.transaction()
    await changes.start()
    row = await _made(connection, statement, *values)
    await changes.rollback()
    return row


async def _check(
    kind: PrincipalKind, name: str, precondition: Precondition, connection: Driver
) -> None:
    """Check the precondition on a principal, which nobody else can change until the transaction ends."""
    await connection.execute(_LOCK)
    row = await connection.fetchrow(_PRINCIPAL, kind, name)
    precondition(_principal(row) if row else None)


@contextmanager
def _kept_admin() -> Iterator[None]:
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
    """Return the grants of one principal, or None if they cannot be read, which harms nobody else."""
    try:
        return msgspec.json.decode(stored, type=tuple[Grant, ...])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
