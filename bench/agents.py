"""How soon the agent of each node sees what concerns its own pods: `python -m bench.agents`.

This uses a real server and PostgreSQL. Thousands of agents watch the pods of one node each, all in
one process beside this one, while pods are put on nodes by chance at a steady rate. Each change
concerns one agent. Its figure is the time from the commit, as the log has it, which PostgreSQL reads
before it flushes, to the arrival at the agent.
"""

import asyncio
import json
import random
import resource
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from time import time  # noqa: TID251 - compared with the time that commits have in the log
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from typing_extensions import override

from bench.client import Connection
from bench.figures import quantile
from bench.over_http import CLUSTER
from bench.stack import Server, postgres, server
from bench.watch import committed_at

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(width=160)
OPENED_AT_ONCE = 64
WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class AgentFigures:
    """One run: latencies in milliseconds, over all changes."""

    agents: int
    changes: int
    changes_per_second: float
    after_commit_p50_ms: float
    after_commit_p99_ms: float
    after_commit_max_ms: float
    server_cpu_seconds: float
    postgres_cpu_seconds: float
    agents_cpu_seconds: float
    server_megabytes: float
    """The largest worker, with all watches open."""


class Arrivals(msgspec.Struct):
    """What all agents saw: for each revision when, and the CPU time that this took them."""

    times: dict[int, float] = {}
    cpu_seconds: float = 0.0


class Agent(asyncio.Protocol):
    """One connection, which watches the pods of one node."""

    def __init__(
        self, node: str, begun: asyncio.Event, times: dict[int, float], news: asyncio.Event
    ) -> None:
        self._node = node.encode()
        self._begun = begun
        self._times = times
        self._news = news
        self._rest = b""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        path = b"%b/watch?kind=Pod&fieldSelector=spec.nodeName%%3D%b" % (
            CLUSTER.encode(),
            self._node,
        )
        transport.write(b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n" % path)

    @override
    def eof_received(self) -> None:
        print(f"The server ended the watch of {self._node.decode()}.", file=sys.stderr)

    @override
    def data_received(self, data: bytes) -> None:
        now = time()
        *events, self._rest = (self._rest + data).split(b"\n\n")
        for event in events:
            if b"event: ADDED" in event:
                revision = int(event.partition(b"id: ")[2].partition(b"\n")[0])
                assert revision not in self._times, "a change came twice"
                assert b'"nodeName":"%b"' % self._node in event, event
                self._times[revision] = now
                self._news.set()
            elif b"event: BOOKMARK" in event:
                self._begun.set()


@app.command("watch", hidden=True)
def watch(host: str, port: int, agents: int) -> None:
    """Watch with so many agents; the other process writes how many changes there were, and gets them."""
    arrivals = asyncio.run(_watch(host, port, agents))
    sys.stdout.buffer.write(msgspec.json.encode(arrivals) + b"\n")


async def _watch(host: str, port: int, agents: int) -> Arrivals:
    loop, arrivals, news = asyncio.get_running_loop(), Arrivals(), asyncio.Event()
    at_once = asyncio.Semaphore(OPENED_AT_ONCE)

    async def open_one(node: str) -> asyncio.BaseTransport:
        begun = asyncio.Event()
        async with at_once, asyncio.timeout(WAIT_SECONDS):
            transport, _ = await loop.create_connection(
                lambda: Agent(node, begun, arrivals.times, news), host, port
            )
            await begun.wait()
        return transport

    transports = await asyncio.gather(*(open_one(node_of(number)) for number in range(agents)))
    print("open", flush=True)
    before = _cpu_seconds()
    changes = int(await loop.run_in_executor(None, sys.stdin.readline))
    while len(arrivals.times) < changes:
        news.clear()
        async with asyncio.timeout(WAIT_SECONDS):
            await news.wait()
    arrivals.cpu_seconds = _cpu_seconds() - before
    for transport in transports:
        transport.close()
    return arrivals


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def node_of(number: int) -> str:
    """Return the name of a node."""
    return f"node-{number}"


async def _write(
    serving: Server, *, agents: int, rate: int, per_request: int, seconds: float
) -> set[int]:
    """Put new pods on nodes, `rate` a second in requests of `per_request`; return their revisions."""
    revisions: set[int] = set()
    requests, interval, start = count(), per_request / rate, time()
    chance = random.Random(1)

    async def client() -> None:
        async with Connection(serving.host, serving.port) as connection:
            while (number := next(requests)) * interval < seconds:
                await asyncio.sleep(start + number * interval - time())
                items = [
                    _pod(f"pod-{number}-{index}", node_of(chance.randrange(agents)))
                    for index in range(per_request)
                ]
                body = {"kind": "List", "items": items}
                answer = await connection.post_json(f"{CLUSTER}/apply", body)
                revisions.update(
                    range(answer["revision"] - per_request + 1, answer["revision"] + 1)
                )

    await asyncio.gather(*(client() for _ in range(16)))
    return revisions


def _pod(name: str, node: str) -> dict[str, object]:
    requests = {"cpu": "1m", "memory": "1Mi"}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "resources": {"requests": requests}}],
        },
    }


