"""`python -m tests.concurrency.race --placements 1000000`: race, check every commit, report.

Each planner is a `moorage serve` process of its own with one worker, all on one embedded
PostgreSQL and on equal terms: a request is decided by the planner that it was sent to. A round is
a fresh cluster, so that its whole log can be checked: every placement by counters, every 1,000th by
the reference implementation, and all answers, the chain of commits and the tables; and at its end
every planner is asked what a replica that is loaded from the tables is asked. Rounds go on
while those before them are checked by another process. With `--file` a run can be cut off and go
on later; `--file FILE --placements 0` tells what a file has.

`--steps 100000` races plans (`tests.concurrency.plans`) with placements, until so many steps of plans
are committed: drains, releases, plans that are committed at once, preemption. Workers are killed
meanwhile, and each round's log is judged whole: budgets, rules, and whether anything is half done.
"""

import argparse
import asyncio
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

import httpx
import msgspec

from tests.concurrency.callers import bearer
from tests.concurrency.plans.campaign import PlanFigures, PlanReport, race_plans, read_plan_rounds
from tests.concurrency.race import metrics, workload
from tests.concurrency.race.costs import Meter
from tests.concurrency.race.driving import Round
from tests.concurrency.race.report import Report, RoundFigures, add_round, read_rounds
from tests.concurrency.race.stage import TOKEN, stage
from tests.concurrency.race.verdict import Verdict, check_round
from tools.ledger import Campaign, add_ledger, commit_that_runs

ITEMS_AT_ONCE = 5_000
"""How many objects of a cluster are written by one request; servers limit that."""


def main() -> int:
    options = _options()
    if options.steps is not None:
        return _race_plans(options)
    campaign = Campaign("race", options.ledger)
    report = Report(read_rounds(options.file) if options.file else [])
    known = _go_on(options, report.rounds)
    if report.placements < options.placements:
        asyncio.run(_race(options, report))
    print(report)
    for violation in report.violations[:100]:
        print(f"  {violation}")
    counts = report.proves_something or bool(report.violations)
    if counts and (new := report.rounds[known:]):
        campaign.add(
            seeds=f"{options.seed}, rounds {new[0].number} to {new[-1].number}",
            runs=len(new),
            placements=sum(each.placements for each in new),
            violations=sum(len(each.violations) for each in new),
            seconds=sum(each.seconds for each in new),
        )
    if report.violations:
        return 1
    if not counts:
        print("too few races lost, or too many re-plans: this run does not count")
        return 2
    return 0


def _go_on(options: argparse.Namespace, rounds: Sequence[RoundFigures | PlanFigures]) -> int:
    """Take the seed of rounds that a file has, and return how many they are.

    The figures of a file are those of one commit, so rounds of another are added to none.
    """
    options.commit = commit_that_runs()
    if rounds:
        options.seed = rounds[-1].seed
        reads_only = not (options.placements if options.steps is None else options.steps)
        if rounds[-1].commit != options.commit and not reads_only:
            raise SystemExit(
                f"{options.file} has rounds of commit {rounds[-1].commit or 'unknown'}; "
                f"name another file for those of {options.commit}"
            )
    print(f"seed {options.seed}", flush=True)
    return len(rounds)


def _race_plans(options: argparse.Namespace) -> int:
    campaign = Campaign("plans", options.ledger)
    report = PlanReport(read_plan_rounds(options.file))
    known = _go_on(options, report.rounds)
    if report.steps < options.steps:
        asyncio.run(race_plans(options, report))
    print(report)
    for violation in report.violations[:100]:
        print(f"  {violation}")
    if new := report.rounds[known:]:
        campaign.add(
            seeds=f"{options.seed}, rounds {new[0].number} to {new[-1].number}",
            runs=len(new),
            faults=sum(each.kills for each in new),
            placements=sum(each.placements for each in new),
            steps=sum(sum(each.steps.values()) for each in new),
            violations=sum(len(each.violations) for each in new),
            seconds=sum(each.seconds for each in new),
        )
    return 1 if report.violations else 0


async def _race(options: argparse.Namespace, report: Report) -> None:
    async with stage(options) as found:
        meter = Meter(found.planners, found.data_dir)
        urls = [each.url for each in found.planners]
        await _Race(options, report, urls, found.database_url, meter, found.checkers).run()


