"""The migrations make exactly the tables that are declared, once, whoever starts first."""

import asyncio
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asyncpg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

import migrations
from service.model.cluster.cluster_config import ClusterConfig, stored_config
from service.model.core.errors import StorageUnavailable
from service.store.db.connector import data_source_name
from service.store.schema.migrate import (
    NewerTables,
    OlderTables,
    is_current,
    newest,
    oldest,
    upgrade,
    upgrade_async,
)
from service.store.schema.tables import metadata
from tests.store.releases import contents, of_columns_of

# What pg_dump would print, checks included; Alembic's own comparison overlooks those.
_COLUMNS = """
    SELECT c.relname, row_number() OVER (PARTITION BY c.oid ORDER BY a.attnum), a.attname,
        format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity::text,
        a.attgenerated::text, a.attstorage::text, a.attcompression::text, a.attoptions::text,
        pg_get_expr(d.adbin, d.adrelid), co.collname
    FROM pg_class AS c
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
    LEFT JOIN pg_collation AS co ON co.oid = a.attcollation
    WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r' AND c.relname <> 'alembic_version'
"""
_OPTIONS = """
    SELECT relname, relpersistence::text, reloptions::text FROM pg_class
    WHERE relnamespace = $1::regnamespace AND relkind = 'r' AND relname <> 'alembic_version'
"""
_SEQUENCES = """
    SELECT seqrelid::regclass::text, seqtypid::regtype::text, seqstart, seqincrement, seqmax,
        seqmin, seqcache, seqcycle
    FROM pg_sequence JOIN pg_class AS c ON c.oid = seqrelid
    WHERE c.relnamespace = $1::regnamespace
"""
_CONSTRAINTS = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = $1::regnamespace AND conrelid <> 0 AND conname NOT LIKE 'alembic%'
"""
_INDEXES = """
    SELECT indexname, indexdef FROM pg_indexes
    WHERE schemaname = $1 AND tablename <> 'alembic_version'
"""


async def described(connection: asyncpg.Connection, schema: str) -> dict[str, list[object]]:
    def plain(value: object) -> object:
        return value.replace(f"{schema}.", "") if isinstance(value, str) else value

    return {
        query: sorted(
            (tuple(map(plain, row)) for row in await connection.fetch(query, schema)), key=str
        )
        for query in (_COLUMNS, _OPTIONS, _SEQUENCES, _CONSTRAINTS, _INDEXES)
    }


async def test_the_migrated_tables_are_those_declared(database_url: str):
    engine = create_async_engine(database_url)
    async with engine.begin() as made:
        await made.execute(text("CREATE SCHEMA declared"))
        mapped = await made.execution_options(schema_translate_map={None: "declared"})
        await mapped.run_sync(metadata.create_all)
    await engine.dispose()
    connection = await asyncpg.connect(data_source_name(database_url))
    migrated = await described(connection, "public")
    declared = await described(connection, "declared")
    await connection.close()
    assert migrated == declared
    assert all(migrated.values())
    assert len(migrated[_OPTIONS]) == len(metadata.tables)


_LATER = """
from alembic import op

revision, down_revision = "{number}", "{before}"


def upgrade() -> None:
    op.execute("ALTER TABLE object ADD COLUMN color text")
    op.execute("{statement}")
"""


@pytest.fixture
def add_migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Add a migration that adds a column to the objects and runs a statement; return its number."""

    def add(statement: str) -> str:
        folder = tmp_path / "migrations"
        shutil.copytree(Path(migrations.__file__).parent, folder)
        number, before = f"{int(newest()) + 1:04}", newest()
        text = _LATER.format(number=number, before=before, statement=statement)
        (folder / "versions" / f"{number}_later.py").write_text(text)
        monkeypatch.setattr(migrations, "__file__", str(folder / "__init__.py"))
        return number

    return add


