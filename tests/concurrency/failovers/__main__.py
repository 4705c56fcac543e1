"""`python -m tests.concurrency.failovers --failovers 100`: PostgreSQL fails over, callers place pods.

In rounds, each on a database of its own. Each round ends as every test of faults: what was
acknowledged is stored once, the checker finds nothing, nothing is left open, and placements go on.
"""

import argparse
import asyncio
import gc
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from itertools import islice

from tests.concurrency.checker.history import Call
from tests.concurrency.failovers.causes import Cause, Scene, possible
from tests.concurrency.failovers.figures import Episode, silence, table
from tests.concurrency.failovers.replicated import LOOK_SECONDS, Replicated, replicated
from tests.concurrency.faults.pressure import Pressure
from tests.concurrency.faults.site import Site, site
from tests.concurrency.race import workload
from tests.waiting import WAIT_SECONDS
from tools.ledger import Campaign, add_ledger

REQUEST_SECONDS_MAX = "30"
CALM_SECONDS = 2.0
"""Between two causes."""
PLACED_AGAIN = 3
"""So many requests have to be acknowledged before a cause counts as over."""


async def campaign(options: argparse.Namespace) -> None:
    """Raises AssertionError if anything is not as it has to be."""
    chance, episodes, placed = random.Random(options.seed), list[Episode](), 0
    ledger = Campaign("failovers", options.ledger)
    async with AsyncExitStack() as stack:
        stack.enter_context(ledger.telling_failure(str(options.seed)))
        database = await stack.enter_async_context(
            replicated(through_haproxy=options.haproxy, disks=True)
        )
        started, number = time.monotonic(), 0
        causes = _in_turn(_chosen(possible(can_cut=database.can_cut), options.cause), chance)
        while sum(each.failovers for each in episodes) < options.failovers:
            number += 1
            chosen = list(islice(causes, options.round))
            found, calls = await _round(database, f"round_{number}", chosen, options)
            episodes += found
            placed += sum(call.pods_placed for call in calls)
            print(
                f"round {number}: {sum(each.failovers for each in episodes)} failovers so far in "
                f"{time.monotonic() - started:.0f} s, {placed:,} placements acknowledged; nothing "
                "lost, doubled or broken",
                *table(episodes),
                sep="\n",
                flush=True,
            )
        ledger.add(seeds=str(options.seed), faults=len(episodes), placements=placed)


def _chosen(causes: Sequence[Cause], words: str) -> list[Cause]:
    found = [each for each in causes if words in each.name]
    if not found:
        sys.exit(f"No cause that may befall here has these words: {words}")
    return found


def _in_turn(causes: Sequence[Cause], chance: random.Random) -> Iterator[Cause]:
    """Each as often as the others, by chance in which order."""
    while True:
        yield from chance.sample(causes, len(causes))


async def _round(
    database: Replicated, name: str, causes: Sequence[Cause], options: argparse.Namespace
) -> tuple[list[Episode], list[Call]]:
    await database.until_whole()
    await database.execute(f"CREATE DATABASE {name} OWNER moorage", "postgres")
    episodes: list[Episode] = []

    async def befall_all(made: Site) -> None:
        for cause in causes:
            await asyncio.sleep(CALM_SECONDS)
            episodes.append(await _episode(database, made, cause))
            print(episodes[-1], flush=True)

    # Looking through all calls for garbage takes many seconds, which would seem an outage.
    gc.disable()
    async with site(
        servers=2,
        workers=1,
        quiet=not options.loud,
        stays=False,
        nodes=[*workload.nodes()],
        url=database.url(name),
        request_timeout_seconds=REQUEST_SECONDS_MAX,
    ) as made:
        made.counts = True
        pressure = Pressure(options.pods)
        calls = await made.ask_while(
            befall_all, lambda caller, _, over: pressure.keep_asking(caller, over), options.callers
        )
    gc.enable()
    await database.until_whole()
    await database.execute(f"DROP DATABASE {name} WITH (FORCE)", "postgres")
    return episodes, calls


async def _episode(database: Replicated, made: Site, cause: Cause) -> Episode:
    before, first = await database.timeline(), len(made.calls)
    begun = time.monotonic()
    await cause.befall(Scene(database, lambda: _again(made), before))
    await database.until_whole()
    await _again(made)
    ended, taken_over = time.monotonic(), await database.timeline() - before
    if taken_over < cause.failovers:
        raise RuntimeError(f"{cause.name}: {taken_over} took over")
    returned = [call.returned for call in made.calls[first:] if call.is_acknowledged_placement]
    silent, again = silence(returned, begun, ended)
    return Episode(cause.name, silent, again, taken_over)


async def _again(made: Site) -> None:
    first, since = len(made.calls), time.monotonic()

    def enough() -> bool:
        asked = [call for call in made.calls[first:] if call.called > since]
        return sum(call.is_acknowledged_placement for call in asked) >= PLACED_AGAIN

    async with asyncio.timeout(WAIT_SECONDS):
        while not enough():  # noqa: ASYNC110 - no event is set
            await asyncio.sleep(LOOK_SECONDS)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.concurrency.failovers",
        description="Have PostgreSQL fail over for many reasons; check what that leaves.",
    )
    parser.add_argument("--failovers", type=int, default=20, help="in all rounds together")
    parser.add_argument("--round", type=int, default=7, help="causes on one database")
    parser.add_argument("--cause", default="", help="only those whose names have these words")
    parser.add_argument("--haproxy", action="store_true", help="between servers and PostgreSQL")
    parser.add_argument("--callers", type=int, default=16)
    parser.add_argument("--pods", type=int, default=50, help="a request")
    add_ledger(parser)
    parser.add_argument("--loud", action="store_true", help="show what the servers say")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    return parser.parse_args()


def main() -> int:
    options = _options()
    print(f"seed {options.seed}", flush=True)
    asyncio.run(campaign(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
