"""A production trace, replayed over HTTP with arrivals and departures, as fast as it goes.

One client works through the trace's pods in the order of their arrival, in batches. Before each batch it reports those
as ended that the trace says have left by then. The folder holds `nodes.json` and `pods.jsonl.gz`; a pod's annotations
say when it came and went, in seconds.
"""

import asyncio
import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from bench.client import Connection
from bench.figures import Table, spread
from bench.over_http import CLUSTER
from bench.stack import Postgres, Server, server
from bench.verify import Manifest, violations
from service.cli.sources import read_objects

CAME, WENT = "openb/created-at", "openb/deleted-at"


@dataclass(frozen=True, kw_only=True)
class TraceFigures:
    """One replay."""

    batch: int
    pods: int
    unplaced: int
    ended: int
    """Pods that left before the last one came."""
    violations: int
    seconds: float
    """For everything, departures included."""
    placing_seconds: float
    p50_ms: float
    """Of one request for a batch."""
    server_cpu_seconds: float
    postgres_cpu_seconds: float
    megabytes: float
    """A worker's peak."""
    postgres_megabytes: float


def run(postgres: Postgres, folder: Path, *, batch: int) -> TraceFigures:
    """Replay the folder's pods on its nodes, and count violations of what is stored."""
    nodes = read_objects([str(folder / "nodes.json")])
    pods = read_objects([str(folder / "pods.jsonl.gz")])
    with server(postgres, postgres.new_database()) as serving:
        return asyncio.run(_replay(serving, nodes, pods, batch))


def batches(pods: Sequence[Manifest], size: int) -> Iterator[tuple[list[Manifest], list[Manifest]]]:
    """Those that have left by the arrival of the next, and the next; each pod leaves once at most."""
    present: list[Manifest] = []
    for start in range(0, len(pods), size):
        arriving = list(pods[start : start + size])
        now = _seconds(arriving[0], CAME)
        yield [pod for pod in present if _seconds(pod, WENT) <= now], arriving
        present = [pod for pod in present if _seconds(pod, WENT) > now] + arriving


async def _replay(
    server: Server, nodes: Sequence[Manifest], pods: Sequence[Manifest], batch: int
) -> TraceFigures:
    acknowledged: dict[tuple[str, str], str] = {}
    ended, latencies = 0, []
    async with Connection(server.host, server.port) as connection:
        await connection.post_json(f"{CLUSTER}/apply", {"kind": "List", "items": [*nodes]})
        cpu = server.cpu_seconds()
        began = perf_counter()
        for leaving, arriving in batches(pods, batch):
            gone = [pod for pod in leaving if _key(pod) in acknowledged]
            if gone:
                items = [pod | {"status": {"phase": "Succeeded"}} for pod in gone]
                await connection.post_json(f"{CLUSTER}/apply", {"kind": "List", "items": items})
                ended += len(gone)
            asked = perf_counter()
            answer = await connection.post_json(f"{CLUSTER}/placements", {"pods": arriving})
            latencies.append(perf_counter() - asked)
            for result in answer["results"]:
                if result["outcome"] == "Placed":
                    acknowledged[result["namespace"], result["name"]] = result["nodeName"]
        seconds = perf_counter() - began
        after = server.cpu_seconds()
    items = json.loads(server.get(f"{CLUSTER}/export"))["items"]
    return TraceFigures(
        batch=batch,
        pods=len(pods),
        unplaced=len(pods) - len(acknowledged),
        ended=ended,
        violations=len(violations(items, acknowledged)),
        seconds=seconds,
        placing_seconds=sum(latencies),
        p50_ms=statistics.median(latencies) * 1000,
        server_cpu_seconds=after[0] - cpu[0],
        postgres_cpu_seconds=after[1] - cpu[1],
        megabytes=server.peak_megabytes(),
        postgres_megabytes=server.postgres.megabytes(),
    )


def record(figures: TraceFigures) -> dict[str, object]:
    """The figures as a line of JSON."""
    return {"layer": "trace", **asdict(figures)}


def table(runs: Sequence[TraceFigures]) -> Table:
    """One row for several replays."""

    def middle(values: Iterator[float], digits: int = 0) -> str:
        return f"{statistics.median(values):,.{digits}f}"

    row = {
        "pods, in batches of": f"{runs[0].pods:,}, {runs[0].batch}",
        "placements/s": spread([run.pods / run.seconds for run in runs]),
        "without the departures": spread([run.pods / run.placing_seconds for run in runs]),
        "p50 ms": middle((run.p50_ms for run in runs), 1),
        "departures": f"{runs[0].ended:,}",
        "unplaced": f"{runs[0].unplaced:,}",
        "violations": f"{sum(run.violations for run in runs):,}",
        "CPU s": middle((run.server_cpu_seconds for run in runs), 2),
        "PostgreSQL CPU s": middle((run.postgres_cpu_seconds for run in runs), 2),
        "MB": middle(run.megabytes for run in runs),
        "PostgreSQL MB": middle(run.postgres_megabytes for run in runs),
    }
    return Table(list(row), [list(row.values())])


def _key(pod: Manifest) -> tuple[str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]


def _seconds(pod: Manifest, annotation: str) -> int:
    return int(pod["metadata"]["annotations"][annotation])
