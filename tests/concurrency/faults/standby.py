"""A PostgreSQL with a streaming standby, both embedded, which may be killed and promoted."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psutil

from service.store.embedded import (
    EmbeddedPostgres,
    binaries,
    layout,
    os_account,
    postmaster,
)
from service.store.embedded.binaries import ENVIRONMENT
from service.store.embedded.config import DATABASE, ROLE
from service.store.embedded.layout import DataFolder
from service.store.embedded.locks import FileLock

SETTINGS = {"wal_keep_size": "256MB", "shared_buffers": "32MB", "fsync": "off"}
"""Processes are killed here, the machine is not: what was written need not reach the disk."""


class Pair:
    """A primary and its standby; `url` names both, and whoever can be written to is meant."""

    def __init__(self, folder: Path) -> None:
        self.primary = EmbeddedPostgres(folder / "primary", settings=SETTINGS)
        self.standby = EmbeddedPostgres(folder / "standby", settings=SETTINGS)
        hosts = ",".join(map(_socket_folder, (self.primary, self.standby)))
        self.url = f"postgresql://{ROLE}@/{DATABASE}?host={quote(hosts, safe='')}&port=5432,5432"

    def copy(self) -> None:
        """Make the standby from the primary that runs, and let it follow."""
        data = DataFolder(self.standby.data_folder).pgdata
        owner = os_account.choose(layout.owner(self.standby.data_folder))
        programs = binaries.find(owner, layout.SYSTEM_DIR)
        data.mkdir(mode=0o700)
        if not owner.is_self:
            os.chown(data, owner.uid, owner.gid)
        command = [
            *(programs.path("pg_basebackup"), "--pgdata", str(data)),
            *("--host", _socket_folder(self.primary), "--username", ROLE),
            *("--wal-method=stream", "--checkpoint=fast", "--no-sync", "--write-recovery-conf"),
        ]
        subprocess.run(command, check=True, cwd="/", env=ENVIRONMENT, **owner.identity())
        self.standby.start()

    def kill_primary(self) -> None:
        """`kill -9`, and nobody starts it again."""
        data = DataFolder(self.primary.data_folder)
        server, user = postmaster.find(data), FileLock(data.users_lock)
        assert server is not None
        assert user.try_shared()
        self.primary.stop()  # which leaves it to its other user
        os.kill(server.pid, signal.SIGKILL)
        os.waitpid(server.pid, 0)
        user.release()

    def signal_primary(self, number: signal.Signals) -> None:
        """Signal all its processes."""
        server = postmaster.find(DataFolder(self.primary.data_folder))
        assert server is not None
        first = psutil.Process(server.pid)
        for process in (first, *first.children(recursive=True)):
            process.send_signal(number)

    def stop(self) -> None:
        for server in (self.primary, self.standby):
            server.stop()


@contextmanager
def pair(folder: Path) -> Iterator[Pair]:
    """The primary runs; the standby is not made yet."""
    made = Pair(folder)
    made.primary.start()
    try:
        yield made
    finally:
        made.stop()


def _socket_folder(server: EmbeddedPostgres) -> str:
    return str(DataFolder(server.data_folder).socket.parent)
