"""`python -m tests.concurrency.faults.recovery`: how soon placements go on after `kill -9`.

First one thing is killed again and again, with one caller who asks until a placement that was
asked for after the kill is acknowledged. Then many callers place pods while a worker or PostgreSQL
is killed every two seconds; that run ends in the checker.
"""

import argparse
import asyncio
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx

from service.cli.local import LocalServer, temporary_folder
from tests.builders import pod
from tests.concurrency.callers import PATH, bearer
from tests.concurrency.faults.site import Site, site
from tests.concurrency.racing import TOKEN, kill_postgres, kill_worker, load

RECOVERY_SECONDS_MAX = 30.0
ASK_AGAIN_SECONDS = 0.01
KILL_EVERY_SECONDS = 2.0
Kill = Callable[[LocalServer, Path], None]

KILLS: dict[str, Kill] = {
    "worker": lambda server, _: kill_worker(server),
    "PostgreSQL": lambda _, data_dir: kill_postgres(data_dir),
}


async def seconds_until_placed(url: str, name: str) -> float:
    """From now on, ask for a placement until one is acknowledged."""
    body, started = {"pods": [pod(name)]}, time.monotonic()
    headers = {**bearer(TOKEN), "Idempotency-Key": name}
    while time.monotonic() < started + RECOVERY_SECONDS_MAX:
        try:
            async with httpx.AsyncClient(timeout=5, headers=headers, verify=False) as client:
                answer = await client.post(f"{url}{PATH}/placements", json=body)
            if answer.is_success and answer.json()["results"][0]["outcome"] == "Placed":
                return time.monotonic() - started
        except httpx.HTTPError:
            pass
        await asyncio.sleep(ASK_AGAIN_SECONDS)
    raise AssertionError("No placement was acknowledged any more.")


async def recoveries(kill: Kill, count: int, *, workers: int = 1, seed: int = 0) -> list[float]:
    """Seconds from each kill to the next acknowledged placement, sorted; one server."""
    found, chance = [], random.Random(seed)
    with temporary_folder() as folder:
        data_dir = folder / "data"
        environment = {"MOORAGE_TOKEN": TOKEN}
        server = LocalServer(data_dir, environment=environment, workers=workers, quiet=True)
        await asyncio.to_thread(server.start)
        try:
            await asyncio.to_thread(load, server.url)
            for i in range(count):
                await seconds_until_placed(server.url, f"before-{i}")
                await asyncio.sleep(chance.uniform(1, 3))
                kill(server, data_dir)
                found.append(await seconds_until_placed(server.url, f"after-{i}"))
        finally:
            await asyncio.to_thread(server.stop)
    return sorted(found)


def told(victim: str, seconds: Sequence[float]) -> str:
    p99 = seconds[min(len(seconds) - 1, int(0.99 * len(seconds)))]
    return (
        f"{victim}: {len(seconds)} kills; to the next acknowledged placement: median "
        f"{statistics.median(seconds):.2f} s, p99 {p99:.2f} s, longest {seconds[-1]:.2f} s"
    )


async def placements_per_second(seconds: float, seed: int, pods: int) -> str:
    """Acknowledged while something is killed every two seconds; two servers on one PostgreSQL."""
    chance, killed = random.Random(seed), {"worker": 0, "PostgreSQL": 0}

    async def kill_at_intervals(made: Site) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            await asyncio.sleep(KILL_EVERY_SECONDS)
            victim = chance.choice(list(KILLS))
            killed[victim] += 1
            server = chance.choice(made.servers)
            await asyncio.to_thread(KILLS[victim], server, made.data_dir)

    async with site(quiet=True) as made:
        started = time.monotonic()
        calls = await made.place_while(kill_at_intervals, pods=pods)
        elapsed = time.monotonic() - started
    placed = sum(
        result["outcome"] == "Placed"
        for call in calls
        for result in (call.body["results"] if call.outcome == "ok" else ())
    )
    waits = sorted(call.returned - call.called for call in calls if call.outcome == "ok")
    return (
        f"{placed:,} placements acknowledged in {elapsed:.0f} s, {placed / elapsed:,.0f}/s, while "
        f"{killed['worker']} workers and PostgreSQL {killed['PostgreSQL']} times were killed; "
        f"requests of {pods} pods, median {statistics.median(waits):.2f} s, "
        f"longest {waits[-1]:.2f} s; checked, nothing broken"
    )


def main() -> int:
    options = _options()
    print(f"seed {options.seed}", flush=True)
    for victim, kill in KILLS.items():
        if options.kills:
            seconds = asyncio.run(recoveries(kill, options.kills, seed=options.seed))
            print(told(victim, seconds), flush=True)
    if options.kills:
        kill = KILLS["worker"]
        seconds = asyncio.run(recoveries(kill, options.kills, workers=2, seed=options.seed))
        print(told("one worker of two", seconds), flush=True)
    if options.seconds:
        print(asyncio.run(placements_per_second(options.seconds, options.seed, options.pods)))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.concurrency.faults.recovery",
        description="Measure how soon placements go on after kill -9.",
    )
    parser.add_argument("--kills", type=int, default=30, help="of each")
    parser.add_argument("--seconds", type=float, default=60, help="of kills under load")
    parser.add_argument("--pods", type=int, default=25, help="a request, under load")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
