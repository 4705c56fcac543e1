"""`python -m bench.capacity`: how long it takes to count how many more pods fit, over HTTP.

The cluster is that of `bench.plans`. It is asked about three templates: small pods, of which more fit
than are counted; pods of half a node with a hard spread over zones; and pods that keep others of
their kind off their node. Beside each answer stands the CPU time that the server took.
"""

import asyncio
import json
from time import perf_counter
from typing import Annotated, Any

import typer

from bench.client import Connection
from bench.plans import CLUSTER, Manifest, fill, spread
from bench.stack import Server, serving
from bench.worlds import HOST, ZONE, term

IGNORED = "requiredDuringSchedulingIgnoredDuringExecution"
APP = {"app": "more"}


def template(cpu: str, **spec: Any) -> Manifest:
    requests = {"cpu": cpu, "memory": "1Gi"}
    containers = [{"name": "main", "image": "main", "resources": {"requests": requests}}]
    return {"metadata": {"name": "more", "labels": APP}, "spec": {**spec, "containers": containers}}


def templates() -> dict[str, Manifest]:
    even = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": APP},
    }
    apart = {"podAntiAffinity": {IGNORED: [term("more", HOST)]}}
    return {
        "small": template("100m"),
        "half a node, evenly over zones": template("16", topologySpreadConstraints=[even]),
        "one for each node": template("100m", affinity=apart),
    }


async def measure(server: Server, nodes_count: int, pods: int, limit: int, runs: int) -> None:
    config = {"config": {"placePendingPods": False}}
    async with Connection(server.host, server.port) as connection:
        await connection.put(CLUSTER, json.dumps(config).encode())
        await fill(server, nodes_count, pods)
        for name, each in templates().items():
            for most in (1_000, limit):
                body = json.dumps({"template": each, "topologyKey": ZONE, "limit": most}).encode()
                await counted(connection, server, f"{name}, at most {most}", body, runs)


async def counted(
    connection: Connection, server: Server, name: str, body: bytes, runs: int
) -> None:
    found, seconds = [], []
    for _ in range(runs + 1):
        cpu, began = server.cpu_seconds()[0], perf_counter()
        status, answer = await connection.post(f"{CLUSTER}/capacity", body)
        found.append((perf_counter() - began) * 1e3)
        seconds.append((server.cpu_seconds()[0] - cpu) * 1e3)
        if status != 200:
            raise RuntimeError(f"{name}: {status} {answer[:500]!r}")
    told = json.loads(answer)
    print(f"{name}: {told['fits']} fit, {told['domains']}, limited: {told['limited']}")
    print(f"  first {found[0]:.0f} ms, then {spread(found[1:])}; CPU {spread(seconds[1:])}")


def main(
    nodes_count: Annotated[int, typer.Option("--nodes", help="Nodes of the cluster.")] = 5_000,
    pods: Annotated[int, typer.Option(help="Placed pods.")] = 50_000,
    limit: Annotated[int, typer.Option(help="The greater of the two limits.")] = 10_000,
    runs: Annotated[int, typer.Option(help="How often each is asked.")] = 10,
) -> None:
    with serving() as server:
        asyncio.run(measure(server, nodes_count, pods, limit, runs))


if __name__ == "__main__":
    typer.run(main)
