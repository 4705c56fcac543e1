"""A separate listener for health and metrics, which answers even if the clients' listener does not.

The supervisor serves requests in threads, without waiting for the workers. About once a second,
each worker sends its state in a datagram to a socket in a private folder, so every request is
answered at once, and a worker that has stopped sending is not ready. The number of connections and
the time for each are limited, so that no client can block the listener.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from typing_extensions import override

from service.api.telemetry.exposition import CONTENT_TYPE, exposition_of
from service.api.telemetry.heartbeat import BEAT_BYTES_MAX, WorkerHealth
from service.server.tcp_ports import claimed_port

ALIVE_SECONDS_MAX = 60.0
"""If no worker has sent its state for this long, the server counts as dead and should be
restarted."""
CONNECTIONS_MAX = 64
CONNECTION_SECONDS_MAX = 5.0
JSON = "application/json"


class HealthAnswer(msgspec.Struct, frozen=True):
    """The HTTP response to one health or metrics request."""

    status: HTTPStatus
    body: bytes
    content_type: str = JSON


class ServerHealth:
    """The last state that each worker has sent."""

    def __init__(self, *, silence_seconds_max: float, monotonic: Callable[[], float]) -> None:
        self._silence_seconds_max = silence_seconds_max
        self._monotonic = monotonic
        self._heard = monotonic()
        self._beats: dict[int, tuple[float, WorkerHealth]] = {}

    def record(self, beat: WorkerHealth) -> None:
        """Record a worker's state, and forget the workers that were silent for too long."""
        self._heard = self._monotonic()
        self._beats = {worker: last for worker, last in self._beats.items() if self._is_new(last)}
        self._beats[beat.worker] = (self._heard, beat)

    def live(self) -> HealthAnswer:
        """Answer whether any worker has sent its state recently."""
        if self._monotonic() - self._heard > ALIVE_SECONDS_MAX:
            return _unavailable("No worker has told anything for a minute.")
        return _OK

    def ready(self) -> HealthAnswer:
        """Answer whether a worker can serve requests now."""
        beats = [last[1] for last in list(self._beats.values()) if self._is_new(last)]
        if any(beat.trouble is None for beat in beats):
            return _OK
        return _unavailable(beats[0].trouble or "" if beats else "No worker tells how it is.")

    def _is_new(self, last: tuple[float, WorkerHealth]) -> bool:
        return self._monotonic() - last[0] <= self._silence_seconds_max


_OK = HealthAnswer(HTTPStatus.OK, msgspec.json.encode({"status": "ok"}))


def _unavailable(detail: str) -> HealthAnswer:
    body = {"status": "unavailable", "detail": detail}
    return HealthAnswer(HTTPStatus.SERVICE_UNAVAILABLE, msgspec.json.encode(body))


@contextmanager
def health_listener(
    host: str, port: int, *, folder: str, metrics_dir: str, silence_seconds_max: float
) -> Iterator[Path]:
    """Serve until the end of the context; yield the socket to which workers send their state.

    Raises:
        ConfigurationError: the port is taken.
    """
    health = ServerHealth(silence_seconds_max=silence_seconds_max, monotonic=time.monotonic)
    answers = {
        "/livez": health.live,
        "/readyz": health.ready,
        "/metrics": lambda: HealthAnswer(HTTPStatus.OK, exposition_of(metrics_dir), CONTENT_TYPE),
    }
    path = Path(folder) / "health.sock"
    with (
        claimed_port(host, port),
        HealthServer(host, port, answers) as server,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as inbox,
    ):
        inbox.bind(str(path))
        threading.Thread(target=_receive, args=(inbox, health), daemon=True).start()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield path
        finally:
            server.shutdown()


def _receive(inbox: socket.socket, health: ServerHealth) -> None:
    with suppress(OSError):  # the socket was closed
        while True:
            with suppress(msgspec.MsgspecError):
                health.record(msgspec.json.decode(inbox.recv(BEAT_BYTES_MAX), type=WorkerHealth))


class HealthServer(ThreadingHTTPServer):
    """A server of GET and HEAD requests for a few paths, one request per connection."""

    daemon_threads = True
    block_on_close = False

    def __init__(
        self, host: str, port: int, answers: dict[str, Callable[[], HealthAnswer]]
    ) -> None:
        self.answers = answers
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._free = threading.BoundedSemaphore(CONNECTIONS_MAX)
        super().__init__((host, port), _Handler)

    @override
    def server_bind(self) -> None:
        """Bind without looking up the host's name, as the base class would: that may be slow."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # as claimed_port has
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    @override
    def process_request(self, request: Any, client_address: Any) -> None:
        """Close a connection at once if there are too many."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    @override
    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing if a client leaves in the middle of a request."""


class _Handler(BaseHTTPRequestHandler):
    timeout: ClassVar[float | None] = CONNECTION_SECONDS_MAX
    server_version = "moorage"
    sys_version = ""

    @override
    def setup(self) -> None:
        """Limit the time of the whole connection, so that a client cannot hold it byte by byte."""
        super().setup()
        self._end = threading.Timer(CONNECTION_SECONDS_MAX, self._cut_off)
        self._end.daemon = True
        self._end.start()

    @override
    def finish(self) -> None:
        self._end.cancel()
        super().finish()

    def do_GET(self) -> None:
        """Answer a GET or HEAD request: 404 for unknown paths."""
        assert isinstance(self.server, HealthServer)
        respond = self.server.answers.get(self.path)
        answer = respond() if respond else HealthAnswer(HTTPStatus.NOT_FOUND, b"{}")
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_HEAD = do_GET  # noqa: N815 - the base class's way of naming them

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, since probes come every few seconds."""

    def _cut_off(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
