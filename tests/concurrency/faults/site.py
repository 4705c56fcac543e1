"""Servers on one data folder, callers who never stop asking, and faults in between."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg

from service.server.local_server import LocalServer, temporary_folder
from service.store.db.connector import data_source_name
from service.store.embedded import EmbeddedPostgres
from tests.concurrency import racing
from tests.concurrency.callers import Caller, Notebook, read_history
from tests.concurrency.checker import check
from tests.concurrency.checker.counting import check_by_counting
from tests.concurrency.checker.history import Call, History, Violation
from tests.concurrency.racing import (
    CALLERS,
    SETUP,
    TOKEN,
    assert_every_answer_is_stored,
    broken_groups,
    load,
    member,
    worker_of,
)
from tests.processes import copy_data
from tests.waiting import WAIT_SECONDS, once

SAMPLES = 500
SAMPLES_BESIDE_COUNTERS = 200
"""Placements that the reference implementation evaluates, which takes long."""
Fault = Callable[["Site"], Awaitable[None]]
Ask = Callable[[Caller, int, asyncio.Event], Awaitable[None]]
"""What a caller, with its index, does until the event is set."""


class Site:
    """Some servers that share an embedded PostgreSQL, and what was asked of them."""

    def __init__(
        self,
        data_dir: Path,
        servers: Sequence[LocalServer],
        workers: int = 1,
        *,
        url: str | None = None,
    ) -> None:
        self.data_dir = data_dir
        self._url = url
        self.servers = servers
        self.processes = workers * len(servers)
        self.notebook = Notebook()
        self.granted = SETUP
        """The revision that the cluster was set up with."""
        self.told: dict[str, Any] = {}
        """What else the checker has to know."""
        self.counts = False
        """Whether every placement is checked by counters, not samples alone: for long runs."""
        self._groups = 0

    @property
    def calls(self) -> list[Call]:
        return self.notebook.calls

    async def place_while(self, fault: Fault) -> list[Call]:
        """Have all callers place pods of groups, one at a time, until the fault is over.

        Before it and after it, more placements than there are callers are acknowledged. Answers
        the calls of that time.
        """
        first = self._groups
        self._groups += 10_000

        async def in_between(made: Site) -> None:
            await self.acknowledged(time.monotonic())
            await fault(made)
            await self.acknowledged(time.monotonic())

        return await self.ask_while(
            in_between,
            lambda caller, index, over: self._keep_asking(caller, index, first, over),
            CALLERS,
        )

    async def ask_while(self, fault: Fault, ask: Ask, count: int) -> list[Call]:
        """Have so many callers ask until the fault is over; the calls of that time."""
        before, over = len(self.calls), asyncio.Event()

        async def cause() -> None:
            try:
                await fault(self)
            finally:
                over.set()

        causing = asyncio.create_task(cause())
        callers = self.callers(count)
        try:
            await asyncio.gather(*(ask(caller, i, over) for i, caller in enumerate(callers)))
        finally:
            await asyncio.gather(*(caller.close() for caller in callers))
        await causing
        return self.calls[before:]

    async def acknowledged(self, since: float) -> None:
        """Wait until more placements than there are callers were asked for since, and acknowledged."""

        def count() -> int:
            return sum(
                call.outcome == "ok" and call.action == "place" and call.called >= since
                for call in self.calls
            )

        async def enough() -> bool:
            return count() > CALLERS

        await once(enough)

    async def place_again(self) -> None:
        """A16: a placement succeeds, with all trouble over."""
        [caller] = self.callers(1)
        try:
            self._groups += 1
            call = await caller.place([dict(member(self._groups, 0))])
        finally:
            await caller.close()
        assert call.outcome == "ok", call

    @asynccontextmanager
    async def database(self) -> AsyncIterator[str]:
        """The URL of the servers' database, which runs at least until this ends."""
        if self._url is not None:
            yield self._url
            return
        postgres = EmbeddedPostgres(self.data_dir)
        try:
            yield await asyncio.to_thread(postgres.start)
        finally:
            await asyncio.to_thread(postgres.stop)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection]:
        """One to the servers' database."""
        async with self.database() as url:
            connected = await connect(url)
            try:
                yield connected
            finally:
                await connected.close()

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
        self, caller: Caller, index: int, number: int, over: asyncio.Event
    ) -> None:
        while not over.is_set():
            number += 1
            await caller.place([dict(member(number, index))])


