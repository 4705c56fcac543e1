"""Starts the embedded PostgreSQL, keeps it running, and reports why it cannot start.

Every process registers as a user of the data folder and then runs the same loop in a thread. The
process that gets the supervisor's lock keeps a server running: it takes over one that runs, or
starts one, again and again if it dies. The others wait for the server to answer, and for the lock.
The last process to leave stops the server.

             ┌────────── lock is taken ─────────┐
    register ┤                                  ├─ ready ── … ── last? stop server ── leave
             └─ lock is free: find or start it ─┘
                       ▲            │ died
                       └─ back off ─┘
"""

import atexit
import logging
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from service.store.embedded import (
    binaries,
    config as configuration,
    layout,
    os_account,
    pgdata,
    postmaster,
    probe,
    serverlog,
)
from service.store.embedded.errors import (
    EmbeddedPostgresError,
    EndedSoonError,
    FolderUnusableError,
    StartFailedError,
)
from service.store.embedded.locks import FileLock
from service.store.embedded.postmaster import Postmaster
from service.store.embedded.probe import ProbeAnswer
from service.store.embedded.readiness import STOP_SECONDS_MAX, await_ready

_ROUND_SECONDS = 0.05
_BACK_OFF_SECONDS_MIN = 0.1
_BACK_OFF_SECONDS_MAX = 5.0
_BACK_OFF_READY_SECONDS_MAX = 0.4  # one that was ready can start: whatever ended it may be over
_STEADY_SECONDS = 10.0  # one that lived this long is restarted without delay
PATIENCE_SECONDS = 60.0
"""How long a start may go without progress before it is abandoned."""
LOG_CHECK_SECONDS = 60.0
"""The time between two checks of the size of a running server's log."""
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_log = logging.getLogger(__name__)


