"""PostgreSQL and servers to measure: durable, each run on a database of its own."""

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

import asyncpg
import psutil
from sqlalchemy.engine import make_url

from service.server.local_server import is_ready, temporary_folder
from service.server.tcp_ports import hold_port, port_of
from service.store.embedded import EmbeddedPostgres

DURABLE = ("fsync", "synchronous_commit", "full_page_writes")
READY_SECONDS_MAX = 300.0
STOP_SECONDS_MAX = 60.0
POLL_SECONDS = 0.005


class NotDurableError(RuntimeError):
    """PostgreSQL may lose what it has acknowledged, so figures would mean nothing."""


@dataclass
class Postgres:
    """A running PostgreSQL."""

    url: str
    postmaster: psutil.Process
    durability: dict[str, str]
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def new_database(self) -> str:
        """Create a new database, and return its URL."""
        name = f"bench_{next(self._numbers)}"
        asyncio.run(self._create(name))
        return make_url(self.url).set(database=name).render_as_string(hide_password=False)

    async def _create(self, name: str) -> None:
        connection = await asyncpg.connect(plain_url(self.url))
        await connection.execute(f"CREATE DATABASE {name}")
        await connection.close()

    def cpu_seconds(self) -> float:
        """Return user and system time of all its processes, including those that have ended."""
        times = self.postmaster.cpu_times()
        return cpu_seconds(tree(self.postmaster)) + times.children_user + times.children_system

    def megabytes(self) -> float:
        """Return the sum of its processes' proportional set sizes: what they share counts once."""
        total = 0
        for each in tree(self.postmaster):
            with suppress(psutil.NoSuchProcess):  # an autovacuum ends when it is done
                total += each.memory_full_info().pss
        return total / 1e6


@dataclass
class Server:
    """A running `moorage serve`."""

    host: str
    port: int
    process: psutil.Process
    start_seconds: float
    """The time from exec to the first 200 of `/readyz`."""
    postgres: Postgres
    token: str | None = None

    def cpu_seconds(self) -> tuple[float, float]:
        """Return user and system time of the server's processes, and of PostgreSQL's."""
        return cpu_seconds(tree(self.process)), self.postgres.cpu_seconds()

    def workers(self) -> list[psutil.Process]:
        """Return the processes that answer requests, which the fork server may have made."""
        own = self.process.children()
        forked = [each for parent in own for each in parent.children()]
        return forked or [each for each in own if "spawn_main" in " ".join(each.cmdline())]

    def peak_megabytes(self) -> float:
        """Return the greatest resident size that any worker has had."""
        return max(peak_bytes(each) for each in self.workers()) / 1e6

    def megabytes(self) -> float:
        """Return the present resident size of the largest worker."""
        return max(each.memory_info().rss for each in self.workers()) / 1e6

    def conflicts(self) -> int:
        """Return how many commits have lost the race for the next revision so far."""
        for line in self.get("/metrics").decode().splitlines():
            if line.startswith("moorage_commit_conflicts_total"):
                return int(float(line.rpartition(" ")[2]))
        raise RuntimeError("/metrics tells of no conflicts")

    def _credentials(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def get(self, path: str) -> bytes:
        connection = HTTPConnection(self.host, self.port, timeout=600)
        try:
            connection.request("GET", path, headers=self._credentials())
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {body[:500]!r}")
        return body


@contextmanager
def postgres() -> Iterator[Postgres]:
    """Run an embedded PostgreSQL with an empty folder, as `moorage serve` starts it.

    Raises:
        NotDurableError: it does not sync.
    """
    with temporary_folder() as folder:
        embedded = EmbeddedPostgres(folder / "data")
        url = embedded.start()
        try:
            settings = asyncio.run(durability(url))
            refuse_unsafe(settings)
            pid = next(embedded.data_folder.rglob("postmaster.pid")).read_text().split()[0]
            yield Postgres(url, psutil.Process(int(pid)), settings)
        finally:
            embedded.stop()


async def durability(url: str) -> dict[str, str]:
    """Return the settings of this PostgreSQL that make commits durable, as a session sees them."""
    connection = await asyncpg.connect(plain_url(url))
    try:
        return {name: await connection.fetchval(f"SHOW {name}") for name in DURABLE}
    finally:
        await connection.close()


def refuse_unsafe(settings: dict[str, str]) -> None:
    """Refuse to measure unless everything is on that makes commits durable.

    Raises:
        NotDurableError: something is off.
    """
    off = {name: value for name, value in settings.items() if value != "on"}
    if off:
        raise NotDurableError(f"not durable, so not worth measuring: {off}")


@contextmanager
def serving() -> Iterator[Server]:
    """Run a server on an empty database of a PostgreSQL of its own."""
    with postgres() as database, server(database, database.new_database()) as one:
        yield one


@contextmanager
def server(
    postgres: Postgres,
    url: str,
    *,
    workers: int = 1,
    options: Sequence[str] = (),
    token: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """Run `moorage serve` on a database of that PostgreSQL until the context ends.

    It is ready when the context begins. With a token it asks callers for it, and keeps an audit.
    Settings that have no option are given as environment variables.
    """
    held = hold_port()
    port = port_of(held)
    command = [sys.executable, "-m", "service.cli", "serve", "--port", str(port)]
    given = {**(variables or {}), **({"MOORAGE_TOKEN": token} if token else {})}
    began = time.perf_counter()
    process = subprocess.Popen(
        [*command, "--database-url", url, "--workers", str(workers), *options],
        stderr=subprocess.DEVNULL,
        env={**os.environ, **given},  # noqa: TID251 - the child's
    )
    try:
        while not is_ready(f"http://127.0.0.1:{port}"):
            if process.poll() is not None or time.perf_counter() - began > READY_SECONDS_MAX:
                raise RuntimeError("the server ended before it was ready")
            time.sleep(POLL_SECONDS)
        seconds = time.perf_counter() - began
        yield Server("127.0.0.1", port, psutil.Process(process.pid), seconds, postgres, token)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS_MAX)
        finally:
            process.kill()
            held.close()


def tree(root: psutil.Process) -> list[psutil.Process]:
    """Return a process and its descendants."""
    return [root, *root.children(recursive=True)]


def cpu_seconds(processes: list[psutil.Process]) -> float:
    """Return the sum of the processes' user and system time."""
    times = [each.cpu_times() for each in processes]
    return sum(each.user + each.system for each in times)


def peak_bytes(process: psutil.Process | None = None) -> int:
    """Return the greatest resident size that a process (None: this one) has had (Linux)."""
    pid = "self" if process is None else process.pid
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("the kernel tells no peak of the resident size")


def plain_url(url: str) -> str:
    """Return the URL in the form that asyncpg itself takes."""
    return url.replace("+asyncpg", "")
