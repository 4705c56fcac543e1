"""The role by which servers use the embedded database: it serves, and it can do nothing else."""

import asyncio

import asyncpg
import pytest

from service.model.core.errors import NotFound
from service.server.local_server import temporary_folder
from service.store.db.connector import data_source_name
from service.store.embedded import EmbeddedPostgres
from service.store.embedded.config import SERVING_ROLE
from service.store.postgres import PostgresStore
from service.store.schema.migrate import is_current
from service.store.schema.serving_role import admit_servers
from tests.processes import copy_data
from tests.store.history import committed, create

BEYOND_IT = [
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "COPY cluster TO '/tmp/moorage-leak'",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_ls_dir('/')",
    "SELECT lo_import('/etc/passwd')",
    "CREATE EXTENSION vector",
    "CREATE TABLE mine (id int)",
    "CREATE TEMPORARY TABLE mine (id int)",
    "CREATE SCHEMA mine",
    "CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE ROLE mine",
    "CREATE DATABASE mine",
    "ALTER SYSTEM SET archive_command = 'true'",
    "ALTER TABLE object DISABLE TRIGGER ALL",
    "DROP TABLE object",
    "TRUNCATE object CASCADE",
    "UPDATE alembic_version SET version_num = '0001'",
    "UPDATE audit SET principal = 'nobody'",
    "SET ROLE moorage",
    "SET SESSION AUTHORIZATION moorage",
    "SELECT pg_reload_conf()",
    "SELECT * FROM pg_authid",
]


@pytest.fixture(scope="module")
def serving_url(ready_made):
    """Of a data folder that was made without the role, which is admitted at each start."""
    with temporary_folder() as folder:
        copy_data(ready_made, folder / "data")
        with EmbeddedPostgres(folder / "data") as postgres:
            asyncio.run(admit_servers(postgres.url))
            asyncio.run(admit_servers(postgres.url))
            yield postgres.serving_url


async def test_it_has_no_attribute_of_a_superuser(serving_url):
    connection = await asyncpg.connect(data_source_name(serving_url))
    row = await connection.fetchrow("SELECT * FROM pg_roles WHERE rolname = current_user")
    await connection.close()

    attributes = ("super", "createrole", "createdb", "replication", "bypassrls")
    assert row["rolname"] == SERVING_ROLE
    assert [name for name in attributes if row[f"rol{name}"]] == []


@pytest.mark.parametrize("statement", BEYOND_IT)
async def test_it_may_not_do_what_no_server_does(serving_url, statement):
    connection = await asyncpg.connect(data_source_name(serving_url))
    try:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)
    finally:
        await connection.close()


async def test_it_sees_that_the_tables_are_up_to_date(serving_url):
    assert await is_current(serving_url)


async def test_it_makes_fills_reads_and_deletes_clusters(serving_url):
    store = PostgresStore(serving_url)
    try:
        cluster_id = (await store.clusters.create("served", b"{}")).cluster_id
        await committed(store, cluster_id, create("a"))
        assert (await store.log.head(cluster_id)).revision == 2
        await store.clusters.delete(cluster_id)
        with pytest.raises(NotFound):
            await store.clusters.find("served")
    finally:
        await store.close()
