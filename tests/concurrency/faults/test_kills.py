"""`kill -9` at random moments under load; how soon placements go on afterwards."""

import argparse
import asyncio
import os
import random

import pytest

from tests.concurrency.faults.recovery import (
    KILLS as KILLS_OF,
    RECOVERY_SECONDS_MAX,
    placements_while_killing,
    recoveries,
    told,
)
from tests.concurrency.faults.site import site
from tests.concurrency.racing import kill_postgres, kill_worker
from tests.seeds import seed

KILLS = int(os.environ.get("MOORAGE_FAULT_KILLS", "20"))  # noqa: TID251
SEED = seed("kills at random moments")
RECOVERIES = int(os.environ.get("MOORAGE_FAULT_RECOVERIES", "20"))  # noqa: TID251


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


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("victim", KILLS_OF)
async def test_placements_go_on_soon_after_a_kill(victim):
    found = await recoveries(KILLS_OF[victim], RECOVERIES, seed=SEED)
    print(told(victim, found))
    assert found[-1] < RECOVERY_SECONDS_MAX


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_many_pods_are_placed_while_something_is_killed_every_two_seconds():
    load = argparse.Namespace(seed=SEED, seconds=10, pods=100, callers=16, servers=2, workers=1)
    lines = [line async for line in placements_while_killing(load)]
    print(*lines, sep="\n")
    assert "nothing broken" in lines[-1]
