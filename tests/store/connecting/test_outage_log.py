"""When the database counts as lost and as found, and what proves that commits work."""

import logging
from collections.abc import AsyncIterator

import asyncpg
import pytest
from sqlalchemy.engine import make_url

from service.model.core.errors import StorageUnavailable
from service.store.db.connector import data_source_name
from service.store.db.hosts import Host
from service.store.db.outages import Outages
from service.store.postgres import PostgresStore


class Time:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[PostgresStore]:
    made = PostgresStore(database_url)
    yield made
    await made.close()


def test_an_outage_is_told_at_its_beginning_and_at_its_end(caplog) -> None:
    clock = Time()
    outages = Outages(clock, host=lambda: Host("db-1", 5432))
    outages.worked("commit")
    outages.failed("commit", "a")
    clock.seconds = 2.5
    outages.failed("connection", "b")
    outages.failed("commit", "c")
    outages.worked("connection")
    assert outages.reason == "c", "connections can be opened, but commits are not known to work"
    outages.worked("commit")
    assert outages.reason is None
    assert outages.count == 1
    told = [(each.levelno, each.message) for each in caplog.records]
    assert told == [
        (logging.ERROR, "The database is lost."),
        (logging.WARNING, "The database is back."),
    ]
    assert [vars(each).get("reason") for each in caplog.records] == ["a", None]
    assert [vars(each)["host"] for each in caplog.records] == ["db-1:5432"] * 2
    assert vars(caplog.records[1])["after_seconds"] == 2.5


def test_a_commit_that_works_ends_every_outage() -> None:
    outages = Outages()
    outages.failed("connection", "too many of them")
    outages.worked("commit")
    assert outages.reason is None


def test_what_is_wrong_with_a_statement_is_no_outage() -> None:
    outages = Outages()
    with pytest.raises(ValueError, match="no number"), outages.watched("commit"):
        raise ValueError("no number")
    assert outages.reason is None


async def test_a_proof_leaves_nothing(store: PostgresStore, database_url: str) -> None:
    before = await store.log.head(1)
    await store.log.check_writable()
    assert await store.log.head(1) == before
    assert store.outage is None
    use = store.pool_uses()["commits"]
    assert (use.idle, use.borrowed, use.size) == (1, 0, 8)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER DATABASE {name} SET temp_file_limit = '64kB'",
        "ALTER DATABASE {name} SET default_transaction_read_only = on",
        "DROP TABLE head CASCADE",
    ],
    ids=["no room", "read-only", "no table"],
)
async def test_a_proof_needs_what_a_commit_needs(database_url: str, statement: str) -> None:
    """`temp_file_limit` stands for a disk that has no room for more."""
    connection = await asyncpg.connect(data_source_name(database_url))
    await connection.execute(statement.format(name=make_url(database_url).database))
    await connection.close()
    store = PostgresStore(database_url)
    with pytest.raises(StorageUnavailable):
        await store.log.check_writable()
    assert store.outage is not None
    await store.close()
