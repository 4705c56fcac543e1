"""`python -m tests.concurrency.faults --injections 200`: real processes, faults by chance, the checker.

Several stages at the same time, each with servers and a PostgreSQL of its own, and rounds of faults
on them (`tests.concurrency.faults.stage`). `tests.concurrency.faults.kinds` has the kinds of faults. In three
of four stages servers reach PostgreSQL through a network that breaks, also around commits; in the
fourth they keep it running themselves. Each round ends as every test of this folder: what was
acknowledged is stored once, the checker finds nothing, nothing is left open, and placements go on.

With `--plans`, callers plan and commit on a second cluster meanwhile (`tests.concurrency.plans`): at the
end of each round its whole log says whether a budget was exceeded, a rule broken or a plan left half
done.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from traceback import format_exception

from tests.concurrency.faults.kinds import KINDS
from tests.concurrency.faults.stage import Ended, Job, run_stage
from tools.ledger import Campaign, add_ledger


def main() -> int:
    options = _options()
    campaign = Campaign("faults", options.ledger)
    print(f"seed {options.seed}", flush=True)
    ended, begun = Ended(), time.monotonic()
    with ProcessPoolExecutor(
        options.stages, mp_context=get_context("spawn"), max_tasks_per_child=1
    ) as stages:
        for one in _results(stages, options, ended):
            ended.add(one)
            print(_told(ended, time.monotonic() - begun), flush=True)
    print(ended.healed.table())
    for told in [*ended.violations[:100], *ended.broken_off]:
        print(f"  {told}")
    campaign.add(
        seeds=f"{options.seed}, {options.stages} stages",
        faults=ended.healed.counts.total(),
        placements=ended.placed,
        steps=ended.steps.total(),
        violations=len(ended.violations),
    )
    if ended.violations:
        return 1
    if ended.broken_off:
        print("a stage was broken off, which says nothing of the service, and was not counted")
        return 3
    rare = [each.name for each in KINDS if ended.healed.counts[each.name] < options.least]
    if rare:
        print(f"injected less than {options.least} times, so this run does not count: {rare}")
        return 2
    return 0


def _results(
    stages: ProcessPoolExecutor, options: argparse.Namespace, ended: Ended
) -> Iterator[Ended]:
    """What each stage went through, as they end; nothing new begins when something is broken."""
    jobs, running = _jobs(options), set[Future[Ended]]()
    while True:
        while len(running) < options.stages and not ended.violations and not ended.broken_off:
            job = next(jobs, None)
            if job is None:
                break
            running.add(stages.submit(run_stage, job))
        if not running:
            return
        done, running = wait(running, return_when=FIRST_COMPLETED)
        for each in done:
            error = each.exception()
            yield each.result() if error is None else Ended(broken_off=format_exception(error))


def _jobs(options: argparse.Namespace) -> Iterator[Job]:
    left, number = options.injections, 0
    begin_until = time.monotonic() + options.minutes * 60
    while left and time.monotonic() < begin_until:
        rounds = []
        while left and len(rounds) < options.rounds:
            rounds.append(min(options.round, left))
            left -= rounds[-1]
        yield Job(
            seed=f"{options.seed}-{number}",
            rounds=rounds,
            with_proxy=number % 4 < 3,
            with_plans=options.plans,
            begin_until=begin_until,
            keep=options.keep,
        )
        number += 1


def _told(ended: Ended, seconds: float) -> str:
    counts = ended.healed.counts
    told = (
        f"{counts.total():,} faults of {len(counts)} kinds so far in {seconds:,.0f} s "
        f"({seconds / max(1, counts.total()):.2f} s each), {ended.placed:,} placements "
        f"acknowledged, {len(ended.violations)} violations"
    )
    return f"{told}; {ended.steps.total():,} plan steps" if ended.steps else told


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.concurrency.faults",
        description="Inject faults into real processes; check what they leave.",
    )
    parser.add_argument("--injections", type=int, default=100, help="in all stages together")
    parser.add_argument("--plans", action="store_true", help="make plans on a second cluster, too")
    parser.add_argument("--round", type=int, default=100, help="injections on one cluster")
    parser.add_argument("--rounds", type=int, default=5, help="with the same servers")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no round after so many")
    parser.add_argument("--stages", type=int, default=2, help="at the same time")
    parser.add_argument(
        "--least", type=int, default=0, help="each kind must have been injected so often"
    )
    parser.add_argument("--keep", type=Path, help="a folder for histories with violations")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    add_ledger(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
