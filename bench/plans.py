"""`python -m bench.plans`: what plans cost, and what they cost the placements beside them.

The cluster has three zones. A third of its pods has no rules, a third a hard spread over zones, a
third prefers nodes without its like. The first part measures in one process what a second replica
costs, and what a forked process would; the second part asks a real server over HTTP.
"""

import asyncio
import gc
import json
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from time import perf_counter, process_time
from typing import Annotated, Any

import psutil
import typer

from bench.client import Connection
from bench.figures import quantile
from bench.stack import Server, serving
from bench.worlds import HOST, STRIDE, ZONE, pod, preference, term
from service.model.registry.manifests import TemplateCache, parse_any, parse_pod
from service.runtime.ids import RandomIds
from service.scheduler.decide.context import DecisionContext
from service.scheduler.plans.advance import advance_plans
from service.scheduler.plans.make_plan import make_plan
from service.scheduler.protocol.intents import AdvancePlans, MakePlan
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.plans import (
    CordonNodes,
    Domains,
    Drain,
    Place,
    RemoveNodes,
    Selection,
)
from service.scheduler.replica.copying import copy_replica
from service.scheduler.replica.replica import Replica

Manifest = dict[str, Any]

CLUSTER = "/v1/clusters/default"
APPS = 99
ZONES = "abc"
LOST = {"op": "RemoveNodes", "topology": {"key": ZONE, "values": ["a"]}}
DRAIN = {"goal": {"type": "Drain", "nodes": {"names": [f"node-{n}" for n in range(50)]}}}
ZONE_LOST = {
    "changes": [LOST],
    "goal": {"type": "Place", "displaced": True},
    "explain": "Summary",
}


def node(number: int) -> Manifest:
    name = f"node-{number}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, ZONE: ZONES[number % len(ZONES)]}},
        "status": {"allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"}},
    }


def shaped(name: str, app: int) -> Manifest:
    """Make a pod of an app, whose rules are about the pods of the app."""
    own = {"app": f"app-{app}"}
    spread = {
        "maxSkew": 25,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": own},
    }
    rules: Sequence[Manifest] = (
        {},
        {"topologySpreadConstraints": [spread]},
        preference("podAntiAffinity", term(f"app-{app}", HOST)),
    )
    made = pod(name, rules[app % len(rules)], labels=own, millicores=1000)
    return {"apiVersion": "v1", "kind": "Pod", **made}


def objects(nodes: int, pods: int) -> Iterator[Manifest]:
    yield from map(node, range(nodes))
    for number in range(pods):
        made = shaped(f"placed-{number}", number % APPS)
        made["spec"]["nodeName"] = f"node-{number * STRIDE % nodes}"
        yield made


# In one process


def loaded(nodes: int, pods: int, templates: TemplateCache) -> Replica:
    replica = Replica(templates)
    for each in objects(nodes, pods):
        replica.put(parse_any(json.dumps(each).encode(), templates))
        replica.settle_all()
    return replica


def measure_decisions(replica: Replica, templates: TemplateCache) -> None:
    """Print the CPU time of plans of several sizes, the undoing included."""
    asked = parse_pod(json.dumps(shaped("asked", 1)).encode(), templates, to_place=True)
    one, displaced = Place(pods=(asked,)), Place(displaced=True)
    cordoned = CordonNodes(Selection(names=("node-1",)))
    fifty = RemoveNodes(Selection(names=tuple(f"node-{number}" for number in range(50))))
    zone = RemoveNodes(Selection(topology=Domains(key=ZONE, values=("a",))))
    plans: dict[str, tuple[MakePlan, int]] = {
        "one pod": (MakePlan(goal=one), 300),
        "one pod, a node cordoned": (MakePlan(changes=(cordoned,), goal=one), 300),
        "50 nodes lost": (MakePlan(changes=(fifty,), goal=displaced), 20),
        "a zone lost, Summary": (
            MakePlan(changes=(zone,), goal=displaced, explain="Summary"),
            3,
        ),
    }
    _print_decisions(replica, templates, plans)


