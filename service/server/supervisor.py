"""The supervisor, which starts granian's workers, and restarts those that end.

    moorage serve            supervisor: no requests, no database connections
    ├── postgres             only with a data folder; service.store.embedded starts it
    └── fork server          imports everything once, and does nothing else (Linux)
        └── worker (N)       granian: HTTP in Rust, the application in Python

Workers are not forked from the supervisor, since it has threads (one watches PostgreSQL), and a
fork copies the locks that threads hold. The fork server has a session of its own, so that a
terminal's Ctrl-C and hangup reach the supervisor alone. On systems other than Linux, a fork
server's children could not be made to end with it, so workers are spawned there. Each worker
listens on the port itself (SO_REUSEPORT), so that the kernel distributes the connections.
"""

import logging
import multiprocessing
import multiprocessing.forkserver
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

from granian.constants import HTTPModes, Interfaces, Loops, SSLProtocols
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server import MPServer
from granian.server.mp import WorkerProcess
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from service.api.telemetry.logs import logging_of
from service.api.telemetry.worker_starts import StartReason, WorkerStarts
from service.runtime.worker_deaths import DeathCounts, Suspect
from service.scheduler.protocol.suspects import SET_ASIDE_DEATHS
from service.server.signals import StopRequest
from service.server.tls import Certificate, watch_certificate
from service.server.worker import SUPERVISOR_VARIABLE
from service.server.worker_signals import LAUNCH_SIGNALS, Alarm, run_worker
from service.settings import Settings

HEADER_BUFFER_BYTES = 128 * 1024
"""Enough for the longest request line that HTTP allows (64 KiB), so that the API can refuse it
(414)."""

BACKLOG = 2048
STOP_SECONDS_MAX = 20
"""The time for a worker to finish its requests. Kubernetes gives the whole server 30 seconds, and
Docker 10."""

RESPAWN_PAUSE_SECONDS = 0.2
RESPAWN_PAUSE_SECONDS_MAX = 10.0
RESPAWN_PAUSE_KILLED_SECONDS_MAX = 0.5
"""The longest pause before restarting a worker that was killed by a signal soon after its start."""

STARTED_SECONDS = 1.0
"""A worker that lived this long before a signal ended it is restarted at once."""

RENEWAL_SECONDS = 3.0
"""How long a worker keeps answering after its successor, with a new certificate, has started."""

FORK_SERVER_ENDS_SECONDS = 5.0
"""The longest time between the end of a fork server's connections and of its process."""

STEADY_SECONDS = 60.0
"""A worker that lived this long before it ended has not failed at its start."""


if sys.platform == "linux":
    _CONTEXT = multiprocessing.get_context("forkserver")
else:
    _CONTEXT = multiprocessing.get_context("spawn")
_log = logging.getLogger(__name__)
_PRELOAD = "service.server.preload"

Spawn = Callable[..., None]
Load = Callable[..., Callable[..., object]]


