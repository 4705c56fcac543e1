"""What reporting nodes cost, and what follows when they stop: `python -m bench.node_leases`.

This uses a real server and PostgreSQL. All nodes of a cluster report every ten seconds, first in
batches, then each by itself; the CPU time of the server and of PostgreSQL is measured meanwhile,
less what they use when nobody reports. With `--part losses` one node stops, and later a whole zone:
it is measured how soon the nodes are tainted, and when the last pod of the first node is marked as
to be stopped.
"""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import httpx
import typer
from rich.console import Console

from bench.client import Connection
from bench.over_http import CLUSTER
from bench.stack import Server, serving

console = Console(width=160)

PERIOD_SECONDS = 10.0
"""How often each node reports."""
PODS = 110
"""How many pods are on the node that stops."""
ZONES = 3
CONNECTIONS = 20
CHUNK = 5_000
ZONE_SECONDS = 15.0
"""For how long a lost zone is watched once all of its nodes are tainted."""
UNREACHABLE = "node.kubernetes.io/unreachable"


@dataclass(frozen=True)
class CostFigures:
    """Shares of a core that reports take, less what is used when nobody reports."""

    nodes: int
    batch: int
    idle_server_share: float
    idle_postgres_share: float
    batches_server_share: float
    batches_postgres_share: float
    singles_server_share: float
    singles_postgres_share: float


@dataclass(frozen=True)
class LossFigures:
    """How soon lost nodes are noticed, in seconds."""

    nodes: int
    grace_seconds: int
    toleration_seconds: int
    unreachable_seconds: float
    """The time from the last report of a node to its taints."""
    last_eviction_seconds: float
    """The time from the last report of a node to the mark of the last of its pods."""
    zone_nodes: int
    zone_seconds: float
    """The time from the last report of a zone to the taint of the last of its nodes that keeps new pods away."""
    zone_evicting_nodes: int
    """How many of these nodes have the taint that evicts when the zone was watched for so long:"""
    zone_watched_seconds: float
    zone_server_cpu_seconds: float