def measure_drains(replica: Replica, templates: TemplateCache) -> None:
    """Print the CPU time of plans that drain 50 nodes, and of one step of doing so; then with budgets.

    With a budget of 5 % for each app the plan has several waves.
    """
    names = tuple(f"node-{number}" for number in range(50))
    drain = Drain(nodes=Selection(names=names))
    plans = {
        "drain of 50 nodes": (MakePlan(goal=drain), 20),
        "drain of 50 nodes, Summary": (MakePlan(goal=drain, explain="Summary"), 3),
    }
    _print_decisions(replica, templates, plans)
    for app in range(APPS):
        replica.put(parse_any(json.dumps(budget(app)).encode(), templates))
    replica.settle_all()
    of_budgets = {f"{name}, with budgets": plan for name, plan in plans.items()}
    _print_decisions(replica, templates, of_budgets)
    kept = {
        "apiVersion": "moorage.dev/v1alpha1",
        "kind": "Plan",
        "metadata": {"name": "drain"},
        "spec": {"goal": {"type": "Drain", "nodes": {"names": names}}},
    }
    replica.put(parse_any(json.dumps(kept).encode(), templates))
    replica.settle_all()
    steps = [_step_millis(replica, templates) for _ in range(20)]
    print(f"CPU of a step of a kept plan that drains 50 nodes: {spread(steps)}")


def _step_millis(replica: Replica, templates: TemplateCache) -> float:
    mark, intent = replica.mark(), AdvancePlans(clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    began = process_time()
    for _ in advance_plans(_context(replica, templates), intent):
        pass
    millis = (process_time() - began) * 1e3
    replica.undo(mark)
    return millis


def budget(app: int) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"app-{app}", "namespace": "default"},
        "spec": {"maxUnavailable": "5%", "selector": {"matchLabels": {"app": f"app-{app}"}}},
    }


def _print_decisions(
    replica: Replica, templates: TemplateCache, plans: Mapping[str, tuple[MakePlan, int]]
) -> None:
    for name, (intent, runs) in plans.items():
        print(
            f"CPU of {name}: {spread([_cpu_millis(replica, templates, intent) for _ in range(runs)])}"
        )


def _cpu_millis(replica: Replica, templates: TemplateCache, intent: MakePlan) -> float:
    context = _context(replica, templates)
    began = process_time()
    for _ in make_plan(context, intent):
        pass
    return (process_time() - began) * 1e3


def _context(replica: Replica, templates: TemplateCache) -> DecisionContext:
    return DecisionContext(
        replica=replica,
        now="2026-01-01T00:00:00Z",
        templates=templates,
        ids=RandomIds(),
        limits=Limits(),
        attempts=1,
        hints={},
    )


def measure_replicas(replica: Replica, templates: TemplateCache) -> None:
    """Print what it takes to have a second replica, and what it takes to fork this process."""
    process = psutil.Process()
    gc.collect()
    gc.disable()  # as planners do
    before, began = process.memory_info().rss, process_time()
    snapshot = replica.committed_objects()
    taken = process_time() - began
    longest = 0.0
    steps, second = copy_replica(snapshot, templates), None
    while second is None:
        step = process_time()
        try:
            next(steps)
        except StopIteration as stop:
            second = stop.value
        longest = max(longest, process_time() - step)
    seconds, after = process_time() - began, process.memory_info().rss
    gc.enable()
    assert second.object_count == replica.object_count
    print(
        f"second replica: {seconds:.2f} s of CPU once, longest step {longest * 1e3:.1f} ms, "
        f"of which the list of objects {taken * 1e3:.1f} ms; {(after - before) / 1e6:.0f} MB "
        f"beside {before / 1e6:.0f} MB"
    )
    forks = sorted(_fork_seconds() * 1e3 for _ in range(20))
    print(
        f"fork of this process: median {statistics.median(forks):.1f} ms, {forks[-1]:.1f} ms at most"
    )


def _fork_seconds() -> float:
    began = perf_counter()
    child = os.fork()
    if not child:
        os._exit(0)
    seconds = perf_counter() - began
    os.waitpid(child, 0)
    return seconds


# Over HTTP


async def fill(server: Server, nodes: int, pods: int) -> None:
    lines = b"\n".join(json.dumps(each).encode() for each in objects(nodes, pods))
    async with Connection(server.host, server.port) as connection:
        status, answer = await connection.post(f"{CLUSTER}/apply", lines, "application/x-ndjson")
    if status != 200 or answer.count(b'"Created"') < nodes + pods:
        raise RuntimeError(f"apply: {status} {answer[:500]!r}")


