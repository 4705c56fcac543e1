"""`python -m tests.concurrency.race --placements 1000000`: race, check every commit, report.

Each planner is a `moorage serve` process of its own with one worker, all on one embedded
PostgreSQL and on equal terms: a request is decided by the planner that it was sent to. A round is
a fresh cluster, so that its whole log can be checked: every placement by counters, every 200th by
the reference implementation, and all answers, the chain of commits and the tables. Rounds go on
while those before them are checked by another process.
"""

import argparse
import asyncio
import random
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context

import httpx
import msgspec

from service.cli.local import LocalServer, temporary_folder
from service.store.embedded import EmbeddedPostgres
from tests.concurrency.callers import bearer
from tests.concurrency.race import metrics, workload
from tests.concurrency.race.driving import Round
from tests.concurrency.race.report import LOST_MIN, REPLANNED_MAX, Report
from tests.concurrency.race.verdict import Verdict, check_round

TOKEN = "race"


def main() -> int:
    options = _options()
    print(f"seed {options.seed}", flush=True)
    report = asyncio.run(_race(options))
    print(report)
    for violation in report.violations[:100]:
        print(f"  {violation}")
    if report.violations:
        return 1
    if report.lost_share < LOST_MIN or report.replanned_share > REPLANNED_MAX:
        print("too few races lost, or too many re-plans: this run does not count")
        return 2
    return 0


async def _race(options: argparse.Namespace) -> Report:
    report = Report()
    with temporary_folder() as folder, ExitStack() as stack:
        postgres = stack.enter_context(EmbeddedPostgres(folder / "data"))
        environment = {
            "MOORAGE_TOKEN": TOKEN,
            "MOORAGE_DATABASE_URL": postgres.url,
            "MOORAGE_HAND_OVER": "false",
        }
        servers = [
            LocalServer(folder / f"planner-{i}", environment=environment)
            for i in range(options.planners)
        ]
        for server in servers:
            await asyncio.to_thread(stack.enter_context, server)
        checkers = stack.enter_context(
            ProcessPoolExecutor(options.checkers, mp_context=get_context("spawn"))
        )
        await _run_rounds(options, report, servers, postgres.url, checkers)
    return report


async def _run_rounds(
    options: argparse.Namespace,
    report: Report,
    servers: list[LocalServer],
    database_url: str,
    checkers: ProcessPoolExecutor,
) -> None:
    urls = [server.url for server in servers]
    running: list[tuple[str, Future[Verdict]]] = []
    while report.placements < options.placements and not report.violations:
        number, cluster = report.rounds, f"race-{report.rounds}"
        granted = await asyncio.to_thread(_fill, urls[0], cluster)
        before, started = await asyncio.to_thread(metrics.counted, urls, TOKEN), time.monotonic()
        made = Round(cluster, urls, TOKEN, drivers=options.drivers, seed=f"{options.seed}-{number}")
        await made.run(min(options.round, options.placements - report.placements))
        report.seconds += time.monotonic() - started
        report.counted += await asyncio.to_thread(metrics.counted, urls, TOKEN) - before
        report.placements += made.placed
        report.unplaced += made.unplaced
        report.rounds += 1
        calls = made.notebook.calls
        report.attempts.update(
            call.body["attempts"] for call in calls if call.action == "place" and call.body
        )
        job = checkers.submit(check_round, number, database_url, cluster, calls, granted)
        running.append((cluster, job))
        while running and (running[0][1].done() or len(running) > 1 + options.checkers):
            await _conclude(report, urls[0], *running.pop(0))
        print(f"--- after round {number}\n{report}", flush=True)
    for cluster, job in running:
        await _conclude(report, urls[0], cluster, job)


async def _conclude(report: Report, url: str, cluster: str, job: "Future[Verdict]") -> None:
    report.add(await asyncio.wrap_future(job))
    await asyncio.to_thread(_request, "DELETE", f"{url}/v1/clusters/{cluster}")


def _fill(url: str, cluster: str) -> int:
    """Make a cluster, as full as it is to be; the revision after that."""
    path = f"{url}/v1/clusters/{cluster}"
    _request("PUT", path, {"config": {}})
    items = [*workload.nodes(), *workload.fillers()]
    answer = _request("POST", f"{path}/apply", {"apiVersion": "v1", "kind": "List", "items": items})
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
    parser.add_argument("--round", type=int, default=20_000, help="placements on one cluster")
    parser.add_argument("--planners", type=int, default=8, help="server processes")
    parser.add_argument("--drivers", type=int, default=5, help="groups placed at the same time")
    parser.add_argument("--checkers", type=int, default=1, help="processes that check rounds")
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(10**9), help="of the choices"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
