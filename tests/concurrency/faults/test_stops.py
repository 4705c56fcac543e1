"""Workers that stand still or are told to stop, backends that are terminated: what must not happen."""

import asyncio
import os
import signal
import time

from service.cli.local import STOP_SECONDS_MAX
from service.store.embedded import EmbeddedPostgres
from tests.concurrency.faults.site import connect, site
from tests.concurrency.racing import CALLERS

STOPPED_SECONDS = 3.0
ARRIVED_SECONDS = 0.5
"""After so long nothing is on its way any more to a worker that stands still."""
TERMINATIONS = 10


async def test_a_worker_that_stands_still_delays_only_its_own_callers():
    window = []

    async def stop_for_a_while(site):
        site.signal_worker(0, signal.SIGSTOP)
        try:
            await asyncio.sleep(ARRIVED_SECONDS)
            window.append(time.monotonic())
            await asyncio.gather(site.acknowledged(window[0]), asyncio.sleep(STOPPED_SECONDS))
            window.append(time.monotonic())
        finally:
            site.signal_worker(0, signal.SIGCONT)

    async with site() as made:
        calls = await made.place_while(stop_for_a_while)
    began, ended = window
    meanwhile = [each for each in calls if began <= each.called and each.returned <= ended]
    assert sum(each.outcome == "ok" for each in meanwhile) > CALLERS
    # What a worker planned before it stood still is old when it goes on: it decides again.
    assert all(each.outcome == "ok" for each in calls)


async def test_terminated_backends_cost_no_answer():
    terminated = []

    async def terminate(site):
        with EmbeddedPostgres(site.data_dir) as postgres:
            connection = await connect(postgres.url)
            rounds = 0
            while rounds < TERMINATIONS or len(terminated) <= TERMINATIONS:
                rounds += 1
                terminated.extend(
                    await connection.fetch(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                        " WHERE application_name = 'moorage' AND pid <> pg_backend_pid()"
                    )
                )
                await asyncio.sleep(0.1)
            await connection.close()

    async with site() as made:
        calls = await made.place_while(terminate)
    assert len(terminated) > TERMINATIONS
    assert sum(each.outcome == "ok" for each in calls) > CALLERS


async def test_what_a_server_has_begun_it_answers_before_it_stops():
    """SIGTERM: whoever is connected gets an answer, and the other server serves all the rest."""

    async def stop_one(site):
        process = site.servers[0].process
        os.kill(process.pid, signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, STOP_SECONDS_MAX) == 0

    async with site() as made:
        calls = await made.place_while(stop_one)
        made.servers[0].process = None
    broken = [each for each in calls if each.status in {"ReadError", "RemoteProtocolError"}]
    assert len(broken) <= CALLERS // 2, (
        broken
    )  # connections that were kept open, with nothing begun
    answered = {each.operation for each in calls if each.outcome == "ok"}
    assert answered == {each.operation for each in calls}
