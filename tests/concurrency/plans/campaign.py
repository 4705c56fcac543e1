"""Rounds of plans that race, with kills, each on a fresh cluster whose whole log is judged."""

import argparse
import asyncio
import pickle
import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import msgspec

from service.server.local_server import LocalServer
from tests.concurrency.callers import bearer, read_history
from tests.concurrency.checker.plans import PlanCall, check_plans
from tests.concurrency.plans import workload
from tests.concurrency.plans.driving import PlanRound
from tests.concurrency.race.stage import TOKEN, stage
from tests.concurrency.racing import kill_worker


class PlanFigures(msgspec.Struct, kw_only=True):
    """One round that was judged, as it is kept in a file, one line each."""

    seed: int
    number: int
    planners: int
    seconds: float
    """How long the callers took."""
    kills: int
    """Of workers, by SIGKILL."""
    outcomes: dict[str, int]
    """Of requests to plan and commit."""
    steps: dict[str, int] = {}
    """Committed, by the kind of plan."""
    placements: int = 0
    """Committed beside plans."""
    commits: int = 0
    budgets: int = 0
    """Exceeded."""
    rules: int = 0
    """Broken."""
    half_done: int = 0
    violations: list[str] = []
    commit: str = ""
    """Of the sources that raced."""

    def __str__(self) -> str:
        return (
            f"round {self.number}: {sum(self.steps.values()):,} steps in {self.seconds:,.0f} s, "
            f"{self.kills} kills, {len(self.violations)} violations"
        )


class PlanReport:
    """All rounds that were judged."""

    def __init__(self, rounds: Iterable[PlanFigures] = ()) -> None:
        self.rounds = list(rounds)

    @property
    def steps(self) -> int:
        return sum(sum(each.steps.values()) for each in self.rounds)

    @property
    def violations(self) -> list[str]:
        return [told for each in self.rounds for told in each.violations]

    def __str__(self) -> str:
        """A table in Markdown."""
        rounds = self.rounds
        seeds = ", ".join(map(str, sorted({each.seed for each in rounds})))
        steps: Counter[str] = sum((Counter(each.steps) for each in rounds), Counter())
        outcomes: Counter[str] = sum((Counter(each.outcomes) for each in rounds), Counter())
        rows = {
            "plan steps committed": f"{self.steps:,}",
            f"of these: {', '.join(sorted(steps))}": ", ".join(
                f"{steps[kind]:,}" for kind in sorted(steps)
            ),
            "budgets exceeded": f"{sum(each.budgets for each in rounds)}",
            "rules broken": f"{sum(each.rules for each in rounds)}",
            "plans half done": f"{sum(each.half_done for each in rounds)}",
            "violations in all": f"{len(self.violations)}",
            "placements beside plans": f"{sum(each.placements for each in rounds):,}",
            "commits": f"{sum(each.commits for each in rounds):,}",
            "workers killed": f"{sum(each.kills for each in rounds):,}",
            f"plans committed at once: {', '.join(sorted(outcomes))}": ", ".join(
                f"{outcomes[told]:,}" for told in sorted(outcomes)
            ),
            "seconds": f"{sum(each.seconds for each in rounds):,.0f}",
        }
        head = (f"| seed {seeds}, {len(rounds)} rounds of plans | |", "|---|--:|")
        return "\n".join((*head, *(f"| {name} | {told} |" for name, told in rows.items())))


def read_plan_rounds(file: Path | None) -> list[PlanFigures]:
    """The rounds that a file has; none if there is no such file."""
    if file is None or not file.exists():
        return []
    return [msgspec.json.decode(line, type=PlanFigures) for line in file.read_bytes().splitlines()]


