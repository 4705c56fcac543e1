"""How long lists with filters take, and how long they keep others: `python -m bench.lists`.

This uses a real server and PostgreSQL. One client asks for the same list again and again, while
another one places one pod after the other.
"""

import asyncio
import json
from time import perf_counter
from typing import Annotated, NamedTuple

import typer
from rich.console import Console

from bench.client import Connection
from bench.figures import quantile
from bench.over_http import CLUSTER
from bench.stack import Server, serving

console = Console(width=160)
NDJSON = "application/x-ndjson"
LISTS = {
    "nothing": None,
    "pending pods": "pods?nodeName=",
    "one node's pods": "pods?nodeName=node-7",
    "failed pods, none": "pods?phase=Failed",
    "one label in a thousand": "pods?labelSelector=group%3Dg7",
    "no such label": "pods?labelSelector=group%3Dnone",
    "all pods": "pods",
    "all pods, two fields": "pods?fields=metadata.name,spec.nodeName",
    "100 by name": "pods?limit=100",
    "100 by priority": "pods?limit=100&sort=-spec.priority",
    "100 by age, one label": "pods?limit=100&sort=metadata.creationTimestamp&labelSelector=app%3Dweb",
    "earlier: one pod": "namespaces/default/pods/pod-7?revision={earlier}",
    "earlier: 100 by name": "pods?limit=100&revision={earlier}",
    "earlier: pending pods": "pods?nodeName=&revision={earlier}",
    "earlier: all pods": "pods?revision={earlier}",
    "earlier: an explanation": "namespaces/default/pods/pod-7/explanation?revision={earlier}",
    "which are readable": "revisions",
}
"""What is listed while pods are placed; `earlier` is the revision at which that run began."""


async def load(server: Server, nodes: int, pods: int, pending: int) -> None:
    """Store nodes in three zones, pods on them, and pods that wait."""
    sizes = {"cpu": "64", "memory": "256Gi", "pods": "500"}
    lines: list[dict[str, object]] = [
        {
            "kind": "Node",
            "metadata": {
                "name": f"node-{n}",
                "labels": {"topology.kubernetes.io/zone": f"zone-{'abc'[n % 3]}"},
            },
            "status": {"allocatable": sizes},
        }
        for n in range(nodes)
    ]
    lines += [_pod(n, {"nodeName": f"node-{n % nodes}"}) for n in range(pods)]
    lines += [_pod(n, {"schedulerName": "nobody"}) for n in range(pods, pods + pending)]
    async with Connection(server.host, server.port) as connection:
        body = b"\n".join(json.dumps(line).encode() for line in lines)
        status, answer = await connection.post(f"{CLUSTER}/apply", body, NDJSON)
        assert status == 200, answer[:500]


async def _revision(server: Server) -> int:
    async with Connection(server.host, server.port) as connection:
        _, answer = await connection.get(CLUSTER)
    return int(json.loads(answer)["revision"])


def _pod(number: int, spec: dict[str, object]) -> dict[str, object]:
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number}",
            "labels": {"app": "web", "group": f"g{number % 1000}"},
        },
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}], **spec},
    }


class _Listed(NamedTuple):
    """How many milliseconds each list took, and the bytes of the last one."""

    times: list[float]
    size: int


async def _list(server: Server, path: str | None, end: asyncio.Event) -> _Listed:
    times: list[float] = []
    answer = b""
    if path is None:
        await end.wait()
        return _Listed(times, 0)
    async with Connection(server.host, server.port) as connection:
        while not end.is_set():
            began = perf_counter()
            status, answer = await connection.get(f"{CLUSTER}/{path}")
            assert status == 200, answer[:500]
            times.append((perf_counter() - began) * 1000)
    return _Listed(times, len(answer))


async def place(server: Server, named: str, seconds: float) -> list[float]:
    """Place one pod after the other; return how many milliseconds each took."""
    times: list[float] = []
    end = perf_counter() + seconds
    async with Connection(server.host, server.port) as connection:
        while perf_counter() < end:
            pod = _pod(0, {})
            pod["metadata"] = {"name": f"{named}-{len(times)}", "labels": {"app": "placed"}}
            began = perf_counter()
            await connection.post_json(f"{CLUSTER}/placements", {"pods": [pod]})
            times.append((perf_counter() - began) * 1000)
    return times


async def _measure(server: Server, what: str, seconds: float, run: int, earlier: int) -> None:
    end, path = asyncio.Event(), LISTS[what]
    path = path and path.format(earlier=earlier)
    listing = asyncio.create_task(_list(server, path, end))
    placed = sorted(await place(server, f"r{run}-{list(LISTS).index(what)}", seconds))
    end.set()
    listed, size = await listing
    listed.sort()
    told = f"placements p50 {quantile(placed, 0.5):.1f} p99 {quantile(placed, 0.99):.1f} ms"
    if listed:
        p50, p99 = quantile(listed, 0.5), quantile(listed, 0.99)
        told = f"list p50 {p50:.1f} p99 {p99:.1f} ms, {size / 1000:,.1f} kB; {told}"
    console.print(f"{what:26} {told}")


def main(
    *,
    nodes: Annotated[int, typer.Option(help="Nodes.")] = 5_000,
    pods: Annotated[int, typer.Option(help="Pods on nodes.")] = 50_000,
    pending: Annotated[int, typer.Option(help="Pods that wait.")] = 100,
    seconds: Annotated[float, typer.Option(help="How long each list is asked for.")] = 3,
    runs: Annotated[int, typer.Option(help="How often, in turn.")] = 2,
    only: Annotated[str, typer.Option(help="Only lists whose names have this.")] = "",
) -> None:
    """List in each way while pods are placed one by one."""
    with serving() as server:
        asyncio.run(load(server, nodes, pods, pending))
        for run in range(runs):
            earlier = asyncio.run(_revision(server))
            for what in LISTS:
                if only not in what and what != "nothing":
                    continue
                asyncio.run(_measure(server, what, seconds, run, earlier))


if __name__ == "__main__":
    typer.run(main)