async def _add_nodes(serving: Server, agents: int) -> None:
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "1000"}
    async with Connection(serving.host, serving.port) as connection:
        for start in range(0, agents, 1_000):
            items = [
                {
                    "kind": "Node",
                    "metadata": {"name": node_of(number)},
                    "status": {"allocatable": allocatable},
                }
                for number in range(start, min(start + 1_000, agents))
            ]
            await connection.post_json(f"{CLUSTER}/apply", {"kind": "List", "items": items})


def run(
    url: str, serving: Server, *, agents: int, rate: int, per_request: int, seconds: float
) -> AgentFigures:
    """Let `agents` watch a server while so many changes are made."""
    asyncio.run(_add_nodes(serving, agents))
    command = [sys.executable, "-m", "bench.agents", "watch", serving.host, str(serving.port)]
    with subprocess.Popen(
        [*command, str(agents)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdin is not None
        assert watching.stdout is not None
        assert watching.stdout.readline() == "open\n", "not all watches could be opened"
        megabytes, before = serving.megabytes(), serving.cpu_seconds()
        began = time()
        revisions = asyncio.run(
            _write(serving, agents=agents, rate=rate, per_request=per_request, seconds=seconds)
        )
        elapsed = time() - began
        watching.stdin.write(f"{len(revisions)}\n")
        watching.stdin.flush()
        arrivals = msgspec.json.decode(watching.stdout.readline(), type=Arrivals, strict=False)
        after = serving.cpu_seconds()
    assert arrivals.times.keys() == revisions, "an agent missed a change"
    committed = asyncio.run(committed_at(url, revisions))
    latencies = sorted((at - committed[each]) * 1000 for each, at in arrivals.times.items())
    return AgentFigures(
        agents=agents,
        changes=len(revisions),
        changes_per_second=len(revisions) / elapsed,
        after_commit_p50_ms=quantile(latencies, 0.5),
        after_commit_p99_ms=quantile(latencies, 0.99),
        after_commit_max_ms=latencies[-1],
        server_cpu_seconds=after[0] - before[0],
        postgres_cpu_seconds=after[1] - before[1],
        agents_cpu_seconds=arrivals.cpu_seconds,
        server_megabytes=megabytes,
    )


@app.command("run")
def main(
    *,
    agents: Annotated[int, typer.Option(help="Nodes, each with an agent that watches it.")] = 5000,
    rate: Annotated[int, typer.Option(help="Changes a second.")] = 1000,
    per_request: Annotated[int, typer.Option(help="Changes in one request.")] = 10,
    seconds: Annotated[float, typer.Option(help="How long.")] = 10,
    workers: Annotated[int, typer.Option(help="Server processes.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Append JSON lines here.")] = None,
) -> None:
    """Measure the latency from commit to delivery for watches of single nodes."""
    with ExitStack() as stack:
        database = stack.enter_context(postgres())
        url = database.new_database()
        variables = {
            "MOORAGE_WATCHERS_MAX": str(agents),
            # All agents have one address here, which may have a quarter of all connections.
            "MOORAGE_CONNECTIONS_PER_ADDRESS_MAX": str(agents + 100),
        }
        serving = stack.enter_context(server(database, url, workers=workers, variables=variables))
        figures = run(
            url, serving, agents=agents, rate=rate, per_request=per_request, seconds=seconds
        )
    for name, value in asdict(figures).items():
        console.print(f"{name:24} {value:,.1f}")
    if out is not None:
        with out.open("a") as lines:
            lines.write(json.dumps({"layer": "agents", **asdict(figures)}) + "\n")


if __name__ == "__main__":
    app()
