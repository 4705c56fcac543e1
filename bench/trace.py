"""A production trace, replayed over HTTP with arrivals and departures, as fast as possible.

The trace's pods are placed in the order of their arrival, in batches, by one client or by several
that take turns. Before each batch, the pods that have left by then are reported as ended. With
several clients, a pod whose placement is still under way is reported with the next batch. The
folder holds `nodes.json` and `pods.jsonl.gz`; a pod's annotations say when it came and went, in
seconds.
"""

import asyncio
import json
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter

from bench.client import Connection
from bench.figures import Table, spread, verdict
from bench.over_http import CLUSTER
from bench.stack import Postgres, Server, server
from bench.verify import Manifest, violations
from moorage.cli.input.sources import read_objects

CAME, WENT = "openb/created-at", "openb/deleted-at"
GOAL = 6_000
"""The goal: placements per second, with departures."""


@dataclass(frozen=True, kw_only=True)
class TraceFigures:
    """The figures of one replay."""

    batch: int
    clients: int
    pods: int
    unplaced: int
    ended: int
    """How many pods left before the last one came."""
    violations: int
    seconds: float
    """The time for everything, with departures."""
    placing_seconds: float
    """The sum of the times of all requests for batches."""
    p50_ms: float
    """The latency of a request for a batch."""
    server_cpu_seconds: float
    postgres_cpu_seconds: float
    megabytes: float
    """The peak of the worker."""
    postgres_megabytes: float


Key = tuple[str, str]


@dataclass(kw_only=True)
class Replay:
    """The requests, encoded before the time is taken, and what was answered so far."""

    steps: Iterator[tuple[list[Key], bytes]]
    """For each batch, the pods that have left by then, and the request for the batch."""
    ended: dict[Key, bytes]
    """Each pod in the form in which it is reported when it has left."""
    late: list[Key] = field(default_factory=list)
    """The pods that left while their placement was still under way."""
    answered: dict[Key, str | None] = field(default_factory=dict)
    """The node of each pod; None if it got none."""
    reported: int = 0
    latencies: list[float] = field(default_factory=list)

    def acknowledged(self) -> dict[Key, str]:
        return {key: node for key, node in self.answered.items() if node is not None}

    def take_gone(self, leaving: Iterable[Key]) -> list[bytes]:
        """Return the reports of those that were placed and have left; each is returned once."""
        left = [*self.late, *leaving]
        self.late = [key for key in left if key not in self.answered]
        gone = [self.ended[key] for key in left if self.answered.get(key) is not None]
        self.reported += len(gone)
        return gone


def run(postgres: Postgres, folder: Path, *, batch: int, clients: int = 1) -> TraceFigures:
    """Replay the folder's pods on its nodes, and count the violations of what is stored."""
    nodes = read_objects([str(folder / "nodes.json")])
    pods = read_objects([str(folder / "pods.jsonl.gz")])
    with server(postgres, postgres.new_database()) as serving:
        return asyncio.run(_measure(serving, nodes, pods, batch, clients))


def batches(pods: Sequence[Manifest], size: int) -> Iterator[tuple[list[Manifest], list[Manifest]]]:
    """Yield batches, each with the pods that have left by its arrival.

    Each pod leaves at most once.
    """
    present: list[Manifest] = []
    for start in range(0, len(pods), size):
        arriving = list(pods[start : start + size])
        now = _seconds(arriving[0], CAME)
        yield [pod for pod in present if _seconds(pod, WENT) <= now], arriving
        present = [pod for pod in present if _seconds(pod, WENT) > now] + arriving


