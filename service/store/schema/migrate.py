"""Migrates a database's tables to the schema of this version."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import asyncpg

import migrations
from service.store.db.connector import connector
from service.store.db.failures import unavailable_on_failure

_APPLIED = "SELECT version_num FROM alembic_version"


class UnusableTables(Exception):  # noqa: N818 - a fact about the database
    """This version can neither use the tables nor migrate them; the message says what to do."""


class NewerTables(UnusableTables):
    """A newer version has migrated the database."""


class OlderTables(UnusableTables):
    """The tables are older than the oldest that this version can migrate."""


def upgrade(url: str) -> None:
    """Apply all migrations that the database lacks; safe to call from several processes at once.

    Raises:
        StorageUnavailable: the database cannot be reached, or a lock could not be taken in time.
        NewerTables: this version is older than the one that migrated the database last.
        OlderTables: this version no longer has the migrations that the database lacks.
    """
    asyncio.run(upgrade_async(url))


async def upgrade_async(url: str) -> str | None:
    """Apply all missing migrations as `upgrade` does, for callers that have an event loop.

    Returns the number of the database's last migration before the call, or None if it had none.
    """
    applied = await _applied(url)
    if applied is not None:
        _refuse_unusable(applied)
    if applied != newest():
        from service.store.schema import alembic_runner  # noqa: PLC0415 - see there

        await alembic_runner.upgrade(url)
    return applied


def _refuse_unusable(applied: str) -> None:
    """Raise UnusableTables unless tables with this last migration can be migrated."""
    if applied > newest():
        raise NewerTables(
            f"The tables are of a newer version: their last migration is {applied}, and this version"
            f" knows them up to {newest()}. Start the newer version, or restore a backup that was"
            " made before the upgrade; there is no way back for the tables."
        )
    if applied < oldest():
        raise OlderTables(
            f"The tables are of an older version: their last migration is {applied}, and this version"
            f" migrates tables from {oldest()} on. Upgrade with 0.2.0 first: its `moorage migrate`"
            f" brings them to {oldest()}. Then start this version."
        )


async def is_current(url: str) -> bool:
    """Return whether the database has the newest migration.

    Raises:
        StorageUnavailable: it cannot be reached.
    """
    return await _applied(url) == newest()


async def _applied(url: str) -> str | None:
    """Return the number of the database's last migration, or None if it has no tables."""
    with unavailable_on_failure():
        connection = await connector(url, {})()
        try:
            applied: str | None = await connection.fetchval(_APPLIED)
        except asyncpg.UndefinedTableError:
            applied = None
        finally:
            await connection.close()
    return applied


def newest() -> str:
    """Return the number of the newest migration."""
    return max(_numbers())


def oldest() -> str:
    """Return the number of the first migration, which creates all tables of an empty database."""
    return min(_numbers())


def _numbers() -> Iterator[str]:
    """Yield the numbers at the beginning of the migrations' file names."""
    versions = Path(migrations.__file__).parent / "versions"
    return (path.name.partition("_")[0] for path in versions.glob("[0-9]*.py"))
