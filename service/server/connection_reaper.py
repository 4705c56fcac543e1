"""Closes connections of clients that do not read, and limits a worker's connections in total and per address.

Granian accepts every connection, and waits forever for a client that does not read. So once a
second, a thread of each worker inspects the worker's own sockets and closes

- the connection of a client that has not read 64 KiB of an answer, or the rest of it, within the
  time limit;
- connections of an address that holds more than its share, the longest idle first;
- connections of all addresses, in the same order, if there are too many in total.

It reads the state of each socket from the kernel (`TCP_INFO`). Nearly all of these calls keep
Python's global lock: a call that released it would have to wait for it behind the very requests
that the reaper protects. On systems other than Linux, no connection is closed.
"""

import ctypes
import logging
import os
import resource
import socket
import struct
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from service.settings import Settings

INTERVAL_SECONDS = 1.0
FILES_AT_ONCE = 100
"""How many calls (about 1 ms) pass before Python's global lock is released for the event loop."""
LOGGED_SECONDS = 60.0
"""The minimum time between two log lines about closed connections."""

CONNECTIONS_MAX = 20_000
"""The default maximum of a worker's connections, whatever its file limit; each takes ~15 KB."""
FILES_FOR_CONNECTIONS = 0.8
"""The share of the file limit for clients; the rest is for the database, other workers, and
connections that are being closed."""
FILES_FOR_ACCEPTED = 0.9
ADDRESS_SHARE = 0.25
UNSENT_BYTES_MAX = 64 * 1024
"""The unsent bytes that the kernel buffers for a connection; its own default is megabytes."""
READ_BYTES_MIN = 64 * 1024
"""The bytes of an answer that a client has to read within the time limit."""

_log = logging.getLogger(__name__)


class Connection(NamedTuple):
    """The state of a connection at one moment, as reported by the kernel."""

    fd: int
    cookie: int
    """The kernel's number of the connection, which is never reused."""
    address: bytes
    idle_seconds: float
    """The time since data was last sent or received."""
    is_unread: bool
    """Whether the client has not read all sent data yet."""
    read_bytes: int
    """The bytes that the client has read since the connection began."""


class ConnectionLimits(NamedTuple):
    """The limits of one worker; the time to read an answer is in seconds."""

    total: int
    each_address: int
    answer_seconds: float


def connection_limits(settings: Settings) -> ConnectionLimits:
    """Return the limits in the settings, or derive them from the file limit of this process."""
    most = int(_file_limit() * FILES_FOR_CONNECTIONS)
    total = min(settings.connections_max or CONNECTIONS_MAX, most)
    share = settings.connections_per_address_max or max(1, int(total * ADDRESS_SHARE))
    return ConnectionLimits(total, min(share, total), settings.answer_timeout_seconds)


