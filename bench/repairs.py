"""`python -m bench.repairs`: how long it takes to find the repairs of pods that fit nowhere, over HTTP.

The cluster has three zones; a quarter of its nodes has no fast disk, a third is tainted, some are
cordoned. Four pods fit nowhere: one is too big, one selects a label that no node has, one is kept
apart from pods that are in all zones, and one has all of these rules at once.
"""

import asyncio
import json
from collections.abc import Iterator
from time import perf_counter
from typing import Annotated, Any

import typer

from bench.client import Connection
from bench.plans import CLUSTER, Manifest, node, shaped, spread
from bench.stack import Server, serving
from bench.worlds import HOST, STRIDE, ZONE, term

IGNORED = "requiredDuringSchedulingIgnoredDuringExecution"


def nodes(count: int) -> Iterator[Manifest]:
    for number in range(count):
        made = node(number)
        made["metadata"]["labels"]["disk"] = "ssd" if number % 4 else "hdd"
        taint = {"key": "team", "value": f"team-{number % 7}", "effect": "NoSchedule"}
        made["spec"] = {
            "taints": [] if number % 3 else [taint],
            "unschedulable": not number % 11,
        }
        yield made


def placed(nodes_count: int, count: int) -> Iterator[Manifest]:
    for number in range(count):
        made = sized(f"placed-{number}", number % 99, "2")
        made["spec"]["nodeName"] = f"node-{number * STRIDE % nodes_count}"
        yield made


def sized(name: str, app: int, cpu: str, **spec: Any) -> Manifest:
    made = shaped(name, app)
    requests = {"cpu": cpu, "memory": "1Gi"}
    containers = [{"name": "main", "image": "main", "resources": {"requests": requests}}]
    made["spec"] = {**made["spec"], **spec, "containers": containers}
    return made


def waiting() -> dict[str, Manifest]:
    apart = {"podAntiAffinity": {IGNORED: [term("app-1", ZONE), term("app-2", ZONE)]}}
    near = {"podAffinity": {IGNORED: [term("app-none", HOST)]}}
    return {
        "too big": sized("big", 0, "20"),
        "selects a label": sized("selecting", 0, "1", nodeSelector={"disk": "nvme"}),
        "kept apart": sized("apart", 0, "1", affinity=apart),
        "all at once": sized(
            "all", 1, "14", nodeSelector={"disk": "nvme"}, affinity={**apart, **near}
        ),
    }


async def measure(server: Server, nodes_count: int, pods: int, runs: int) -> None:
    wanted = waiting()
    everything = (*nodes(nodes_count), *placed(nodes_count, pods), *wanted.values())
    lines = b"\n".join(json.dumps(each).encode() for each in everything)
    config = {"config": {"placePendingPods": False}}
    async with Connection(server.host, server.port) as connection:
        await connection.put(CLUSTER, json.dumps(config).encode())
        status, answer = await connection.post(f"{CLUSTER}/apply", lines, "application/x-ndjson")
        if status != 200:
            raise RuntimeError(f"apply: {status} {answer[:500]!r}")
        for name, pod in wanted.items():
            path = f"{CLUSTER}/namespaces/default/pods/{pod['metadata']['name']}/repairs"
            began = perf_counter()
            status, answer = await connection.get(path)
            first = perf_counter() - began
            if status != 200:
                raise RuntimeError(f"{path}: {status} {answer[:500]!r}")
            told = json.loads(answer)
            found = []
            for _ in range(runs):
                began = perf_counter()
                await connection.get(path)
                found.append((perf_counter() - began) * 1e3)
            sizes = [len(each["changes"]) for each in told["repairs"]]
            print(f"{name}, repairs of {sizes} changes, complete: {told['complete']}")
            print(f"  first {first:.2f} s, then {spread(found)}")


def main(
    nodes_count: Annotated[int, typer.Option("--nodes", help="Nodes of the cluster.")] = 5_000,
    pods: Annotated[int, typer.Option(help="Placed pods.")] = 50_000,
    runs: Annotated[int, typer.Option(help="How often each pod is asked about.")] = 200,
) -> None:
    with serving() as server:
        asyncio.run(measure(server, nodes_count, pods, runs))


if __name__ == "__main__":
    typer.run(main)
