"""`python -m tests.concurrency.simulation --seeds 10000`: simulate, check, report."""

import argparse
import sys
import time

from tests.concurrency.simulation.campaign import Summary, cores, run_seeds


def main() -> int:
    options = _options()
    seeds = range(options.first, options.first + options.seeds)
    summary, started = Summary(), time.monotonic()
    for result in run_seeds(seeds, options.jobs):
        summary.add(result)
        if not options.quiet or result.violations:
            print(result.told, flush=True)
        for violation in result.violations:
            print(f"  {violation}")
    elapsed = time.monotonic() - started
    print(summary)
    print(f"{elapsed:.1f} s, {summary.results / elapsed:.1f} seeds/s with {options.jobs} processes")
    return 1 if summary.failed else 0


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
    parser.add_argument("--quiet", action="store_true", help="print only seeds that fail")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