async def _measure(
    server: Server, nodes: Sequence[Manifest], pods: Sequence[Manifest], batch: int, clients: int
) -> TraceFigures:
    replay = prepared(pods, batch)
    await put_nodes(server, nodes)
    cpu = server.cpu_seconds()
    began = perf_counter()
    await asyncio.gather(*(place(server, replay) for _ in range(clients)))
    seconds = perf_counter() - began
    after = server.cpu_seconds()
    items = json.loads(server.get(f"{CLUSTER}/export"))["items"]
    acknowledged = replay.acknowledged()
    return TraceFigures(
        batch=batch,
        clients=clients,
        pods=len(pods),
        unplaced=len(pods) - len(acknowledged),
        ended=replay.reported,
        violations=len(violations(items, acknowledged)),
        seconds=seconds,
        placing_seconds=sum(replay.latencies),
        p50_ms=statistics.median(replay.latencies) * 1000,
        server_cpu_seconds=after[0] - cpu[0],
        postgres_cpu_seconds=after[1] - cpu[1],
        megabytes=server.peak_megabytes(),
        postgres_megabytes=server.postgres.megabytes(),
    )


def prepared(pods: Sequence[Manifest], batch: int) -> Replay:
    """Encode the requests for all pods."""
    steps = [
        ([_key(pod) for pod in leaving], _encode({"pods": arriving}))
        for leaving, arriving in batches(pods, batch)
    ]
    ended = {_key(pod): _encode(pod | {"status": {"phase": "Succeeded"}}) for pod in pods}
    return Replay(steps=iter(steps), ended=ended)


async def put_nodes(server: Server, nodes: Sequence[Manifest]) -> None:
    """Put the trace's nodes into the cluster."""
    async with Connection(server.host, server.port) as connection:
        await connection.post_json(f"{CLUSTER}/apply", {"kind": "List", "items": [*nodes]})


async def place(server: Server, replay: Replay) -> None:
    """Take one batch after the other: report the pods that have left, then place the batch."""
    async with Connection(server.host, server.port) as connection:
        for leaving, arriving in replay.steps:
            if gone := replay.take_gone(leaving):
                items = b'{"kind":"List","items":[%b]}' % b",".join(gone)
                await connection.post_encoded(f"{CLUSTER}/apply", items)
            asked = perf_counter()
            answer = await connection.post_encoded(f"{CLUSTER}/placements", arriving)
            replay.latencies.append(perf_counter() - asked)
            for result in json.loads(answer)["results"]:
                node = result["nodeName"] if result["outcome"] == "Placed" else None
                replay.answered[result["namespace"], result["name"]] = node


def _encode(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def record(figures: TraceFigures) -> dict[str, object]:
    """Make a line of JSON of the figures."""
    return {"layer": "trace", **asdict(figures)}


def table(kinds: Sequence[Sequence[TraceFigures]]) -> Table:
    """Make a row for several replays of one kind."""
    rows = [_row(runs) for runs in kinds]
    return Table(list(rows[0]), [list(row.values()) for row in rows])


def _row(runs: Sequence[TraceFigures]) -> dict[str, str]:
    def middle(values: Iterator[float], digits: int = 0) -> str:
        return f"{statistics.median(values):,.{digits}f}"

    speeds = [run.pods / run.seconds for run in runs]
    return {
        "pods, in batches of": f"{runs[0].pods:,}, {runs[0].batch}",
        "clients": f"{runs[0].clients}",
        "placements/s": spread(speeds),
        "goal": f"{GOAL:,} {verdict(is_reached=statistics.median(speeds) >= GOAL)}",
        "without the departures": _without_departures(runs),
        "p50 ms": middle((run.p50_ms for run in runs), 1),
        "departures": spread([run.ended for run in runs]),
        "unplaced": spread([run.unplaced for run in runs]),
        "violations": f"{sum(run.violations for run in runs):,}",
        "CPU s": middle((run.server_cpu_seconds for run in runs), 2),
        "PostgreSQL CPU s": middle((run.postgres_cpu_seconds for run in runs), 2),
        "MB": middle(run.megabytes for run in runs),
        "PostgreSQL MB": middle(run.postgres_megabytes for run in runs),
    }


def _without_departures(runs: Sequence[TraceFigures]) -> str:
    """Return nothing for several clients, as each of them waits for the others' requests, too."""
    if runs[0].clients > 1:
        return ""
    return spread([run.pods / run.placing_seconds for run in runs])


def _key(pod: Manifest) -> Key:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]


def _seconds(pod: Manifest, annotation: str) -> int:
    return int(pod["metadata"]["annotations"][annotation])
