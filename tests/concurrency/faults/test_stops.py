"""Workers that stand still or are told to stop, backends that are terminated: what must not happen."""

import asyncio
import os
import signal
import time

import pytest

from tests.concurrency.faults.site import site
from tests.concurrency.racing import CALLERS
from tests.waiting import WAIT_SECONDS

TERMINATIONS = 10
TERMINATE = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = 'moorage' AND datname = current_database()
      AND pid <> pg_backend_pid()
"""


@pytest.mark.slow
async def test_workers_that_stand_still_and_terminated_backends_cost_nobody_an_answer(
    database_url,
):
    async with site(url=database_url) as made:
        await a_worker_that_stands_still_delays_only_its_own_callers(made)
        await terminated_backends_cost_no_answer(made)
        await what_a_server_has_begun_it_answers_before_it_stops(made)


async def a_worker_that_stands_still_delays_only_its_own_callers(made):
    async def stop_for_a_while(site):
        site.signal_worker(0, signal.SIGSTOP)
        try:
            for _ in range(3):  # of the others' callers, one after the other
                await site.acknowledged(time.monotonic())
        finally:
            site.signal_worker(0, signal.SIGCONT)

    calls = await made.place_while(stop_for_a_while)
    # What a worker planned before it stood still is old when it goes on: it decides again.
    assert all(each.outcome == "ok" for each in calls)


async def terminated_backends_cost_no_answer(made):
    terminated = []

    async def terminate(site):
        async with site.connection() as connection:
            rounds = 0
            while rounds < TERMINATIONS or len(terminated) <= TERMINATIONS:
                rounds += 1
                terminated.extend(await connection.fetch(TERMINATE))
                if rounds % 3 == 0:  # in between once they have connected anew, or try to
                    await site.acknowledged(time.monotonic())

    calls = await made.place_while(terminate)
    assert len(terminated) > TERMINATIONS
    assert sum(each.outcome == "ok" for each in calls) > CALLERS
    answered = {each.operation for each in calls if each.outcome == "ok"}
    assert answered == {each.operation for each in calls}


async def what_a_server_has_begun_it_answers_before_it_stops(made):
    """SIGTERM: whoever is connected gets an answer, and the other server serves all the rest."""

    async def stop_one(site):
        process = site.servers[0].process
        os.kill(process.pid, signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, WAIT_SECONDS) == 0

    calls = await made.place_while(stop_one)
    made.servers[0].process = None
    broken = [each for each in calls if each.status in {"ReadError", "RemoteProtocolError"}]
    # Connections that were kept open, with nothing begun.
    assert len(broken) <= CALLERS // 2, broken
    answered = {each.operation for each in calls if each.outcome == "ok"}
    assert answered == {each.operation for each in calls}
