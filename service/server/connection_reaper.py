"""Limits on the connections to a worker: in all, per address, and for clients that do not read.

Granian accepts every connection, and waits for ever for a client that does not read. So a thread of
each worker looks at the worker's own sockets once a second and closes

- the connection of a client that has not taken 64 KiB of an answer, or its rest, within the time
  limit;
- connections of an address that holds more than its share, those first that were silent for
  longest;
- connections of all addresses, in that order, if there are too many in all.

It asks the kernel for the state of each socket (`TCP_INFO`). Nearly all of these calls keep
Python's global lock: a call that released it would have to wait for it again, behind the very
requests that this is to protect. On systems other than Linux nothing is closed.
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

LOOK_SECONDS = 1.0
FILES_AT_ONCE = 100
"""After so many calls, about 1 ms, Python's global lock is released once, so that the event loop
can go on."""
TOLD_SECONDS = 60.0
"""The log says at most this often that connections were closed."""

CONNECTIONS_MAX = 20_000
"""The most connections that a worker holds by default, however high its file limit is: each takes
some 15 KB."""
FILES_FOR_CONNECTIONS = 0.8
"""The share of the file limit that is for clients; the rest is for the database, other workers, and
connections that are being closed."""
FILES_FOR_ACCEPTED = 0.9
ADDRESS_SHARE = 0.25
UNSENT_BYTES_MAX = 64 * 1024
"""How many bytes of an answer the kernel keeps for a client that does not read; by default it keeps
megabytes."""
READ_BYTES_MIN = 64 * 1024
"""How many bytes of an answer a client has to take within the time limit."""

_log = logging.getLogger(__name__)


class Connection(NamedTuple):
    """The state of a connection at one moment, as the kernel knows it."""

    fd: int
    cookie: int
    """The kernel's number for the connection, which is never used again."""
    address: bytes
    idle_seconds: float
    """The time since data was last sent or received."""
    is_unread: bool
    """Whether there is sent data that the client has not taken yet."""
    read_bytes: int
    """How many bytes the client has taken since the connection began."""


class ConnectionLimits(NamedTuple):
    """The limits of one worker."""

    total: int
    each_address: int
    answer_seconds: float


def connection_limits(settings: Settings) -> ConnectionLimits:
    """Read the limits from the settings, or derive them from the file limit of this process."""
    most = int(_file_limit() * FILES_FOR_CONNECTIONS)
    total = min(settings.connections_max or CONNECTIONS_MAX, most)
    share = settings.connections_per_address_max or max(1, int(total * ADDRESS_SHARE))
    return ConnectionLimits(total, min(share, total), settings.answer_timeout_seconds)


