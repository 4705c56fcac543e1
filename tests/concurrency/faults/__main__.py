"""`python -m tests.concurrency.faults --injections 200`: real processes, faults by chance, the checker.

In rounds on fresh data folders. In every other one the servers keep their PostgreSQL running
themselves; in the others it is kept running beside them, and reached through a proxy that breaks
connections around commits. Each round ends as every test of this folder: what was acknowledged is
stored once, the checker finds nothing, nothing is left open, and placements go on.
"""

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

from service.cli.server.local_server import temporary_folder
from service.store.embedded import EmbeddedPostgres
from tests.concurrency.faults.injecting import Injections
from tests.concurrency.faults.proxy import CommitProxy
from tests.concurrency.faults.site import site


def main() -> int:
    options = _options()
    print(f"seed {options.seed}", flush=True)
    done: Counter[str] = Counter()
    placed, rounds, started = 0, 0, time.monotonic()
    while done.total() < options.injections:
        count = min(options.round, options.injections - done.total())
        seed = f"{options.seed}-{rounds}"
        injected, answered = asyncio.run(_round(count, seed, with_proxy=rounds % 2 == 1))
        done += injected
        placed += answered
        rounds += 1
        print(
            f"round {rounds}: {done.total()} faults so far in {time.monotonic() - started:.0f} s, "
            f"{placed:,} placements acknowledged, nothing lost, doubled or broken; "
            f"{dict(sorted(done.items()))}",
            flush=True,
        )
    return 0


async def _round(count: int, seed: str, *, with_proxy: bool) -> tuple[Counter[str], int]:
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
        async with site(quiet=True, data_dir=data_dir, **settings) as made:
            calls = await made.place_while(inject)
        return inject.done, sum(call.outcome == "ok" for call in calls)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.concurrency.faults",
        description="Inject faults into real processes; check what they leave.",
    )
    parser.add_argument("--injections", type=int, default=20, help="in all rounds together")
    parser.add_argument("--round", type=int, default=20, help="on one data folder")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
