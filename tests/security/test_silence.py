"""Clients that say or read nothing: what is closed when, who waits for whom, and what health says meanwhile."""

import asyncio
import json
import socket
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from types import SimpleNamespace

import pytest

from service.api.auth.csrf import BrowserCheck
from service.api.auth.guard import RequestGuard
from service.api.auth.rate_limits import Rates
from service.api.auth.throttle import AnonymousThrottle
from service.api.http.context import CONTEXT, Arrival, RequestContext
from service.api.http.permissions import Cluster, Public, declared
from service.api.middleware.edge import Edge
from service.api.telemetry.heartbeat import Heartbeat, WorkerHealth
from service.api.telemetry.metrics import Metrics
from service.model.core.access import BOOTSTRAP
from service.model.core.errors import StorageUnavailable
from service.server.connection_reaper import (
    READ_BYTES_MIN,
    UNSENT_BYTES_MAX,
    Connection,
    ConnectionLimits,
    ConnectionReaper,
    LinuxSockets,
    ReapPolicy,
    accepted_connections_max,
    connection_limits,
)
from service.server.health import ALIVE_SECONDS_MAX, ServerHealth, health_listener
from service.server.tcp_ports import hold_port, port_of
from service.settings import Settings
from tests.waiting import WAIT_SECONDS, eventually

TCP_NOTSENT_LOWAT = 25  # Python names it from 3.12 on
LIMITS = ConnectionLimits(total=100, each_address=100, answer_seconds=10.0)


def connection(cookie, *, address=b"a", idle_seconds=0.0, is_unread=False, read_bytes=0):
    return Connection(cookie, cookie, address, idle_seconds, is_unread, read_bytes)


def condemned(judge, connections, now=0.0):
    found = judge.select(connections, now)
    return {each.cookie: reason for each, reason in found.items()}


def test_who_reads_nothing_of_an_answer_is_closed_when_the_time_is_over():
    judge = ReapPolicy(LIMITS)
    unread = connection(1, is_unread=True)

    assert condemned(judge, [unread], now=0.0) == {}
    assert condemned(judge, [unread], now=10.0) == {}
    assert condemned(judge, [unread], now=10.5) == {1: "unread"}


@pytest.mark.parametrize(
    ("read_bytes", "closed"), [(READ_BYTES_MIN - 1, True), (READ_BYTES_MIN, False)]
)
def test_each_64_kib_that_are_read_give_new_time(read_bytes, closed):
    judge = ReapPolicy(LIMITS)
    condemned(judge, [connection(1, is_unread=True)], now=0.0)
    condemned(judge, [connection(1, is_unread=True, read_bytes=read_bytes)], now=9.0)

    later = connection(1, is_unread=True, read_bytes=read_bytes)

    assert bool(condemned(judge, [later], now=11.0)) is closed


def test_who_has_read_all_that_there_was_may_be_silent_for_ever():
    judge = ReapPolicy(LIMITS)
    condemned(judge, [connection(1, is_unread=True)], now=0.0)
    condemned(judge, [connection(1, is_unread=False, read_bytes=10)], now=9.0)

    assert condemned(judge, [connection(1, is_unread=True, read_bytes=10)], now=3000.0) == {}


def test_an_address_keeps_its_share_and_loses_the_idlest():
    judge = ReapPolicy(LIMITS._replace(each_address=2))
    many = [connection(number, idle_seconds=float(number)) for number in range(1, 5)]
    other = connection(9, address=b"b", idle_seconds=99.0)

    assert condemned(judge, [*many, other]) == {4: "address", 3: "address"}


def test_all_together_keep_their_number_and_lose_the_idlest():
    judge = ReapPolicy(LIMITS._replace(total=2))
    connections = [
        connection(number, address=bytes([number]), idle_seconds=float(number))
        for number in range(1, 5)
    ]

    assert condemned(judge, connections) == {4: "total", 3: "total"}


def test_limits_follow_the_file_limit(monkeypatch):
    limit = 1000
    monkeypatch.setattr("resource.getrlimit", lambda _: (limit, limit))

    assert connection_limits(Settings()) == ConnectionLimits(800, 200, 10.0)
    assert connection_limits(Settings(connections_max=100_000)).total == 800
    assert connection_limits(Settings(connections_per_address_max=3)).each_address == 3
    assert accepted_connections_max(800) == 900

    limit = 10**9
    assert connection_limits(Settings()).total == 20_000


class Accepted:
    """A connection of this process with itself, both ends at hand."""

    def __init__(self, listener):
        self.client = socket.create_connection(listener.getsockname()[:2])
        self.server, _ = listener.accept()

    def close(self):
        self.client.close()
        self.server.close()


@pytest.fixture(params=["127.0.0.1", "::1"])
def listener(request):
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.create_server((request.param, 0), family=family) as made:
        yield made


