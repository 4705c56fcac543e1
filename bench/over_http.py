"""The whole path: a real server and PostgreSQL, pods in over HTTP, placements durable.

Refuses to report unless PostgreSQL syncs; checks every rule on the final state.
"""

import asyncio
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import psutil

from bench.client import Connection
from bench.workloads import Workload

CLUSTER = "/v1/clusters/default"
APPLY_LINES = 1000


@dataclass(frozen=True)
class HttpFigures:
    """One run of one workload."""

    pods: int
    unplaced: int
    batch: int
    clients: int
    seconds: float
    p50_ms: float
    p99_ms: float
    server_cpu_seconds: float
    postgres_cpu_seconds: float
    server_megabytes: float
    load_objects_per_second: float
    durability: dict[str, str]

    @property
    def pods_per_second(self) -> float:
        return self.pods / self.seconds


@dataclass(frozen=True)
class Server:
    """A running server and its processes."""

    host: str
    port: int
    process: psutil.Process
    data: Path

    def processes(self) -> tuple[list[psutil.Process], list[psutil.Process]]:
        """(server, PostgreSQL)"""
        everything = [self.process, *self.process.children(recursive=True)]
        postgres = [each for each in everything if "postgres" in each.name()]
        return [each for each in everything if each not in postgres], postgres

    def cpu_seconds(self) -> tuple[float, float]:
        server, postgres = self.processes()
        return _cpu(server), _cpu(postgres)


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    """`moorage serve` on a fresh embedded PostgreSQL, stopped afterwards."""
    with tempfile.TemporaryDirectory(prefix="moorage-bench-") as folder:
        await asyncio.to_thread(Path(folder).chmod, 0o711)
        command = [sys.executable, "-m", "service.cli", "serve", "--port", "0", "--data-dir"]
        process = subprocess.Popen(  # noqa: ASYNC220 - before anything else runs
            [*command, f"{folder}/data"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            port = await asyncio.to_thread(_announced_port, process)
            yield Server("127.0.0.1", port, psutil.Process(process.pid), Path(folder) / "data")
        finally:
            process.send_signal(signal.SIGINT)
            await asyncio.to_thread(process.wait, 30)


def _announced_port(process: "subprocess.Popen[str]") -> int:
    assert process.stdout is not None
    for line in process.stdout:
        found = re.search(r"ready at http://[^:]+:(\d+)", line)
        if found:
            return int(found[1])
    raise RuntimeError("the server ended before it was ready")


async def run(
    workload: Workload, *, batch: int, clients: int, pods: int | None = None
) -> HttpFigures:
    """Load the cluster through apply, place the measured pods in batches, check all rules."""
    async with serving() as server:
        durability = await _durability(server)
        objects, load_seconds = await _load(server, workload)
        bodies = list(_bodies(workload, batch, pods))
        before = server.cpu_seconds()
        began = perf_counter()
        answers = await _drive(server, bodies, clients)
        seconds = perf_counter() - began
        after = server.cpu_seconds()
        results = [each for _, answer in answers for each in json.loads(answer)["results"]]
        placed = [each for each in results if each["outcome"] == "Placed"]
        await _check(server, len(placed))
        latencies = sorted(latency * 1000 for latency, _ in answers)
        return HttpFigures(
            pods=len(results),
            unplaced=len(results) - len(placed),
            batch=batch,
            clients=clients,
            seconds=seconds,
            p50_ms=statistics.median(latencies),
            p99_ms=latencies[min(len(latencies) - 1, int(len(latencies) * 0.99))],
            server_cpu_seconds=after[0] - before[0],
            postgres_cpu_seconds=after[1] - before[1],
            server_megabytes=max(p.memory_info().rss for p in server.processes()[0]) / 1e6,
            load_objects_per_second=objects / load_seconds,
            durability=durability,
        )


async def _load(server: Server, workload: Workload) -> tuple[int, float]:
    objects = [*workload.namespaces(), *workload.nodes(), *workload.placed()]
    lines = b"\n".join(json.dumps(each).encode() for each in objects)
    began = perf_counter()
    async with Connection(server.host, server.port) as connection:
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
    """All bodies through so many connections; seconds and answer of each."""
    waiting, answers = iter(bodies), []

    async def client() -> None:
        async with Connection(server.host, server.port) as connection:
            for body in waiting:
                began = perf_counter()
                status, answer = await connection.post(f"{CLUSTER}/placements", body)
                if status != 200:
                    raise RuntimeError(f"placements: {status} {answer[:500]!r}")
                answers.append((perf_counter() - began, answer))

    await asyncio.gather(*(client() for _ in range(clients)))
    return answers


async def _check(server: Server, placed: int) -> None:
    """Replay the exported state through the engine: no placed pod may break a required rule."""
    from bench.verify import violations  # noqa: PLC0415 - keeps the load generator light

    exported = await asyncio.to_thread(_get, server, f"{CLUSTER}/export")
    broken = violations(json.loads(exported)["items"])
    if broken:
        raise RuntimeError(f"{len(broken)} of {placed} placements break a rule: {broken[:3]}")


async def _durability(server: Server) -> dict[str, str]:
    """PostgreSQL's own word that what it acknowledges is on disk."""
    settings = await asyncio.to_thread(_postgres_settings, server)
    if set(settings.values()) != {"on"}:
        raise RuntimeError(f"not durable, so not worth measuring: {settings}")
    return settings


def _postgres_settings(server: Server) -> dict[str, str]:
    text = "\n".join(path.read_text() for path in sorted((server.data).rglob("postgresql*.conf")))
    command = " ".join(server.processes()[1][0].cmdline())
    wanted = ("fsync", "synchronous_commit", "full_page_writes")
    off = {
        name
        for name in wanted
        if re.search(rf"^\s*{name}\s*=\s*'?(off|false|no|0)", text, re.MULTILINE | re.IGNORECASE)
        or re.search(rf"{name}=(off|false|no|0)", command, re.IGNORECASE)
    }
    return {name: "off" if name in off else "on" for name in wanted}


def _get(server: Server, path: str) -> bytes:
    import urllib.request  # noqa: PLC0415

    with urllib.request.urlopen(f"http://{server.host}:{server.port}{path}") as response:
        return response.read()


def _cpu(processes: list[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        times = process.cpu_times()
        total += times.user + times.system
    return total
