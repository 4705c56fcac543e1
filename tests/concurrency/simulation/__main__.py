"""`python -m tests.concurrency.simulation --seeds 10000`: simulate, check, shrink, report."""

import argparse
import sys
import time
from contextlib import nullcontext
from pathlib import Path

from tests.concurrency.planted import BUGS
from tests.concurrency.simulation.account import account, told
from tests.concurrency.simulation.campaign import Summary, cores, run_seeds
from tests.concurrency.simulation.reproducer import Reproducer
from tests.concurrency.simulation.run import simulate
from tests.concurrency.simulation.shrinking import add_shrinking, failed, shrink
from tools.ledger import Campaign, add_ledger


def main() -> int:
    options = _options()
    if options.replay:
        return _replay(options.replay)
    seeds = range(options.first, options.first + options.seeds)
    campaign = Campaign("simulation", options.ledger)
    summary, started = Summary(), time.monotonic()
    for result in run_seeds(seeds, options.jobs):
        summary.add(result)
        if not options.quiet or result.violations:
            print(result.told, flush=True)
        for violation in result.violations:
            print(f"  {violation}")
        if result.violations and options.shrink:
            print(_shrunk(result.seed, options), flush=True)
    elapsed = time.monotonic() - started
    print(summary)
    print(f"{elapsed:.1f} s, {summary.results / elapsed:.1f} seeds/s with {options.jobs} processes")
    campaign.add(
        seeds=f"{seeds.start} to {seeds.stop - 1}",
        runs=len(seeds),
        faults=summary.lost_answers + summary.crashes,
        violations=len(summary.failed),
    )
    return 1 if summary.failed else 0


def _shrunk(seed: int, options: argparse.Namespace) -> str:
    found = failed(simulate(seed))
    if found is None:
        return f"seed {seed} does not fail again: it is not the same run every time"
    bounds = {"runs_max": options.shrink_runs, "seconds_max": options.shrink_seconds}
    shrinking = shrink(found, **bounds)
    path = Reproducer.of(shrinking.now).save(options.schedules)
    return f"{account(shrinking)}\nAgain: python -m tests.concurrency.simulation --replay {path}"


def _replay(path: Path) -> int:
    reproducer = Reproducer.load(path)
    with BUGS[reproducer.planted].planted() if reproducer.planted else nullcontext():
        run = reproducer.run()
        found = failed(run)
    print(run)
    if found is not None:
        print("\n".join(told(found)))
    return 0 if found is None else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.concurrency.simulation",
        description="Simulate workers that race, crash and lose answers; check what they leave.",
    )
    parser.add_argument("--seeds", type=int, default=1_000, help="how many")
    parser.add_argument(
        "--first", type=int, default=0, help="the first one; with --seeds 1: replay"
    )
    parser.add_argument("--jobs", type=int, default=cores(), help="processes")
    parser.add_argument("--replay", type=Path, help="have the run again that this file describes")
    add_shrinking(parser)
    parser.add_argument(
        "--no-shrink", dest="shrink", action="store_false", help="report failing seeds as they are"
    )
    add_ledger(parser)
    parser.add_argument("--quiet", action="store_true", help="print only seeds that fail")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
