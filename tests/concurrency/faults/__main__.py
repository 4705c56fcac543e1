"""`python -m tests.concurrency.faults --injections 200`: real processes, faults by chance, the checker.

In rounds on fresh data folders. In every other one the servers keep their PostgreSQL running
themselves; in the others it is kept running beside them, and reached through a proxy that breaks
connections around commits. Each round ends as every test of this folder: what was acknowledged is
stored once, the checker finds nothing, nothing is left open, and placements go on.

With `--plans`, callers plan and commit on a second cluster meanwhile (`tests.concurrency.plans`): at the
end its whole log says whether a budget was exceeded, a rule broken or a plan left half done.
"""

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from service.cli.server.local_server import temporary_folder
from service.store.embedded import EmbeddedPostgres
from tests.concurrency.callers import read_history
from tests.concurrency.checker.history import Call
from tests.concurrency.checker.plans import check_plans
from tests.concurrency.faults.injecting import Injections
from tests.concurrency.faults.proxy import CommitProxy
from tests.concurrency.faults.site import Site, site
from tests.concurrency.ledger import Campaign, add_ledger
from tests.concurrency.plans import workload
from tests.concurrency.plans.driving import PlanRound
from tests.concurrency.racing import TOKEN

PLANS = "plans"
"""The cluster on which plans are made."""


def main() -> int:
    options = _options()
    campaign = Campaign("faults", options.ledger)
    print(f"seed {options.seed}", flush=True)
    done: Counter[str] = Counter()
    steps: Counter[str] = Counter()
    placed, rounds, started = 0, 0, time.monotonic()
    while done.total() < options.injections:
        count = min(options.round, options.injections - done.total())
        seed = f"{options.seed}-{rounds}"
        with campaign.telling_failure(seed):
            ended = asyncio.run(
                _round(count, seed, with_proxy=rounds % 2 == 1, with_plans=options.plans)
            )
        done += ended.injected
        placed += ended.placed
        steps += ended.steps
        rounds += 1
        print(
            f"round {rounds}: {done.total()} faults so far in {time.monotonic() - started:.0f} s, "
            f"{placed:,} placements acknowledged, nothing lost, doubled or broken; "
            f"{dict(sorted(done.items()))}",
            flush=True,
        )
        if options.plans:
            print(
                f"{steps.total():,} plan steps committed, 0 budgets exceeded, 0 rules broken, "
                f"0 half done; {dict(sorted(steps.items()))}",
                flush=True,
            )
    campaign.add(
        seeds=f"{options.seed}, {rounds} rounds",
        faults=done.total(),
        placements=placed,
        steps=steps.total(),
    )
    return 0


class _Ended(NamedTuple):
    """What a round went through."""

    injected: Counter[str]
    placed: int
    """Pods that were acknowledged as placed."""
    steps: Counter[str]
    """Of plans, by their kinds."""


async def _round(count: int, seed: str, *, with_proxy: bool, with_plans: bool) -> _Ended:
    """Raises AssertionError if anything is not as it has to be."""
    async with AsyncExitStack() as stack:
        proxy, data_dir = None, None
        if with_proxy:
            data_dir = Path(stack.enter_context(temporary_folder())) / "data"
            postgres = EmbeddedPostgres(data_dir)
            url = await asyncio.to_thread(postgres.start)
            stack.push_async_callback(asyncio.to_thread, postgres.stop)
            socket_folder = stack.enter_context(temporary_folder())
            proxy = await stack.enter_async_context(CommitProxy(url, socket_folder))
        inject = Injections(count, seed, proxy)
        settings = {} if proxy is None else {"database_url": proxy.url}
        steps: Counter[str] = Counter()
        async with site(quiet=True, data_dir=data_dir, **settings) as made:
            if with_plans:
                calls, steps = await _plan_while(made, inject, seed)
            else:
                calls = await made.place_while(inject)
        return _Ended(inject.done, sum(call.pods_placed for call in calls), steps)


async def _plan_while(
    made: Site, inject: Injections, seed: str
) -> tuple[Sequence[Call], Counter[str]]:
    """Have pods placed on one cluster and plans made on another until all faults are over."""
    plans = PlanRound(PLANS, [each.url for each in made.servers], TOKEN, seed=seed)
    granted = await plans.set_up()
    placing = asyncio.create_task(made.place_while(inject))
    await plans.run_while(lambda: not placing.done())
    calls = await placing
    async with made.database() as url:
        history = await read_history(url, [], granted=granted, cluster=PLANS)
    tally = check_plans(history, plans.calls, staying=workload.STAYING)
    assert not tally.violations, "\n".join(tally.violations[:20])
    return calls, tally.steps


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.concurrency.faults",
        description="Inject faults into real processes; check what they leave.",
    )
    parser.add_argument("--injections", type=int, default=20, help="in all rounds together")
    parser.add_argument("--plans", action="store_true", help="make plans on a second cluster, too")
    parser.add_argument("--round", type=int, default=20, help="on one data folder")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    add_ledger(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