class EmbeddedPostgres:
    """The PostgreSQL of a data folder, shared by all processes that use the folder.

    `start` and `stop` block and are called by one thread, of a process that runs no event loop.
    `settings` override the configuration of a server that this process starts. `system_dir` is for
    files that PostgreSQL could not reach in root's folders.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        settings: Mapping[str, str] | None = None,
        system_dir: Path = layout.SYSTEM_DIR,
    ) -> None:
        self._settings = dict(settings or {})
        self._account = os_account.choose(layout.owner(data_dir))
        self._folder = layout.prepare(data_dir, self._account, system_dir)
        self._binaries = binaries.find(self._account, system_dir)
        self._users = FileLock(self._folder.users_lock)
        self._lock = FileLock(self._folder.supervisor_lock)
        self._server: Postmaster | None = None
        self._stopping = threading.Event()
        self._settled = threading.Event()
        self._failure: EmbeddedPostgresError | None = None
        self._thread: threading.Thread | None = None
        self._is_supervisor = False

    @property
    def url(self) -> str:
        """The URL of the database for SQLAlchemy with asyncpg; it contains no secret."""
        return self._url_of(configuration.ROLE)

    @property
    def serving_url(self) -> str:
        """The URL for servers; their role (see `schema.serving_role`) is not a superuser."""
        return self._url_of(configuration.SERVING_ROLE)

    def _url_of(self, role: str) -> str:
        host = quote(str(self._folder.socket.parent))
        return f"postgresql+asyncpg://{role}@/{configuration.DATABASE}?host={host}&port=5432"

    @property
    def data_folder(self) -> Path:
        """The folder that contains the data, which for root may differ from the requested one."""
        return self._folder.root

    @property
    def is_supervisor(self) -> bool:
        """Whether this process, not another, keeps the server running."""
        return self._is_supervisor

    def start(self) -> str:
        """Start the folder's PostgreSQL if necessary, and return its URL once it is ready.

        Waits as long as a recovery makes progress.

        Raises:
            VersionMismatchError: the data was written by another major version.
            FolderUnusableError: the folder or its database cannot be used.
            StartFailedError: the start made no progress for a minute.
        """
        assert self._thread is None
        pgdata.check_version(self._folder, self._account, self._binaries)
        self._register()
        self._stopping.clear()
        self._settled.clear()
        self._failure = None
        self._start_thread()
        atexit.register(self.stop)
        self._settled.wait()
        self._raise_failure()
        return self.url

    def _start_thread(self) -> None:
        """Start the thread with signals blocked: a raising handler would leave it half started."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)

        def run() -> None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            self._run()

        self._thread = threading.Thread(target=run, name="embedded-postgres", daemon=True)
        try:
            self._thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def stop(self) -> None:
        """Leave the folder, and stop PostgreSQL if unused; this has no effect before `start`."""
        if self._thread is None:
            return
        atexit.unregister(self.stop)
        self._stopping.set()
        self._thread.join()
        self._thread = None
        if self._users.try_exclusive():
            self._stop_server()
        elif self._server is not None:
            self._server.leave()
        self._server = None
        self._lock.release()
        self._is_supervisor = False
        self._users.release()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _register(self) -> None:
        """Become a user of the folder, once no other process is about to stop its server."""
        try:
            self._wait_for(self._users.try_shared, "The server is being stopped and does not end.")
        except OSError as error:
            raise FolderUnusableError(f"{self._folder.root} cannot be used: {error}") from error

    def _raise_failure(self) -> None:
        if self._failure is not None:
            self.stop()
            raise self._failure

    def _stop_server(self) -> None:
        """Stop the server as the last user, after any former supervisor has released its lock."""
        if not self._is_supervisor:
            self._wait_for(self._lock.try_exclusive, "Another process supervises without a user.")
        server = self._server or postmaster.find(self._folder)
        if server is not None:
            server.stop(STOP_SECONDS_MAX)
            _log.info("Stopped PostgreSQL")

    def _wait_for(self, condition: Callable[[], bool], failure: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                raise StartFailedError(failure)
            time.sleep(postmaster.POLL_SECONDS)

    def _run(self) -> None:
        """Do the thread's work; when it ends, for any reason, `start` stops waiting."""
        try:
            self._keep_running()
        finally:
            if not self._settled.is_set() and self._failure is None:
                self._failure = StartFailedError("Its supervision ended.")
            self._settled.set()

    def _keep_running(self) -> None:
        """Wait as a follower until this process holds the lock, then keep the server running."""
        pause = _BACK_OFF_SECONDS_MIN
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while not self._stopping.is_set():
            try:
                self._supervise() if self._leads() else self._follow(give_up_at)
                pause = _BACK_OFF_SECONDS_MIN
            except (EmbeddedPostgresError, OSError) as error:
                if not self._outlives(error, give_up_at):
                    return
                was_ready = isinstance(error, EndedSoonError)
                most = _BACK_OFF_READY_SECONDS_MAX if was_ready else _BACK_OFF_SECONDS_MAX
                self._stopping.wait(min(pause, most))
                pause = min(2 * pause, most)

    def _outlives(self, error: EmbeddedPostgresError | OSError, give_up_at: float) -> bool:
        """Return whether to retry: always once the server was ready, else for a minute."""
        if isinstance(error, OSError):
            error = StartFailedError(f"{error}\n{serverlog.tail(self._folder)}")
        passing = isinstance(error, StartFailedError) and time.monotonic() < give_up_at
        if self._settled.is_set() or passing:
            _log.warning("PostgreSQL does not run, trying again: %s", error)
            return True
        self._failure = error
        return False

    def _leads(self) -> bool:
        if not self._is_supervisor and self._lock.try_exclusive():
            self._is_supervisor = True
            _log.info("Supervising PostgreSQL in %s", self._folder.root)
        return self._is_supervisor

    def _follow(self, give_up_at: float) -> None:
        """Wait until another supervisor's server is ready, and then for the supervisor's lock."""
        if not self._settled.is_set():
            if probe.ask(self._folder.socket) is ProbeAnswer.READY:
                self._settled.set()
            elif time.monotonic() > give_up_at:
                raise StartFailedError(
                    "Another process supervises PostgreSQL, which is not ready:\n"
                    + serverlog.tail(self._folder)
                )
        self._stopping.wait(_ROUND_SECONDS)

    def _supervise(self) -> None:
        """Keep one server running until it ends."""
        self._server = self._find_or_start()
        await_ready(self._server, self._folder, self._stopping)
        self._settled.set()
        self._watch(self._server)

    def _find_or_start(self) -> Postmaster:
        server = postmaster.find(self._folder)
        if server is not None:
            _log.info("Taking over the PostgreSQL that runs as process %d", server.pid)
            configuration.write(self._folder, self._account, self._binaries, self._settings)
            server.reload()  # another version with other role mappings may have started it
            return server
        pgdata.check_version(self._folder, self._account, self._binaries)
        sync = self._settings.get("fsync") != "off"
        pgdata.ensure(self._folder, self._account, self._binaries, sync=sync)
        layout.prepare_socket(self._folder, self._account)
        configuration.write(self._folder, self._account, self._binaries, self._settings)
        return postmaster.start(self._folder, self._account, self._binaries)

    def _watch(self, server: Postmaster) -> None:
        """Return when asked to stop, or when a server that ran for long has ended.

        Raises:
            EndedSoonError: the server ended within seconds of being ready.
        """
        ready_at = checked_at = time.monotonic()
        while not self._stopping.wait(_ROUND_SECONDS):
            now = time.monotonic()
            if not server.is_alive():
                server.forget()
                _log.warning("PostgreSQL ended:\n%s", serverlog.tail(self._folder))
                if now - ready_at < _STEADY_SECONDS:
                    raise EndedSoonError("It ended soon after its start.")
                return
            if now - checked_at > LOG_CHECK_SECONDS:
                serverlog.limit(self._folder)
                checked_at = now
