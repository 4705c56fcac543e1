"""Data folders and processes that use them; whatever a test leaves behind is ended and removed."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import asyncpg
import psutil
import pytest
from sqlalchemy.engine import make_url

from service.store.embedded import EmbeddedPostgres, postmaster
from service.store.embedded.layout import DataFolder
from tests.waiting import WAIT_SECONDS, eventually, once

QUICK = {"fsync": "off"}
"""What processes wrote outlives them in memory; only what a computer that dies does, needs fsync."""


def quick(folder):
    """The server of a folder that does not wait for disks."""
    return EmbeddedPostgres(folder, settings=QUICK)


def query(url, *statements):
    """Run the statements, each committed by itself; the first value of the last one."""

    async def run():
        connection = await _connect(url)
        try:
            for statement in statements[:-1]:
                await connection.execute(statement)
            return await connection.fetchval(statements[-1])
        finally:
            await connection.close()

    return asyncio.run(run())


def start_computing(url):
    """Have the server compute for minutes for a client that has gone; the process that does."""

    async def run():
        connection = await _connect(url)
        backend = await connection.fetchval("SELECT pg_backend_pid()")
        endless = "DO $$ BEGIN FOR i IN 1..2000000000 LOOP NULL; END LOOP; END $$"
        computing = asyncio.ensure_future(connection.execute(endless))
        await _once_computing(url, backend)
        connection.terminate()
        await asyncio.gather(computing, return_exceptions=True)
        return backend

    return asyncio.run(run())


async def _once_computing(url, backend):
    query = "SELECT state = 'active' FROM pg_stat_activity WHERE pid = $1"
    watcher = await _connect(url)
    try:
        await once(lambda: watcher.fetchval(query, backend))
    finally:
        await watcher.close()


async def _connect(url):
    place = make_url(url)
    return await asyncpg.connect(
        host=place.query["host"], port=5432, user=place.username, database=place.database
    )


def answering(url):
    """Wait until the server answers again, as clients do."""

    def answer():
        with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return query(url, "SELECT 1")

    eventually(answer)


def server_pid(folder):
    """The process id of the server that runs in the folder, None if there is none."""
    server = postmaster.find(DataFolder(folder))
    return server and server.pid


def has_ended(pid):
    """Whether the process is gone, or only waits for its parent to notice."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


def kill(pid):
    os.kill(pid, signal.SIGKILL)


class OtherProcess:
    """A process of its own that uses the folder."""

    def __init__(self, folder, user=None):
        arguments = [str(Path(__file__).with_name("other_process.py")), str(folder)]
        self.process = subprocess.Popen(
            [sys.executable, *arguments, *([user] if user else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def answer(self):
        return json.loads(self.process.stdout.readline())

    def is_supervisor(self):
        self.process.stdin.write("role\n")
        self.process.stdin.flush()
        return self.answer()["supervisor"]

    def kill(self):
        self.process.kill()
        self.close()

    def leave(self):
        """End as at SIGTERM."""
        self.close()
        assert self.process.returncode == 0

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(WAIT_SECONDS)
        self.process.stdout.close()


@pytest.fixture
def other_process():
    made = []

    def start(folder, user=None):
        made.append(OtherProcess(folder, user))
        return made[-1]

    yield start
    for each in made:
        each.kill()


@pytest.fixture(scope="session")
def ready_made():
    """A folder with a database: initdb and copies are slow."""
    with tempfile.TemporaryDirectory(prefix="moorage-embedded-") as parent:
        Path(parent).chmod(0o755)
        folder = Path(parent, "data")
        with quick(folder):
            pass
        yield folder


@pytest.fixture
def folder(ready_made):
    """A data folder with a database, in which no server runs, for tests that leave it in order."""
    yield ready_made
    _end_processes_below(ready_made)


@pytest.fixture
def parent():
    """A folder that all accounts can enter, unlike pytest's own."""
    made = Path(tempfile.mkdtemp(prefix="moorage-embedded-"))
    made.chmod(0o755)
    yield made
    _end_processes_below(made)
    shutil.rmtree(made)


@pytest.fixture
def empty(parent):
    return parent / "empty"


@pytest.fixture
def copy(parent, ready_made):
    """A data folder of its own, with a database, for a test that spoils it."""
    subprocess.run(["cp", "-a", ready_made, parent / "data"], check=True)
    return parent / "data"


@pytest.fixture
def skeleton(parent):
    """What looks like a complete database until a server is to run in it."""
    pgdata = parent / "data" / "postgres"
    for part in ("global", "base/1", "base/5"):
        (pgdata / part).mkdir(parents=True)
    (pgdata / "PG_VERSION").write_text("18\n")
    (pgdata / "global/pg_control").touch()
    if os.geteuid() == 0:
        shutil.chown(pgdata, "nobody")
    return parent / "data"


def _end_processes_below(folder):
    """So that no failed test leaves a server behind; their wardens end with them."""
    for process in psutil.process_iter(["cmdline"]):
        if any(str(folder) in argument for argument in process.info["cmdline"] or []):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
                process.wait(WAIT_SECONDS)