def accepted_connections_max(total: int) -> int:
    """Return how many connections granian may accept, with room for new ones until others end."""
    return max(total, min(total + total // 8, int(_file_limit() * FILES_FOR_ACCEPTED)))


def raise_file_limit() -> None:
    """Have this process, and those that it starts, open as many files as the system lets it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _file_limit() -> int:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**31 if limit == resource.RLIM_INFINITY else limit


class _Reading(NamedTuple):
    """The time since which a client has to take data, and how many bytes it had taken by then."""

    since: float
    read_bytes: int


class Judge:
    """Says which connections have to be closed, and why. It makes no system call."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._reading: dict[int, _Reading] = {}

    def condemned(self, connections: Iterable[Connection], now: float) -> dict[Connection, str]:
        """Return the connections to close, each with the reason."""
        present = list(connections)
        found = dict.fromkeys(self._unread_for_long(present, now), "unread")
        rest = [each for each in present if each not in found]
        found |= dict.fromkeys(self._beyond_share(rest), "address")
        rest = [each for each in rest if each not in found]
        return found | dict.fromkeys(_idlest(rest, self._limits.total), "total")

    def _unread_for_long(self, present: list[Connection], now: float) -> list[Connection]:
        before, self._reading = self._reading, {}
        late = []
        for each in present:
            if not each.is_unread:
                continue
            reading = before.get(each.cookie)
            if reading is None or each.read_bytes - reading.read_bytes >= READ_BYTES_MIN:
                reading = _Reading(now, each.read_bytes)
            self._reading[each.cookie] = reading
            if now - reading.since > self._limits.answer_seconds:
                late.append(each)
        return late

    def _beyond_share(self, present: list[Connection]) -> Iterator[Connection]:
        by_address = defaultdict[bytes, list[Connection]](list)
        for each in present:
            by_address[each.address].append(each)
        for connections in by_address.values():
            yield from _idlest(connections, self._limits.each_address)


def _idlest(connections: list[Connection], keep: int) -> list[Connection]:
    """Return the connections beyond `keep`: those that were silent for longest."""
    if len(connections) <= keep:
        return []
    by_idleness = sorted(connections, key=lambda each: each.idle_seconds, reverse=True)
    return by_idleness[: len(connections) - keep]


class Sockets(Protocol):
    """The connections of this process."""

    def connections(self) -> Iterator[Connection]:
        """Yield all connections that clients hold now."""
        ...

    def close(self, connection: Connection) -> None:
        """Cut a connection off, unless it has ended by itself."""
        ...


class Guard:
    """Looks after the connections of this process."""

    def __init__(self, sockets: Sockets, limits: ConnectionLimits) -> None:
        self._sockets = sockets
        self._judge = Judge(limits)
        self._untold = Counter[str]()
        self._told = float("-inf")

    def look(self, now: float) -> Mapping[Connection, str]:
        """Close the connections that have to be closed now; return them with the reasons."""
        condemned = self._judge.condemned(self._sockets.connections(), now)
        for connection in condemned:
            with suppress(OSError):  # the client has left meanwhile
                self._sockets.close(connection)
        self._tell(Counter(condemned.values()), now)
        return condemned

    def _tell(self, closed: Counter[str], now: float) -> None:
        self._untold += closed
        if self._untold and now - self._told >= TOLD_SECONDS:
            _log.warning(
                "Connections closed: %d for answers left unread, %d of addresses with too many, %d because there were too many.",
                *(self._untold[reason] for reason in ("unread", "address", "total")),
            )
            self._untold.clear()
            self._told = now


def guard_connections(settings: Settings) -> None:
    """Have a thread look after the connections of this process as long as it lives (Linux)."""
    if sys.platform == "linux":
        guard = Guard(KernelSockets(settings.port), connection_limits(settings))
        threading.Thread(
            target=_keep_looking, args=(guard.look,), name="connections", daemon=True
        ).start()


def _keep_looking(look: Callable[[float], object]) -> None:
    while True:
        time.sleep(LOOK_SECONDS)
        try:
            look(time.monotonic())
        except Exception:  # noqa: BLE001 - an error that ended this thread would end the guard
            _log.exception("The connections could not be looked at.")


_TCP_INFO_BYTES = 160
_TCP_INFO = struct.Struct("=B23xI16xI4xI64xQ16xI")
"""The fields that are read of `struct tcp_info` in <linux/tcp.h>: state, segments under way,
milliseconds since data was sent and since it was received, bytes that were acknowledged, and bytes
that wait to be sent."""
_TCP_CLOSE, _TCP_LISTEN = 7, 10
_NO_CONNECTIONS = (_TCP_CLOSE, _TCP_LISTEN)
_TCP_NOTSENT_LOWAT = 25
_UNSENT = struct.pack("i", UNSENT_BYTES_MAX)

_SO_COOKIE = 57
_AT_ONCE = struct.pack("ii", 1, 0)
"""The value of SO_LINGER with which unread data is thrown away and the client gets a reset
(RST)."""
_STATUS = Path("/proc/self/status")


class KernelSockets:
    """The connections that were accepted at a port by this process, as the kernel knows them."""

    def __init__(self, port: int) -> None:
        self._port = struct.pack("!H", port)
        self._call = ctypes.PyDLL(None, use_errno=True)  # keeps Python's global lock during calls
        self._length = ctypes.c_uint32()
        self._buffer = ctypes.create_string_buffer(_TCP_INFO_BYTES)
        self._clients: dict[int, bytes | None] = {}
        """Each client's address by cookie; None if the connection was not accepted at our port."""

    def connections(self) -> Iterator[Connection]:
        before, self._clients = self._clients, {}
        for fd in range(_files_opened_at_most()):
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
        """Cut a connection off by a duplicate of its file.

        The file's number may belong to another file by now, so the duplicate's cookie is compared
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
        """Return the client's address; None if the connection was not accepted at our port."""
        own, other = self._name(self._call.getsockname, fd), self._name(self._call.getpeername, fd)
        return _network(other) if own[2:4] == self._port and other else None

    def _name(self, ask: Callable[..., int], fd: int) -> bytes:
        self._length.value = _TCP_INFO_BYTES
        failed = ask(fd, self._buffer, ctypes.byref(self._length))
        return b"" if failed else self._buffer.raw[: self._length.value]


_IPV4_BYTES = 16
_MAPPED = bytes(10) + b"\xff\xff"


def _network(name: bytes) -> bytes:
    """Return the part of a `sockaddr` by which clients are told apart.

    This is the IPv4 address, or the first half of an IPv6 address: one client may own all of the
    rest.
    """
    if len(name) == _IPV4_BYTES:
        return name[4:8]
    address = name[8:24]
    return address[12:] if address.startswith(_MAPPED) else address[:8]


def _files_opened_at_most() -> int:
    """Return the size of the kernel's table of this process's files; file numbers are below it."""
    [line] = [line for line in _STATUS.read_text().splitlines() if line.startswith("FDSize:")]
    return int(line.split()[1])