@asynccontextmanager
async def site(
    *,
    servers: int = 2,
    workers: int = 1,
    quiet: bool = False,
    disk: AbstractContextManager[Path] | None = None,
    data_dir: Path | None = None,
    ready_made: Path | None = None,
    url: str | None = None,
    stays: bool = True,
    nodes: Sequence[dict[str, Any]] | None = None,
    **settings: str,
) -> AsyncIterator[Site]:
    """A running site. Whatever happened at it, everything acknowledged is stored, once.

    Its data is in a folder of `disk`, or in a temporary one, which begins as a copy of the
    `ready_made`; `data_dir` has the PostgreSQL that `settings` name, if they name one; `url` is a
    database that no fault befalls. `stays`: all that is asked for is placed, in groups, and
    nothing is deleted. `nodes` are those of the races by default.
    """
    settings = {"token": TOKEN, "request_timeout_seconds": str(WAIT_SECONDS)} | settings
    if url is not None:
        settings["database_url"] = url
    environment = {f"MOORAGE_{name.upper()}": value for name, value in settings.items()}
    with disk or temporary_folder() as folder, ExitStack() as stack:
        data_dir = data_dir or folder / "data"
        if ready_made is not None:
            copy_data(ready_made, data_dir)
        running = [
            LocalServer(folder / "data", workers=workers, environment=environment, quiet=quiet)
            for _ in range(servers)
        ]
        await start_all(running, stack)
        nodes = racing.nodes() if nodes is None else nodes
        await asyncio.to_thread(load, running[0].url, nodes)
        made = Site(data_dir, running, workers, url=url)
        made.granted = 1 + len(nodes)
        yield made
        await made.place_again()
        async with made.connection() as connection:
            await assert_nothing_is_left_open(connection, made.processes)
        await asyncio.to_thread(stack.close)
        async with made.database() as there:
            history = await read_history(there, made.calls, granted=made.granted)
    if stays:
        assert_every_answer_is_stored(history)
        assert list(broken_groups(history)) == []
    found = list(_violations(made, replace(history, **made.told)))
    assert not found, "\n".join(map(str, found[:20]))


def _violations(made: Site, history: History) -> Iterator[Violation]:
    samples = SAMPLES_BESIDE_COUNTERS if made.counts else SAMPLES
    yield from check(history, placements_every=max(1, len(history.changes) // samples))
    if made.counts:
        yield from check_by_counting(history).violations


async def assert_nothing_is_left_open(connection: asyncpg.Connection, processes: int) -> None:
    """A16: transactions end, and there are no more connections than so many workers may hold.

    PostgreSQL notices only after a while that whoever was killed is no longer there.
    """

    async def is_tidy() -> bool:
        states = [row["state"] or "" for row in await connection.fetch(_OTHERS)]
        open_ = [state for state in states if "in transaction" in state]
        return not open_ and len(states) <= 18 * processes

    await once(is_tidy)


_OTHERS = (
    "SELECT state FROM pg_stat_activity WHERE backend_type = 'client backend'"
    " AND datname = current_database() AND pid <> pg_backend_pid()"
)


async def start_all(servers: Sequence[LocalServer], stack: ExitStack) -> None:
    """All at once; the stack stops them, also those that are still starting when one cannot."""
    for server in servers:
        stack.callback(server.stop)
    starts = (asyncio.to_thread(server.start) for server in servers)
    ended = await asyncio.gather(*starts, return_exceptions=True)
    for failure in ended:
        if isinstance(failure, BaseException):
            raise failure


async def connect(url: str) -> asyncpg.Connection:
    return await asyncpg.connect(data_source_name(url))
