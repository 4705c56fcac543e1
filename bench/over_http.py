"""The whole path: a real server and PostgreSQL, pods in over HTTP, placements durable.

Nothing is measured unless PostgreSQL syncs. Violations of the final state are counted.
"""

import asyncio
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from time import perf_counter

from bench.client import Connection
from bench.figures import Figures, quantile
from bench.stack import Postgres, Server, server
from bench.verify import violations
from bench.workloads import Manifest, Workload

CLUSTER = "/v1/clusters/default"


During = Callable[[Server], AbstractContextManager[None]]
"""A function that makes a context around the placing of the measured pods."""


def run(  # noqa: PLR0913 - all by name
    postgres: Postgres,
    workload: Workload,
    *,
    batch: int,
    clients: int,
    pods: int | None = None,
    workers: int = 1,
    options: Sequence[str] = (),
    token: str | None = None,
    during: During = nullcontext,
) -> Figures:
    """Load the cluster through `apply`, place the measured pods in batches, and check all rules."""
    database = postgres.new_database()
    with server(postgres, database, workers=workers, options=options, token=token) as serving:
        found, acknowledged = asyncio.run(_measure(serving, workload, batch, clients, pods, during))
        items = json.loads(serving.get(f"{CLUSTER}/export"))["items"]
    broken = violations(items, acknowledged)
    return replace(found, workers=workers, violations=len(broken))


async def _measure(
    server: Server,
    workload: Workload,
    batch: int,
    clients: int,
    pods: int | None,
    during: During,
) -> tuple[Figures, dict[tuple[str, str], str]]:
    """Return the figures without the violations, and the placements that were acknowledged."""
    objects, load_seconds = await _load(server, workload.before(pods))
    bodies = list(_bodies(workload, batch, pods))
    before, conflicts = server.cpu_seconds(), server.conflicts()
    with during(server):
        began = perf_counter()
        answers = await _drive(server, bodies, clients)
        seconds = perf_counter() - began
    after = server.cpu_seconds()
    results = [each for _, answer in answers for each in json.loads(answer)["results"]]
    acknowledged = {
        (each["namespace"], each["name"]): each["nodeName"]
        for each in results
        if each["outcome"] == "Placed"
    }
    latencies = sorted(latency * 1000 for latency, _ in answers)
    figures = Figures(
        layer="http",
        workload=workload.name,
        nodes=workload.size,
        pods=len(results),
        unplaced=len(results) - len(acknowledged),
        violations=0,
        seconds=seconds,
        cpu_seconds=after[0] - before[0],
        p50_ms=statistics.median(latencies),
        p99_ms=quantile(latencies, 0.99),
        megabytes=server.peak_megabytes(),
        batch=batch,
        clients=clients,
        conflicts=server.conflicts() - conflicts,
        postgres_cpu_seconds=after[1] - before[1],
        postgres_megabytes=server.postgres.megabytes(),
        load_objects_per_second=objects / load_seconds,
        durability=server.postgres.durability,
    )
    return figures, acknowledged


async def _load(server: Server, objects: list[Manifest]) -> tuple[int, float]:
    lines = b"\n".join(json.dumps(each).encode() for each in objects)
    began = perf_counter()
    async with Connection(server.host, server.port, server.token) as connection:
        status, answer = await connection.post(f"{CLUSTER}/apply", lines, "application/x-ndjson")
    seconds = perf_counter() - began
    created = answer.count(b'"Created"')
    if status != 200 or created < len(objects) - 1:
        raise RuntimeError(
            f"apply: {status}, {created} of {len(objects)} created: {answer[:500]!r}"
        )
    return len(objects), seconds


def _bodies(workload: Workload, batch: int, limit: int | None) -> Iterator[bytes]:
    pods = list(workload.measured(limit))
    for start in range(0, len(pods), batch):
        yield json.dumps({"pods": pods[start : start + batch]}, separators=(",", ":")).encode()


async def _drive(server: Server, bodies: list[bytes], clients: int) -> list[tuple[float, bytes]]:
    """Send all bodies through so many connections; return seconds and answer of each."""
    waiting, answers = iter(bodies), []

    async def client() -> None:
        async with Connection(server.host, server.port, server.token) as connection:
            for body in waiting:
                began = perf_counter()
                answer = await connection.post_encoded(f"{CLUSTER}/placements", body)
                answers.append((perf_counter() - began, answer))

    await asyncio.gather(*(client() for _ in range(clients)))
    return answers
