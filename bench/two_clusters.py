"""Two busy clusters on a server with two workers: each worker decides one of them, or one decides both.

    python -m bench two-clusters --rounds 9

One server has four clusters, of which each worker decides two, as shares have it. In turn two are
busy that different workers decide, and two that one worker decides. So both are measured in the same
processes, on the same database, and whatever else the machine does befalls both alike.
"""

import asyncio
import itertools
import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter, process_time

import asyncpg
import psutil

from bench.client import Connection
from bench.figures import Table, spread
from bench.stack import Postgres, Server, cpu_seconds, plain_url, server
from bench.workloads import Workload

CLUSTERS = tuple(f"bench-{number}" for number in range(4))
WORKERS = 2
SETTLED_SECONDS_MAX = 120.0
LOOK_SECONDS = 0.5
APART, TOGETHER = "a worker each", "both with one"
Owners = dict[str, str]
"""By cluster, the name of the worker that decides it."""


@dataclass(frozen=True)
class Round:
    """One measured round."""

    placement: str
    pods: int
    seconds: float
    worker_seconds: tuple[float, ...]
    """CPU time of each worker, the busiest first."""
    postgres_seconds: float
    client_seconds: float
    """CPU time of the process that asks, which shares the processors with the others."""
    conflicts: int

    @property
    def pods_per_second(self) -> float:
        return self.pods / self.seconds


def run(
    postgres: Postgres, workload: Workload, *, rounds: int, pods: int, batch: int, clients: int
) -> Iterator[Round]:
    """Measure so many rounds of each kind, in turn; `pods` are those of one round and cluster.

    Raises:
        RuntimeError: the clusters were not shared out, or pods found no node.
    """
    url = postgres.new_database()
    with server(postgres, url, workers=WORKERS) as serving:
        asyncio.run(_fill(serving, workload))
        owners = asyncio.run(_shared_out(serving, url, workload))
        numbers = itertools.count()
        for number in range(rounds):
            order = (APART, TOGETHER) if number % 2 else (TOGETHER, APART)
            for placement in order:
                names = pair(owners, placement)
                bodies = list(_bodies(workload, names, pods, batch, next(numbers)))
                yield _measured(serving, placement, bodies, clients)
        if asyncio.run(_owners(url)) != owners:
            raise RuntimeError("clusters were passed on meanwhile")


def pair(owners: Owners, placement: str) -> tuple[str, str]:
    """Return two clusters that one worker decides, or each of them another one."""
    of_worker = defaultdict(list)
    for cluster in sorted(owners):
        of_worker[owners[cluster]].append(cluster)
    first, second = of_worker.values()
    return (first[0], second[0]) if placement == APART else (first[0], first[1])


def table(rounds: Sequence[Round]) -> Table:
    """Make a row for each placement, and one for what the second is to the first.

    CPU times hardly depend on what else the machine does. The busiest worker's, if it had a core for
    itself, says how many pods a second are possible at most.
    """
    rows = [_row(placement, rounds) for placement in (TOGETHER, APART)]
    neighbours = list(zip(rounds[::2], rounds[1::2], strict=True))
    rates = [_ratio(two, lambda each: each.pods_per_second) for two in neighbours]
    busiest = [_ratio(two, _busiest) for two in neighbours]
    rows.append(["ratio of neighbours", _told(rates), _told(busiest), "", "", "", ""])
    columns = ["two busy clusters", "pods/s", "CPU µs/pod: busiest worker", "both workers"]
    return Table([*columns, "PostgreSQL", "client", "races lost"], rows)


def _row(placement: str, rounds: Sequence[Round]) -> list[str]:
    found = [each for each in rounds if each.placement == placement]

    def micros(seconds: Callable[[Round], float]) -> str:
        return f"{statistics.median(seconds(each) / each.pods for each in found) * 1e6:,.0f}"

    return [
        placement,
        spread([each.pods_per_second for each in found]),
        spread([_busiest(each) for each in found]),
        micros(lambda each: sum(each.worker_seconds)),
        micros(lambda each: each.postgres_seconds),
        micros(lambda each: each.client_seconds),
        f"{sum(each.conflicts for each in found)}",
    ]


def _busiest(one: Round) -> float:
    return one.worker_seconds[0] / one.pods * 1e6


