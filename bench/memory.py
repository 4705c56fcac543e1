"""How much memory a worker takes, how fast objects are applied, and how soon a server is back.

A real server takes all objects through `apply`. Then a new one starts on the same PostgreSQL and
loads them. The placed pods are of all shapes; each has its own name and node.
"""

import asyncio
import json
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from bench import worlds
from bench.client import Connection
from bench.figures import Table, verdict
from bench.over_http import CLUSTER
from bench.stack import Postgres, Server, server

LINES_PER_REQUEST = 20_000
SIZES = ((5_000, 50_000), (100_000, 1_000_000))
LOADING_SECONDS_MAX = 900.0
STARTS = {SIZES[0]: 3}
NAME, ON = "name-of-the-pod", "name-of-the-node"


@dataclass(frozen=True, kw_only=True)
class Goal:
    """The goals for a cluster; None if there is no such goal."""

    objects_per_second: float | None = None
    ready_seconds: float | None = None
    megabytes: float

    def __str__(self) -> str:
        speed = f"≥ {self.objects_per_second:,.0f}/s, " if self.objects_per_second else ""
        start = f"≤ {self.ready_seconds:.0f} s, " if self.ready_seconds else ""
        return f"{speed}{start}≤ {self.megabytes:,.0f} MB"


GOALS = {
    SIZES[0]: Goal(objects_per_second=20_000, ready_seconds=3, megabytes=250),
    SIZES[1]: Goal(megabytes=1_500),
}


@dataclass(frozen=True, kw_only=True)
class MemoryFigures:
    """The figures of one cluster: sizes in megabytes, times in seconds."""

    nodes: int
    pods: int
    objects_per_second: float
    """The rate of `apply` with NDJSON, from one client."""
    applied_megabytes: float
    """The size of the worker that applied the objects."""
    applied_peak_megabytes: float
    ready_seconds: float
    """The time from exec to the first 200 of `/readyz`, while PostgreSQL runs."""
    placing_seconds: float
    """The time from exec to the answer to the first placement, for which the cluster is loaded."""
    loaded_megabytes: float
    """The size of the worker that loaded the objects."""
    loaded_peak_megabytes: float


def run(postgres: Postgres, nodes: int, pods: int) -> MemoryFigures:
    """Apply so many nodes and placed pods, then start anew; take the median of several starts."""
    url = postgres.new_database()
    with server(postgres, url) as first:
        seconds = asyncio.run(_apply(first, nodes, pods))
        asyncio.run(_ask(first))
        applied = first.megabytes(), first.peak_megabytes()
    starts = [_start(postgres, url) for _ in range(STARTS.get((nodes, pods), 1))]
    ready, placing, loaded, peak = (statistics.median(each) for each in zip(*starts, strict=True))
    return MemoryFigures(
        nodes=nodes,
        pods=pods,
        objects_per_second=(nodes + pods) / seconds,
        applied_megabytes=applied[0],
        applied_peak_megabytes=applied[1],
        ready_seconds=ready,
        placing_seconds=placing,
        loaded_megabytes=loaded,
        loaded_peak_megabytes=peak,
    )


def _start(postgres: Postgres, url: str) -> tuple[float, float, float, float]:
    """Return seconds to be ready and to have placed a pod, and megabytes then and at most."""
    with server(postgres, url) as again:
        placing = again.start_seconds + asyncio.run(_ask(again))
        return again.start_seconds, placing, again.megabytes(), again.peak_megabytes()


def record(figures: MemoryFigures) -> dict[str, object]:
    """Make a line of JSON of the figures."""
    return {"layer": "memory", **asdict(figures)}


def table(found: Sequence[MemoryFigures]) -> Table:
    """Make a row for each size."""
    return Table(
        [
            "cluster",
            "objects/s in `apply`",
            "worker MB (peak) after it",
            "s to `/readyz`",
            "s to the first placement",
            "worker MB (peak) then",
            "goal",
            "",
        ],
        [_row(figures) for figures in found],
    )


def _row(figures: MemoryFigures) -> list[str]:
    goal = GOALS.get((figures.nodes, figures.pods))
    return [
        f"{figures.nodes:,} nodes, {figures.pods:,} pods",
        f"{figures.objects_per_second:,.0f}",
        f"{figures.applied_megabytes:,.0f} ({figures.applied_peak_megabytes:,.0f})",
        f"{figures.ready_seconds:.1f}",
        f"{figures.placing_seconds:.1f}",
        f"{figures.loaded_megabytes:,.0f} ({figures.loaded_peak_megabytes:,.0f})",
        f"{goal}" if goal else "",
        _verdict(figures, goal) if goal else "",
    ]


def _verdict(figures: MemoryFigures, goal: Goal) -> str:
    """Say whether the goal is reached, or else the units of what is not."""
    missed = {
        "/s": figures.objects_per_second < (goal.objects_per_second or 0),
        "s": figures.ready_seconds > (goal.ready_seconds or math.inf),
        "MB": max(figures.applied_megabytes, figures.loaded_megabytes) > goal.megabytes,
    }
    units = [unit for unit, is_missed in missed.items() if is_missed]
    told = verdict(is_reached=not units)
    return f"{told}: {', '.join(units)}" if units else told


async def _apply(server: Server, nodes: int, pods: int) -> float:
    """Return the seconds that the server takes for all objects, without the client's own work."""
    seconds = 0.0
    lines: list[str] = []
    async with Connection(server.host, server.port) as connection:
        for line in lines_of(nodes, pods):
            lines.append(line)
            if len(lines) == LINES_PER_REQUEST:
                seconds += await _send(connection, lines)
                lines.clear()
        if lines:
            seconds += await _send(connection, lines)
    return seconds


async def _send(connection: Connection, lines: Sequence[str]) -> float:
    body = "\n".join(lines).encode()
    began = time.perf_counter()
    status, answer = await connection.post(f"{CLUSTER}/apply", body, "application/x-ndjson")
    seconds = time.perf_counter() - began
    if status != 200 or answer.count(b'"Created"') != len(lines):
        raise RuntimeError(f"apply: {status} {answer[:500]!r}")
    return seconds


def lines_of(nodes: int, pods: int) -> Iterator[str]:
    """Yield the objects of a cluster of so many nodes and pods, as `apply` takes them."""
    for number in range(nodes):
        yield json.dumps({"kind": "Node", **worlds.node(number)})
    kinds = []
    for shape in worlds.SHAPES:
        pod = worlds.shaped(shape, NAME)
        pod["spec"] = {"nodeName": ON, **pod["spec"]}
        kinds.append(json.dumps({"kind": "Pod", **pod}, separators=(",", ":")))
    for number in range(pods):
        on = f"node-{number * worlds.STRIDE % nodes}"
        kind = kinds[number % len(kinds)]
        yield kind.replace(NAME, f"placed-{number}", 1).replace(ON, on, 1)


async def _ask(server: Server) -> float:
    """Return the seconds for a dry run of a placement, sent again while the server still loads."""
    pods = [worlds.shaped(worlds.AFFINITY)]
    body = json.dumps({"pods": pods, "dryRun": True}).encode()
    began = time.perf_counter()
    status, answer = 503, b""
    async with Connection(server.host, server.port) as connection:
        while status == 503 and time.perf_counter() - began < LOADING_SECONDS_MAX:
            status, answer = await connection.post(f"{CLUSTER}/placements", body)
    if status != 200 or json.loads(answer)["results"][0]["outcome"] != "Placed":
        raise RuntimeError(f"not placed: {status} {answer[:500]!r}")
    return time.perf_counter() - began
