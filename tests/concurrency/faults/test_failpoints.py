"""The connection to PostgreSQL breaks exactly between a commit and its answer, before it, or late."""

import asyncio
import itertools
from contextlib import ExitStack

import pytest

from service.server.local_server import LocalServer, temporary_folder
from tests.concurrency.callers import read_history
from tests.concurrency.checker import check
from tests.concurrency.faults.proxy import KILLS, CommitProxy
from tests.concurrency.faults.site import start_all
from tests.concurrency.racing import (
    CALLERS,
    SETUP,
    TOKEN,
    assert_every_answer_is_stored,
    broken_groups,
    load,
    run_callers,
)

FAULTS = ("answer lost", "never sent", "sent late")
GROUPS = 18
KILL_GROUPS = 8


@pytest.mark.parametrize("servers", [pytest.param(1, marks=pytest.mark.slow), 2])
async def test_no_answer_is_lost_or_given_twice_when_commits_lose_their_answers(
    database_url, servers
):
    environment = {"MOORAGE_TOKEN": TOKEN}
    with temporary_folder() as folder, ExitStack() as stack:
        async with CommitProxy(database_url, folder) as proxy:
            environment["MOORAGE_DATABASE_URL"] = proxy.url
            running = [LocalServer(folder, environment=environment) for _ in range(servers)]
            await start_all(running, stack)
            await asyncio.to_thread(load, running[0].url)

            pattern = itertools.cycle([*FAULTS, None, FAULTS[0], None])
            proxy.faults.extend(itertools.islice(pattern, GROUPS))
            calls = await run_callers([server.url for server in running], groups=GROUPS)
            await asyncio.to_thread(stack.close)
        history = await read_history(database_url, calls, granted=SETUP)
    assert all(proxy.done[fault] >= 3 for fault in FAULTS), proxy.done
    assert assert_every_answer_is_stored(history) == GROUPS * CALLERS
    assert list(broken_groups(history)) == []
    assert check(history) == []


async def test_workers_that_die_at_their_commit_leave_it_whole_or_not_at_all(database_url):
    """`kill -9` of the very worker that commits: before, between commit and answer, and after."""
    environment = {"MOORAGE_TOKEN": TOKEN}
    with temporary_folder() as folder, ExitStack() as stack:
        async with CommitProxy(database_url, folder) as proxy:
            environment["MOORAGE_DATABASE_URL"] = proxy.url
            running = [LocalServer(folder, environment=environment) for _ in range(2)]
            await start_all(running, stack)
            await asyncio.to_thread(load, running[0].url)

            async def next_kill(number):
                # Each group has one commit at least, and the killed are tried again: all are taken.
                round_, kind = divmod(number, len(KILLS))
                if round_ < 2:
                    proxy.faults.extend([*[None] * round_, KILLS[kind]])

            urls = [server.url for server in running]
            calls = await run_callers(urls, groups=KILL_GROUPS, between=next_kill)
            await asyncio.to_thread(stack.close)
        history = await read_history(database_url, calls, granted=SETUP)
    assert all(proxy.done[kill] == 2 for kill in KILLS), proxy.done
    assert assert_every_answer_is_stored(history) == KILL_GROUPS * CALLERS
    assert list(broken_groups(history)) == []
    assert check(history) == []
