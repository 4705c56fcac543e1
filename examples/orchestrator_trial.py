"""Kills the example orchestrator again and again while it runs jobs, and counts what that lost.

examples/orchestrator_trial.py                                           1,000 jobs on 100 nodes
examples/orchestrator_trial.py --jobs 50000 --nodes 5000 --cpus 16 --kills 5

The orchestrator dies of SIGKILL, first before it hears what became of a request, then between a
result and what follows from it. So does the server. Of the nodes, one in fifty dies with its jobs.
"""

import argparse
import asyncio
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from examples.orchestrator import LOST_EVERY, NAMESPACE, Journal, Orchestrator, read_journal
from moorage import AsyncClient, Client, Retries
from moorage.types import PlacementAnswer
from service.server.local_server import LocalServer, temporary_folder

HERE = Path(__file__)
SETTINGS = {
    "nodeEvictionRate": 1_000,
    "secondaryNodeEvictionRate": 1_000,
    "unhealthyZoneThreshold": 1,
}
"""The pods of all dead nodes are evicted at once, so that the trial is short."""
GRACE_SECONDS = 5
LOOK_SECONDS = 0.02
PATIENT = Retries(seconds_max=math.inf)


class Report(NamedTuple):
    """What a trial came to."""

    jobs: int
    nodes: int
    seconds: float
    orchestrators_killed: int
    nodes_lost: int
    lost: list[str]
    """Jobs without a result."""
    made_up: list[str]
    """Results of jobs that no agent ran to the end."""
    left: list[str]
    """Pods that are still stored, although all jobs are over."""

    @property
    def is_sound(self) -> bool:
        """Whether each job has its result, each result its job, and nothing is left."""
        return not (self.lost or self.made_up or self.left)

    def told(self) -> str:
        """Say it to people."""
        return (
            f"{self.jobs} jobs on {self.nodes} nodes in {self.seconds:.1f} s; the orchestrator was "
            f"killed {self.orchestrators_killed} times, the server once, and {self.nodes_lost} nodes "
            f"died.\nLost: {len(self.lost)} jobs. Results without a job that ran to its end: "
            f"{len(self.made_up)}. Pods left over: {len(self.left)}."
        )


class MortalClient(AsyncClient):
    """Kills its process when it hears what became of the first placement."""

    async def place(self, pods: Any, **options: Any) -> PlacementAnswer:
        await super().place(pods, **options)
        die()
        raise AssertionError


class MortalJournal(Journal):
    """Kills its process when it holds so many names, before anybody hears that it does."""

    def __init__(self, path: Path, names_max: int) -> None:
        super().__init__(path)
        self._names_max = names_max

    def add(self, names: Iterable[str]) -> None:
        super().add(names)
        if len(self.names) >= self._names_max:
            die()


def die() -> None:
    """End this process as a power cut would."""
    os.kill(os.getpid(), signal.SIGKILL)


async def orchestrate(url: str, jobs: int, folder: Path, results_max: int) -> None:
    """Be an orchestrator that dies after so many results; with 0, in its first placement."""
    made = AsyncClient if results_max else MortalClient
    results = MortalJournal(folder / "results", results_max or jobs)
    async with made(url, retries=PATIENT) as moorage:
        await Orchestrator(moorage, jobs, results).run()


def trial(
    server: LocalServer, folder: Path, *, jobs: int, nodes: int, cpus: int, kills: int, grace: int
) -> Report:
    """Run all jobs on a server; kill the orchestrator so often, and the server with the last one."""
    shared = ["--url", server.url, "--folder", str(folder), "--jobs", str(jobs)]
    agents = ["orchestrator.py", "agents", *shared, "--nodes", str(nodes), "--cpus", str(cpus)]
    with Client(server.url, retries=PATIENT) as moorage:
        moorage.configure(nodeMonitorGraceSeconds=grace, **SETTINGS)
        started = time.monotonic()
        with running(agents) as alive:
            for number in range(kills):
                dies_after = str(number * jobs // kills)
                with running([HERE.name, *shared, "--dies-after", dies_after]) as process:
                    if number == kills - 1:
                        server.kill()
                        server.start()
                    assert ended(process, alive) == -signal.SIGKILL
            with running(["orchestrator.py", "jobs", *shared]) as process:
                assert ended(process, alive) == 0
        seconds = time.monotonic() - started
        results, _ = read_journal(folder / "results")
        run, _ = read_journal(folder / "ended")
        expected = {f"job-{number}" for number in range(jobs)}
        return Report(
            jobs=jobs,
            nodes=nodes,
            seconds=seconds,
            orchestrators_killed=kills,
            nodes_lost=len(range(0, nodes, LOST_EVERY)),
            lost=sorted(expected - results),
            made_up=sorted(results - (expected & run)),
            left=[pod["metadata"]["name"] for pod in moorage.pods.list(namespace=NAMESPACE)],
        )


@contextmanager
def running(script: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run one of these scripts in a process of its own, which is killed in the end."""
    process = subprocess.Popen([sys.executable, str(HERE.with_name(script[0])), *script[1:]])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def ended(process: subprocess.Popen[bytes], agents: subprocess.Popen[bytes]) -> int:
    """Wait until a process ends, and return its exit code; the agents have to be alive meanwhile."""
    while (code := process.poll()) is None:
        assert agents.poll() is None, "the agents failed"
        time.sleep(LOOK_SECONDS)
    return code


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=1_000, help="how many jobs to run")
    parser.add_argument("--nodes", type=int, default=100, help="how many nodes to simulate")
    parser.add_argument("--cpus", type=int, default=4, help="how many jobs a node runs at once")
    parser.add_argument("--kills", type=int, default=3, help="how often the orchestrator dies")
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--dies-after", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.url:
        asyncio.run(orchestrate(given.url, given.jobs, given.folder, given.dies_after))
        return 0
    with temporary_folder() as folder, LocalServer(folder / "data", quiet=True) as server:
        report = trial(
            server,
            folder,
            jobs=given.jobs,
            nodes=given.nodes,
            cpus=given.cpus,
            kills=given.kills,
            grace=GRACE_SECONDS,
        )
    print(report.told())
    return 0 if report.is_sound else 1


if __name__ == "__main__":
    sys.exit(main())