@pytest.fixture
def accepted(listener):
    made = [Accepted(listener) for _ in range(3)]
    yield made
    for each in made:
        each.close()


@pytest.fixture
def kernel(listener):
    return LinuxSockets(listener.getsockname()[1])


def of(kernel, accepted):
    return {each.fd: each for each in kernel.connections()}.get(accepted.server.fileno())


def test_the_kernel_tells_the_accepted_connections_alone(kernel, accepted):
    found = {each.fd for each in kernel.connections()}

    assert found == {each.server.fileno() for each in accepted}
    assert len({each.cookie for each in kernel.connections()}) == 3
    assert len({each.address for each in kernel.connections()}) == 1


def fill(server):
    """Send until nothing more goes."""
    with suppress(BlockingIOError):
        while True:
            server.send(bytes(65536))


def test_the_kernel_tells_what_was_read(kernel, accepted):
    server, client = accepted[0].server, accepted[0].client
    server.settimeout(0)
    fill(server)
    before = of(kernel, accepted[0])
    assert before.is_unread

    def reads_on():
        client.recv(1 << 20)
        return of(kernel, accepted[0]).read_bytes > before.read_bytes

    eventually(reads_on)
    assert not of(kernel, accepted[1]).is_unread


def test_a_listener_gives_its_connections_little_room_for_what_is_not_read(kernel, listener):
    list(kernel.connections())

    later = Accepted(listener)

    unsent_bytes_max = later.server.getsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT)
    later.close()
    assert unsent_bytes_max == UNSENT_BYTES_MAX


def test_who_is_closed_is_told_and_costs_nothing_more(kernel, accepted):
    guard = ConnectionReaper(kernel, LIMITS._replace(each_address=2))

    [(closed, reason)] = guard.run_once(now=0.0).items()

    assert reason == "address"
    [gone] = [each for each in accepted if each.server.fileno() == closed.fd]
    assert gone.server.recv(1) == b""  # what the server's own reading sees
    assert gone.client.recv(1) == b""
    gone.server.close()
    assert guard.run_once(now=1.0) == {}


def test_a_connection_that_came_in_the_place_of_another_is_not_closed_for_it(kernel, accepted):
    there = of(kernel, accepted[0])

    kernel.close(there._replace(cookie=there.cookie + 1000))

    accepted[0].client.sendall(b"x")
    assert accepted[0].server.recv(1) == b"x"


class Door:
    """An application that counts who is inside, and holds them there, before it answers or amid its answer."""

    def __init__(self, *, answers_first=False):
        self.inside, self.open = 0, asyncio.Event()
        self._answers_first = answers_first

    async def __call__(self, scope, receive, send):
        self.inside += 1
        if self._answers_first:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await self.open.wait()


async def turned(times=20):
    for _ in range(times):
        await asyncio.sleep(0)


@pytest.fixture
def turns():
    return AnonymousThrottle(at_a_time=2, seconds=0.0)


async def send(_message):
    """A client that takes all."""


class BootstrapAlone:
    """What finds out who asks, where whoever is asked for a token has that of the settings."""

    async def principal(self, _headers):
        return BOOTSTRAP


def entrance(authentication, turns):
    return RequestGuard(authentication, BrowserCheck(""), Rates(Settings(), Clock()), turns)


def asked_at_once(turns, app, times, access=None):
    """Requests to an application, of nobody known unless the operation asks who makes them."""
    entering = entrance(BootstrapAlone(), turns)(app)
    arrival = Arrival(has_turn=False, seemed_open=False)
    handler = SimpleNamespace(opt=declared(access or Public()))
    scope = {"type": "http", "method": "GET", "headers": [], "path_params": {}}
    scope |= {"route_handler": handler, CONTEXT: RequestContext(arrival=arrival)}
    return [asyncio.create_task(entering(dict(scope), None, send)) for _ in range(times)]


async def test_requests_of_nobody_known_take_turns(turns):
    door = Door()
    requests = asked_at_once(turns, door, 5)
    await turned()

    assert door.inside == 2

    door.open.set()
    await asyncio.gather(*requests)
    assert door.inside == 5


async def test_a_turn_ends_when_the_answer_begins_so_that_nobody_keeps_it_by_reading_slowly(turns):
    door = Door(answers_first=True)
    requests = asked_at_once(turns, door, 5)
    await turned()
    assert door.inside == 5

    door.open.set()
    await asyncio.gather(*requests)


async def test_a_turn_lasts_a_while_at_least_so_that_others_have_the_rest_of_the_time():
    answered = []

    async def app(scope, receive, send):
        answered.append(asyncio.get_running_loop().time())

    began = asyncio.get_running_loop().time()
    await asyncio.gather(*asked_at_once(AnonymousThrottle(at_a_time=2, seconds=0.01), app, 6))

    assert answered[2] - began >= 0.01
    assert answered[4] - began >= 0.02


