"""Replay a folder of manifests against Moorage: apply its nodes, then place its pods, over HTTP.

    examples/replay.py FOLDER [--departures] [--kill] [--batch 200] [--workers 1] [--limit N]
                       [--url URL]

The folder holds `nodes.json` (a `List`, as `kubectl get nodes -o json` prints it) and `pods.jsonl`
or `pods.jsonl.gz`, with one pod per line; the names may end in .yaml as well. Pods are placed in
their order. The report says how many pods were placed, how many were not and why, the pods per
second, and the peak memory of the server's and the database's processes.

With --departures, pods also end. Before a batch arrives, placed pods are reported as Succeeded if
their annotation `…/deleted-at` is not later than the `…/created-at` of the batch's first pod; what
they used is free again.

With --kill, everything (server, workers, PostgreSQL) is killed with SIGKILL halfway, while a
request is under way, and started again; the request is repeated under its idempotency key. In the
end the stored pods must be exactly those that were acknowledged, each on the acknowledged node.
"""

import argparse
import heapq
import json
import os
import random
import secrets
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moorage.cli.changes.batches import in_batches
from moorage.cli.exceptions import CliError, ExitCode, Refused, Unavailable, WrongUsage
from moorage.cli.input.sources import MANIFEST_SUFFIXES, read_objects
from moorage.cli.render.explanations import PLACED, count_outcomes, reasons_of_refusals
from moorage.cli.render.output import Format, Output, print_error
from moorage.cli.session.client import Client
from service.cli.server_failures import as_command_errors
from service.server.local_server import LocalServer, temporary_folder

SAMPLE_SECONDS = 0.25
KILL_DELAY_SECONDS_MAX = 0.05
REASONS_SHOWN = 20


@dataclass
class Report:
    """The results of a replay; sizes are in MiB, times in seconds."""

    nodes: int = 0
    pods: int = 0
    placed: int = 0
    departed: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    server_peak_mib: float = 0.0
    database_peak_mib: float = 0.0
    restart_seconds: float | None = None
    missing: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    unasked: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """Whether the stored pods are exactly those that were acknowledged."""
        return not (self.missing or self.elsewhere or self.unasked or self.twice)


