"""How long lists with filters take, and how long they keep others: `python -m bench.lists`.

This uses a real server and PostgreSQL. One client asks for the same list again and again, while
another one places one pod after the other.
"""

import asyncio
import json
from contextlib import ExitStack
from time import perf_counter
from typing import Annotated

import typer
from rich.console import Console

from bench.client import Connection
from bench.figures import quantile
from bench.over_http import CLUSTER
from bench.stack import Server, postgres, server

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
    "100 by name": "pods?limit=100",
    "100 by priority": "pods?limit=100&sort=-spec.priority",
    "100 by age, one label": "pods?limit=100&sort=metadata.creationTimestamp&labelSelector=app%3Dweb",
    "earlier: one pod": "namespaces/default/pods/pod-7?revision={loaded}",
    "earlier: 100 by name": "pods?limit=100&revision={loaded}",
    "earlier: pending pods": "pods?nodeName=&revision={loaded}",
    "earlier: all pods": "pods?revision={loaded}",
    "earlier: an explanation": "namespaces/default/pods/pod-7/explanation?revision={loaded}",
    "which are readable": "revisions",
}
"""What is listed while pods are placed; `loaded` is the revision at which everything was stored."""


async def load(serving: Server, nodes: int, pods: int, pending: int) -> int:
    """Store nodes, pods on them, and pods that wait; return the revision after that."""
    sizes = {"cpu": "64", "memory": "256Gi", "pods": "500"}
    lines: list[dict[str, object]] = [
        {"kind": "Node", "metadata": {"name": f"node-{n}"}, "status": {"allocatable": sizes}}
        for n in range(nodes)
    ]
    lines += [_pod(n, {"nodeName": f"node-{n % nodes}"}) for n in range(pods)]
    lines += [_pod(n, {"schedulerName": "nobody"}) for n in range(pods, pods + pending)]
    async with Connection(serving.host, serving.port) as connection:
        body = b"\n".join(json.dumps(line).encode() for line in lines)
        status, answer = await connection.post(f"{CLUSTER}/apply", body, NDJSON)
        assert status == 200, answer[:500]
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


async def _list(serving: Server, path: str | None, end: asyncio.Event) -> list[float]:
    times: list[float] = []
    if path is None:
        await end.wait()
        return times
    async with Connection(serving.host, serving.port) as connection:
        while not end.is_set():
            began = perf_counter()
            status, answer = await connection.get(f"{CLUSTER}/{path}")
            assert status == 200, answer[:500]
            times.append((perf_counter() - began) * 1000)
    return times


async def _place(serving: Server, named: str, seconds: float) -> list[float]:
    times: list[float] = []
    end = perf_counter() + seconds
    async with Connection(serving.host, serving.port) as connection:
        while perf_counter() < end:
            pod = _pod(0, {})
            pod["metadata"] = {"name": f"{named}-{len(times)}", "labels": {"app": "placed"}}
            began = perf_counter()
            await connection.post_json(f"{CLUSTER}/placements", {"pods": [pod]})
            times.append((perf_counter() - began) * 1000)
    return times


async def _measure(serving: Server, what: str, seconds: float, run: int, loaded: int) -> None:
    end, path = asyncio.Event(), LISTS[what]
    path = path and path.format(loaded=loaded)
    listing = asyncio.create_task(_list(serving, path, end))
    placed = sorted(await _place(serving, f"r{run}-{list(LISTS).index(what)}", seconds))
    end.set()
    listed = sorted(await listing)
    told = f"placements p50 {quantile(placed, 0.5):.1f} p99 {quantile(placed, 0.99):.1f} ms"
    if listed:
        p50, p99 = quantile(listed, 0.5), quantile(listed, 0.99)
        told = f"list p50 {p50:.1f} p99 {p99:.1f} ms; {told}"
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
    with ExitStack() as stack:
        database = stack.enter_context(postgres())
        serving = stack.enter_context(server(database, database.new_database()))
        loaded = asyncio.run(load(serving, nodes, pods, pending))
        for run in range(runs):
            for what in LISTS:
                if only not in what and what != "nothing":
                    continue
                asyncio.run(_measure(serving, what, seconds, run, loaded))


if __name__ == "__main__":
    typer.run(main)
