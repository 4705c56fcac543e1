"""1, 2, 4 and 8 planners on one cluster and on several: what they do together, nothing handed over.

Each planner is a `moorage serve` process of its own; all use one PostgreSQL. Every client stays with
one planner and asks for pods of all clusters in turn.
"""

import asyncio
import itertools
import json
import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter

from bench.client import Connection
from bench.figures import Table, quantile, spread
from bench.stack import Postgres, Server, server
from bench.verify import violations
from bench.workloads import Workload


@dataclass(frozen=True, kw_only=True)
class PlannersFigures:
    """One run."""

    planners: int
    clusters: int
    pods: int
    unplaced: int
    violations: int
    seconds: float
    p50_ms: float
    p99_ms: float
    conflicts: int
    """Commits that lost the race for the next revision."""
    cpu_seconds: float
    postgres_cpu_seconds: float

    @property
    def pods_per_second(self) -> float:
        return self.pods / self.seconds


Placed = dict[str, dict[tuple[str, str], str]]
"""By cluster, where each acknowledged pod is."""


def run(
    postgres: Postgres,
    workload: Workload,
    *,
    planners: int,
    clusters: int,
    pods: int,
    batch: int,
    clients: int,
) -> PlannersFigures:
    """Load the clusters, place the pods, check all rules on what is stored."""
    with ExitStack() as stack:
        database = postgres.new_database()
        servers = [stack.enter_context(server(postgres, database)) for _ in range(planners)]
        names = [f"bench-{number}" for number in range(clusters)]
        asyncio.run(_load(servers[0], names, workload))
        bodies = list(_bodies(workload, names, pods, batch))
        before = [each.cpu_seconds()[0] for each in servers]
        postgres_before = postgres.cpu_seconds()
        began = perf_counter()
        answers = asyncio.run(_drive(servers, bodies, clients))
        seconds = perf_counter() - began
        cpu = sum(each.cpu_seconds()[0] for each in servers) - sum(before)
        placed, total = _outcomes(names, answers)
        broken = sum(
            len(violations(json.loads(servers[0].get(f"{_path(name)}/export"))["items"], where))
            for name, where in placed.items()
        )
        latencies = sorted(latency * 1000 for _, latency, _ in answers)
        return PlannersFigures(
            planners=planners,
            clusters=clusters,
            pods=total,
            unplaced=total - sum(map(len, placed.values())),
            violations=broken,
            seconds=seconds,
            p50_ms=statistics.median(latencies),
            p99_ms=quantile(latencies, 0.99),
            conflicts=sum(each.conflicts() for each in servers),
            cpu_seconds=cpu,
            postgres_cpu_seconds=postgres.cpu_seconds() - postgres_before,
        )


def table(of_runs: Sequence[Sequence[PlannersFigures]]) -> Table:
    """A row for each kind of run."""
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


async def _load(target: Server, names: Sequence[str], workload: Workload) -> None:
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
    """Requests, the clusters taking turns."""
    measured = list(workload.measured(pods // len(names)))
    for start in range(0, len(measured), batch):
        body = json.dumps({"pods": measured[start : start + batch]}, separators=(",", ":"))
        for name in names:
            yield name, body.encode()


async def _drive(
    servers: Sequence[Server], bodies: Sequence[tuple[str, bytes]], clients: int
) -> list[tuple[str, float, bytes]]:
    """Cluster, seconds and answer of each request."""
    waiting, answers = iter(bodies), []

    async def client(target: Server) -> None:
        async with Connection(target.host, target.port) as connection:
            for name, body in waiting:
                began = perf_counter()
                status, answer = await connection.post(f"{_path(name)}/placements", body)
                if status != 200:
                    raise RuntimeError(f"placements: {status} {answer[:500]!r}")
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