class Supervisor(MPServer):
    """Granian's server, changed so that it restarts workers indefinitely.

    Granian ends the whole server if a worker dies twice within 5.5 seconds. But two workers that
    were killed from outside are no reason to refuse all requests: they are restarted within half a
    second. A worker that fails to start is retried after increasing pauses, and the log shows it.
    """

    _hangup_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    _pause_seconds = RESPAWN_PAUSE_SECONDS
    _last_death = float("-inf")
    _reason: StartReason = "server"
    """The reason for the next start of a worker."""
    starts: WorkerStarts | None = None
    """The counter of starts of workers."""
    deaths: DeathCounts | None = None
    """The counts of workers that died while they were deciding a pod."""

    def _respawn_workers(  # type: ignore[explicit-override] # typing.override is Python 3.12's
        self, workers: list[int], spawn_target: Spawn, target_loader: Load, delay: float = 0
    ) -> None:
        processes = [self.wrks[index].inner for index in workers]
        dead = [process for process in processes if process.exitcode is not None]
        for process in dead:
            fields = {"pid": process.pid, **_end_of(process.exitcode)}
            _log.warning("A worker ended, and is started again.", extra=fields)
            self._blame(process.pid)
        self._reason = "death" if dead else "renewal"
        self._pause_before_respawn(workers)
        super()._respawn_workers(workers, spawn_target, target_loader, delay)
        self.respawned_wrks.clear()  # Granian's own detection of crash loops counts these.

    def _blame(self, pid: int | None) -> None:
        """Count a worker's death against the pod that it was deciding, if any."""
        suspect = None if self.deaths is None else self.deaths.count(pid, time.time())  # noqa: TID251 - compared with a later start
        if suspect is None:
            return
        _log.warning("The worker was deciding a pod.", extra=log_fields(suspect))
        if suspect.deaths == SET_ASIDE_DEATHS and self.starts is not None:
            self.starts.set_aside()

    def _spawn_worker(  # type: ignore[explicit-override]
        self,
        idx: int,
        target: Spawn,
        callback_loader: Load,
        socket_loader: None = None,  # noqa: ARG002 - granian's base class has it
    ) -> WorkerProcess:
        """Start the worker's process from the fork server.

        Granian knows no fork server, so its process is replaced before it is started.
        """
        worker = super()._spawn_worker(idx, target, callback_loader)
        made = worker.inner
        worker.inner = _CONTEXT.Process(name=made.name, target=made._target, args=made._args)  # noqa: SLF001
        worker.start = partial(_start, worker.start)  # type: ignore[method-assign]
        if self.starts is not None:
            self.starts.started(self._reason)
        return worker

    def signal_handler_interrupt(self, number: int, _frame: FrameType | None) -> None:  # type: ignore[explicit-override]
        """Stop gracefully; at a second Ctrl-C, kill the workers."""
        if not self.interrupt_signal:
            self.interrupt_signal = True
            self.main_loop_interrupt.set()
        elif number == signal.SIGINT:
            for worker in self.wrks:
                worker.inner.kill()

    def shutdown(self, exit_code: int = 0) -> None:  # type: ignore[explicit-override]
        """Stop the workers, and wait until they have ended."""
        _log.info("Moorage stops.")
        super().shutdown(exit_code)  # type: ignore[no-untyped-call]

    def check_stop(self, request: StopRequest) -> None:
        """Stop if a stop signal arrived before this server handled signals itself."""
        if request.number is not None:
            self.interrupt_signal = True
            self.main_loop_interrupt.set()

    def certificate_renewed(self) -> None:
        """Replace the workers one by one; each reads the renewed certificate at its start."""
        self.respawn_interval = RENEWAL_SECONDS
        self.reload_signal = True
        self.main_loop_interrupt.set()

    def signal_handler_reload(self, *_args: object) -> None:  # type: ignore[explicit-override]
        """Stop on SIGHUP, since the terminal is closed, unless nohup started the server."""
        if not self._hangup_ignored:
            self.interrupt_signal = True
            self.main_loop_interrupt.set()

    def _pause_before_respawn(self, workers: list[int]) -> None:
        dead, now = [self.wrks[index] for index in workers], time.monotonic()
        killed = all((worker.inner.exitcode or 0) < 0 for worker in dead)
        if killed and all(now - worker.birth > STARTED_SECONDS for worker in dead):
            return
        most = RESPAWN_PAUSE_KILLED_SECONDS_MAX if killed else RESPAWN_PAUSE_SECONDS_MAX
        if now - self._last_death > STEADY_SECONDS:
            self._pause_seconds = 0.0
        self._last_death = now
        pause = min(self._pause_seconds, most)
        self.main_loop_interrupt.wait(pause)  # a stop signal ends the pause
        self._pause_seconds = min(2 * pause, most) or RESPAWN_PAUSE_SECONDS


def log_fields(suspect: Suspect) -> dict[str, object]:
    """Return the log fields of a suspect."""
    identity = suspect.identity
    pod = f"{identity.namespace}/{suspect.name}"
    return {"pod": pod, "cluster_id": identity.cluster_id, "deaths": suspect.deaths}


