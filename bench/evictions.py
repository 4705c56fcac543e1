"""How soon pods are evicted after their node has changed: `python -m bench.evictions`.

This uses a real server and PostgreSQL. There are many placed pods whose node affinity and
anti-affinity are required during execution, a hundred of them on each node that is relabelled. Two
things are measured: the time from the answer to the relabelling, which comes after its commit, to
the watch event of the last of the node's hundred evictions, which comes after theirs; and a full
check of all pods by `GET …/violations`, twice.
"""

import asyncio
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal

import httpx
import typer
from rich.console import Console

from bench.client import Connection
from bench.over_http import CLUSTER
from bench.stack import Server, serving

console = Console(width=160)

Shape = Literal["alike", "own label"]
"""The shape of the pods: they have a hundred templates; with "own label", each pod has a label of
its own, too."""
VARIANT = "requiredDuringSchedulingRequiredDuringExecution"
APPS = 100
PODS_ON_NODE = 100
"""How many pods are on each node that is relabelled."""
CHUNK = 5_000


@dataclass(frozen=True)
class EvictionFigures:
    """The figures of one run, in milliseconds."""

    shape: str
    nodes: int
    pods: int
    relabel_p50_ms: float
    relabel_max_ms: float
    check_ms: float
    """A full check over HTTP; the faster of two."""
    server_cpu_seconds: float
    """The CPU time of all relabellings together."""


class Evictions:
    """Follows the watch, and knows which pods of each node are being evicted."""

    def __init__(self) -> None:
        self.evicted: dict[str, set[str]] = {}
        self._news = asyncio.Event()

    async def run(self, server: Server) -> None:
        reader, writer = await asyncio.open_connection(server.host, server.port, limit=1 << 24)
        writer.write(f"GET {CLUSTER}/watch?kind=Pod HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        async for line in reader:
            if line.startswith(b"data: ") and b'"deletionTimestamp"' in line:
                pod = json.loads(line[6:])["object"]
                node_name = pod["spec"]["nodeName"]
                self.evicted.setdefault(node_name, set()).add(pod["metadata"]["name"])
                self._news.set()

    async def all_of(self, node_name: str) -> float:
        """Wait until the last pod of a node is seen to be evicted; return when that was."""
        while len(self.evicted.get(node_name, ())) < PODS_ON_NODE:
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 60)
        return perf_counter()


async def run(
    server: Server, *, shape: Shape, nodes: int, pods: int, rounds: int
) -> EvictionFigures:
    """Fill a cluster, check it, then relabel one node after the other."""
    url = f"http://{server.host}:{server.port}{CLUSTER}"
    config = {"config": {"evictionsPerMinute": 1_000_000}}
    await asyncio.to_thread(_configure, url, config)
    async with Connection(server.host, server.port) as connection:
        await _apply(connection, [_node(i, "ssd") for i in range(nodes)])
        await _apply(connection, [_pod(i, nodes, rounds, shape) for i in range(pods)])
    await asyncio.sleep(2)
    checks = [await asyncio.to_thread(_check, url) for _ in range(2)]
    seen = Evictions()
    watching = asyncio.create_task(seen.run(server))
    await asyncio.sleep(0.5)
    before, took = server.cpu_seconds()[0], []
    for number in range(rounds):
        async with Connection(server.host, server.port) as connection:
            await _apply(connection, [_node(number, "hdd")])
            answered = perf_counter()
            took.append((await seen.all_of(f"node-{number}") - answered) * 1000)
        await asyncio.sleep(1)
    watching.cancel()
    took.sort()
    assert sum(map(len, seen.evicted.values())) == rounds * PODS_ON_NODE, "nobody else may go"
    return EvictionFigures(
        shape=shape,
        nodes=nodes,
        pods=pods,
        relabel_p50_ms=took[len(took) // 2],
        relabel_max_ms=took[-1],
        check_ms=min(checks),
        server_cpu_seconds=server.cpu_seconds()[0] - before,
    )


def _configure(url: str, config: dict[str, Any]) -> None:
    httpx.patch(url, json=config, timeout=60).raise_for_status()


def _check(url: str) -> float:
    began = perf_counter()
    answer = httpx.get(f"{url}/violations", timeout=60)
    answer.raise_for_status()
    assert answer.json()["items"] == [], "nothing is violated yet"
    return (perf_counter() - began) * 1000


async def _apply(connection: Connection, items: list[dict[str, Any]]) -> None:
    for start in range(0, len(items), CHUNK):
        body = {"kind": "List", "items": items[start : start + CHUNK]}
        await connection.post_json(f"{CLUSTER}/apply", body)


def _node(number: int, disk: str) -> dict[str, Any]:
    name = f"node-{number}"
    labels = {"kubernetes.io/hostname": name, "zone": f"zone-{number % 10}", "disk": disk}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "250"}},
    }


def _pod(number: int, nodes: int, rounds: int, shape: Shape) -> dict[str, Any]:
    crowded = number // PODS_ON_NODE
    node = crowded if crowded < rounds else rounds + number % (nodes - rounds)
    labels = {"app": f"a{number % APPS}"}
    if shape == "own label":
        labels["pod"] = str(number)
    disk = {"key": "disk", "operator": "In", "values": ["ssd"]}
    nobody = {"matchLabels": {"app": f"rival-{number % APPS}"}}
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": nobody}
    return {
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}", "labels": labels},
        "spec": {
            "nodeName": f"node-{node}",
            "containers": [{"name": "c"}],
            "affinity": {
                "nodeAffinity": {VARIANT: {"nodeSelectorTerms": [{"matchExpressions": [disk]}]}},
                "podAntiAffinity": {VARIANT: [apart]},
            },
        },
    }


def main(
    *,
    shape: Annotated[str, typer.Option(help="alike, or own label.")] = "alike",
    nodes: Annotated[int, typer.Option(help="Nodes.")] = 5_000,
    pods: Annotated[int, typer.Option(help="Placed pods.")] = 50_000,
    rounds: Annotated[int, typer.Option(help="Nodes that are relabelled.")] = 20,
    out: Annotated[Path | None, typer.Option(help="Append JSON lines here.")] = None,
) -> None:
    """Measure the latency from a relabelling to its evictions, and that of a full check."""
    with serving() as server:
        figures = asyncio.run(run(server, shape=shape, nodes=nodes, pods=pods, rounds=rounds))  # type: ignore[arg-type]
    for name, value in asdict(figures).items():
        console.print(f"{name:24} {value if isinstance(value, str) else f'{value:,.1f}'}")
    if out is not None:
        with out.open("a") as lines:
            lines.write(json.dumps({"layer": "evictions", **asdict(figures)}) + "\n")


if __name__ == "__main__":
    typer.run(main)
