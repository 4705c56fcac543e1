"""Real server processes, a real PostgreSQL, concurrent callers over HTTP: do the rules hold?"""

import asyncio
from contextlib import ExitStack

from service.server.local_server import LocalServer, temporary_folder
from service.store.embedded import EmbeddedPostgres
from tests.concurrency.callers import read_history
from tests.concurrency.checker import check
from tests.concurrency.faults.site import start_all
from tests.concurrency.racing import (
    CALLERS,
    SETUP,
    TOKEN,
    assert_every_answer_is_stored,
    broken_groups,
    kill_postgres,
    kill_worker,
    load,
    run_callers,
    worker_of,
)
from tests.processes import copy_data

GROUPS = 9
RACED_GROUPS = 45


async def test_first_pods_raced_over_two_processes_break_no_rule(database_url):
    """Until both were in each other's way often enough, or this would prove nothing."""
    environment = {"MOORAGE_DATABASE_URL": database_url, "MOORAGE_TOKEN": TOKEN}
    with temporary_folder() as folder, ExitStack() as stack:
        servers = [LocalServer(folder / f"data-{i}", environment=environment) for i in range(2)]
        await start_all(servers, stack)
        load(servers[0].url)

        urls = [server.url for server in servers]
        calls = await run_callers(urls, groups=RACED_GROUPS, enough=raced_enough)

        history = await read_history(database_url, calls, granted=SETUP)
    assert assert_every_answer_is_stored(history) >= RACED_GROUPS * CALLERS
    assert list(broken_groups(history)) == []
    assert check(history, placements_every=5) == []


def raced_enough(calls):
    return sum(call.outcome == "ok" and call.body["attempts"] > 1 for call in calls) > CALLERS


async def test_what_was_answered_outlives_killed_workers_and_a_killed_postgres(capfd, ready_made):
    with temporary_folder() as folder, ExitStack() as stack:
        copy_data(ready_made, folder / "data")
        environment = {"MOORAGE_TOKEN": TOKEN}
        servers = [LocalServer(folder / "data", environment=environment) for _ in range(2)]
        await start_all(servers, stack)
        load(servers[0].url)

        async def kill_something(number):
            later = asyncio.get_running_loop().call_later
            if number in (2, 5):
                later(0.02, kill_worker, servers[number % 2])
            if number in (3, 7):
                later(0.02, kill_postgres, folder / "data")
            if number == GROUPS - 1:  # whom nobody cost an answer yet, this one does
                worker = worker_of(servers[0])
                if worker is not None:
                    worker.suspend()
                later(0.5, kill_worker, servers[0])

        urls = [server.url for server in servers]
        calls = await run_callers(urls, groups=GROUPS, between=kill_something)

        with EmbeddedPostgres(folder / "data") as postgres:
            history = await read_history(postgres.url, calls, granted=SETUP)
    assert assert_every_answer_is_stored(history) >= GROUPS * CALLERS
    assert list(broken_groups(history)) == []
    assert check(history) == []
    assert any(call.outcome != "ok" for call in history.calls)
    # A18: not in what the servers said, not in any answer.
    told = "".join(capfd.readouterr()) + repr(history.calls)
    assert "Moorage is ready." in told
    assert TOKEN not in told
