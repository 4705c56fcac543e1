"""One stage of the campaign: servers on a PostgreSQL of their own, and rounds of faults on them.

Stages share nothing and run at the same time, each in a process of its own. A stage is kept for
several rounds, each on a fresh cluster; the log of each round is judged by another process while
the next one runs.
"""

import asyncio
import logging
import math
import pickle
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from service.server.local_server import LocalServer, temporary_folder
from service.server.tcp_ports import LOOPBACK, hold_port, port_of
from service.store.embedded import EmbeddedPostgres
from tests.concurrency.callers import read_history
from tests.concurrency.checker import check
from tests.concurrency.checker.counting import check_by_counting
from tests.concurrency.checker.history import History
from tests.concurrency.checker.plans import PlanCall, check_plans
from tests.concurrency.faults.injecting import Healed, Injections
from tests.concurrency.faults.kinds import KINDS
from tests.concurrency.faults.proxy import CommitProxy
from tests.concurrency.faults.scene import Round, Scene
from tests.concurrency.faults.site import assert_nothing_is_left_open, start_all
from tests.concurrency.plans import workload
from tests.concurrency.plans.driving import PlanRound
from tests.concurrency.racing import TOKEN, assert_every_answer_is_stored, broken_groups
from tests.concurrency.replicas import Asked, differing, loaded
from tests.waiting import WAIT_SECONDS

SERVERS = 2
STATEMENT_SECONDS_MAX = 5
REFERENCE_EVERY = 10
"""Counters judge each placement, and the reference implementation one of so many."""


class Job(NamedTuple):
    """What a stage has to do."""

    seed: str
    rounds: Sequence[int]
    """How many faults each round has."""
    with_proxy: bool
    """Whether PostgreSQL runs beside the servers, which reach it over a network that breaks; else
    they keep it running themselves."""
    with_plans: bool
    begin_until: float = math.inf
    """No round begins later, on the monotonic clock."""
    keep: Path | None = None
    """Where histories go in which something is broken."""
    environment: Mapping[str, str] = {}
    """Of the servers."""


@dataclass
class Ended:
    """What a stage, or several, went through."""

    healed: Healed = field(default_factory=Healed)
    placed: int = 0
    """Pods that were acknowledged as placed."""
    steps: Counter[str] = field(default_factory=Counter)
    """Of plans, by their kinds."""
    violations: list[str] = field(default_factory=list)
    broken_off: list[str] = field(default_factory=list)
    """Why stages ended before they should have."""

    def add(self, other: "Ended") -> None:
        self.healed.add(other.healed)
        self.placed += other.placed
        self.steps += other.steps
        self.violations += other.violations
        self.broken_off += other.broken_off


class Plans(NamedTuple):
    """What is judged of plans."""

    history: History
    calls: list[PlanCall]


class Verdict(NamedTuple):
    """What the check of one round says."""

    violations: list[str]
    steps: Counter[str]


def run_stage(job: Job) -> Ended:
    """Everything, in the process that this is called in."""
    logging.getLogger("service").setLevel(logging.ERROR)  # that PostgreSQL ends is what is wanted
    return asyncio.run(_run(job))


async def _run(job: Job) -> Ended:
    ended, checks = Ended(), list[Future[Verdict]]()
    kinds = [kind for kind in KINDS if job.with_proxy or not kind.needs_proxy]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as checkers:
        async with _scene(job) as scene:
            inject = Injections(scene, kinds, job.seed)
            for number, count in enumerate(job.rounds):
                if ended.violations or time.monotonic() > job.begin_until:
                    break
                checks.append(await _round(scene, inject, job, number, count, ended, checkers))
                while len(checks) > 1:
                    await _conclude(checks, ended)
        while checks:
            await _conclude(checks, ended)
    return ended


async def _conclude(checks: list[Future[Verdict]], ended: Ended) -> None:
    verdict = await asyncio.wrap_future(checks.pop(0))
    ended.violations += verdict.violations
    ended.steps += verdict.steps


