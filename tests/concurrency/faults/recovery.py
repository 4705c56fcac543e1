"""`python -m tests.concurrency.faults.recovery`: how soon placements go on after `kill -9`.

First one thing is killed again and again, with one caller who asks until a placement that was
asked for after the kill is acknowledged. Then many callers place pods, first in peace, then while a
worker or PostgreSQL is killed every two seconds; that run ends in the checker.
"""

import argparse
import asyncio
import itertools
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import httpx

from bench.figures import quantile
from service.server.local_server import LocalServer, temporary_folder
from tests.builders import pod
from tests.concurrency.callers import PATH, bearer
from tests.concurrency.checker.history import Call
from tests.concurrency.faults.pressure import Pressure
from tests.concurrency.faults.site import Ask, Site, site
from tests.concurrency.race import workload
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
    """Ask for a placement until one is acknowledged, and return how long that took."""
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
    return (
        f"{victim}: {len(seconds)} kills; to the next acknowledged placement: median "
        f"{statistics.median(seconds):.2f} s, p99 {quantile(seconds, 0.99):.2f} s, "
        f"longest {seconds[-1]:.2f} s"
    )


async def placements_while_killing(options: argparse.Namespace) -> AsyncIterator[str]:
    """What is acknowledged without kills, then while something is killed every two seconds."""
    chance = random.Random(options.seed)
    killed: dict[str, list[float]] = {victim: [] for victim in KILLS}

    async def leave_alone(_: Site) -> None:
        await asyncio.sleep(options.seconds / 2)

    async def kill_at_intervals(made: Site) -> None:
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            await asyncio.sleep(KILL_EVERY_SECONDS)
            victim = chance.choice(list(KILLS))
            killed[victim].append(time.monotonic())
            server = chance.choice(made.servers)
            await asyncio.to_thread(KILLS[victim], server, made.data_dir)

    nodes = [*workload.nodes()]
    async with site(
        servers=options.servers, workers=options.workers, quiet=True, stays=False, nodes=nodes
    ) as made:
        made.counts = True
        ask = _asking(Pressure(options.pods))
        started = time.monotonic()
        calls = await made.ask_while(leave_alone, ask, options.callers)
        yield f"without kills: {_acknowledged(calls, time.monotonic() - started)}"
        started = time.monotonic()
        calls = await made.ask_while(kill_at_intervals, ask, options.callers)
        yield (
            f"while {len(killed['worker'])} workers and PostgreSQL {len(killed['PostgreSQL'])} "
            f"times were killed: {_acknowledged(calls, time.monotonic() - started)}"
        )
        for victim, moments in killed.items():
            if moments:
                yield told(victim, sorted(_seconds_until_answered(calls, moments)))
        ended = time.monotonic()
    yield f"checked in {time.monotonic() - ended:.0f} s, nothing broken"


def _asking(pressure: Pressure) -> Ask:
    return lambda caller, _, over: pressure.keep_asking(caller, over)


def _seconds_until_answered(calls: Sequence[Call], moments: Sequence[float]) -> Iterator[float]:
    """Yield the seconds from each moment to the acknowledgement of a placement that was asked for after it."""
    answered = _answered(calls)
    for moment in moments:
        after = [call.returned for call in answered if call.called > moment]
        if after:
            yield min(after) - moment


def _answered(calls: Sequence[Call]) -> list[Call]:
    return [call for call in calls if call.is_acknowledged_placement]


def _acknowledged(calls: Sequence[Call], elapsed: float) -> str:
    answered = _answered(calls)
    placed = sum(call.pods_placed for call in answered)
    unplaced = sum(len(call.body["results"]) for call in answered) - placed
    waits = sorted(_waits(calls))
    at = sorted(call.returned for call in answered)
    gaps = sorted(after - before for before, after in itertools.pairwise(at))
    return (
        f"{placed:,} placements acknowledged in {elapsed:.0f} s, {placed / elapsed:,.0f}/s, "
        f"{unplaced:,} pods without a place; requests: median {statistics.median(waits):.2f} s, "
        f"p99 {quantile(waits, 0.99):.2f} s, longest {waits[-1]:.2f} s; "
        f"nothing was answered for {gaps[-1]:.2f} s at most"
    )


def _waits(calls: Sequence[Call]) -> Iterator[float]:
    """Seconds from when a placement was asked for first until it was acknowledged."""
    asked: dict[int, float] = {}
    for call in calls:
        if call.action == "place":
            first = asked.setdefault(call.operation, call.called)
            if call.outcome == "ok":
                yield call.returned - first


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
        asyncio.run(_tell(placements_while_killing(options)))
    return 0


async def _tell(lines: AsyncIterator[str]) -> None:
    async for line in lines:
        print(line, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.concurrency.faults.recovery",
        description="Measure how soon placements go on after kill -9.",
    )
    parser.add_argument("--kills", type=int, default=30, help="of each")
    parser.add_argument("--seconds", type=float, default=60, help="of kills under load")
    parser.add_argument("--pods", type=int, default=100, help="a request, under load")
    parser.add_argument("--callers", type=int, default=16, help="under load")
    parser.add_argument("--servers", type=int, default=2, help="on one PostgreSQL, under load")
    parser.add_argument("--workers", type=int, default=1, help="of a server, under load")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
