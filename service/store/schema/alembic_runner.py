"""Runs the migrations that a database lacks, with Alembic.

It is separate from `migrate` because importing Alembic takes longer than a server may take to
start, and usually no migration is missing.
"""

from pathlib import Path

import msgspec
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

import migrations
from service.model.cluster.cluster_config import ClusterConfig
from service.store.db.connector import STARTERS_LOCK, connector
from service.store.db.failures import unavailable_on_failure
from service.store.schema.citus_sharding import begin_in_order, distribute_new, is_distributed

STARTERS_WAIT_SECONDS = 60
"""How many seconds a starting process waits for another one that is already migrating."""
LOCK_SECONDS = 5
"""How many seconds a migration waits for a table's lock; later statements wait behind it."""


async def upgrade(url: str) -> None:
    """Apply all missing migrations, or raise StorageUnavailable."""
    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=connector(url, {}), poolclass=NullPool
    )
    with unavailable_on_failure():
        try:
            async with engine.begin() as connection:
                await connection.run_sync(_upgrade)
        finally:
            await engine.dispose()


def _upgrade(connection: Connection) -> None:
    """Apply all migrations in one transaction, so that either all of them or none take effect.

    New tables of a distributed database are distributed with it.
    """
    _limit(connection, lock_seconds=STARTERS_WAIT_SECONDS)
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": STARTERS_LOCK})
    _limit(connection, lock_seconds=LOCK_SECONDS)
    driver = connection.connection.dbapi_connection
    assert driver is not None
    distributed = driver.run_async(is_distributed)
    if distributed:
        driver.run_async(begin_in_order)
    is_first = connection.scalar(text("SELECT to_regclass('alembic_version') IS NULL"))
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    command.upgrade(config, "head")
    if is_first:
        _configure_first_cluster(connection)
    if distributed:
        driver.run_async(distribute_new)


def _configure_first_cluster(connection: Connection) -> None:
    """Store the present defaults as the settings of the cluster that a new database has.

    The migration that creates it is the same for all versions and stores no settings, which means
    those of the time before there was a choice.
    """
    settings = {"config": msgspec.json.encode(ClusterConfig())}
    for table in ("change", "object"):
        connection.execute(text(f"UPDATE {table} SET body = :config"), settings)  # noqa: S608


def _limit(connection: Connection, *, lock_seconds: int) -> None:
    """Limit the wait for locks, but not the duration of statements, whatever the role's limit."""
    limits = text(
        "SELECT set_config('lock_timeout', :lock, true), set_config('statement_timeout', '0', true)"
    )
    connection.execute(limits, {"lock": f"{lock_seconds}s"})
