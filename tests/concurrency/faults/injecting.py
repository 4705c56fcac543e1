"""Faults by chance, one after the other, while callers place pods at two servers."""

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable

import psutil

from service.store.embedded import EmbeddedPostgres
from tests.concurrency.faults.proxy import KILLS, CommitProxy
from tests.concurrency.faults.site import Site, connect
from tests.concurrency.racing import kill_postgres, kill_worker, worker_of

PAUSE_SECONDS = (0.1, 1.0)
STAND_STILL_SECONDS = (0.1, 3.0)
PROXY_SECONDS_MAX = 5.0
"""How long a fault of the connection waits for a commit that it can befall."""

Inject = Callable[[Site, random.Random], Awaitable[bool]]
"""Answers whether there was anything to befall."""


async def _worker_killed(made: Site, chance: random.Random) -> bool:
    server = chance.choice(made.servers)
    found = await asyncio.to_thread(worker_of, server)
    await asyncio.to_thread(kill_worker, server)
    return found is not None


async def _postgres_killed(made: Site, chance: random.Random) -> bool:
    await asyncio.to_thread(kill_postgres, made.data_dir)
    return True


async def _server_killed(made: Site, chance: random.Random) -> bool:
    server = chance.choice(made.servers)
    await asyncio.to_thread(server.kill)
    await asyncio.sleep(chance.uniform(0, 1))
    await asyncio.to_thread(server.start)
    return True


async def _server_stopped(made: Site, chance: random.Random) -> bool:
    server = chance.choice(made.servers)
    assert await asyncio.to_thread(server.stop) == 0
    await asyncio.to_thread(server.start)
    return True


async def _worker_stood_still(made: Site, chance: random.Random) -> bool:
    worker = await asyncio.to_thread(worker_of, chance.choice(made.servers))
    if worker is None:
        return False
    try:
        worker.send_signal(signal.SIGSTOP)
        await asyncio.sleep(chance.uniform(*STAND_STILL_SECONDS))
        worker.send_signal(signal.SIGCONT)
    except psutil.NoSuchProcess:
        return False
    return True


async def _backends_terminated(made: Site, chance: random.Random) -> bool:
    with EmbeddedPostgres(made.data_dir) as postgres:
        connection = await connect(postgres.url)
        try:
            rows = await connection.fetch(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'moorage' AND pid <> pg_backend_pid()"
            )
        finally:
            await connection.close()
    return bool(rows)


FAULTS: dict[str, tuple[int, Inject]] = {
    "worker killed": (5, _worker_killed),
    "PostgreSQL killed": (5, _postgres_killed),
    "worker stood still": (3, _worker_stood_still),
    "backends terminated": (3, _backends_terminated),
    "server killed": (1, _server_killed),
    "server stopped in good order": (1, _server_stopped),
}
"""How often, compared with each other, and what happens."""

ON_THE_WAY = ("answer lost", "never sent", "sent late", *KILLS)
"""What befalls a commit by the proxy: its connection breaks, or the worker that sends it dies."""


class Injections:
    """So many faults, by chance; `done` counts them."""

    def __init__(self, count: int, seed: str, proxy: CommitProxy | None) -> None:
        self.done: Counter[str] = Counter()
        self._count = count
        self._chance = random.Random(seed)
        self._proxy = proxy

    async def __call__(self, made: Site) -> None:
        while self.done.total() < self._count:
            await asyncio.sleep(self._chance.uniform(*PAUSE_SECONDS))
            if self._proxy is not None and self._chance.random() < 0.5:
                await self._break_commit(self._proxy)
            else:
                weights = [weight for weight, _ in FAULTS.values()]
                [name] = self._chance.choices(list(FAULTS), weights)
                self.done[name] += await FAULTS[name][1](made, self._chance)

    async def _break_commit(self, proxy: CommitProxy) -> None:
        fault = self._chance.choice(ON_THE_WAY)
        proxy.befell.clear()
        proxy.faults.append(fault)
        try:
            async with asyncio.timeout(PROXY_SECONDS_MAX):
                await proxy.befell.wait()
            self.done[f"commit: {fault}"] += 1
        except TimeoutError:
            proxy.faults.clear()