def accepted_connections_max(total: int) -> int:
    """Return how many connections granian may accept: more than `total`, until some are closed."""
    return max(total, min(total + total // 8, int(_file_limit() * FILES_FOR_ACCEPTED)))


def raise_file_limit() -> None:
    """Raise the file limit of this process and its children to the system's maximum."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _file_limit() -> int:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**31 if limit == resource.RLIM_INFINITY else limit


class _Reading(NamedTuple):
    """When a client's time limit began, and how many bytes the client had read by then."""

    since: float
    read_bytes: int


class ReapPolicy:
    """Selects the connections to close, without making system calls."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._reading: dict[int, _Reading] = {}

    def select(self, connections: Iterable[Connection], now: float) -> dict[Connection, str]:
        """Return the connections to close, with the reasons; `now` is in monotonic seconds."""
        present = list(connections)
        selected = dict.fromkeys(self._unread_for_long(present, now), "unread")
        rest = [connection for connection in present if connection not in selected]
        selected |= dict.fromkeys(self._beyond_share(rest), "address")
        rest = [connection for connection in rest if connection not in selected]
        return selected | dict.fromkeys(_idlest(rest, self._limits.total), "total")

    def _unread_for_long(self, present: list[Connection], now: float) -> list[Connection]:
        before, self._reading = self._reading, {}
        late = []
        for connection in present:
            if not connection.is_unread:
                continue
            reading = before.get(connection.cookie)
            if reading is None or connection.read_bytes - reading.read_bytes >= READ_BYTES_MIN:
                reading = _Reading(now, connection.read_bytes)
            self._reading[connection.cookie] = reading
            if now - reading.since > self._limits.answer_seconds:
                late.append(connection)
        return late

    def _beyond_share(self, present: list[Connection]) -> Iterator[Connection]:
        by_address = defaultdict[bytes, list[Connection]](list)
        for connection in present:
            by_address[connection.address].append(connection)
        for connections in by_address.values():
            yield from _idlest(connections, self._limits.each_address)


def _idlest(connections: list[Connection], keep: int) -> list[Connection]:
    """Return the connections to drop so that `keep` remain, the longest idle first."""
    if len(connections) <= keep:
        return []
    by_idleness = sorted(connections, key=lambda connection: connection.idle_seconds, reverse=True)
    return by_idleness[: len(connections) - keep]


class Sockets(Protocol):
    """The connections of this process."""

    def connections(self) -> Iterator[Connection]:
        """Yield all connections of clients."""
        ...

    def close(self, connection: Connection) -> None:
        """Close a connection, unless it has already ended."""
        ...


class ConnectionReaper:
    """Closes the connections that the policy selects, and logs how many."""

    def __init__(self, sockets: Sockets, limits: ConnectionLimits) -> None:
        self._sockets = sockets
        self._policy = ReapPolicy(limits)
        self._unlogged = Counter[str]()
        self._logged_at = float("-inf")

    def run_once(self, now: float) -> Mapping[Connection, str]:
        """Close what the policy selects; return the closed connections with the reasons."""
        closed = self._policy.select(self._sockets.connections(), now)
        for connection in closed:
            with suppress(OSError):  # the client has disconnected
                self._sockets.close(connection)
        self._log(Counter(closed.values()), now)
        return closed

    def _log(self, closed: Counter[str], now: float) -> None:
        self._unlogged += closed
        if self._unlogged and now - self._logged_at >= LOGGED_SECONDS:
            _log.warning(
                "Connections closed: %d for answers left unread, %d of addresses with too many, %d because there were too many.",
                *(self._unlogged[reason] for reason in ("unread", "address", "total")),
            )
            self._unlogged.clear()
            self._logged_at = now


def start_reaper(settings: Settings) -> None:
    """Start the reaper's thread, which runs as long as this process (Linux)."""
    if sys.platform == "linux":
        reaper = ConnectionReaper(LinuxSockets(settings.port), connection_limits(settings))
        threading.Thread(
            target=_run_regularly, args=(reaper.run_once,), name="connections", daemon=True
        ).start()


def _run_regularly(run_once: Callable[[float], object]) -> None:
    while True:
        time.sleep(INTERVAL_SECONDS)
        try:
            run_once(time.monotonic())
        except Exception:  # noqa: BLE001 - an error that ended this thread would end the reaper
            _log.exception("The connections could not be looked at.")


_TCP_INFO_BYTES = 160
_TCP_INFO = struct.Struct("=B23xI16xI4xI64xQ16xI")
"""Fields of `struct tcp_info` in <linux/tcp.h>: state, segments in flight, milliseconds since data
was sent and since it was received, acknowledged bytes, and unsent bytes."""
_TCP_CLOSE, _TCP_LISTEN = 7, 10
_NO_CONNECTIONS = (_TCP_CLOSE, _TCP_LISTEN)
_TCP_NOTSENT_LOWAT = 25
_UNSENT = struct.pack("i", UNSENT_BYTES_MAX)

_SO_COOKIE = 57
_AT_ONCE = struct.pack("ii", 1, 0)
"""The value of SO_LINGER that discards unread data and resets the connection (RST)."""
_STATUS = Path("/proc/self/status")


class LinuxSockets:
    """The connections that this process accepted on a port, as reported by the kernel."""

    def __init__(self, port: int) -> None:
        self._port = struct.pack("!H", port)
        self._call = ctypes.PyDLL(None, use_errno=True)  # keeps Python's global lock during calls
        self._length = ctypes.c_uint32()
        self._buffer = ctypes.create_string_buffer(_TCP_INFO_BYTES)
        self._clients: dict[int, bytes | None] = {}
        """Maps cookies to client addresses, or to None for connections not accepted on our port."""

    def connections(self) -> Iterator[Connection]:
        before, self._clients = self._clients, {}
        for fd in range(_file_table_size()):
            if fd % FILES_AT_ONCE == 0:
                time.sleep(0)  # releases Python's global lock, if another thread waits for it
            if not self._ask(fd, socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES):
                continue
            state, unacked, sent, received, read, unsent = _TCP_INFO.unpack_from(self._buffer)
            if state == _TCP_LISTEN:
                self._keep_little_unsent(fd)
            if state in _NO_CONNECTIONS:
                continue
            cookie = self._cookie(fd)
            client = before[cookie] if cookie in before else self._client_of(fd)
            self._clients[cookie] = client
            if client is not None:
                idle_seconds = min(sent, received) / 1000
                yield Connection(fd, cookie, client, idle_seconds, bool(unacked or unsent), read)

    def close(self, connection: Connection) -> None:
        """Close a connection through a duplicate of its file descriptor.

        The descriptor may belong to another file by now, so the duplicate's cookie is compared
        first.
        """
        own = os.dup(connection.fd)
        try:
            if self._cookie(own) == connection.cookie:
                self._call.setsockopt(own, socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE, 8)
                self._call.shutdown(own, socket.SHUT_RDWR)
        finally:
            self._call.close(own)

    def _keep_little_unsent(self, listener: int) -> None:
        """Limit the unsent bytes of a listening socket; connections it accepts inherit this."""
        self._call.setsockopt(listener, socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, _UNSENT, 4)

    def _ask(self, fd: int, level: int, option: int, length: int) -> bool:
        """Read a socket option into the buffer; return False if it is not of this length."""
        self._length.value = length
        failed = self._call.getsockopt(fd, level, option, self._buffer, ctypes.byref(self._length))
        return not failed and self._length.value == length

    def _cookie(self, fd: int) -> int:
        known = self._ask(fd, socket.SOL_SOCKET, _SO_COOKIE, 8)
        return int.from_bytes(self._buffer.raw[:8], sys.byteorder) if known else 0

    def _client_of(self, fd: int) -> bytes | None:
        """Return the client's address, or None if the connection was not accepted on our port."""
        own, other = self._name(self._call.getsockname, fd), self._name(self._call.getpeername, fd)
        return _network(other) if own[2:4] == self._port and other else None

    def _name(self, ask: Callable[..., int], fd: int) -> bytes:
        self._length.value = _TCP_INFO_BYTES
        failed = ask(fd, self._buffer, ctypes.byref(self._length))
        return b"" if failed else self._buffer.raw[: self._length.value]


_IPV4_BYTES = 16
_MAPPED = bytes(10) + b"\xff\xff"


def _network(name: bytes) -> bytes:
    """Return the part of a `sockaddr` that distinguishes clients.

    This is the IPv4 address, or the first half of an IPv6 address: one client may own all of the
    rest.
    """
    if len(name) == _IPV4_BYTES:
        return name[4:8]
    address = name[8:24]
    return address[12:] if address.startswith(_MAPPED) else address[:8]


def _file_table_size() -> int:
    """Return the size of this process's file table; all file descriptors are below it."""
    [line] = [line for line in _STATUS.read_text().splitlines() if line.startswith("FDSize:")]
    return int(line.split()[1])
