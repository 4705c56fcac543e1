"""`kill -9` at random moments under load; how soon placements go on afterwards."""

import asyncio
import os
import random
import statistics
import time

import httpx
import pytest

from service.cli.local import LocalServer, temporary_folder
from tests.builders import pod
from tests.concurrency.callers import PATH, bearer
from tests.concurrency.faults.site import site
from tests.concurrency.racing import TOKEN, kill_postgres, kill_worker, load

KILLS = int(os.environ.get("MOORAGE_FAULT_KILLS", "20"))  # noqa: TID251
SEED = int(os.environ.get("MOORAGE_FAULT_SEED", "0"))  # noqa: TID251
RECOVERIES = int(os.environ.get("MOORAGE_FAULT_RECOVERIES", "20"))  # noqa: TID251
RECOVERY_SECONDS_MAX = 30.0


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_what_was_acknowledged_outlives_kills_at_random_moments():
    chance = random.Random(SEED)

    async def kill_at_random(site):
        for _ in range(KILLS):
            await asyncio.sleep(chance.uniform(0.0, 1.5))
            if chance.random() < 0.5:
                await asyncio.to_thread(kill_worker, chance.choice(site.servers))
            else:
                await asyncio.to_thread(kill_postgres, site.data_dir)

    async with site(quiet=True) as made:
        calls = await made.place_while(kill_at_random)
        assert any(call.outcome != "ok" for call in calls)
        assert any(call.outcome == "ok" for call in calls)


async def seconds_until_placed(url, name):
    """From now on, ask for a placement until one is acknowledged."""
    body, started = {"pods": [pod(name)]}, time.monotonic()
    headers = {**bearer(TOKEN), "Idempotency-Key": name}
    while time.monotonic() < started + RECOVERY_SECONDS_MAX:
        try:
            async with httpx.AsyncClient(timeout=5, headers=headers) as client:
                answer = await client.post(f"{url}{PATH}/placements", json=body)
            if answer.is_success and answer.json()["results"][0]["outcome"] == "Placed":
                return time.monotonic() - started
        except httpx.HTTPError:
            pass
        await asyncio.sleep(0.01)
    raise AssertionError("No placement was acknowledged any more.")


async def recoveries(kill, count):
    """Seconds from a kill to the next acknowledged placement, one server with one worker.

    It is started anew for each kill, since what is killed again and again comes back at growing
    intervals.
    """
    found = []
    with temporary_folder() as folder:
        data_dir = folder / "data"
        server = LocalServer(data_dir, environment={"MOORAGE_TOKEN": TOKEN}, quiet=True)
        for i in range(count):
            await asyncio.to_thread(server.start)
            try:
                if i == 0:
                    await asyncio.to_thread(load, server.url)
                await seconds_until_placed(server.url, f"before-{i}")
                kill(server, data_dir)
                found.append(await seconds_until_placed(server.url, f"after-{i}"))
            finally:
                await asyncio.to_thread(server.stop)
    return sorted(found)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("victim", "kill"),
    [
        ("worker", lambda server, _: kill_worker(server)),
        ("PostgreSQL", lambda _, data_dir: kill_postgres(data_dir)),
    ],
    ids=["worker", "postgres"],
)
async def test_placements_go_on_soon_after_a_kill(victim, kill):
    found = await recoveries(kill, RECOVERIES)
    p99 = found[min(len(found) - 1, int(0.99 * len(found)))]
    print(
        f"\n{victim}: {len(found)} kills, to the next acknowledged placement: median "
        f"{statistics.median(found):.2f} s, p99 {p99:.2f} s, longest {found[-1]:.2f} s"
    )
    assert found[-1] < RECOVERY_SECONDS_MAX
