"""1, 2, 4 and 8 planners on one cluster and on several, without forwarding: what they do together.

Each planner is a `moorage serve` process of its own. All use one PostgreSQL, and have loaded all
clusters before the first request counts. Every client stays with one planner and asks for pods of
all clusters in turn.
"""

import asyncio
import itertools
import json
import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

from bench.client import Connection
from bench.figures import Table, quantile, spread
from bench.stack import Postgres, Server, cpu_seconds, server, tree
from bench.verify import violations
from bench.workloads import Workload


@dataclass(frozen=True, kw_only=True)
class PlannersFigures:
    """The figures of one run."""

    planners: int
    clusters: int
    pods: int
    unplaced: int
    violations: int
    seconds: float
    p50_ms: float
    p99_ms: float
    conflicts: int
    """How many commits lost the race for the next revision."""
    cpu_seconds: float
    postgres_cpu_seconds: float

    @property
    def pods_per_second(self) -> float:
        return self.pods / self.seconds


class Used(NamedTuple):
    """The resources that all servers together have used since their start."""

    cpu_seconds: float
    postgres_cpu_seconds: float
    conflicts: int


Placed = dict[str, dict[tuple[str, str], str]]
"""The node of each acknowledged pod, by cluster."""


@contextmanager
def running(postgres: Postgres, planners: int) -> Iterator[list[Server]]:
    """Start so many servers on a new database."""
    with ExitStack() as stack, ThreadPoolExecutor(planners) as starters:
        url = postgres.new_database()
        starts = [
            starters.submit(stack.enter_context, server(postgres, url)) for _ in range(planners)
        ]
        yield [start.result() for start in starts]


def run(
    servers: Sequence[Server],
    workload: Workload,
    *,
    clusters: int,
    pods: int,
    batch: int,
    clients: int,
) -> PlannersFigures:
    """Load the clusters, place the pods, check all rules on what is stored, delete the clusters."""
    names = [f"bench-{number}" for number in range(clusters)]
    asyncio.run(_load(servers, names, workload))
    bodies = list(_bodies(workload, names, pods, batch))
    before, began = _used(servers), perf_counter()
    answers = asyncio.run(_drive(servers, bodies, clients))
    seconds, after = perf_counter() - began, _used(servers)
    placed, total = _outcomes(names, answers)
    broken = sum(
        len(violations(json.loads(servers[0].get(f"{_path(name)}/export"))["items"], where))
        for name, where in placed.items()
    )
    asyncio.run(_delete(servers[0], names))
    latencies = sorted(latency * 1000 for _, latency, _ in answers)
    return PlannersFigures(
        planners=len(servers),
        clusters=clusters,
        pods=total,
        unplaced=total - sum(map(len, placed.values())),
        violations=broken,
        seconds=seconds,
        p50_ms=statistics.median(latencies),
        p99_ms=quantile(latencies, 0.99),
        conflicts=after.conflicts - before.conflicts,
        cpu_seconds=after.cpu_seconds - before.cpu_seconds,
        postgres_cpu_seconds=after.postgres_cpu_seconds - before.postgres_cpu_seconds,
    )


def table(of_runs: Sequence[Sequence[PlannersFigures]]) -> Table:
    """Make a row for each kind of run."""
    columns = ["planners", "clusters", "pods/s", "p50 ms", "p99 ms", "races lost"]
    rows = [
        [
            f"{runs[0].planners}",
            f"{runs[0].clusters}",
            spread([each.pods_per_second for each in runs]),
            f"{statistics.median(each.p50_ms for each in runs):,.0f}",
            f"{statistics.median(each.p99_ms for each in runs):,.0f}",
            spread([each.conflicts for each in runs]),
            f"{statistics.median(each.cpu_seconds / each.pods for each in runs) * 1e6:,.0f}",
            f"{statistics.median(each.postgres_cpu_seconds / each.pods for each in runs) * 1e6:,.0f}",
            f"{sum(each.violations for each in runs)}",
        ]
        for runs in of_runs
    ]
    return Table([*columns, "server CPU µs/pod", "PostgreSQL CPU µs/pod", "violations"], rows)


def _path(cluster: str) -> str:
    return f"/v1/clusters/{cluster}"


def _used(servers: Sequence[Server]) -> Used:
    return Used(
        sum(cpu_seconds(tree(each.process)) for each in servers),
        servers[0].postgres.cpu_seconds(),
        sum(each.conflicts() for each in servers),
    )


async def _load(servers: Sequence[Server], names: Sequence[str], workload: Workload) -> None:
    """Create the clusters, and have each server load them."""
    await _fill(servers[0], names, workload)
    probe = {"dryRun": True, "pods": [*workload.measured(1)]}
    for target in servers:
        async with Connection(target.host, target.port) as connection:
            for name in names:
                await connection.post_json(f"{_path(name)}/placements", probe)


async def _delete(target: Server, names: Sequence[str]) -> None:
    async with Connection(target.host, target.port) as connection:
        for name in names:
            status, answer = await connection.delete(_path(name))
            if status != 200:
                raise RuntimeError(f"{name}: {status} {answer[:500]!r}")


async def _fill(target: Server, names: Sequence[str], workload: Workload) -> None:
    objects = [*workload.namespaces(), *workload.nodes(), *workload.placed()]
    lines = b"\n".join(json.dumps(each).encode() for each in objects)
    async with Connection(target.host, target.port) as connection:
        for name in names:
            config = json.dumps({"config": {}}).encode()
            status, answer = await connection.put(_path(name), config)
            if status not in {200, 201}:
                raise RuntimeError(f"{name}: {status} {answer[:500]!r}")
            status, answer = await connection.post(
                f"{_path(name)}/apply", lines, "application/x-ndjson"
            )
            if status != 200 or answer.count(b'"Created"') < len(objects) - 1:
                raise RuntimeError(f"apply: {status} {answer[:500]!r}")


def _bodies(
    workload: Workload, names: Sequence[str], pods: int, batch: int
) -> Iterator[tuple[str, bytes]]:
    """Yield requests; the clusters take turns."""
    measured = list(workload.measured(pods // len(names)))
    for start in range(0, len(measured), batch):
        body = json.dumps({"pods": measured[start : start + batch]}, separators=(",", ":"))
        for name in names:
            yield name, body.encode()


async def _drive(
    servers: Sequence[Server], bodies: Sequence[tuple[str, bytes]], clients: int
) -> list[tuple[str, float, bytes]]:
    """Send the requests; return cluster, seconds and answer of each."""
    waiting, answers = iter(bodies), []

    async def client(target: Server) -> None:
        async with Connection(target.host, target.port) as connection:
            for name, body in waiting:
                began = perf_counter()
                answer = await connection.post_encoded(f"{_path(name)}/placements", body)
                answers.append((name, perf_counter() - began, answer))

    targets = itertools.islice(itertools.cycle(servers), clients)
    await asyncio.gather(*(client(target) for target in targets))
    return answers


def _outcomes(
    names: Sequence[str], answers: Sequence[tuple[str, float, bytes]]
) -> tuple[Placed, int]:
    placed: Placed = {name: {} for name in names}
    total = 0
    for name, _, answer in answers:
        for each in json.loads(answer)["results"]:
            total += 1
            if each["outcome"] == "Placed":
                placed[name][each["namespace"], each["name"]] = each["nodeName"]
    return placed, total
