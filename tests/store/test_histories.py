"""P3: revisions are lifted by themselves once changes may be lost that somebody has seen."""

import re

import asyncpg
import pytest

from service.model.log.commit import Diverged, Head
from service.store.db.connector import data_source_name
from service.store.postgres import PostgresStore
from tests.store.history import AnyStore, committed, create, new_id, put

LIFT = 1_000_000_000
ANOTHER = [
    "UPDATE history SET system = system + 1",
    "UPDATE history SET timeline = timeline - 1",
    "UPDATE history SET timeline = timeline + 1",
    "UPDATE history SET database = database + 1",
]
"""The notes as they are in a restored dump, after a recovery to a point in time, in an old copy of the files, and in a copy of the database."""


async def lifted(store: AnyStore, cluster_id: int, known: Head | None) -> bool:
    """What the store says, which has to be what it did."""
    before = await store.log.head(cluster_id)
    said = await store.recovery.continue_history(cluster_id, known)
    after = await store.log.head(cluster_id)
    assert after.revision == before.revision + LIFT * said
    assert (after.tip != before.tip) is said
    return said


async def test_p3_while_the_history_is_the_same_nothing_is_lifted(store: AnyStore, cluster_id: int):
    first = await committed(store, cluster_id, create("a"))
    second = await committed(store, cluster_id, put("a"))
    for known in (None, first, second, None):
        assert not await lifted(store, cluster_id, known)


async def test_p3_what_somebody_has_seen_and_is_lost_lifts_the_revision_once(
    store: AnyStore, cluster_id: int
):
    start = await committed(store, cluster_id, create("a"))
    await committed(store, cluster_id, put("a"))
    # Another server has seen these, and both are not in the log.
    replaced = Head(start.revision + 1, new_id(), start.at)
    beyond = Head(start.revision + 2, new_id(), start.at)
    assert await lifted(store, cluster_id, replaced)
    assert not await lifted(store, cluster_id, replaced)
    assert not await lifted(store, cluster_id, beyond)
    await committed(store, cluster_id, put("a"))
    assert await lifted(store, cluster_id, Head(2 * LIFT, new_id(), start.at))


async def test_a_lift_for_a_change_that_was_lost_is_told(
    postgres: PostgresStore, cluster_id: int, caplog
):
    head = await committed(postgres, cluster_id, create("a"))
    assert await lifted(postgres, cluster_id, Head(head.revision + 7, new_id(), head.at))
    [line] = [vars(each) for each in caplog.records if "lifted" in each.message]
    assert line["reason"] == "the log lacks a change that this server knows"
    assert (line["known"], line["revision"]) == (head.revision + 7, head.revision + LIFT)


async def test_p3_a_log_that_was_cut_is_no_reason(store: AnyStore, cluster_id: int):
    known = await committed(store, cluster_id, create("a"))
    last = await committed(store, cluster_id, put("a"))
    await store.housekeeping.compact(cluster_id, keep_changes=0, keep_seconds=0)
    assert isinstance(await store.log.read(cluster_id, known.revision, known.tip, 10), Diverged)
    for each in (known, last):
        assert not await lifted(store, cluster_id, each)


@pytest.mark.parametrize("another", ANOTHER)
async def test_p3_after_a_restore_or_a_promotion_whoever_knows_nothing_lifts_the_revision(
    postgres: PostgresStore, cluster_id: int, database_url: str, another: str, caplog
):
    await committed(postgres, cluster_id, create("a"))
    assert not await lifted(postgres, cluster_id, None)
    await executed(database_url, another)
    assert await lifted(postgres, cluster_id, None)
    assert not await lifted(postgres, cluster_id, None)
    assert postgres.recovery.lifts == 1
    [line] = [vars(each) for each in caplog.records if "lifted" in each.message]
    changed = another.split()[3]
    assert re.fullmatch(rf"the {changed} was \d+ and is \d+", line["reason"])
    head = await postgres.log.head(cluster_id)
    assert (line["known"], line["revision"]) == ("nothing", head.revision)


@pytest.mark.parametrize("another", ANOTHER)
async def test_p3_after_a_restore_or_a_promotion_whoever_finds_all_it_knows_goes_on(
    postgres: PostgresStore, cluster_id: int, database_url: str, another: str
):
    known = await committed(postgres, cluster_id, create("a"))
    await postgres.recovery.continue_history(cluster_id, None)
    await executed(database_url, another)
    await committed(postgres, cluster_id, put("a"))
    assert not await lifted(postgres, cluster_id, known)
    # It has noted the history for those who know nothing.
    assert not await lifted(postgres, cluster_id, None)


async def test_p3_a_cut_log_proves_nothing_after_a_restore(
    postgres: PostgresStore, cluster_id: int, database_url: str
):
    known = await committed(postgres, cluster_id, create("a"))
    await committed(postgres, cluster_id, put("a"))
    await postgres.recovery.continue_history(cluster_id, None)
    await postgres.housekeeping.compact(cluster_id, keep_changes=0, keep_seconds=0)
    await executed(database_url, ANOTHER[0])
    assert await lifted(postgres, cluster_id, known)


async def test_p3_the_noted_history_is_that_of_the_connections(
    postgres: PostgresStore, cluster_id: int, database_url: str
):
    await postgres.recovery.continue_history(cluster_id, None)
    noted = await executed(database_url, "SELECT system, timeline FROM history")
    assert postgres.guard.current == tuple(noted[0])


async def executed(url: str, statement: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(data_source_name(url))
    try:
        return await connection.fetch(statement)
    finally:
        await connection.close()
