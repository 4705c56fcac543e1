"""The fixtures that other tests rest on."""

import asyncpg
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine


async def test_a_test_has_a_database_of_its_own(database_url: str, postgres_url: str) -> None:
    assert make_url(database_url).database != make_url(postgres_url).database
    engine = create_async_engine(database_url)
    async with engine.begin() as connection:
        await connection.execute(text("CREATE TABLE mine (id int)"))
        count = await connection.scalar(text("SELECT count(*) FROM mine"))
    await engine.dispose()
    assert count == 0


def test_a_test_without_an_event_loop_has_one_too(database_url: str, databases) -> None:
    assert databases.exists(make_url(database_url).database)


async def test_the_database_is_empty_again_for_the_next_test(database_url: str) -> None:
    url = make_url(database_url)
    connection = await asyncpg.connect(
        host=url.query["host"], user=url.username, database=url.database
    )
    assert await connection.fetchval("SELECT to_regclass('mine')") is None
    await connection.close()
