"""A standby takes the place of a PostgreSQL that was killed: with all that it had, or with less."""

import asyncio
import signal
import time
from contextlib import ExitStack, asynccontextmanager

import httpx
import pytest

from service.model.log.commit import RESTORE_LIFT_REVISIONS
from service.scheduler.replica import loading
from service.server.local_server import LocalServer, temporary_folder
from service.store.postgres import PostgresStore
from tests.concurrency.callers import PATH, bearer, read_history
from tests.concurrency.checker import check
from tests.concurrency.checker.history import History
from tests.concurrency.faults.site import Site, connect, start_all
from tests.concurrency.faults.standby import pair
from tests.concurrency.racing import (
    SETUP,
    TOKEN,
    assert_every_answer_is_stored,
    broken_groups,
    load,
)
from tests.processes import PLAIN_HTTP, copy_data
from tests.waiting import once


@asynccontextmanager
async def site_on_a_pair(ready_made):
    """Two servers, which know both PostgreSQLs; the standby is not made yet."""
    with temporary_folder() as folder, ExitStack() as stack:
        copy_data(ready_made, folder / "primary")
        made = await asyncio.to_thread(stack.enter_context, pair(folder))
        environment = {"MOORAGE_TOKEN": TOKEN, "MOORAGE_DATABASE_URL": made.url}
        servers = [LocalServer(folder, environment=environment) for _ in range(2)]
        await start_all(servers, stack)
        await asyncio.to_thread(load, servers[0].url)
        yield made, Site(folder, servers)
        await asyncio.to_thread(stack.close)


async def in_peace(_):
    """Nothing befalls anybody."""


async def once_synchronous(postgres):
    """Return once commits wait for the standby."""
    query = "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')"
    connection = await connect(postgres.url)
    try:
        await once(lambda: connection.fetchval(query))
    finally:
        await connection.close()


async def execute(postgres, *statements):
    connection = await connect(postgres.url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def assert_all_holds(url, calls):
    history = await read_history(url, calls, granted=SETUP)
    assert_every_answer_is_stored(history)
    assert list(broken_groups(history)) == []
    assert check(history, placements_every=max(1, len(history.changes) // 300)) == []


async def make_synchronous(postgres):
    """Make the standby, and have all commits wait for it."""
    await asyncio.to_thread(postgres.copy)
    await execute(
        postgres.primary,
        "ALTER SYSTEM SET synchronous_standby_names = '*'",
        "SELECT pg_reload_conf()",
    )
    await once_synchronous(postgres.primary)


async def test_nothing_acknowledged_is_lost_when_a_synchronous_standby_takes_over(ready_made):
    async with site_on_a_pair(ready_made) as (postgres, site):
        await make_synchronous(postgres)
        killed = []

        async def fail_over(_):
            killed.append(time.monotonic())
            await asyncio.to_thread(postgres.kill_primary)
            await execute(postgres.standby, "SELECT pg_promote()")

        calls = await site.place_while(fail_over)
        assert any(call.called < killed[0] < call.returned for call in calls)
        await site.place_again()
        await assert_all_holds(postgres.standby.url, site.calls)


@pytest.mark.slow
async def test_a_primary_that_stands_still_is_left_when_its_standby_takes_over(ready_made):
    """What waits for its answers would wait for ever; it is settled on the new one."""
    async with site_on_a_pair(ready_made) as (postgres, site):
        await make_synchronous(postgres)

        async def take_over(_):
            postgres.signal_primary(signal.SIGSTOP)
            await execute(postgres.standby, "SELECT pg_promote()")

        try:
            await site.place_while(take_over)
        finally:
            postgres.signal_primary(signal.SIGCONT)
        await site.place_again()
        await assert_all_holds(postgres.standby.url, site.calls)


@pytest.mark.slow
async def test_p3_a_lagging_standby_loses_the_last_changes_alone_and_all_forget_them(ready_made):
    """Another history goes on, under revisions that nobody has seen: nobody takes it for the one that is lost."""
    async with site_on_a_pair(ready_made) as (postgres, site):
        await asyncio.to_thread(postgres.copy)
        kept = await site.place_while(in_peace)
        await assert_all_holds(postgres.primary.url, kept)
        await once_caught_up(postgres)
        await asyncio.to_thread(postgres.standby.stop)

        headers, url = bearer(TOKEN), f"{site.servers[0].url}{PATH}"
        async with httpx.AsyncClient(headers=headers, **PLAIN_HTTP) as client:
            head = int((await client.get(f"{url}/pods?limit=1")).headers["Moorage-Revision"])
            async with client.stream("GET", f"{url}/watch?sinceRevision={head}") as watch:
                lost = await site.place_while(in_peace)
                await asyncio.to_thread(postgres.kill_primary)
                await asyncio.to_thread(postgres.standby.start)
                await execute(postgres.standby, "SELECT pg_promote()")
                ended = [line async for line in watch.aiter_lines() if "event: ERROR" in line]
        assert ended

        # Everybody decides on what is there now, over both servers.
        again = await site.place_while(in_peace)
        last = max(call.revision for call in lost if call.outcome == "ok")
        answered = [call.revision for call in again if call.outcome == "ok"]
        assert last < RESTORE_LIFT_REVISIONS < min(answered)
        await site.place_again()
        rows = await read_rows(postgres.standby.url)
        assert assert_every_answer_is_stored(History(calls=[*kept, *again], rows=rows))
        for call in lost:
            names = [(each["namespace"], each["name"]) for each in results_of(call)]
            assert not [name for name in names if ("Pod", *name) in rows]


def results_of(call):
    return call.body["results"] if call.outcome == "ok" else ()


async def once_caught_up(postgres):
    """Return once the standby has all that the primary has."""
    query = "SELECT bool_and(replay_lsn = pg_current_wal_lsn()) FROM pg_stat_replication"
    connection = await connect(postgres.primary.url)
    try:
        await once(lambda: connection.fetchval(query))
    finally:
        await connection.close()


async def read_rows(url):
    """The cluster's objects, as a history has them."""
    store = PostgresStore(url)
    try:
        snapshot = await loading.load(store, await store.clusters.find("default"))
    finally:
        await store.close()
    return {tuple(row.key): (row.revision, row.body) for row in snapshot.rows}
