"""How soon watchers see what was committed: `python -m bench.watch`.

A real server and PostgreSQL; clients keep a steady rate of changes while others watch. Two figures
for each change and watcher: from the writer's having the answer, which is after the commit, to the
event's arrival (negative if the event was first), and from the request's being sent, an upper bound.
"""

import asyncio
import json
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer
from rich.console import Console

from bench.client import Connection
from bench.over_http import CLUSTER
from bench.stack import Server, serving

console = Console(width=160)


@dataclass(frozen=True)
class WatchFigures:
    """One run: latencies in milliseconds over all changes and watchers."""

    changes: int
    watchers: int
    changes_per_second: float
    after_answer_p50_ms: float
    after_answer_p99_ms: float
    after_answer_max_ms: float
    after_request_p50_ms: float
    after_request_p99_ms: float
    server_cpu_seconds: float
    postgres_cpu_seconds: float


class Watcher:
    """Notes when each revision arrives, and that none is missing or comes twice."""

    def __init__(self) -> None:
        self.arrived: dict[int, float] = {}
        self._last: int | None = None

    async def run(self, server: Server, began: asyncio.Event, last: asyncio.Future[int]) -> None:
        reader, writer = await asyncio.open_connection(server.host, server.port, limit=1 << 24)
        writer.write(f"GET {CLUSTER}/watch HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
        async for line in reader:
            if line.startswith(b"id: "):
                self._take(int(line[4:]), perf_counter())
                began.set()
            if last.done() and self._last is not None and self._last >= last.result():
                break
        writer.close()

    def _take(self, revision: int, now: float) -> None:
        if self._last is None or revision == self._last:  # a bookmark
            self._last = revision
            return
        assert revision == self._last + 1, f"{revision} after {self._last}"
        self._last = revision
        self.arrived[revision] = now


async def run(
    server: Server, *, rate: int, per_request: int, seconds: float, watchers: int
) -> WatchFigures:
    """Change `per_request` pods in each request, `rate` pods a second in all."""
    watching = [Watcher() for _ in range(watchers)]
    last: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    began = [asyncio.Event() for _ in watching]
    tasks = [
        asyncio.create_task(one.run(server, event, last))
        for one, event in zip(watching, began, strict=True)
    ]
    await asyncio.gather(*(event.wait() for event in began))
    before = server.cpu_seconds()
    started = perf_counter()
    sent = await _write(server, rate, per_request, seconds)
    elapsed = perf_counter() - started
    last.set_result(max(sent))
    await asyncio.wait_for(asyncio.gather(*tasks), 30)
    after = server.cpu_seconds()
    return _figures(watching, sent, elapsed, after[0] - before[0], after[1] - before[1])


async def _write(
    server: Server, rate: int, per_request: int, seconds: float
) -> dict[int, tuple[float, float]]:
    """When the request behind each revision was sent, and when its answer came."""
    times: dict[int, tuple[float, float]] = {}
    requests = count()
    interval = per_request / rate
    start = perf_counter()

    async def client() -> None:
        async with Connection(server.host, server.port) as connection:
            while (number := next(requests)) * interval < seconds:
                await asyncio.sleep(start + number * interval - perf_counter())
                body = _pods(number, per_request)
                sent = perf_counter()
                answer = await connection.post_json(f"{CLUSTER}/apply", body)
                now = perf_counter()
                # One commit may hold several requests; this one's changes end at its revision.
                for revision in range(answer["revision"] - per_request + 1, answer["revision"] + 1):
                    times[revision] = (sent, now)

    await asyncio.gather(*(client() for _ in range(16)))
    return times


def _pods(number: int, per_request: int) -> dict[str, object]:
    return {
        "kind": "List",
        "items": [
            {
                "kind": "Pod",
                "metadata": {"name": f"pod-{number}-{index}", "labels": {"app": "web"}},
                "spec": {
                    "schedulerName": "nobody",
                    "containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}],
                },
            }
            for index in range(per_request)
        ],
    }


def _figures(
    watching: list[Watcher],
    sent: dict[int, tuple[float, float]],
    seconds: float,
    server_cpu: float,
    postgres_cpu: float,
) -> WatchFigures:
    arrivals = [(r, at) for one in watching for r, at in one.arrived.items() if r in sent]
    assert len(arrivals) == len(sent) * len(watching), "a watcher missed a change"
    after_answer = sorted((at - sent[revision][1]) * 1000 for revision, at in arrivals)
    after_request = sorted((at - sent[revision][0]) * 1000 for revision, at in arrivals)
    return WatchFigures(
        changes=len(sent),
        watchers=len(watching),
        changes_per_second=len(sent) / seconds,
        after_answer_p50_ms=_quantile(after_answer, 0.5),
        after_answer_p99_ms=_quantile(after_answer, 0.99),
        after_answer_max_ms=after_answer[-1],
        after_request_p50_ms=_quantile(after_request, 0.5),
        after_request_p99_ms=_quantile(after_request, 0.99),
        server_cpu_seconds=server_cpu,
        postgres_cpu_seconds=postgres_cpu,
    )


def _quantile(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))]


def main(
    *,
    rate: Annotated[int, typer.Option(help="Changes a second.")] = 1000,
    per_request: Annotated[int, typer.Option(help="Changes in one request.")] = 10,
    seconds: Annotated[float, typer.Option(help="How long.")] = 10,
    watchers: Annotated[int, typer.Option(help="Streams of all changes.")] = 10,
    out: Annotated[Path | None, typer.Option(help="Append JSON lines here.")] = None,
) -> None:
    """Latency from commit to delivery at a steady rate of changes."""
    with serving() as server:
        figures = asyncio.run(
            run(server, rate=rate, per_request=per_request, seconds=seconds, watchers=watchers)
        )
    for name, value in asdict(figures).items():
        console.print(f"{name:24} {value:,.1f}")
    if out is not None:
        with out.open("a") as lines:
            lines.write(json.dumps({"layer": "watch", **asdict(figures)}) + "\n")


if __name__ == "__main__":
    typer.run(main)
