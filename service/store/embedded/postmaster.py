"""Starts or finds the running server of a data folder, signals it, and notices its end."""

import contextlib
import logging
import os
import re
import signal
import subprocess
import sys
import time

from service.store.embedded import (
    config as configuration,
    idle_shutdown,
    processes,
    serverlog,
)
from service.store.embedded.binaries import ENVIRONMENT, Binaries
from service.store.embedded.errors import StartFailedError
from service.store.embedded.layout import DataFolder
from service.store.embedded.locks import FileLock
from service.store.embedded.os_account import OsAccount

POLL_SECONDS = 0.02
_ORPHANS_SECONDS = 0.3
ORPHANS_SECONDS_MAX = 3.0
"""The longest wait for processes that a killed server left behind."""
_GUARD_SECONDS_MAX = 5.0

_log = logging.getLogger(__name__)


class Postmaster:
    """A running server: one started here, with a guard process, or one that was found running.

    The guard ends the server if this process is killed.
    """

    def __init__(
        self,
        folder: DataFolder,
        pid: int,
        child: subprocess.Popen[bytes] | None = None,
        guard: subprocess.Popen[bytes] | None = None,
    ) -> None:
        self.pid = pid
        self._folder = folder
        self._child = child
        self._guard = guard

    @property
    def is_adopted(self) -> bool:
        """Whether another process started the server."""
        return self._child is None

    def is_alive(self) -> bool:
        """Return whether the server runs; reap it if it was a child and has ended."""
        if self._child is not None:
            return self._child.poll() is None
        return processes.is_postmaster(self.pid, self._folder.pgdata)

    def stop(self, seconds_max: float) -> None:
        """Shut down with a checkpoint; kill the server after `seconds_max`, forcing a recovery."""
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            if self.is_alive():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, number)
            if self._ends_within(seconds_max):
                break
        self.forget()

    def reload(self) -> None:
        """Have the server reload its rules for who may connect."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGHUP)

    def forget(self) -> None:
        """Reap the guard of a server that has ended."""
        if self._guard is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._guard.wait(_GUARD_SECONDS_MAX)

    def leave(self) -> None:
        """Let the server and its guard outlive this process, since others use it."""
        for process in (self._child, self._guard):
            if process is not None:
                process.returncode = 0  # or Popen would warn of a child that still runs

    def _ends_within(self, seconds_max: float) -> bool:
        deadline = time.monotonic() + seconds_max
        while self.is_alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True


def find(folder: DataFolder) -> Postmaster | None:
    """Return the server that runs in the folder, whichever process started it, or None.

    A process id in a file is believed only if that process is a server of this folder. The server
    is found without files, too, since these may be truncated, or not yet written.
    """
    texts = (
        FileLock(folder.server_lock).read(),
        processes.read(folder.pgdata / "postmaster.pid"),
    )
    for text in texts:
        pid = _leading_number(text)
        if pid is not None and processes.is_postmaster(pid, folder.pgdata):
            return Postmaster(folder, pid)
    pid = processes.find_postmaster(folder.pgdata)
    return None if pid is None else Postmaster(folder, pid)


def start(folder: DataFolder, account: OsAccount, binaries: Binaries) -> Postmaster:
    """Start a server in the folder; the caller supervises it, and none may be running there.

    The server's processes hold server.lock as long as any of them lives, so that no second server
    can run next to processes of one that was killed.

    Raises:
        StartFailedError: such processes still run, or the server cannot be run.
    """
    lock = FileLock(folder.server_lock)
    _await_orphans(lock, folder)
    try:
        _remove_foreign_files(folder)
        child = _spawn(folder, account, binaries, lock)
        lock.record(f"{child.pid}\n")
    finally:
        lock.drop()
    _log.info("Started PostgreSQL %s with process id %d", binaries.version, child.pid)
    return Postmaster(folder, child.pid, child, _guard(folder, child.pid))


def _await_orphans(lock: FileLock, folder: DataFolder) -> None:
    """Take the lock of a server's processes, once orphaned ones have ended or been killed."""
    began, killed = time.monotonic(), 0
    while not lock.try_exclusive():
        waited = time.monotonic() - began
        if waited > ORPHANS_SECONDS_MAX:
            raise StartFailedError("Processes that a PostgreSQL left behind do not end.")
        if waited > _ORPHANS_SECONDS and not killed:
            killed = processes.kill_orphans(folder.pgdata)
            _log.warning("Killed %d processes that a PostgreSQL left behind.", killed)
        time.sleep(POLL_SECONDS)


def _spawn(
    folder: DataFolder, account: OsAccount, binaries: Binaries, lock: FileLock
) -> subprocess.Popen[bytes]:
    log = serverlog.open_to_append(folder)
    try:
        return subprocess.Popen(  # noqa: S603 - ours
            [binaries.path("postgres"), *configuration.arguments(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=ENVIRONMENT,
            process_group=0,  # Ctrl-C is for us: we stop the server gracefully
            pass_fds=(lock.bequeath(),),
            **account.identity(),
        )
    except OSError as error:
        raise StartFailedError(f"PostgreSQL cannot be run: {error}") from error
    finally:
        os.close(log)


def _guard(folder: DataFolder, pid: int) -> subprocess.Popen[bytes] | None:
    """Start a process that ends the server when the last user of the folder is killed."""
    if not hasattr(os, "pidfd_open"):
        return None  # this is not Linux: the next start finds the server and takes it over
    server = os.pidfd_open(pid)  # our child, which has not been reaped
    users = os.open(folder.users_lock, os.O_RDWR | os.O_CLOEXEC)
    try:
        return subprocess.Popen(  # noqa: S603 - ours
            [sys.executable, "-I", "-S", idle_shutdown.__file__, str(server), str(users)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            pass_fds=(server, users),
        )
    except OSError as error:
        _log.warning("Nothing will end PostgreSQL if this process is killed: %s", error)
        return None
    finally:
        os.close(server)
        os.close(users)


def _remove_foreign_files(folder: DataFolder) -> None:
    """Remove files that would make PostgreSQL believe that it is already running.

    A postmaster.pid stays if its process is gone: it leads PostgreSQL to shared memory that may
    still be in use. A file that is unreadable, or names an unrelated process, is removed.
    """
    path = folder.pgdata / "postmaster.pid"
    if path.exists():
        pid = _leading_number(processes.read(path))
        if pid is None or processes.exists(pid):
            _log.warning("Removing %s, which names no server of this folder", path)
            path.unlink(missing_ok=True)
    for stale in (folder.socket, folder.socket.with_name(f"{folder.socket.name}.lock")):
        stale.unlink(missing_ok=True)


def _leading_number(text: str) -> int | None:
    match = re.match(r"([1-9]\d{0,9})\n", text)
    return int(match[1]) if match else None
