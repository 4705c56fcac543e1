"""A standby takes the place of a PostgreSQL that was killed: with all that it had, or with less."""

import asyncio
import time
from contextlib import ExitStack, asynccontextmanager

import httpx
import pytest

from service.cli.server.local_server import LocalServer, temporary_folder
from tests.concurrency.callers import PATH, bearer, read_history
from tests.concurrency.checker import check
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


async def test_nothing_acknowledged_is_lost_when_a_synchronous_standby_takes_over(ready_made):
    async with site_on_a_pair(ready_made) as (postgres, site):
        await asyncio.to_thread(postgres.copy)
        await execute(
            postgres.primary,
            "ALTER SYSTEM SET synchronous_standby_names = '*'",
            "SELECT pg_reload_conf()",
        )

        await once_synchronous(postgres.primary)
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
async def test_p3_a_lagging_standby_loses_the_last_changes_alone_and_all_forget_them(ready_made):
    """Another history grows to the same revisions; tips and timelines tell the two apart."""
    async with site_on_a_pair(ready_made) as (postgres, site):
        await asyncio.to_thread(postgres.copy)
        await site.place_while(in_peace)
        await asyncio.to_thread(postgres.standby.stop)

        headers, url = bearer(TOKEN), f"{site.servers[0].url}{PATH}"
        async with httpx.AsyncClient(headers=headers, **PLAIN_HTTP) as client:
            head = int((await client.get(f"{url}/pods?limit=1")).headers["Moorage-Revision"])
            async with client.stream("GET", f"{url}/watch?sinceRevision={head}") as watch:
                await site.place_while(in_peace)
                await asyncio.to_thread(postgres.kill_primary)
                await asyncio.to_thread(postgres.standby.start)
                await execute(postgres.standby, "SELECT pg_promote()")
                ended = [line async for line in watch.aiter_lines() if "HistoryReplaced" in line]
        assert ended

        lost = await lost_calls(postgres.standby.url, site.calls)
        assert lost
        # Everybody decides on what is there now, over both servers, under the same revisions.
        site.notebook.calls = [call for call in site.calls if call not in lost]
        again = await site.place_while(in_peace)
        answered = [call.revision for call in again if call.outcome == "ok"]
        assert min(answered) <= max(call.revision for call in lost)
        await site.place_again()
        await assert_all_holds(postgres.standby.url, site.calls)


async def lost_calls(url, calls):
    """Those whose answers the database does not have: what came after a moment, and nothing else."""
    history = await read_history(url, calls, granted=SETUP)
    lost = [call for call in calls if call.outcome == "ok" and call.revision > history.head[0]]
    found = check(history, placements_every=100)
    assert {each.invariant for each in found} == {"A6"}, found
    assert {each.message.partition(" (")[0] for each in found} == {
        f"call {call.number}" for call in lost
    }
    return lost
