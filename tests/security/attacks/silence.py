"""Clients that hold connections and say or read nothing, or little."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count

from tests.security.attacks.base import Target, attack

SECONDS = 3600.0
"""Longer than any attack is allowed to last."""

GET = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEAD_UNDER_WAY = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
BODY_UNDER_WAY = (
    b"POST /v1/clusters/default/placements HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
    b"Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"
)


def connected(target: Target) -> socket.socket | None:
    with suppress(OSError):
        made = socket.create_connection((target.host, target.port), timeout=5)
        made.settimeout(0)
        return made
    return None


def sent(connection: socket.socket, data: bytes) -> bool:
    """False once the server has closed it. What it does not take now is not sent."""
    try:
        return connection.send(data) >= 0
    except BlockingIOError:
        return True
    except OSError:
        return False


def hold(
    target: Target, number: int, act: Callable[[socket.socket], bool], pause_seconds: float
) -> None:
    """Keep so many connections, do that with each again and again, and make anew those that were closed."""
    held: list[socket.socket] = []
    for _ in _until_killed():
        held = [each for each in held if act(each) or _closed(each)]
        while len(held) < number and (made := connected(target)) is not None:
            held.append(made)
            act(made)
        time.sleep(pause_seconds)


def _closed(connection: socket.socket) -> bool:
    connection.close()
    return False


def _until_killed() -> Iterator[int]:
    deadline = time.monotonic() + SECONDS
    for number in count():
        if time.monotonic() > deadline:
            return
        yield number


@attack("nothing", "none, for comparison")
def nothing(target: Target) -> None:
    """What others notice of the machine alone."""


@attack("never-reading", "2,100 connections pipeline `GET /openapi.json` and never read")
def never_reading(target: Target) -> None:
    requests = GET % b"/openapi.json" * 50
    hold(target, 2100, lambda connection: sent(connection, requests), 0.5)


@attack("never-reading-small", "2,100 connections pipeline `GET /livez` and never read")
def never_reading_small(target: Target) -> None:
    requests = GET % b"/livez" * 500
    hold(target, 2100, lambda connection: sent(connection, requests), 0.5)


@attack("idle", "3,000 connections say nothing")
def idle(target: Target) -> None:
    hold(target, 3000, _is_open, 0.5)


@attack("half-sent", "3,000 connections send half a request's head and no more")
def half_sent(target: Target) -> None:
    sent_to = set[socket.socket]()

    def act(connection: socket.socket) -> bool:
        if connection in sent_to:
            return _is_open(connection)
        sent_to.add(connection)
        return sent(connection, HEAD_UNDER_WAY)

    hold(target, 3000, act, 0.5)


@attack("slow-headers", "3,000 connections send a byte of a header a second")
def slow_headers(target: Target) -> None:
    begun = set[socket.socket]()

    def act(connection: socket.socket) -> bool:
        if connection in begun:
            return sent(connection, b"x")
        begun.add(connection)
        return sent(connection, HEAD_UNDER_WAY)

    hold(target, 3000, act, 1.0)


@attack("slow-bodies", "3,000 connections with the token send a byte of a body a second")
def slow_bodies(target: Target) -> None:
    begun = set[socket.socket]()

    def act(connection: socket.socket) -> bool:
        if connection in begun:
            return sent(connection, b" ")
        begun.add(connection)
        return sent(connection, BODY_UNDER_WAY % target.token.encode())

    hold(target, 3000, act, 1.0)


def _is_open(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False
