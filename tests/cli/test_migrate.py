"""`moorage migrate` on databases of other versions, as somebody who upgrades runs it."""

import asyncio

import asyncpg
import pytest

from service.store.db.connector import data_source_name
from service.store.schema.migrate import is_current
from tests.store.releases import DUMPS, contents, of_columns_of, restore


def test_migrate_upgrades_a_database_of_the_first_version(moorage, empty_database_url):
    asyncio.run(restore(empty_database_url, DUMPS[0].read_text()))
    before = asyncio.run(contents(empty_database_url))

    ended = moorage("migrate", "--database-url", empty_database_url)

    assert (ended.code, ended.out) == (0, "The database is up to date.\n")
    assert asyncio.run(is_current(empty_database_url))
    assert of_columns_of(before, asyncio.run(contents(empty_database_url))) == before


@pytest.mark.parametrize("command", ["migrate", "serve", "lift-revision"])
def test_an_older_version_refuses_the_tables_of_a_newer_one_and_says_what_to_do(
    moorage, database_url, command
):
    execute(database_url, "UPDATE alembic_version SET version_num = '9999'")

    ended = moorage(command, "--database-url", database_url)

    assert ended.code == 2
    assert "their last migration is 9999" in ended.err
    assert "Start the newer version, or restore a backup" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("command", ["migrate", "serve", "lift-revision"])
def test_tables_from_before_the_first_migration_are_refused_and_the_way_is_named(
    moorage, database_url, command
):
    execute(database_url, "UPDATE alembic_version SET version_num = '0014'")

    ended = moorage(command, "--database-url", database_url)

    assert ended.code == 2
    assert "their last migration is 0014, and this version migrates tables from 0015" in ended.err
    assert "Upgrade with 0.2.0 first: its `moorage migrate` brings them to 0015." in ended.err
    assert "Traceback" not in ended.err


def execute(url: str, statement: str) -> None:
    async def executed() -> None:
        connection = await asyncpg.connect(data_source_name(url))
        await connection.execute(statement)
        await connection.close()

    asyncio.run(executed())


def test_tables_are_not_distributed_without_citus(moorage, database_url):
    ended = moorage("migrate", "--distributed", "--database-url", database_url)

    assert ended.code == 2
    assert "The database has no extension citus" in ended.err
    assert "Traceback" not in ended.err