def judged(
    figures: PlanFigures,
    url: str,
    cluster: str,
    calls: Sequence[PlanCall],
    granted: int,
    file: Path | None,
) -> PlanFigures:
    """The figures with what the log says, made in a process of its own.

    A history in which something is wrong is pickled beside the file, to be looked into.
    """
    history = asyncio.run(read_history(url, [], granted=granted, cluster=cluster))
    tally = check_plans(history, calls, staying=workload.STAYING)
    if tally.violations and file is not None:
        beside = file.with_name(f"{file.name}.round-{figures.number}.pickle")
        beside.write_bytes(pickle.dumps((history, calls)))
    figures.steps, figures.placements = dict(tally.steps), tally.placements
    figures.commits = len(history.commits)
    figures.budgets, figures.rules = len(tally.budgets), len(tally.rules)
    figures.half_done = len(tally.half_done)
    figures.violations = [f"round {figures.number}: {each}" for each in tally.violations]
    return figures


async def race_plans(options: argparse.Namespace, report: PlanReport) -> None:
    """Rounds of plans at servers that are killed, until so many steps are committed and judged."""
    async with stage(options, quiet=True) as found:
        race = _PlanRace(options, report, found.planners, found.database_url, found.checkers)
        await race.run()


class _PlanRace:
    """Rounds, each on a cluster of its own, which is deleted when it has been judged."""

    def __init__(
        self,
        options: argparse.Namespace,
        report: PlanReport,
        servers: list[LocalServer],
        database_url: str,
        checkers: ProcessPoolExecutor,
    ) -> None:
        self._options = options
        self._report = report
        self._servers = servers
        self._database_url = database_url
        self._checkers = checkers
        self._running: list[tuple[int, Future[PlanFigures]]] = []

    async def run(self) -> None:
        number = max((each.number + 1 for each in self._report.rounds), default=0)
        while self._wanted() > 0 and not self._report.violations:
            await self._run_round(number, min(self._options.round, self._wanted()))
            number += 1
            while self._running and (
                self._running[0][1].done() or len(self._running) > 1 + self._options.checkers
            ):
                await self._conclude()
        while self._running:
            await self._conclude()

    def _wanted(self) -> int:
        """Steps that are still to be committed."""
        made = sum(steps for steps, _ in self._running)
        return int(self._options.steps) - self._report.steps - made

    async def _run_round(self, number: int, steps: int) -> None:
        options, cluster = self._options, f"plans-{number}"
        urls = [each.url for each in self._servers]
        seed = f"{options.seed}-{number}"
        plans = PlanRound(cluster, urls, TOKEN, seed=seed)
        granted, started = await plans.set_up(), time.monotonic()
        killing = asyncio.create_task(self._kill(random.Random(f"{seed}-kills")))
        await plans.run(steps)
        killing.cancel()
        with suppress(asyncio.CancelledError):
            await killing
        figures = PlanFigures(
            seed=options.seed,
            number=number,
            commit=options.commit,
            planners=len(urls),
            seconds=time.monotonic() - started,
            kills=self._kills,
            outcomes=dict(Counter(each.outcome for each in plans.calls)),
        )
        job = self._checkers.submit(
            judged, figures, self._database_url, cluster, plans.calls, granted, options.file
        )
        self._running.append((plans.steps, job))

    async def _kill(self, chance: random.Random) -> None:
        """Workers of servers by chance; each server starts a new one."""
        self._kills = 0
        while self._options.kill_seconds:
            await asyncio.sleep(self._options.kill_seconds * chance.uniform(0.5, 1.5))
            await asyncio.to_thread(kill_worker, chance.choice(self._servers))
            self._kills += 1

    async def _conclude(self) -> None:
        figures = await asyncio.wrap_future(self._running[0][1])
        del self._running[0]
        self._report.rounds.append(figures)
        if self._options.file:
            with self._options.file.open("ab") as stream:
                stream.write(msgspec.json.encode(figures) + b"\n")
        told = f"{self._report.steps:,} in all, {len(self._report.violations)} violations"
        print(f"{figures}; {told}", flush=True)
        url = f"{self._servers[0].url}/v1/clusters/plans-{figures.number}"
        with suppress(httpx.HTTPError):
            await asyncio.to_thread(httpx.delete, url, headers=bearer(TOKEN), timeout=120)
