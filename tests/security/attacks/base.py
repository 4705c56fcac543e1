"""One attack on a server of its own, and what its other clients notice of it.

The server is `moorage serve` with a token and a small cluster. The attack runs in a process of its own. Meanwhile a client with the
token places single pods at a steady rate, another asks `/readyz`, each time on a new connection, and the memory of all
processes of the server is looked at. A call's time counts from when it was due, so calls that could not be made count as well.
"""

import json
import math
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection, HTTPException

import psutil

from moorage.cli.session.client import Client
from service.server.local_server import LocalServer, temporary_folder
from service.server.tcp_ports import hold_port, port_of
from tests.builders import node, pod
from tests.paths import ROOT

TOKEN = "the-token-of-an-attacked-server-0123456789"
CLUSTER = "default"
HOST = "127.0.0.1"

PERIOD_SECONDS = 0.2
CALL_SECONDS_MAX = 30.0
"""How long a call waits for its answer before it is made again."""
CALM_SECONDS = 3.0
"""How long the server is looked at before the attack, for what memory it needs anyway."""
AFTERMATH_SECONDS = 8.0
"""How long it is looked at afterwards: longer than it may take to recover."""
MIB = 1024 * 1024

READY_SECONDS_MAX = 1.0
PLACEMENT_SECONDS_MAX = 0.5
MEMORY_MIB_MAX = 500.0
RECOVERY_SECONDS_MAX = 5.0


@dataclass(frozen=True)
class Target:
    """What an attacker knows of a server. The token is for attacks by somebody who has one."""

    port: int
    token: str = TOKEN
    host: str = HOST

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"


Attack = Callable[[Target], None]


@dataclass(frozen=True)
class Attacking:
    """An attack, and on what kind of server."""

    name: str
    title: str
    run: Attack
    seconds: float
    workers: int
    environment: Mapping[str, str]


ATTACKS: dict[str, Attacking] = {}


def attack(
    name: str,
    title: str,
    *,
    seconds: float = 15.0,
    workers: int = 1,
    environment: Mapping[str, str] | None = None,
) -> Callable[[Attack], Attack]:
    """Register a function that attacks its target until it is killed, or until it has nothing more to do."""

    def register(run: Attack) -> Attack:
        ATTACKS[name] = Attacking(name, title, run, seconds, workers, environment or {})
        return run

    return register


@dataclass(frozen=True)
class Damage:
    """What an attack did to the others."""

    name: str
    ready_seconds: float
    health_seconds: float
    """The slowest answer of the health listener, which is the one that probes should ask."""
    placement_seconds: float
    memory_mib: float
    recovery_seconds: float

    @property
    def broken(self) -> list[str]:
        """The bounds that were broken, in words."""
        bounds = {
            "/readyz": (self.health_seconds, READY_SECONDS_MAX),
            "placements": (self.placement_seconds, PLACEMENT_SECONDS_MAX),
            "memory": (self.memory_mib, MEMORY_MIB_MAX),
            "recovery": (self.recovery_seconds, RECOVERY_SECONDS_MAX),
        }
        return [
            f"{name}: {seen:.2f} > {most:g}" for name, (seen, most) in bounds.items() if seen > most
        ]

    def row(self) -> str:
        return (
            f"| {ATTACKS[self.name].title} | {self.ready_seconds:.2f} s | {self.health_seconds:.2f} s | {self.placement_seconds:.2f} s"
            f" | {self.memory_mib:+.0f} MB | {self.recovery_seconds:.1f} s |"
        )


HEADING = (
    "| attack | `/readyz` at clients' port, slowest | `/readyz` at the health port, slowest | placements, p99 | memory | back after |\n"
    "|---|--:|--:|--:|--:|--:|"
)


def damage_of(attacking: Attacking) -> Damage:
    """Attack a server of its own."""
    with _server(attacking) as (server, health_port):
        _load(server)
        target = Target(server.port)
        with watched(server, health_port) as seen:
            time.sleep(CALM_SECONDS)
            calm_bytes = seen.bytes_now()
            begun = time.monotonic()
            _attack(attacking, target)
            ended = time.monotonic()
            seen.wait_until(ended + AFTERMATH_SECONDS)
        return _damage(attacking.name, seen, calm_bytes, begun, ended)


def _damage(name: str, seen: "Watching", calm_bytes: int, begun: float, ended: float) -> Damage:
    peak = max(size for at, size in seen.sizes if at >= begun)
    return Damage(
        name=name,
        ready_seconds=slowest(seen.ready.between(begun, ended)),
        health_seconds=slowest(seen.health.between(begun, ended)),
        placement_seconds=percentile(seen.placements.between(begun, ended), 0.99),
        memory_mib=(peak - calm_bytes) / MIB,
        recovery_seconds=max(
            seen.ready.back_after(ended, READY_SECONDS_MAX),
            seen.health.back_after(ended, READY_SECONDS_MAX),
            seen.placements.back_after(ended, PLACEMENT_SECONDS_MAX),
        ),
    )


@contextmanager
def _server(attacking: Attacking) -> Iterator[tuple[LocalServer, int]]:
    environment = {"MOORAGE_TOKEN": TOKEN, **attacking.environment}
    with (
        temporary_folder() as folder,
        free_port() as health_port,
        LocalServer(
            folder / "data",
            workers=attacking.workers,
            environment={**environment, "MOORAGE_HEALTH_PORT": str(health_port)},
            quiet=True,
        ) as server,
    ):
        yield server, health_port


