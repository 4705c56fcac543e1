"""What is asked of Citus, of which the gate has none: its functions are played by others that note their calls."""

import asyncpg
import pytest

from service.model.log.commit import ReplicaMismatch
from service.model.log.results import DuplicateKey
from service.store.db.connector import connector, data_source_name
from service.store.postgres import PostgresStore
from service.store.schema.citus_sharding import (
    CREATED_EVERYWHERE,
    DELEGATED,
    DISTRIBUTED,
    REFERENCE,
    ServersMissing,
    distribute,
    distribute_new,
    is_distributed,
)
from service.store.schema.tables import metadata
from tests.store.history import answer, commit_on, create

PLAYED = """
    CREATE TABLE pg_dist_partition (logicalrelid regclass, partmethod text, repmodel text);
    CREATE TABLE called (place serial, what text, given text[]);
    CREATE FUNCTION create_reference_table(name regclass) RETURNS void LANGUAGE sql AS $$
        INSERT INTO pg_dist_partition VALUES (name, 'n', 't');
        INSERT INTO called (what, given) VALUES ('reference', ARRAY[name::text]);
    $$;
    CREATE FUNCTION create_distributed_table(
        name regclass, by text, colocate_with text, shard_count integer
    ) RETURNS void LANGUAGE sql AS $$
        INSERT INTO pg_dist_partition VALUES (name, 'h', 's');
        INSERT INTO called (what, given)
        VALUES ('table', ARRAY[name::text, by, colocate_with, shard_count::text]);
    $$;
    CREATE FUNCTION create_distributed_function(
        called regprocedure, by text DEFAULT NULL, colocate_with text DEFAULT NULL
    ) RETURNS void LANGUAGE sql AS $$
        INSERT INTO called (what, given)
        VALUES ('function', ARRAY[split_part(called::text, '(', 1), by, colocate_with]);
    $$;
"""


@pytest.fixture
async def operator(database_url: str):
    connection = await connector(database_url, {})()
    await connection.execute(PLAYED)
    yield connection
    await connection.close()


async def calls(operator: asyncpg.Connection, what: str) -> list[list[str | None]]:
    query = "SELECT given FROM called WHERE what = $1 ORDER BY place"
    return [row["given"] for row in await operator.fetch(query, what)]


async def test_all_tables_and_functions_are_distributed_once(operator: asyncpg.Connection):
    async with operator.transaction():
        new = await distribute_new(operator, 8)
        assert (await operator.fetchval("SHOW citus.multi_shard_modify_mode")) == "sequential"
    assert new == [*REFERENCE, *DISTRIBUTED]
    assert await calls(operator, "reference") == [[name] for name in REFERENCE]
    head, *others = await calls(operator, "table")
    assert head == ["head", "cluster_id", "none", "8"]
    assert others == [
        [name, by, "head", None] for name, by in DISTRIBUTED.items() if name != "head"
    ]
    assert await calls(operator, "function") == [
        *([name, None, None] for name in CREATED_EVERYWHERE),
        *([name, by, "head"] for name, by in DELEGATED.items()),
    ]
    async with operator.transaction():
        assert await distribute_new(operator, 8) == []


def test_each_distributed_table_is_divided_by_a_column_of_its_key():
    keys = {name: table.primary_key.columns for name, table in metadata.tables.items()}
    assert [name for name, by in DISTRIBUTED.items() if by not in keys[name]] == []
    of_clusters = {name for name, table in metadata.tables.items() if "cluster_id" in table.columns}
    assert of_clusters - DISTRIBUTED.keys() - {*REFERENCE} == {"replica_report"}


async def test_a_later_table_is_distributed_beside_the_others(operator: asyncpg.Connection):
    async with operator.transaction():
        await distribute_new(operator, 8)
        await operator.execute(
            "UPDATE pg_dist_partition SET partmethod = 'n' WHERE logicalrelid = 'webhook'::regclass;"
            "TRUNCATE called"
        )
        assert await distribute_new(operator) == ["webhook"]
    assert await calls(operator, "table") == [["webhook", "cluster_id", "head", None]]


async def test_a_database_without_citus_is_refused_and_stays_as_it_is(database_url: str):
    with pytest.raises(ServersMissing, match="no extension citus"):
        await distribute(database_url, 8)
    connection = await asyncpg.connect(data_source_name(database_url))
    assert not await is_distributed(connection)
    await connection.close()


TAKEN = """
    CREATE FUNCTION taken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE SQLSTATE 'XX000' USING MESSAGE =
            format('duplicate key value violates unique constraint "%s_pkey_102167"', TG_TABLE_NAME);
    END $$;
    CREATE TRIGGER taken BEFORE INSERT ON object FOR EACH ROW EXECUTE FUNCTION taken();
"""


async def test_a_key_that_is_taken_on_another_server_is_recognized_by_the_message(
    database_url: str, operator: asyncpg.Connection
):
    store = PostgresStore(database_url)
    cluster_id = await store.clusters.find("default")
    request = commit_on(await store.log.head(cluster_id), create("a"), idempotency=(answer("k"),))
    await operator.execute(TAKEN)
    with pytest.raises(ReplicaMismatch, match="object_pkey_102167"):
        await store.log.commit(cluster_id, request)
    await operator.execute(
        "CREATE TRIGGER taken BEFORE INSERT ON idempotency FOR EACH ROW EXECUTE FUNCTION taken()"
    )
    assert isinstance(await store.log.commit(cluster_id, request), DuplicateKey)
    await store.close()