class Replay:
    """One replay: it knows which placements were acknowledged, and kills the server in between."""

    def __init__(self, client: Client, server: LocalServer | None, report: Report) -> None:
        self.client = client
        self.server = server
        self.report = report
        self._killer: threading.Timer | None = None
        self.acknowledged: dict[tuple[str, str], str] = {}
        self.results: list[dict[str, Any]] = []
        self._ending: list[tuple[float, int, bytes]] = []
        """Placed pods that will end: the time, a number, and the pod as it is reported then."""

    def load(self, nodes: Sequence[dict[str, Any]]) -> None:
        """Apply the nodes, as one commit."""
        self.client.post_once(self.client.path("apply"), {"kind": "List", "items": [*nodes]})

    def place(self, pods: Sequence[dict[str, Any]]) -> None:
        """Place a batch; if the server dies meanwhile, start it and ask again by the same key."""
        for result in self._ask(pods, key=secrets.token_urlsafe(18))["results"]:
            self.results.append(result)
            if result["outcome"] in PLACED:
                self.acknowledged[result["namespace"], result["name"]] = result["nodeName"]

    def expect_ends(self, pods: Sequence[dict[str, Any]]) -> None:
        """Note when the placed pods of a batch will end."""
        for pod in pods:
            metadata, end = pod["metadata"], time_of(pod, "deleted-at")
            name = (metadata.get("namespace", "default"), metadata["name"])
            if end is not None and name in self.acknowledged:
                ended = json.dumps({**pod, "status": {"phase": "Succeeded"}}).encode()
                heapq.heappush(self._ending, (end, len(self._ending), ended))

    def end(self, now: float | None) -> None:
        """Report all pods as Succeeded that end no later than `now`."""
        lines = []
        while now is not None and self._ending and self._ending[0][0] <= now:
            lines.append(heapq.heappop(self._ending)[2])
        if not lines:
            return
        while True:
            try:
                answers = self.client.post_lines(self.client.path("apply"), lines)
            except Unavailable:
                if self._killer is None:
                    raise
                self._restart()
            else:
                break
        wrong = [each for each in answers if each["result"] not in {"Changed", "Unchanged"}]
        if wrong:
            raise Refused({"detail": f"A pod that ended was not updated: {wrong[0]}"})
        self.report.departed += len(lines)

    def _ask(self, pods: Sequence[dict[str, Any]], *, key: str) -> dict[str, Any]:
        while True:
            try:
                answer: dict[str, Any] = self.client.post_once(
                    self.client.path("placements"), {"pods": [*pods]}, key=key
                )
            except Unavailable:
                if self._killer is None:
                    raise
                self._restart()
            else:
                return answer

    def kill_soon(self, chance: random.Random) -> None:
        """Kill everything after a moment, while the next request is under way."""
        assert self.server is not None
        assert self.server.process is not None
        delay = chance.uniform(0, KILL_DELAY_SECONDS_MAX)
        self._killer = threading.Timer(delay, kill_tree, [self.server.process.pid])
        self._killer.start()

    def settle(self) -> None:
        """Wait until everything was killed, if it is to be, and start the server again."""
        if self._killer is not None and self.report.restart_seconds is None:
            self._killer.join()
            self._restart()

    def verify(self) -> None:
        """Compare what is stored with what was acknowledged."""
        pods = [pod for page in self.client.pages(self.client.path("pods")) for pod in page]
        stored = Counter((pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods)
        nodes = {
            (pod["metadata"]["namespace"], pod["metadata"]["name"]): pod["spec"].get("nodeName")
            for pod in pods
        }
        acknowledged = self.acknowledged
        self.report.twice = _names(pod for pod, times in stored.items() if times > 1)
        self.report.missing = _names(acknowledged.keys() - stored.keys())
        self.report.unasked = _names(stored.keys() - acknowledged.keys())
        self.report.elsewhere = _names(
            pod for pod, node in acknowledged.items() if pod in nodes and nodes[pod] != node
        )

    def _restart(self) -> None:
        assert self.server is not None
        self.server.kill()
        self.report.restart_seconds = self.server.start()


class MemorySampler:
    """Watches the peak memory of a server's and its database's processes (only on Linux).

    It adds up proportional set sizes, so that memory which processes share counts once.
    """

    def __init__(self, server: LocalServer, report: Report) -> None:
        self._server = server
        self._report = report
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            process = self._server.process
            if process is not None:
                self._take(tree(process.pid))

    def _take(self, processes: Sequence[int]) -> None:
        database = {pid for pid in processes if program(pid) == "postgres"}
        served = sum(memory_mib(pid) for pid in processes if pid not in database)
        self._report.server_peak_mib = max(self._report.server_peak_mib, served)
        stored = sum(memory_mib(pid) for pid in database)
        self._report.database_peak_mib = max(self._report.database_peak_mib, stored)


def time_of(pod: Mapping[str, Any], what: str) -> float | None:
    """Return when something happened to a pod, by its annotation `<owner>/<what>`.

    Returns None if there is no such annotation.
    """
    for key, value in pod["metadata"].get("annotations", {}).items():
        if key.rpartition("/")[2] == what:
            return float(value)
    return None


def tree(root: int) -> list[int]:
    """Return a process and all of its descendants, parents first (Linux)."""
    found = [root]
    for pid in found:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            with suppress(OSError):
                found += map(int, task.read_text().split())
    return found


def program(pid: int) -> str:
    """Return the name of the program that a process runs; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def memory_mib(pid: int) -> float:
    """Return a process's proportional set size in MiB; 0 if it is gone."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def kill_tree(root: int) -> None:
    """Kill a process and all of its descendants by SIGKILL, the process first."""
    for pid in tree(root):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def replay(arguments: argparse.Namespace, output: Output) -> Report:
    """Do what the arguments say."""
    nodes = read_objects([find(arguments.folder, "nodes")])
    pods = read_objects([find(arguments.folder, "pods")])[: arguments.limit]
    report = Report(nodes=len(nodes), pods=len(pods))
    with running(arguments) as (client, server):
        run = Replay(client, server, report)
        with MemorySampler(server, report) if server else nullcontext():
            run.load(nodes)
            started = time.monotonic()
            for batch in in_batches(output, "placing", pods, arguments.batch):
                if arguments.kill and len(run.results) <= len(pods) // 2 < len(run.results) + len(
                    batch
                ):
                    run.kill_soon(random.Random(arguments.seed))
                if arguments.departures:
                    run.end(time_of(batch[0], "created-at"))
                run.place(batch)
                if arguments.departures:
                    run.expect_ends(batch)
            report.seconds = time.monotonic() - started
        run.settle()
        run.verify()
    report.placed = sum(count_outcomes(run.results)[outcome] for outcome in PLACED)
    report.reasons = reasons_of_refusals(run.results)
    return report