class _Race:
    """Rounds, each on a cluster of its own, which is deleted when it has been checked."""

    def __init__(
        self,
        options: argparse.Namespace,
        report: Report,
        urls: list[str],
        database_url: str,
        meter: Meter,
        checkers: ProcessPoolExecutor,
    ) -> None:
        self._options = options
        self._report = report
        self._urls = urls
        self._database_url = database_url
        self._meter = meter
        self._checkers = checkers
        self._running: list[tuple[RoundFigures, Future[Verdict]]] = []

    async def run(self) -> None:
        number = max((each.number + 1 for each in self._report.rounds), default=0)
        while (wanted := self._wanted()) > 0 and not self._report.violations:
            await self._run_round(number, min(self._options.round, wanted))
            number += 1
            while self._running and (self._is_checked() or self._is_far_ahead()):
                await self._conclude()
        while self._running:
            await self._conclude()

    def _wanted(self) -> int:
        """Placements that are still to be made."""
        made = sum(figures.placements for figures, _ in self._running)
        return int(self._options.placements) - self._report.placements - made

    def _is_checked(self) -> bool:
        return self._running[0][1].done()

    def _is_far_ahead(self) -> bool:
        return len(self._running) > 1 + self._options.checkers

    async def _run_round(self, number: int, placements: int) -> None:
        cluster, options = _cluster_of(number), self._options
        granted = await asyncio.to_thread(_fill, self._urls[0], cluster)
        before, cpu = await asyncio.to_thread(self._counted), self._meter.read()
        started = time.monotonic()
        seed = f"{options.seed}-{number}"
        made = Round(cluster, self._urls, TOKEN, drivers=options.drivers, seed=seed)
        await made.run(placements)
        seconds = time.monotonic() - started
        cpu = self._meter.read() - cpu
        counted = await asyncio.to_thread(self._counted) - before
        calls, asked = made.notebook.calls, await made.ask_all()
        attempts = [
            (call.client, call.body["attempts"])
            for call in calls
            if call.action == "place" and call.body
        ]
        figures = RoundFigures(
            seed=options.seed,
            number=number,
            placements=made.placed,
            unplaced=made.unplaced,
            seconds=seconds,
            commits=int(counted[metrics.COMMITS]),
            lost=int(counted[metrics.LOST]),
            redecided=int(counted[metrics.REDECIDED]),
            revalidated=int(counted[metrics.REVALIDATED]),
            replanned=int(counted[metrics.REPLANNED]),
            attempts=dict(Counter(each for _, each in attempts)),
            worst={client: each for each, client in sorted((a, c) for c, a in attempts)},
            checked=0,
            violations=[],
            full=(0.0, 0.0, 0.0),
            cpu=dict(cpu),
            commit=options.commit,
        )
        job = self._checkers.submit(
            check_round, number, self._database_url, cluster, calls, granted, options.file, asked
        )
        self._running.append((figures, job))

    def _counted(self) -> Counter[str]:
        return metrics.counted(self._urls, TOKEN)

    async def _conclude(self) -> None:
        figures, job = self._running[0]
        verdict = await asyncio.wrap_future(job)
        del self._running[0]
        figures.checked, figures.violations = verdict.placements, verdict.violations
        if full := verdict.fullness:
            figures.full = (statistics.mean(full), min(full), max(full))
        figures.cpu["checker"] = verdict.cpu_seconds
        self._report.rounds.append(figures)
        if self._options.file:
            add_round(self._options.file, figures)
        told = f"{self._report.placements:,} in all, {len(self._report.violations)} violations"
        print(f"{figures}; {told}", flush=True)
        url = f"{self._urls[0]}/v1/clusters/{_cluster_of(figures.number)}"
        await asyncio.to_thread(_request, "DELETE", url)


def _cluster_of(number: int) -> str:
    return f"race-{number}"


def _fill(url: str, cluster: str) -> int:
    """Make a cluster, as full as it is to be; the revision after that."""
    path = f"{url}/v1/clusters/{cluster}"
    _request("PUT", path, {"config": {}})
    items = [*workload.nodes(), *workload.fillers()]
    for start in range(0, len(items), ITEMS_AT_ONCE):
        some = {"kind": "List", "items": items[start : start + ITEMS_AT_ONCE]}
        answer = _request("POST", f"{path}/apply", {"apiVersion": "v1", **some})
    return int(answer.headers["Moorage-Revision"])


def _request(method: str, url: str, body: object = None) -> httpx.Response:
    content = b"" if body is None else msgspec.json.encode(body)
    headers = {**bearer(TOKEN), "Content-Type": "application/json"}
    answer = httpx.request(method, url, content=content, headers=headers, timeout=120)
    return answer.raise_for_status()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.concurrency.race",
        description="Have planners race on a nearly full cluster; check every commit.",
    )
    parser.add_argument("--placements", type=int, default=20_000, help="in all rounds together")
    parser.add_argument("--steps", type=int, help="race plans instead, until so many steps")
    parser.add_argument(
        "--round", type=int, default=50_000, help="placements, or steps, on one cluster"
    )
    parser.add_argument(
        "--kill-seconds", type=float, default=15, help="between kills while plans race; 0: none"
    )
    parser.add_argument(
        "--planners", type=int, help="server processes: 4, or 8 that race plans, if none are named"
    )
    parser.add_argument("--drivers", type=int, default=5, help="groups placed at the same time")
    parser.add_argument("--checkers", type=int, default=1, help="processes that check rounds")
    parser.add_argument(
        "--file",
        type=Path,
        help="where the figures of each round go as soon as it is checked; begun again with the "
        "same file, the run goes on after the last of them, with its seed",
    )
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(10**9), help="of the choices"
    )
    add_ledger(parser)
    options = parser.parse_args()
    options.planners = options.planners or (4 if options.steps is None else 8)
    return options


if __name__ == "__main__":
    sys.exit(main())