async def test_a_later_migration_keeps_what_is_stored(database_url: str, add_migration):
    before, rows = newest(), await contents(database_url)
    number = add_migration("SELECT 1")
    assert not await is_current(database_url)
    assert await upgrade_async(database_url) == before
    assert await upgrade_async(database_url) == newest() == number
    after = await contents(database_url)
    assert of_columns_of(rows, after) == rows
    assert [row["color"] for row in after["object"]] == [None]


async def test_a_migration_that_fails_changes_nothing(database_url: str, add_migration):
    before, rows = newest(), await contents(database_url)
    add_migration("SELECT 1 / 0")
    with pytest.raises(DBAPIError, match="division by zero"):
        await upgrade_async(database_url)
    assert await contents(database_url) == rows
    connection = await asyncpg.connect(data_source_name(database_url))
    assert await connection.fetchval("SELECT version_num FROM alembic_version") == before
    await connection.close()


@pytest.mark.parametrize(("applied", "refusal"), [("0014", OlderTables), ("9999", NewerTables)])
async def test_tables_of_an_unknown_version_are_left_alone(
    database_url: str, applied: str, refusal: type[Exception]
):
    connection = await asyncpg.connect(data_source_name(database_url))
    await connection.execute("UPDATE alembic_version SET version_num = $1", applied)
    before = await contents(database_url)
    with pytest.raises(refusal, match=f"their last migration is {applied}"):
        await upgrade_async(database_url)
    assert await contents(database_url) == before
    assert await connection.fetchval("SELECT version_num FROM alembic_version") == applied
    await connection.close()


def test_two_who_start_at_once_migrate_once(empty_database_url: str):
    with ThreadPoolExecutor(4) as starters:
        list(starters.map(upgrade, [empty_database_url] * 4))
    assert asyncio.run(_clusters(empty_database_url)) == [(1, "default")]


async def test_the_first_cluster_of_a_new_database_has_the_present_defaults(
    empty_database_url: str,
):
    await upgrade_async(empty_database_url)
    connection = await asyncpg.connect(data_source_name(empty_database_url))
    for table in ("change", "object"):
        bodies = await connection.fetch(f"SELECT kind, body FROM {table}")
        assert [(row["kind"], stored_config(row["body"])) for row in bodies] == [
            ("Cluster", ClusterConfig())
        ]
    await connection.close()


async def test_migrating_again_changes_nothing(empty_database_url: str):
    await upgrade_async(empty_database_url)
    before = await _clusters(empty_database_url)
    await upgrade_async(empty_database_url)
    assert await _clusters(empty_database_url) == before


def test_migrating_a_database_that_is_not_there_is_told():
    with pytest.raises(StorageUnavailable):
        upgrade("postgresql://nobody@/none?host=/nonexistent")


async def _clusters(url: str) -> list[tuple[int, str]]:
    connection = await asyncpg.connect(data_source_name(url))
    rows = await connection.fetch("SELECT cluster_id, name FROM cluster ORDER BY cluster_id")
    await connection.close()
    return [tuple(row) for row in rows]


async def test_a_database_is_current_once_it_has_the_newest_migration(empty_database_url):
    assert not await is_current(empty_database_url)
    assert await upgrade_async(empty_database_url) is None
    assert await is_current(empty_database_url)
    assert await upgrade_async(empty_database_url) == newest()
    connection = await asyncpg.connect(data_source_name(empty_database_url))
    await connection.execute("UPDATE alembic_version SET version_num = '0001'")
    await connection.close()
    assert not await is_current(empty_database_url)


def test_the_newest_migration_is_the_one_that_alembic_would_end_at():
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    directory = ScriptDirectory.from_config(config)
    assert directory.get_heads() == [newest()]
    assert directory.get_bases() == [oldest()]


def test_a_server_that_lacks_no_migration_starts_without_what_migrations_need():
    program = (
        "import sys, service.app, service.server.lifecycle; "
        "print({'alembic', 'sqlalchemy'} & sys.modules.keys() or 'lean')"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert printed.stdout.strip() == b"lean"