@contextmanager
def running(arguments: argparse.Namespace) -> Iterator[tuple[Client, LocalServer | None]]:
    """Yield a client of the given server, or of one of our own with an empty data folder."""
    if arguments.url:
        with Client(arguments.url, token=arguments.token) as client:
            yield client, None
        return
    with (
        temporary_folder() as folder,
        LocalServer(folder / "data", workers=arguments.workers) as server,
        Client(server.url) as client,
    ):
        yield client, server


def find(folder: Path, stem: str) -> str:
    """Return the file of a folder that holds the nodes or the pods.

    Raises:
        WrongUsage: there is no such file.
    """
    for suffix in MANIFEST_SUFFIXES:
        for name in (f"{stem}{suffix}", f"{stem}{suffix}.gz"):
            if (folder / name).exists():
                return str(folder / name)
    raise WrongUsage(f"{folder} has no {stem}.json, {stem}.jsonl or the like.")


def print_report(output: Output, report: Report, *, killed: bool) -> None:
    """Print the report for people."""
    rate = report.pods / report.seconds if report.seconds else 0.0
    rows: list[tuple[str, object]] = [
        ("nodes", report.nodes),
        ("pods", report.pods),
        ("placed", report.placed),
        ("not placed", report.pods - report.placed),
        ("ended", report.departed),
        ("seconds", round(report.seconds, 2)),
        ("pods a second", round(rate)),
    ]
    if report.server_peak_mib:
        rows.append(("server, peak MiB", round(report.server_peak_mib)))
        rows.append(("database, peak MiB", round(report.database_peak_mib)))
    if killed:
        rows.append(("seconds to restart", round(report.restart_seconds or 0.0, 2)))
    output.table(("replay", ""), rows)
    if report.reasons:
        output.line()
        reasons = report.reasons.most_common(REASONS_SHOWN)
        output.table(("pods", "not placed because"), [(count, why) for why, count in reasons])
    output.line()
    output.line(verdict(report))


def verdict(report: Report) -> str:
    """Say whether what is stored is what was acknowledged."""
    if report.is_sound:
        return f"All {report.placed} acknowledged placements are stored, each once, on its node."
    faults: Mapping[str, list[str]] = {
        "missing": report.missing,
        "on another node": report.elsewhere,
        "stored but never acknowledged": report.unasked,
        "stored twice": report.twice,
    }
    return "; ".join(f"{len(pods)} {fault}: {pods[0]}" for fault, pods in faults.items() if pods)


def _names(pods: Any) -> list[str]:
    return sorted("/".join(pod) for pod in pods)


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="with nodes.json and pods.jsonl(.gz)")
    parser.add_argument(
        "--url", help="a server that runs, with an empty cluster (default: one of our own)"
    )
    parser.add_argument("--token", help="its bearer token")
    parser.add_argument("--batch", type=int, default=200, help="pods in one request")
    parser.add_argument("--workers", type=int, default=1, help="workers of our own server")
    parser.add_argument("--limit", type=int, help="only the first so many pods")
    parser.add_argument("--departures", action="store_true", help="let pods end at their time")
    parser.add_argument("--kill", action="store_true", help="kill our own server in the middle")
    parser.add_argument("--seed", type=int, help="of the moment of the killing")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    arguments = parser.parse_args(given)
    if arguments.kill and arguments.url:
        parser.error("--kill is for a server of our own: leave out --url.")
    output = Output(Format.JSON if arguments.json else Format.TABLE)
    try:
        with as_command_errors():
            report = replay(arguments, output)
    except CliError as error:
        print_error(error)
        return error.exit_code
    if arguments.json:
        output.document(report)
    else:
        print_report(output, report, killed=arguments.kill)
    return ExitCode.OK if report.is_sound else ExitCode.REFUSED


if __name__ == "__main__":
    sys.exit(main())