def _end_of(exit_code: int) -> dict[str, object]:
    """Return the log fields of an exit code of `multiprocessing`; a negative one is a signal's."""
    if exit_code >= 0:
        return {"exit_code": exit_code}
    try:
        return {"signal": signal.Signals(-exit_code).name}
    except ValueError:  # a real-time signal has no name
        return {"signal": -exit_code}


def run_workers(  # noqa: PLR0913 - what the processes are started with, by name
    target: str,
    *,
    host: str,
    port: int,
    workers: int,
    header_timeout_seconds: float = 10.0,
    certificate: Certificate | None = None,
    connections_max: int = BACKLOG,
    secrets: Mapping[str, str] | None = None,
    stop_request: StopRequest | None = None,
    logging_config: dict[str, Any] | None = None,
    starts: WorkerStarts | None = None,
    deaths: DeathCounts | None = None,
    preload: Sequence[str] = (),
) -> bool:
    """Serve an ASGI application until SIGTERM or SIGINT.

    Args:
        target: The ASGI factory, as `module:function`.
        host: The address to listen on.
        port: The port to listen on.
        workers: The number of worker processes.
        header_timeout_seconds: The time for a client to send a request's header.
        certificate: The certificate for TLS; without one, the server speaks plain HTTP.
        connections_max: The most connections that each worker accepts.
        secrets: Environment variables that only the workers get.
        stop_request: A stop signal that may have come before.
        logging_config: The configuration of logging for all these processes.
        starts: The counter of starts of workers.
        deaths: The counts of workers that died while they were deciding a pod.
        preload: Modules that the fork server also imports.

    Returns:
        True after such a signal, or False if the workers ended by themselves.
    """
    multiprocessing.set_start_method("spawn", force=True)
    multiprocessing.set_forkserver_preload([_PRELOAD, *preload])
    server = Supervisor(
        target,
        factory=True,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        loop=Loops.uvloop,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(
            header_read_timeout=round(header_timeout_seconds * 1000),
            max_buffer_size=HEADER_BUFFER_BYTES,
        ),
        websockets=False,
        workers=workers,
        backlog=BACKLOG,
        backpressure=connections_max,  # further clients wait until others disconnect
        respawn_failed_workers=True,
        workers_kill_timeout=STOP_SECONDS_MAX,
        log_level=LogLevels.warning,
        log_dictconfig=logging_config or logging_of(Settings()),
        ssl_cert=certificate.certificate if certificate else None,
        ssl_key=certificate.key if certificate else None,
        ssl_protocol_min=SSLProtocols.tls12,
    )
    server.main_loop_interrupt = Alarm()
    server.starts, server.deaths = starts, deaths
    if stop_request is not None:
        server.on_startup(partial(server.check_stop, stop_request))
    _launch_fork_server()
    stopped = threading.Event()
    if certificate is not None:
        watch_certificate(certificate, server.certificate_renewed, stopped)
    with suppress(SystemExit):  # a worker that ended just before the stop is no failure
        server.serve(spawn_target=partial(run_worker, dict(secrets or {})))
    stopped.set()
    return server.interrupt_signal


def _start(start: Callable[[], None]) -> None:
    """Start a worker, and retry while a killed fork server is still ending.

    A killed fork server closes its connections a moment before the kernel reports its end, and only
    then does multiprocessing start another one.

    Raises:
        EOFError, ConnectionError: the fork server has neither answered nor ended for some seconds.
    """
    again = Retrying(
        retry=retry_if_exception_type((EOFError, ConnectionError)),
        stop=stop_after_delay(FORK_SERVER_ENDS_SECONDS),
        wait=wait_fixed(0.01),
        reraise=True,
    )
    again(start)


def _launch_fork_server() -> None:
    """Start the fork server with signals blocked: a Ctrl-C would end it during its imports.

    It unblocks them as soon as it has a session of its own.
    """
    if sys.platform != "linux":
        return
    os.environ[SUPERVISOR_VARIABLE] = str(os.getpid())  # noqa: TID251 - the fork server's
    before = signal.pthread_sigmask(signal.SIG_BLOCK, LAUNCH_SIGNALS)
    try:
        multiprocessing.forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