async def test_who_is_known_waits_for_nobody(turns):
    door = Door()
    requests = asked_at_once(turns, door, 5)
    await turned()

    requests += asked_at_once(turns, door, 1, Cluster("read"))
    await turned()

    assert door.inside == 3
    door.open.set()
    await asyncio.gather(*requests)


class NobodyIsKnown:
    """What finds out who asks, on a server with tokens."""

    def seems_open(self):
        return False


async def test_who_brings_no_token_waits_before_anything_else_is_done_for_them(turns):
    door = Door()
    edge = Edge(
        door,
        Settings(),
        guard=entrance(NobodyIsKnown(), turns),
        head_of=None,
        metrics=Metrics(),
        refusals=None,
        monotonic=Clock(),
        new_id=lambda: "some-request",
    )

    def asked(*headers):
        scope = {"type": "http", "method": "GET", "path": "/livez", "raw_path": b"/livez"}
        scope |= {"query_string": b"", "headers": list(headers)}
        return asyncio.create_task(edge(scope, None, send))

    requests = [asked() for _ in range(5)]
    await turned()
    assert door.inside == 2

    requests.append(asked((b"authorization", b"Bearer of-somebody")))
    await turned()
    assert door.inside == 3

    door.open.set()
    await asyncio.gather(*requests)
    assert door.inside == 6


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def pulse(clock):
    return ServerHealth(silence_seconds_max=10.0, monotonic=clock)


def test_a_server_is_ready_as_long_as_a_worker_says_that_it_is(pulse, clock):
    assert pulse.ready().status == HTTPStatus.SERVICE_UNAVAILABLE

    pulse.record(WorkerHealth(1, "The database is gone."))
    assert b"The database is gone." in pulse.ready().body
    pulse.record(WorkerHealth(2, None))
    assert pulse.ready().status == HTTPStatus.OK

    clock.now = 10.5
    assert pulse.ready().status == HTTPStatus.SERVICE_UNAVAILABLE


def test_a_server_is_alive_until_all_workers_were_silent_for_a_minute(pulse, clock):
    clock.now = ALIVE_SECONDS_MAX
    assert pulse.live().status == HTTPStatus.OK
    clock.now += 1
    assert pulse.live().status == HTTPStatus.SERVICE_UNAVAILABLE
    pulse.record(WorkerHealth(1, "The database is gone."))
    assert pulse.live().status == HTTPStatus.OK


@pytest.fixture
def impatient(monkeypatch):
    """A listener for few who are quick."""
    monkeypatch.setattr("service.server.health.CONNECTIONS_MAX", 4)
    monkeypatch.setattr("service.server.health.CONNECTION_SECONDS_MAX", 0.1)


@pytest.fixture
def health(tmp_path):
    """The port of a listener, and where workers tell how they are."""
    with hold_port() as held:
        port = port_of(held)
        with health_listener(
            "127.0.0.1",
            port,
            folder=str(tmp_path),
            metrics_dir=str(tmp_path),
            silence_seconds_max=WAIT_SECONDS,
        ) as path:
            yield port, path


def asked(port, path, method="GET"):
    connection = HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS)
    connection.request(method, path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


async def told(path, check_ready):
    beating = asyncio.create_task(Heartbeat(str(path), check_ready).run())
    await turned()
    beating.cancel()


async def test_what_a_worker_tells_is_answered(health):
    port, path = health

    async def fine():
        pass

    async def gone():
        raise StorageUnavailable("The database is gone.")

    await told(path, gone)
    status, body = await asyncio.to_thread(eventually, lambda: not_silent(port))
    assert (status, json.loads(body)["detail"]) == (503, "The database is gone.")
    await told(path, fine)
    await asyncio.to_thread(eventually, lambda: asked(port, "/readyz")[0] == 200)
    assert asked(port, "/livez") == (200, b'{"status":"ok"}')
    assert asked(port, "/livez", "HEAD") == (200, b"")
    assert asked(port, "/metrics")[0] == 200
    assert asked(port, "/v1/clusters")[0] == 404


def not_silent(port):
    status, body = asked(port, "/readyz")
    return (status, body) if b"No worker tells" not in body else None


def test_what_is_no_beat_is_not_heard(health):
    port, path = health
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as teller:
        teller.sendto(b"{", str(path))
        teller.sendto(b'{"worker":1,"trouble":null}', str(path))

    eventually(lambda: asked(port, "/readyz")[0] == 200)


def test_who_holds_connections_to_health_loses_them(impatient, health):
    port, _ = health
    held = [socket.create_connection(("127.0.0.1", port)) for _ in range(9)]
    for each in held:
        each.settimeout(WAIT_SECONDS)
        assert each.recv(1) == b""
        each.close()

    assert eventually(lambda: answered(port))


def answered(port):
    """None while all places are taken."""
    with suppress(OSError, HTTPException):
        return asked(port, "/livez")[0] == 200