def _ratio(two: tuple[Round, Round], figure: Callable[[Round], float]) -> float:
    """Return a figure with a worker each by that with one worker, of two neighbouring rounds."""
    of = {each.placement: figure(each) for each in two}
    return of[APART] / of[TOGETHER]


def _told(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


async def _fill(target: Server, workload: Workload) -> None:
    objects = [*workload.namespaces(), *workload.nodes()]
    lines = b"\n".join(json.dumps(each).encode() for each in objects)
    async with Connection(target.host, target.port) as connection:
        for name in CLUSTERS:
            await connection.put(f"/v1/clusters/{name}", json.dumps({"config": {}}).encode())
            path = f"/v1/clusters/{name}/apply"
            status, answer = await connection.post(path, lines, "application/x-ndjson")
            if status != 200 or answer.count(b'"Created"') < len(objects) - 1:
                raise RuntimeError(f"apply: {status} {answer[:500]!r}")


async def _shared_out(target: Server, url: str, workload: Workload) -> Owners:
    """Ask for all clusters until each worker decides two of them."""
    probe = {"dryRun": True, "pods": [*workload.measured(1)]}
    end = perf_counter() + SETTLED_SECONDS_MAX
    while perf_counter() < end:
        async with Connection(target.host, target.port) as connection:
            for name in CLUSTERS:
                await connection.post_json(f"/v1/clusters/{name}/placements", probe)
        owners = await _owners(url)
        counts = [list(owners.values()).count(each) for each in set(owners.values())]
        if len(owners) == len(CLUSTERS) and counts == [2, 2]:
            return owners
        await asyncio.sleep(LOOK_SECONDS)
    raise RuntimeError(f"the clusters were not shared out: {owners}")


async def _owners(url: str) -> Owners:
    connection = await asyncpg.connect(plain_url(url))
    try:
        rows = await connection.fetch(
            "SELECT c.name, l.holder FROM lease AS l JOIN cluster AS c USING (cluster_id)"
            " WHERE l.name LIKE 'requests@%' AND c.name = ANY($1)",
            list(CLUSTERS),
        )
    finally:
        await connection.close()
    return {row["name"]: row["holder"] for row in rows}


def _bodies(
    workload: Workload, names: Sequence[str], pods: int, batch: int, number: int
) -> Iterator[tuple[str, bytes]]:
    """Yield requests for pods that no other round has asked for; the clusters take turns."""
    measured = list(workload.measured(pods))
    for pod in measured:
        pod["metadata"]["name"] = f"round-{number}-{pod['metadata']['name']}"
    for start in range(0, len(measured), batch):
        body = json.dumps({"pods": measured[start : start + batch]}, separators=(",", ":"))
        for name in names:
            yield name, body.encode()


def _measured(
    target: Server, placement: str, bodies: Sequence[tuple[str, bytes]], clients: int
) -> Round:
    workers = target.workers()
    before, postgres = [_seconds(each) for each in workers], target.postgres.cpu_seconds()
    lost, asking, began = target.conflicts(), process_time(), perf_counter()
    placed = asyncio.run(_drive(target, bodies, clients))
    seconds, asked = perf_counter() - began, process_time() - asking
    used = [_seconds(each) - spent for each, spent in zip(workers, before, strict=True)]
    return Round(
        placement=placement,
        pods=placed,
        seconds=seconds,
        worker_seconds=tuple(sorted(used, reverse=True)),
        postgres_seconds=target.postgres.cpu_seconds() - postgres,
        client_seconds=asked,
        conflicts=target.conflicts() - lost,
    )


def _seconds(process: psutil.Process) -> float:
    return cpu_seconds([process])


async def _drive(target: Server, bodies: Sequence[tuple[str, bytes]], clients: int) -> int:
    """Send the requests; return how many pods were placed."""
    waiting, placed = iter(bodies), 0

    async def client() -> None:
        nonlocal placed
        async with Connection(target.host, target.port) as connection:
            for name, body in waiting:
                answer = await connection.post_encoded(f"/v1/clusters/{name}/placements", body)
                placed += answer.count(b'"outcome":"Placed"')
                if b'"outcome":"Unschedulable"' in answer:
                    raise RuntimeError(f"pods found no node: {answer[:500]!r}")

    await asyncio.gather(*(client() for _ in range(clients)))
    return placed