async def _round(
    scene: Scene,
    inject: Injections,
    job: Job,
    number: int,
    count: int,
    ended: Ended,
    checkers: ProcessPoolExecutor,
) -> Future[Verdict]:
    """So many faults on a fresh cluster; answers what is told when it has been judged."""
    name, over = f"{job.seed}, round {number}", asyncio.Event()
    urls = [server.url for server in scene.servers]
    scene.round = made = Round(f"faults-{number}", urls)
    plans = PlanRound(f"plans-{number}", urls, TOKEN, seed=name)
    await made.set_up()
    granted = await plans.set_up() if job.with_plans else 0
    async with asyncio.TaskGroup() as group:
        group.create_task(made.keep_placing(over))
        if job.with_plans:
            group.create_task(plans.run_while(lambda: not over.is_set()))
        try:
            healed, told = await inject.inject(count, made)
        finally:
            over.set()
    told += await made.place_at_every_server()
    async with scene.connection() as connection:
        await assert_nothing_is_left_open(connection, SERVERS)
    asked = await made.ask_all()
    history = await read_history(
        scene.url, made.notebook.calls, granted=made.granted, cluster=made.cluster
    )
    planned = None
    if job.with_plans:
        planned = Plans(
            await read_history(scene.url, [], granted=granted, cluster=f"plans-{number}"),
            plans.calls,
        )
    await made.delete()
    placed = sum(call.pods_placed for call in history.calls)
    print(f"{name}: {healed.counts.total()} faults, {placed:,} placements", flush=True)
    ended.healed.add(healed)
    ended.placed += placed
    ended.violations += [f"{name}: {each}" for each in told]
    return checkers.submit(judge, name, history, asked, planned, job.keep)


def judge(
    name: str, history: History, asked: Sequence[Asked], plans: Plans | None, keep: Path | None
) -> Verdict:
    """Everything about one round; a history in which something is broken is kept."""
    assert history.head is not None
    history.differing = differing(loaded(history.rows, history.head[0]), asked)
    found = [str(each) for each in check(history, placements_every=REFERENCE_EVERY)]
    found += map(str, check_by_counting(history).violations)
    found += [f"A2: {each}" for each in broken_groups(history)]
    try:
        assert_every_answer_is_stored(history)
    except (AssertionError, KeyError) as error:
        found.append(f"A6: {error!r}")
    steps: Counter[str] = Counter()
    if plans is not None:
        tally = check_plans(plans.history, plans.calls, staying=workload.STAYING)
        steps = tally.steps
        found += tally.violations
    if found and keep is not None:
        (keep / f"{name.replace(', ', '-').replace(' ', '-')}.pickle").write_bytes(
            pickle.dumps((history, asked, plans))
        )
    return Verdict([f"{name}: {each}" for each in found], steps)


@asynccontextmanager
async def _scene(job: Job) -> AsyncIterator[Scene]:
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        common = {
            "MOORAGE_TOKEN": TOKEN,
            "MOORAGE_REQUEST_TIMEOUT_SECONDS": str(WAIT_SECONDS),
            "MOORAGE_STATEMENT_TIMEOUT_SECONDS": str(STATEMENT_SECONDS_MAX),
            **job.environment,
        }
        postgres = EmbeddedPostgres(folder / "data")
        proxies = []
        if job.with_proxy:
            url = await asyncio.to_thread(postgres.start)
            stack.push_async_callback(asyncio.to_thread, postgres.stop)
            proxies = [await _proxy(url, f"{job.seed}-{i}", stack) for i in range(SERVERS)]
            for each in proxies[1:]:
                each.faults, each.befell = proxies[0].faults, proxies[0].befell
        own = [{"MOORAGE_DATABASE_URL": each.url} for each in proxies] or [{}] * SERVERS
        servers = [
            LocalServer(folder / "data", environment={**common, **each}, quiet=True) for each in own
        ]
        await start_all(servers, stack)  # type: ignore[arg-type]
        yield Scene(servers, proxies, folder / "data", postgres.url)


async def _proxy(url: str, seed: str, stack: AsyncExitStack) -> CommitProxy:
    held = stack.enter_context(hold_port())
    address = (LOOPBACK, port_of(held))
    return await stack.enter_async_context(CommitProxy(url, address=address, seed=seed))