@contextmanager
def free_port() -> Iterator[int]:
    """One that nobody else gets meanwhile."""
    with hold_port() as held:
        yield port_of(held)


def _load(server: LocalServer) -> None:
    """A cluster with room for all that is placed meanwhile."""
    room = {"cpu": "10000", "memory": "1000Gi", "pods": "10000"}
    names = [f"node-{number}" for number in range(20)]
    nodes = [{"kind": "Node", **node(name).allocatable(**room)} for name in names]
    with Client(server.url, token=TOKEN, cluster=CLUSTER) as client:
        client.put(client.path(), {"config": {}})
        client.post_once(client.path("apply"), {"kind": "List", "items": nodes})


def _attack(attacking: Attacking, target: Target) -> None:
    """Let the attack go on for its time in a process of its own, then kill it, which closes its connections."""
    command = [sys.executable, "-m", "tests.security.attacks", attacking.name]
    process = subprocess.Popen([*command, "--port", str(target.port)], cwd=ROOT)
    deadline = time.monotonic() + attacking.seconds
    with suppress(subprocess.TimeoutExpired):
        process.wait(attacking.seconds)
    time.sleep(max(0.0, deadline - time.monotonic()))
    process.kill()
    process.wait()


@dataclass
class Calls:
    """When calls were due, and when they were answered as they should be."""

    made: list[tuple[float, float]] = field(default_factory=list)

    def between(self, begun: float, ended: float) -> list[float]:
        return [done - due for due, done in self.made if begun <= due < ended]

    def back_after(self, ended: float, seconds_max: float) -> float:
        """How long after that moment calls still took too long."""
        late = [done - ended for due, done in self.made if done - due > seconds_max]
        return max([0.0, *late])


def slowest(seconds: Sequence[float]) -> float:
    assert seconds, "nothing was measured"
    return max(seconds)


def percentile(seconds: Sequence[float], share: float) -> float:
    assert seconds, "nothing was measured"
    return sorted(seconds)[math.ceil(share * len(seconds)) - 1]


class Watching:
    """The calls of those who have nothing to do with the attack, and the server's memory."""

    def __init__(self, server: LocalServer, health_port: int) -> None:
        assert server.process is not None
        self._supervisor = psutil.Process(server.process.pid)
        self.placements, self.ready, self.health = Calls(), Calls(), Calls()
        self.sizes: list[tuple[float, int]] = []
        self._stop = threading.Event()
        self._placing = _Placing(server.port)
        work = [
            partial(self._call, self.placements, self._placing.once),
            partial(self._call, self.ready, partial(_is_ready, server.port)),
            partial(self._call, self.health, partial(_is_ready, health_port)),
            self._look_at_memory,
        ]
        self._threads = [threading.Thread(target=each) for each in work]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._placing.close()

    def wait_until(self, moment: float) -> None:
        """Until all calls that were due at that moment are answered."""
        for calls in [self.placements, self.ready]:
            while not calls.made or calls.made[-1][0] < moment:
                time.sleep(PERIOD_SECONDS)

    def bytes_now(self) -> int:
        return self.sizes[-1][1]

    def _call(self, calls: Calls, once: Callable[[], bool]) -> None:
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            while not once() and not self._stop.is_set():
                self._stop.wait(0.02)
            calls.made.append((due, time.monotonic()))
            due += PERIOD_SECONDS

    def _look_at_memory(self) -> None:
        while not self._stop.wait(0.25):
            self.sizes.append((time.monotonic(), _resident_bytes(self._supervisor)))


@contextmanager
def watched(server: LocalServer, health_port: int) -> Iterator[Watching]:
    watching = Watching(server, health_port)
    watching.start()
    try:
        yield watching
    finally:
        watching.stop()


def _resident_bytes(supervisor: psutil.Process) -> int:
    """What the server's own processes hold, PostgreSQL's left aside: its pages are shared."""
    total = 0
    for process in [supervisor, *supervisor.children(recursive=True)]:
        with suppress(psutil.Error):
            if "python" in process.name():
                total += process.memory_info().rss
    return total


class _Placing:
    """Places one pod after the other on one connection, each under a key, so that it may be asked again."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection: HTTPConnection | None = None
        self._name = ""

    def once(self) -> bool:
        """Whether it was placed; if not, the same is asked the next time."""
        self._name = self._name or f"pod-{secrets.token_hex(8)}"
        self._connection = self._connection or HTTPConnection(
            HOST, self._port, timeout=CALL_SECONDS_MAX
        )
        try:
            placed = self._place(self._connection)
        except (OSError, HTTPException):
            self.close()
            return False
        self._name = "" if placed else self._name
        return placed

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _place(self, connection: HTTPConnection) -> bool:
        headers = {
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": "application/json",
            "Idempotency-Key": self._name,
        }
        body = json.dumps({"pods": [pod(self._name)]})
        connection.request("POST", f"/v1/clusters/{CLUSTER}/placements", body, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status == 200


def _is_ready(port: int) -> bool:
    connection = HTTPConnection(HOST, port, timeout=CALL_SECONDS_MAX)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def raise_file_limit() -> None:
    """An attacker has as many connections as the system gives."""
    import resource  # noqa: PLC0415 - not on every system

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def end_with_parent() -> None:
    """An attacker whose test was killed goes, too."""
    from service.server.worker import end_with_parent as tie  # noqa: PLC0415

    tie()
    assert os.getppid() > 0
