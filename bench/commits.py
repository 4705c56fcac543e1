"""Engine and commit: the scheduler on PostgreSQL without HTTP, with parsed requests.

The scheduler runs in this process, as it does in a worker; each caller is a task.
"""

import asyncio
import json
import statistics
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter, process_time
from typing import Any

import uvloop

from bench.engine import collecting_as_workers_do
from bench.figures import Figures, quantile
from bench.stack import Postgres, peak_bytes
from bench.verify import Manifest, violations
from bench.workloads import Workload
from service.model.registry.kinds import DECLARED_KINDS
from service.model.registry.manifests import TemplateCache, parse_any, parse_pod
from service.runtime.clock import SystemClock
from service.runtime.ids import RandomIds
from service.scheduler.protocol.intents import ApplyObjects, PlacePods
from service.scheduler.protocol.placements import PlacementAnswer
from service.scheduler.replica.loading import load
from service.scheduler.scheduler import Scheduler
from service.store.postgres import PostgresStore
from service.store.schema.migrate import upgrade

CLUSTER = "default"
APPLIED_AT_ONCE = 5_000
"""The objects that are loaded in one commit: fewer than what a commit takes at most."""


def run(
    postgres: Postgres, workload: Workload, *, batch: int, clients: int, pods: int | None = None
) -> Figures:
    """Load the cluster, place the measured pods in batches, and check all rules."""
    url = postgres.new_database()
    upgrade(url)
    with collecting_as_workers_do():
        found, stored, acknowledged = uvloop.run(
            _measure(postgres, url, workload, batch, clients, pods)
        )
    return replace(found, violations=len(violations(stored, acknowledged)))


async def _measure(
    postgres: Postgres, url: str, workload: Workload, batch: int, clients: int, pods: int | None
) -> tuple[Figures, list[Manifest], dict[tuple[str, str], str]]:
    store, clock, templates = PostgresStore(url), SystemClock(), TemplateCache()
    scheduler = Scheduler(store, clock, RandomIds(), templates=templates)
    await scheduler.start()
    objects = workload.before(pods)
    parsed = tuple(parse_any(json.dumps(each).encode(), templates) for each in objects)
    began = perf_counter()
    for start in range(0, len(parsed), APPLIED_AT_ONCE):
        part = parsed[start : start + APPLIED_AT_ONCE]
        await scheduler.submit(CLUSTER, ApplyObjects(manifests=part))
    load_seconds = perf_counter() - began
    intents = list(_intents(workload, templates, batch, pods))
    cpu, postgres_cpu = process_time(), postgres.cpu_seconds()
    began = perf_counter()
    answers = await _drive(scheduler, intents, clients)
    seconds = perf_counter() - began
    cpu, postgres_cpu = process_time() - cpu, postgres.cpu_seconds() - postgres_cpu
    results = [each for _, answer in answers for each in answer.results]
    acknowledged = {
        (each.namespace, each.name): each.node_name
        for each in results
        if each.outcome == "Placed" and each.node_name
    }
    latencies = sorted(latency * 1000 for latency, _ in answers)
    figures = Figures(
        layer="commit",
        workload=workload.name,
        nodes=workload.size,
        pods=len(results),
        unplaced=len(results) - len(acknowledged),
        violations=0,
        seconds=seconds,
        cpu_seconds=cpu,
        p50_ms=statistics.median(latencies),
        p99_ms=quantile(latencies, 0.99),
        megabytes=peak_bytes() / 1e6,
        batch=batch,
        clients=clients,
        conflicts=sum(answer.attempts - 1 for _, answer in answers),
        postgres_cpu_seconds=postgres_cpu,
        postgres_megabytes=postgres.megabytes(),
        load_objects_per_second=len(objects) / load_seconds,
        durability=postgres.durability,
    )
    rows = (await load(store, await store.clusters.find(CLUSTER))).rows
    stored = [_stored(row.kind, row.body) for row in rows]
    await scheduler.stop()
    await store.close()
    return figures, [each for each in stored if each], acknowledged


def _stored(kind: str, body: bytes) -> dict[str, Any]:
    return json.loads(body) if kind in {"Node", "Namespace", "Pod", *DECLARED_KINDS} else {}


def _intents(
    workload: Workload, templates: TemplateCache, batch: int, limit: int | None
) -> Iterator[PlacePods]:
    pods = [
        parse_pod(json.dumps(each).encode(), templates, to_place=True)
        for each in workload.measured(limit)
    ]
    for start in range(0, len(pods), batch):
        yield PlacePods(pods=tuple(pods[start : start + batch]))


async def _drive(
    scheduler: Scheduler, intents: list[PlacePods], clients: int
) -> list[tuple[float, PlacementAnswer]]:
    """Submit all requests from so many callers; return seconds and answer of each request."""
    waiting, answers = iter(intents), []

    async def caller() -> None:
        for intent in waiting:
            began = perf_counter()
            answer = await scheduler.submit(CLUSTER, intent)
            answers.append((perf_counter() - began, answer))

    await asyncio.gather(*(caller() for _ in range(clients)))
    return answers
