"""How soon watches see what was committed: `python -m bench.watch`.

This uses a real server and PostgreSQL; clients make changes at a steady rate while others watch.
There are three figures for each change and watch, all up to the event's arrival: from the time that
the commit has in the log, which PostgreSQL reads before it flushes; from the answer to the writer
(negative if the event came first); and from the sending of the request.
"""

import asyncio
import json
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from time import time  # noqa: TID251 - compared with the time that commits have in the log
from typing import Annotated

import asyncpg
import typer
from rich.console import Console

from bench.client import Connection
from bench.figures import quantile
from bench.over_http import CLUSTER
from bench.stack import Server, plain_url, postgres, server

console = Console(width=160)


@dataclass(frozen=True)
class WatchFigures:
    """One run: latencies in milliseconds, over all changes and watches."""

    changes: int
    watchers: int
    changes_per_second: float
    after_commit_p50_ms: float
    after_commit_p99_ms: float
    after_commit_max_ms: float
    after_answer_p50_ms: float
    after_answer_p99_ms: float
    after_answer_max_ms: float
    after_request_p50_ms: float
    after_request_p99_ms: float
    server_cpu_seconds: float
    """The CPU time of the server that is watched."""
    postgres_cpu_seconds: float


class Watcher:
    """Notes when each revision arrives, and checks that none is missing or comes twice."""

    def __init__(self) -> None:
        self.arrived: dict[int, float] = {}
        self._last: int | None = None

    async def run(self, server: Server, began: asyncio.Event, last: asyncio.Future[int]) -> None:
        reader, writer = await asyncio.open_connection(server.host, server.port, limit=1 << 24)
        writer.write(f"GET {CLUSTER}/watch HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        async for line in reader:
            if line.startswith(b"id: "):
                self._take(int(line[4:]), time())
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
    url: str,
    written: Server,
    watched: Server,
    *,
    rate: int,
    per_request: int,
    seconds: float,
    watchers: int,
) -> WatchFigures:
    """Change `per_request` pods in each request, `rate` pods a second in all, at one server.

    Both servers use the database of that URL; they may be the same.
    """
    watching = [Watcher() for _ in range(watchers)]
    last: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    began = [asyncio.Event() for _ in watching]
    tasks = [
        asyncio.create_task(one.run(watched, event, last))
        for one, event in zip(watching, began, strict=True)
    ]
    await asyncio.gather(*(event.wait() for event in began))
    before = watched.cpu_seconds()
    started = time()
    sent = await _write(written, rate, per_request, seconds)
    elapsed = time() - started
    last.set_result(max(sent))
    await asyncio.wait_for(asyncio.gather(*tasks), 30)
    after = watched.cpu_seconds()
    committed = await committed_at(url, set(sent))
    cpu = (after[0] - before[0], after[1] - before[1])
    return _figures(watching, sent, committed, elapsed, cpu)


async def committed_at(url: str, revisions: set[int]) -> dict[int, float]:
    """Return when each revision was committed, by the log; server and database have one clock."""
    connection = await asyncpg.connect(plain_url(url))
    try:
        rows = await connection.fetch("SELECT first_revision, last_revision, at FROM commit")
    finally:
        await connection.close()
    return {
        revision: row["at"].timestamp()
        for row in rows
        for revision in range(row["first_revision"], row["last_revision"] + 1)
        if revision in revisions
    }


async def _write(
    server: Server, rate: int, per_request: int, seconds: float
) -> dict[int, tuple[float, float]]:
    """Return when the request behind each revision was sent, and when its answer came."""
    times: dict[int, tuple[float, float]] = {}
    requests = count()
    interval = per_request / rate
    start = time()

    async def client() -> None:
        async with Connection(server.host, server.port) as connection:
            while (number := next(requests)) * interval < seconds:
                await asyncio.sleep(start + number * interval - time())
                body = _pods(number, per_request)
                sent = time()
                answer = await connection.post_json(f"{CLUSTER}/apply", body)
                now = time()
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
    committed: dict[int, float],
    seconds: float,
    cpu: tuple[float, float],
) -> WatchFigures:
    arrivals = [(r, at) for one in watching for r, at in one.arrived.items() if r in sent]
    assert len(arrivals) == len(sent) * len(watching), "a watcher missed a change"
    after_commit = sorted((at - committed[revision]) * 1000 for revision, at in arrivals)
    after_answer = sorted((at - sent[revision][1]) * 1000 for revision, at in arrivals)
    after_request = sorted((at - sent[revision][0]) * 1000 for revision, at in arrivals)
    return WatchFigures(
        changes=len(sent),
        watchers=len(watching),
        changes_per_second=len(sent) / seconds,
        after_commit_p50_ms=quantile(after_commit, 0.5),
        after_commit_p99_ms=quantile(after_commit, 0.99),
        after_commit_max_ms=after_commit[-1],
        after_answer_p50_ms=quantile(after_answer, 0.5),
        after_answer_p99_ms=quantile(after_answer, 0.99),
        after_answer_max_ms=after_answer[-1],
        after_request_p50_ms=quantile(after_request, 0.5),
        after_request_p99_ms=quantile(after_request, 0.99),
        server_cpu_seconds=cpu[0],
        postgres_cpu_seconds=cpu[1],
    )


def main(
    *,
    rate: Annotated[int, typer.Option(help="Changes a second.")] = 1000,
    per_request: Annotated[int, typer.Option(help="Changes in one request.")] = 10,
    seconds: Annotated[float, typer.Option(help="How long.")] = 10,
    watchers: Annotated[int, typer.Option(help="Streams of all changes.")] = 10,
    elsewhere: Annotated[
        bool, typer.Option("--elsewhere", help="Watch at a second server on the same database.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Append JSON lines here.")] = None,
) -> None:
    """Measure the latency from commit to delivery at a steady rate of changes."""
    with ExitStack() as stack:
        database = stack.enter_context(postgres())
        url = database.new_database()
        written = watched = stack.enter_context(server(database, url))
        if elsewhere:
            watched = stack.enter_context(server(database, url))
        figures = asyncio.run(
            run(
                url,
                written,
                watched,
                rate=rate,
                per_request=per_request,
                seconds=seconds,
                watchers=watchers,
            )
        )
    for name, value in asdict(figures).items():
        console.print(f"{name:24} {value:,.1f}")
    if out is not None:
        with out.open("a") as lines:
            lines.write(json.dumps({"layer": "watch", **asdict(figures)}) + "\n")


if __name__ == "__main__":
    typer.run(main)
