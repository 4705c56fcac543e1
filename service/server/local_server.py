"""A server as a child process: for demonstrations, replays, comparisons, and tests."""

import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from service.server.failures import UnavailableError
from service.server.tcp_ports import LOOPBACK, hold_port, port_of, require_free_port

READY_SECONDS_MAX = 300.0
STOP_SECONDS_MAX = 60.0
POLL_SECONDS = 0.05

NOTIFY_VARIABLE = "NOTIFY_SOCKET"
READY = b"READY=1"
"""The message by which a server reports that it is ready, sent to the socket in NOTIFY_SOCKET."""

_LAUNCH = threading.Lock()
"""Held from checking a port until the server's process runs its program.

A process that another thread started in between would inherit the sockets of the check, and the
port would seem taken.
"""


class LocalServer:
    """A context manager that runs `moorage serve` on a port of this machine.

    A server that is killed and restarted on the same data folder keeps its port. Without `port`, it
    gets one that is reserved as long as this object lives. The server itself reports when it is
    ready, since another server might answer on the port.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int = 0,
        workers: int = 1,
        environment: Mapping[str, str] | None = None,
        quiet: bool = False,
    ) -> None:
        self.port = port or self._port_of_its_own()
        self.url = f"http://{LOOPBACK}:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self._command = [
            *(sys.executable, "-m", "service.cli", "serve", "--host", LOOPBACK),
            *("--port", str(self.port), "--data-dir", str(data_dir), "--workers", str(workers)),
        ]
        self._environment = environment or {}
        self._is_ending = False
        self._stderr = subprocess.DEVNULL if quiet else None
        self._notifications: socket.socket

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> float:
        """Start the server and wait until it is ready; return how many seconds that took.

        Raises:
            ConfigurationError: another program listens on its port.
            UnavailableError: the server ended, or was not ready in time.
        """
        assert self.process is None
        started = time.monotonic()
        with TemporaryDirectory(prefix="moorage-ready-") as folder, _bound(folder) as notifications:
            notify = {NOTIFY_VARIABLE: notifications.getsockname()}
            environment = {**os.environ, **self._environment, **notify}  # noqa: TID251 - the child's
            with _LAUNCH:
                require_free_port(LOOPBACK, self.port)
                self.process = subprocess.Popen(self._command, env=environment, stderr=self._stderr)  # noqa: S603
            try:
                if self._is_ending:
                    self.process.terminate()
                self._notifications = notifications
                self.wait_until_ready(started + READY_SECONDS_MAX)
            except BaseException:
                self.stop()
                raise
        return time.monotonic() - started

    def end(self) -> None:
        """Stop the server, or prevent its start; safe in signal handlers."""
        self._is_ending = True
        if self.process is not None:
            self.process.terminate()

    def _port_of_its_own(self) -> int:
        held = hold_port()
        weakref.finalize(self, held.close)
        return port_of(held)

    def wait_until_ready(self, deadline: float) -> None:
        """Wait until the server reports that it is ready.

        Raises:
            UnavailableError: the server ended, or it was not ready at `deadline` (in monotonic
                seconds).
        """
        while time.monotonic() < deadline:
            if self.process is None or self.process.poll() is not None:
                raise UnavailableError(
                    "The server ended while it started; its last words are above."
                )
            with suppress(TimeoutError):
                if self._notifications.recv(len(READY)) == READY:
                    return
        raise UnavailableError(f"{self.url} was not ready after {READY_SECONDS_MAX:.0f} s.")

    def stop(self) -> int | None:
        """Stop the server gracefully; return its exit code, or None if it was not running."""
        if self.process is None:
            return None
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            self.process = None

    def kill(self) -> None:
        """Kill the server with SIGKILL, like a power failure, and wait until its workers end."""
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        self.process = None
        deadline = time.monotonic() + STOP_SECONDS_MAX
        while _is_open(self.port) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    def wait(self) -> int:
        """Wait until the server has ended; return its exit code."""
        return self.process.wait() if self.process else 0


def _bound(folder: str) -> socket.socket:
    """Return the socket to which a server reports that it is ready."""
    notifications = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notifications.bind(f"{folder}/notify")
    notifications.settimeout(POLL_SECONDS)
    return notifications


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Create a folder for a data folder, and remove it afterwards.

    Other users may traverse it: if root runs the server, PostgreSQL runs as another user, and would
    otherwise keep its data elsewhere.
    """
    with TemporaryDirectory(prefix="moorage-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder


def is_ready(url: str) -> bool:
    """Return whether a server answers at this URL and is ready.

    This is polled while a server starts, so it does not use httpx: each httpx client reads the
    certificates again.
    """
    address = urlsplit(url)
    host = address.hostname or ""
    connection = HTTPConnection(host, address.port, timeout=5)
    if address.scheme == "https":  # Any certificate will do, as this sends no secret.
        context = ssl._create_unverified_context()  # noqa: S323, SLF001
        connection = HTTPSConnection(host, address.port, timeout=5, context=context)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0