class Reports:
    """All nodes report, but those that have stopped."""

    def __init__(self, server: Server, names: list[str], batch: int) -> None:
        self._server = server
        self._names = names
        self._batch = batch
        self.stopped: set[str] = set()
        self.first_told = 0.0
        """When the last report of the first node was answered."""

    async def run(self) -> None:
        """Report in batches for ever, evenly over the period."""
        batches = -(-len(self._names) // self._batch)
        async with Connection(self._server.host, self._server.port) as connection:
            begin = perf_counter()
            for number in _forever():
                start = number % batches * self._batch
                names = self._names[start : start + self._batch]
                await _until(begin + number * PERIOD_SECONDS / batches)
                told = [name for name in names if name not in self.stopped]
                body = json.dumps({"nodes": told}).encode()
                status, answer = await connection.put(f"{CLUSTER}/node-leases", body)
                assert status == 200, answer
                if self._names[0] in told:
                    self.first_told = perf_counter()

    async def run_singly(self) -> None:
        """Report each node by itself for ever, over some connections."""
        share = -(-len(self._names) // CONNECTIONS)
        parts = [self._names[at : at + share] for at in range(0, len(self._names), share)]
        await asyncio.gather(*map(self._run_part, parts))

    async def _run_part(self, names: list[str]) -> None:
        async with Connection(self._server.host, self._server.port) as connection:
            begin = perf_counter()
            for number in _forever():
                await _until(begin + number * PERIOD_SECONDS / len(names))
                path = f"{CLUSTER}/nodes/{names[number % len(names)]}/lease"
                status, answer = await connection.put(path, b"")
                assert status == 200, answer


def _forever() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


async def _until(time: float) -> None:
    await asyncio.sleep(max(0.0, time - perf_counter()))


async def measure_costs(server: Server, *, nodes: int, batch: int, seconds: float) -> CostFigures:
    """Fill a cluster, and measure what its reports cost."""
    names = await _fill(server, nodes, {})
    idle = await _shares(server, seconds)
    reports = Reports(server, names, batch)
    shares = []
    for reporting in (reports.run, reports.run_singly):
        running = asyncio.create_task(reporting())
        await asyncio.sleep(PERIOD_SECONDS)
        used = await _shares(server, seconds)
        running.cancel()
        shares += [used[0] - idle[0], used[1] - idle[1]]
    return CostFigures(nodes, batch, *idle, *shares)


async def measure_losses(
    server: Server, *, nodes: int, batch: int, grace: int, toleration: int
) -> LossFigures:
    """Fill a cluster, and have nodes of it stop reporting."""
    settings = {
        "nodeMonitorGraceSeconds": grace,
        "defaultUnreachableTolerationSeconds": toleration,
    }
    url = f"http://{server.host}:{server.port}{CLUSTER}"
    names = await _fill(server, nodes, settings)
    reports = Reports(server, names, batch)
    running = asyncio.create_task(reports.run())
    await asyncio.sleep(PERIOD_SECONDS + grace)
    unreachable, evicted = await _lose_one(url, reports)
    before = server.cpu_seconds()[0]
    zone = [name for number, name in enumerate(names) if number % ZONES == 1]
    zone_seconds, evicting, watched = await _lose_zone(url, reports, zone)
    cpu = server.cpu_seconds()[0] - before
    running.cancel()
    return LossFigures(
        nodes=nodes,
        grace_seconds=grace,
        toleration_seconds=toleration,
        unreachable_seconds=unreachable,
        last_eviction_seconds=evicted,
        zone_nodes=len(zone),
        zone_seconds=zone_seconds,
        zone_evicting_nodes=evicting,
        zone_watched_seconds=watched,
        zone_server_cpu_seconds=cpu,
    )


async def _fill(server: Server, nodes: int, settings: dict[str, Any]) -> list[str]:
    """Make nodes, with pods on the first; return the nodes' names."""
    url = f"http://{server.host}:{server.port}{CLUSTER}"
    await asyncio.to_thread(_patch, url, {"config": settings})
    async with Connection(server.host, server.port) as connection:
        await _apply(connection, [_node(number) for number in range(nodes)])
        await _apply(connection, [_pod(number) for number in range(PODS)])
    await asyncio.sleep(3)
    return [f"node-{number}" for number in range(nodes)]


async def _shares(server: Server, seconds: float) -> tuple[float, float]:
    """Which share of a core the server and PostgreSQL use over some seconds."""
    before, began = server.cpu_seconds(), perf_counter()
    await asyncio.sleep(seconds)
    after, took = server.cpu_seconds(), perf_counter() - began
    return (after[0] - before[0]) / took, (after[1] - before[1]) / took


async def _lose_one(url: str, reports: Reports) -> tuple[float, float]:
    """Stop the first node; return how soon it has both taints, and its last pod is marked."""
    reports.stopped.add("node-0")
    await asyncio.sleep(2)
    last = reports.first_told
    unreachable = None
    while True:
        node = await asyncio.to_thread(_read, f"{url}/nodes/node-0")
        if unreachable is None and len(_own_taints(node)) == 2:
            unreachable = perf_counter() - last
        pods = (await asyncio.to_thread(_read, f"{url}/pods?limit=500"))["items"]
        marked = sum("deletionTimestamp" in each["metadata"] for each in pods)
        if unreachable is not None and marked == PODS:
            return unreachable, perf_counter() - last
        await asyncio.sleep(0.05)


async def _lose_zone(url: str, reports: Reports, zone: list[str]) -> tuple[float, int, float]:
    """Stop a zone; return how soon no pods come there any more, and how many nodes evict a while later."""
    reports.stopped.update(zone)
    began, kept_away = perf_counter(), None
    while True:
        nodes = await asyncio.to_thread(_all_nodes, url)
        taints = [_own_taints(nodes[name]) for name in zone]
        if kept_away is None and all(taints):
            kept_away = perf_counter() - began
        watched = perf_counter() - began
        if kept_away is not None and watched > kept_away + ZONE_SECONDS:
            return kept_away, sum("NoExecute" in each for each in taints), watched
        await asyncio.sleep(0.5)


def _own_taints(node: dict[str, Any]) -> set[str]:
    taints = node.get("spec", {}).get("taints", [])
    return {each["effect"] for each in taints if each["key"] == UNREACHABLE}


def _all_nodes(url: str) -> dict[str, dict[str, Any]]:
    found, more = {}, ""
    while True:
        answer = _read(f"{url}/nodes?limit=500{more}")
        found.update({each["metadata"]["name"]: each for each in answer["items"]})
        token = answer["metadata"].get("continue")
        if not token:
            return found
        more = f"&continue={token}"


def _read(url: str) -> Any:
    answer = httpx.get(url, timeout=60)
    answer.raise_for_status()
    return answer.json()


def _patch(url: str, config: dict[str, Any]) -> None:
    httpx.patch(url, json=config, timeout=60).raise_for_status()


async def _apply(connection: Connection, items: list[dict[str, Any]]) -> None:
    for start in range(0, len(items), CHUNK):
        body = {"kind": "List", "items": items[start : start + CHUNK]}
        await connection.post_json(f"{CLUSTER}/apply", body)


def _node(number: int) -> dict[str, Any]:
    labels = {"topology.kubernetes.io/zone": f"zone-{number % ZONES}"}
    return {
        "kind": "Node",
        "metadata": {"name": f"node-{number}", "labels": labels},
        "status": {
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "250"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def _pod(number: int) -> dict[str, Any]:
    spec = {"nodeName": "node-0", "containers": [{"name": "c"}]}
    return {"kind": "Pod", "metadata": {"name": f"pod-{number}"}, "spec": spec}


def main(
    *,
    part: Annotated[str, typer.Option(help="costs, or losses.")] = "costs",
    nodes: Annotated[int, typer.Option(help="Nodes that report.")] = 5_000,
    batch: Annotated[int, typer.Option(help="Nodes that report with one request.")] = 500,
    grace: Annotated[int, typer.Option(help="nodeMonitorGraceSeconds.")] = 20,
    toleration: Annotated[int, typer.Option(help="How long pods stay, in seconds.")] = 5,
    seconds: Annotated[float, typer.Option(help="How long each way is measured.")] = 20.0,
    out: Annotated[Path | None, typer.Option(help="Append JSON lines here.")] = None,
) -> None:
    """Measure the CPU time of reporting nodes, or how soon lost ones are noticed."""
    with serving() as server:
        alike = {"server": server, "nodes": nodes, "batch": batch}
        if part == "costs":
            figures: Any = asyncio.run(measure_costs(**alike, seconds=seconds))  # type: ignore[arg-type]
        else:
            bounds = {"grace": grace, "toleration": toleration}
            figures = asyncio.run(measure_losses(**alike, **bounds))  # type: ignore[arg-type]
    for name, value in asdict(figures).items():
        console.print(f"{name:26} {value:,.4f}")
    if out is not None:
        with out.open("a") as lines:
            lines.write(json.dumps({"layer": "node leases", **asdict(figures)}) + "\n")


if __name__ == "__main__":
    typer.run(main)
