"""Servers on one data folder, callers who never stop asking, and faults in between."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
from sqlalchemy.engine import make_url

from service.cli.local import LocalServer, temporary_folder
from service.store.embedded import EmbeddedPostgres
from tests.concurrency.callers import Caller, Notebook, read_history
from tests.concurrency.checker import check
from tests.concurrency.checker.history import Call
from tests.concurrency.racing import (
    CALLERS,
    SETUP,
    TOKEN,
    assert_every_answer_is_stored,
    broken_groups,
    is_apart,
    load,
    member,
    worker_of,
)

HEALED_SECONDS_MAX = 10.0
Fault = Callable[["Site"], Awaitable[None]]


class Site:
    """Some servers that share an embedded PostgreSQL, and what was asked of them."""

    def __init__(self, data_dir: Path, servers: Sequence[LocalServer], workers: int = 1) -> None:
        self.data_dir = data_dir
        self.servers = servers
        self.processes = workers * len(servers)
        self.notebook = Notebook()
        self.granted = SETUP
        """The revision that the cluster was set up with."""
        self.told: dict[str, Any] = {}
        """What else the checker has to know."""
        self._groups = 0

    @property
    def calls(self) -> list[Call]:
        return self.notebook.calls

    async def place_while(self, fault: Fault, *, pods: int = 1) -> list[Call]:
        """Have all callers place groups until the fault is over; the calls of that time.

        Each of them asks for so many pods of a group; if they are more than one, then of none for
        which there could be too few hosts.
        """
        before, over = len(self.calls), asyncio.Event()

        async def cause() -> None:
            try:
                await asyncio.sleep(0.2)
                await fault(self)
                await asyncio.sleep(0.2)
            finally:
                over.set()

        causing = asyncio.create_task(cause())
        callers = self.callers()
        first = self._groups
        self._groups += 10_000
        try:
            await asyncio.gather(
                *(self._keep_asking(c, i, first, over, pods) for i, c in enumerate(callers))
            )
        finally:
            await asyncio.gather(*(caller.close() for caller in callers))
        await causing
        return self.calls[before:]

    async def place_again(self) -> float:
        """A16: how many seconds it takes until a placement succeeds, with all trouble over."""
        started, [caller] = time.monotonic(), self.callers(1)
        try:
            self._groups += 1
            call = await caller.place([dict(member(self._groups, 0))], seconds=HEALED_SECONDS_MAX)
        finally:
            await caller.close()
        assert call.outcome == "ok", call
        return time.monotonic() - started

    def signal_worker(self, index: int, number: int) -> None:
        worker = worker_of(self.servers[index])
        assert worker is not None
        worker.send_signal(number)

    def callers(self, count: int = CALLERS) -> list[Caller]:
        urls = [server.url for server in self.servers]
        return [
            Caller(
                self.notebook, f"caller-{i}", urls[i % len(urls) :] + urls[: i % len(urls)], TOKEN
            )
            for i in range(count)
        ]

    async def _keep_asking(
        self, caller: Caller, index: int, first: int, over: asyncio.Event, pods: int
    ) -> None:
        number = first
        while not over.is_set():
            number += 1
            if pods > 1 and is_apart(number):
                number += 1
            members = (member(number, index * pods + i) for i in range(pods))
            await caller.place([dict(each) for each in members])


@asynccontextmanager
async def site(
    *,
    servers: int = 2,
    workers: int = 1,
    quiet: bool = False,
    disk: AbstractContextManager[Path] | None = None,
    data_dir: Path | None = None,
    stays: bool = True,
    **settings: str,
) -> AsyncIterator[Site]:
    """A running site. Whatever happened at it, everything acknowledged is stored, once.

    Its data is in a folder of `disk`, or in a temporary one; `data_dir` has the PostgreSQL that
    `settings` name, if they name one. `stays`: all that is asked for is placed, in groups, and
    nothing is deleted.
    """
    environment = {f"MOORAGE_{name.upper()}": value for name, value in settings.items()}
    environment["MOORAGE_TOKEN"] = TOKEN
    with disk or temporary_folder() as folder, ExitStack() as stack:
        data_dir = data_dir or folder / "data"
        running = [
            LocalServer(folder / "data", workers=workers, environment=environment, quiet=quiet)
            for _ in range(servers)
        ]
        for server in running:
            await asyncio.to_thread(stack.enter_context, server)
        await asyncio.to_thread(load, running[0].url)
        made = Site(data_dir, running, workers)
        yield made
        await made.place_again()
        await _assert_nothing_is_left_open(made)
        await asyncio.to_thread(stack.close)
        with EmbeddedPostgres(data_dir) as postgres:
            history = await read_history(postgres.url, made.calls, granted=made.granted)
    if stays:
        assert_every_answer_is_stored(history)
        assert list(broken_groups(history)) == []
    history = replace(history, **made.told)
    found = check(history, placements_every=max(1, len(history.changes) // 500))
    assert not found, "\n".join(map(str, found[:20]))


async def _assert_nothing_is_left_open(made: Site) -> None:
    """A16: no transaction idle for long, and no more connections than the servers may hold."""
    with EmbeddedPostgres(made.data_dir) as postgres:
        connection = await connect(postgres.url)
        try:
            rows = await connection.fetch(
                "SELECT state, clock_timestamp() - state_change > '5 s' AS long FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
        finally:
            await connection.close()
    assert not [row for row in rows if row["long"] and "transaction" in (row["state"] or "")]
    assert len(rows) <= 18 * made.processes, rows


async def connect(url: str) -> asyncpg.Connection:
    parts = make_url(url)
    return await asyncpg.connect(
        host=parts.query["host"], port=5432, user=parts.username, database=parts.database
    )