async def timed(connection: Connection, path: str, body: Manifest) -> tuple[float, bytes]:
    began = perf_counter()
    answer = await connection.post_encoded(f"{CLUSTER}/{path}", json.dumps(body).encode())
    return perf_counter() - began, answer


async def measure_plans(server: Server, runs: int) -> None:
    async with Connection(server.host, server.port) as connection:
        one = {"goal": {"type": "Place", "pods": [shaped("asked", 1)]}}
        small = [(await timed(connection, "plans", one))[0] * 1e3 for _ in range(500)]
        print(f"one pod: {spread(small[1:])}")
        rss = server.megabytes()
        seconds, _ = await timed(connection, "plans", {"changes": [LOST]})
        print(
            f"first large plan, with its replica: {seconds:.2f} s, {server.megabytes() - rss:.0f} MB"
        )
        cordon = {"changes": [{"op": "CordonNodes", "names": ["node-1"]}], **one}
        found = [(await timed(connection, "plans", cordon))[0] * 1e3 for _ in range(500)]
        print(f"one pod beside a cordoned node, on the second replica: {spread(found)}")
        drained = [(await timed(connection, "plans", DRAIN))[0] * 1e3 for _ in range(20)]
        print(f"drain of 50 nodes: {spread(drained)}")
        lost = [await timed(connection, "plans", ZONE_LOST) for _ in range(runs)]
        told = json.loads(lost[0][1])
        print(
            f"loss of a zone, {told['stepsTotal']} placed, {told['unplacedTotal']} not: "
            f"{min(each for each, _ in lost):.2f} to {max(each for each, _ in lost):.2f} s, "
            f"{len(lost[0][1]) / 1e3:.0f} kB; cpu {told['after']['resources']['cpu']['utilization']}"
        )


async def measure_placements(server: Server, count: int, rate: float) -> None:
    """Print the latencies of placements without plans, and while plans run without pause."""
    alone = await _latencies(server, "alone", count, rate)
    planning = asyncio.create_task(_plan_without_pause(server))
    try:
        beside = await _latencies(server, "beside", count, rate)
    finally:
        planning.cancel()
        with suppress(asyncio.CancelledError):
            await planning
    print(f"placements, {rate:.0f} a second: {spread(alone)}")
    print(f"the same while plans run without pause: {spread(beside)}")


async def _plan_without_pause(server: Server) -> None:
    async with Connection(server.host, server.port) as connection:
        while True:
            await timed(connection, "plans", ZONE_LOST)


async def _latencies(server: Server, prefix: str, count: int, rate: float) -> list[float]:
    """Place pods one by one at a rate; latencies count from when each was due."""
    found = []
    async with Connection(server.host, server.port) as connection:
        began = perf_counter()
        for number in range(count):
            due = began + number / rate
            await asyncio.sleep(max(due - perf_counter(), 0))
            asked = {"pods": [shaped(f"{prefix}-{number}", number % APPS)]}
            await timed(connection, "placements", asked)
            found.append((perf_counter() - due) * 1e3)
    return found


def spread(millis: Sequence[float]) -> str:
    ordered = sorted(millis)
    return f"p50 {statistics.median(ordered):.1f} ms, p99 {quantile(ordered, 0.99):.1f} ms"


def main(
    nodes: Annotated[int, typer.Option(help="Nodes of the cluster.")] = 5_000,
    pods: Annotated[int, typer.Option(help="Placed pods.")] = 50_000,
    runs: Annotated[int, typer.Option(help="Plans for the loss of a zone.")] = 3,
    placements: Annotated[int, typer.Option(help="Placements beside plans.")] = 500,
    rate: Annotated[float, typer.Option(help="Placements a second.")] = 50,
) -> None:
    templates = TemplateCache()
    replica = loaded(nodes, pods, templates)
    measure_decisions(replica, templates)
    measure_replicas(replica, templates)
    measure_drains(replica, templates)
    with serving() as server:
        asyncio.run(fill(server, nodes, pods))
        asyncio.run(measure_plans(server, runs))
        asyncio.run(measure_placements(server, placements, rate))


if __name__ == "__main__":
    typer.run(main)
