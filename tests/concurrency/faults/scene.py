"""Where the faults of a campaign befall: servers, their ways to PostgreSQL, and one cluster at a time."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import psutil

from service.server.failures import UnavailableError
from service.server.local_server import LocalServer
from service.store.db.connector import data_source_name
from tests.concurrency import racing
from tests.concurrency.callers import Caller, HangUp, Notebook, bearer
from tests.concurrency.faults.proxy import CommitProxy
from tests.concurrency.racing import CALLERS, TOKEN, member, postmaster_pid
from tests.concurrency.replicas import Asked
from tests.processes import PLAIN_HTTP, family, workers_of
from tests.waiting import WAIT_SECONDS, once

NOT_REACHED = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)
"""What is raised if a database cannot be reached, or does not do what it is asked for."""
REST_SECONDS = 0.1
"""Each caller pauses so long after an answer, which leaves time to whoever starts again."""
HEALED_SECONDS_MAX = 120.0
"""By then after a fault a placement is acknowledged, also where others keep the machine busy."""
PROBES = 6
"""Questions to each server at the end of a round."""
OWN_NUMBERS = 1_000_000
"""The groups from here on are those of the faults themselves."""
_UNHURT = {
    "application_name": "faults",
    "default_transaction_read_only": "off",
    "statement_timeout": "0",
    "lock_timeout": "10s",
    "synchronous_commit": "local",
}
"""Whoever makes faults is not to be hurt by them."""


class Round:
    """One cluster, on which callers place the pods of groups until all faults of the round are over."""

    def __init__(self, cluster: str, urls: Sequence[str]) -> None:
        self.cluster = cluster
        self.notebook = Notebook()
        self.granted = 0
        """The revision that the cluster was set up with."""
        self._urls = urls
        self._own = count(OWN_NUMBERS)

    def callers(self, name: str, number: int) -> list[Caller]:
        """Callers who ask first at one server each, and at the others if that does not answer."""
        urls = [*self._urls]
        return [
            Caller(
                self.notebook,
                f"{name}-{i}",
                urls[i % len(urls) :] + urls[: i % len(urls)],
                TOKEN,
                cluster=self.cluster,
            )
            for i in range(number)
        ]

    async def set_up(self) -> None:
        """Make the cluster with its nodes, at whichever server answers."""
        await once(self._is_set_up)

    async def _is_set_up(self) -> bool:
        path = f"{self._urls[0]}/v1/clusters/{self.cluster}"
        items = {"apiVersion": "v1", "kind": "List", "items": racing.nodes()}
        async with httpx.AsyncClient(headers=bearer(TOKEN), **PLAIN_HTTP) as client:
            with suppress(httpx.HTTPError):
                made = await client.put(path, json={"config": {}})
                filled = await client.post(f"{path}/apply", json=items)
                if made.is_success and filled.is_success:
                    self.granted = int(filled.headers["Moorage-Revision"])
        return self.granted > 0

    async def delete(self) -> None:
        """Make room; what happened is known by then."""
        path = f"{self._urls[0]}/v1/clusters/{self.cluster}"
        async with httpx.AsyncClient(headers=bearer(TOKEN), **PLAIN_HTTP) as client:
            with suppress(httpx.HTTPError):
                await client.delete(path)

    async def keep_placing(self, over: asyncio.Event) -> None:
        """Have all callers place pods of groups, one at a time each, until it is over."""
        callers = self.callers("caller", CALLERS)
        try:
            await asyncio.gather(*(self._keep(each, i, over) for i, each in enumerate(callers)))
        finally:
            await asyncio.gather(*(each.close() for each in callers))

    async def _keep(self, caller: Caller, index: int, over: asyncio.Event) -> None:
        for number in count(1):
            if over.is_set():
                return
            await caller.place([dict(member(number, index))])
            await asyncio.sleep(REST_SECONDS)

    async def again(self, since: float) -> bool:
        """A16: whether a placement that was asked for since is acknowledged before long."""
        calls, seen = self.notebook.calls, len(self.notebook.calls)

        async def is_acknowledged() -> bool:
            nonlocal seen
            found = any(c.is_acknowledged_placement and c.called >= since for c in calls[seen:])
            seen = len(calls)
            return found

        with suppress(TimeoutError):
            return await once(is_acknowledged, HEALED_SECONDS_MAX)
        return False

    async def place_own(self, hang_up: HangUp) -> bool:
        """Place a pod, asking with the same key again after the first connection was ended.

        Answers whether it was ended before the answer came.
        """
        [caller] = self.callers("impatient", 1)
        before = len(self.notebook.calls)
        try:
            await caller.place([self.own_pod()], hang_up=hang_up)
        finally:
            await caller.close()
        mine = (c for c in self.notebook.calls[before:] if c.client == "impatient-0")
        return next(mine).status == "ReadTimeout"

    def own_pod(self) -> dict[str, Any]:
        """A pod of a group that nobody else asks for."""
        return dict(member(next(self._own), 0))

    async def place_at_every_server(self) -> list[str]:
        """A16: with all trouble over, each server places a pod; what is told of one that does not."""
        told = []
        for url in self._urls:
            caller = Caller(self.notebook, "at-last", [url], TOKEN, cluster=self.cluster)
            try:
                call = await caller.place([self.own_pod()], seconds=HEALED_SECONDS_MAX)
            finally:
                await caller.close()
            if call.outcome != "ok":
                told.append(f"A16: {call}")
        return told

    async def ask_all(self) -> list[Asked]:
        """Where each server would put one more pod of some groups, when all is over.

        The first question is asked twice: while a server has not heard of the last commit yet, it
        may tell the node that it chose before, if that will still do.
        """
        pods = [dict(member(number, 99)) for number in range(1, 1 + PROBES)]
        told = []
        for url in self._urls:
            caller = Caller(Notebook(), "probe", [url], TOKEN, cluster=self.cluster)
            try:
                await _answer(caller, pods[0])
                told += [Asked(url, pod, *await _answer(caller, pod)) for pod in pods]
            finally:
                await caller.close()
        return told


async def _answer(caller: Caller, pod: dict[str, Any]) -> tuple[str | None, int | None]:
    """Ask until somebody answers: a worker that was told to end may do so only now."""

    async def answered() -> list[tuple[str | None, int | None]]:
        with suppress(AssertionError):
            return [await caller.try_out(pod)]
        return []

    [answer] = await once(answered)
    return answer


class Scene:
    """Servers on one PostgreSQL, each with its own way there, or without one that may break."""

    round: Round
    """The present one."""

    def __init__(
        self,
        servers: Sequence[LocalServer],
        proxies: Sequence[CommitProxy],
        data_dir: Path,
        url: str,
    ) -> None:
        self.servers = servers
        self.proxies = proxies
        """One for each server; none where the servers keep their PostgreSQL themselves."""
        self.data_dir = data_dir
        self.url = url
        """Of the database, without a proxy."""
        self.database = asyncio.Lock()
        """Who has it does something to PostgreSQL, or waits for a server that starts on it."""

    @asynccontextmanager
    async def connection(self, database: str | None = None) -> AsyncIterator[asyncpg.Connection]:
        """The superuser's own, as soon as PostgreSQL lets anybody in."""
        connected: list[asyncpg.Connection] = []

        async def is_connected() -> bool:
            with suppress(OSError, asyncpg.PostgresError, TimeoutError):
                connected.append(
                    await asyncpg.connect(
                        data_source_name(self.url),
                        database=database,
                        timeout=10,
                        server_settings=_UNHURT,
                    )
                )
            return bool(connected)

        await once(is_connected)
        try:
            yield connected[0]
        finally:
            connected[0].terminate()

    async def until_done(self, statement: str) -> None:
        """Execute a statement of the whole server, again and again until that works."""

        async def is_done() -> bool:
            with suppress(*NOT_REACHED):
                async with self.connection("postgres") as connection:
                    await connection.execute(statement)
                    return True
            return False

        await once(is_done)

    def postgres(self) -> list[psutil.Process]:
        """All processes of PostgreSQL, the first one first; none while there is none."""
        pid = postmaster_pid(self.data_dir)
        return [] if pid is None else family(pid)

    async def start(self, server: LocalServer) -> None:
        """As a service manager does: again and again until it is ready."""
        deadline = time.monotonic() + WAIT_SECONDS
        async with self.database:
            while time.monotonic() < deadline:
                with suppress(UnavailableError):
                    await asyncio.to_thread(server.start)
                    return
        raise AssertionError(f"A16: {server.url} did not start any more")


def workers(server: LocalServer) -> list[psutil.Process]:
    """The workers of a server; none while it does not run."""
    with suppress(psutil.Error, AssertionError):
        return workers_of(server)
    return []


def fork_servers(server: LocalServer) -> Iterator[psutil.Process]:
    """The processes that workers are forked from."""
    if server.process is None:
        return
    for child in psutil.Process(server.process.pid).children():
        with suppress(psutil.Error):
            if "multiprocessing.forkserver" in " ".join(child.cmdline()):
                yield child
