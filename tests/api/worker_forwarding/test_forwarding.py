"""P19: requests are forwarded to the worker that holds the cluster's lease, over a socket."""

import asyncio
import gzip
import subprocess
import sys
import tempfile
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import httpx
import msgspec
import pytest

from service.api.bodies.byte_budget import Budget
from service.api.http.body import BodyReader
from service.api.telemetry.metrics import Metrics
from service.api.worker_forwarding import sockets as peers_module
from service.api.worker_forwarding.forwarder import OtherWorkers
from service.api.worker_forwarding.liveness import Liveness
from service.api.worker_forwarding.middleware import ForwardingMiddleware, decide_forwarded
from service.api.worker_forwarding.sockets import ForwardedRequest, Listener, SocketPeers, socket_of
from service.app import create_app
from service.model.core.access import BOOTSTRAP, EVERYBODY
from service.model.core.errors import OutcomeUnknown
from service.runtime.clock import SystemClock
from service.runtime.ids import RandomIds
from service.scheduler.ownership.cluster_owners import ClusterOwners
from service.scheduler.protocol.limits import Limits
from service.scheduler.scheduler import Scheduler
from service.settings import Settings
from service.store.memory.memory_store import MemoryStore
from tests.api.conftest import LITESTARS
from tests.api.harness import AS_JSON, CLUSTER, node, pod, problem
from tests.api.leaving import LeavingClient
from tests.waiting import once

CLOCK = SystemClock()
KEY = {"idempotency-key": "k"}


class Worker:
    """One of several applications over one store, and what may befall it."""

    def __init__(self, store, folder, name, servers=None, limits=Limits(), **settings):  # noqa: B008 - it is frozen
        self.settings = Settings(**settings)
        self.presence = Liveness(folder, name)
        self.budget = Budget(self.settings.bytes_in_flight_max)
        self.peers = SocketPeers(folder, answer_seconds_max=10, budget=self.budget, servers=servers)
        self.servers = servers
        others = OtherWorkers(socket_of(folder, name), self.presence, servers, self.peers)
        own = name if servers is None else servers.own
        knows = {"lives": others.lives, "answers": self.peers.answers}
        self.cluster_owners = ClusterOwners(store, CLOCK, Limits(), server="s", own=own, **knows)
        self.scheduler = Scheduler(
            store, CLOCK, RandomIds(), limits, cluster_owners=self.cluster_owners
        )
        bodies = BodyReader(self.settings, CLOCK.monotonic)
        metrics = Metrics()
        self.forwarding = ForwardingMiddleware(self.cluster_owners, self.peers, bodies, metrics)
        create = partial(
            create_app,
            self.settings,
            store=store,
            scheduler=self.scheduler,
            clock=CLOCK,
            metrics=metrics,
            budget=self.budget,
            middleware=[self.forwarding],
        )
        self.lent = ExitStack()
        self.app = LITESTARS.application(self.lent, create)
        self.received = []
        """What others forwarded to it."""
        self.socket = socket_of(folder, name)
        self.listener = Listener(
            self.socket, self._decide, self.budget, self.cluster_owners.passed_to
        )
        transport = httpx.ASGITransport(app=self.app)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://localhost")
        self.left = []
        """What returns once the client of each of these has left."""
        self.before = self.after = None
        """Awaited before or after each that is forwarded to it."""

    @property
    def decided(self):
        """The methods and paths of what others forwarded to it."""
        return [(request.method, request.path) for request in self.received]

    async def _decide(self, request, left):
        self.received.append(request)
        self.left.append(left)
        if self.before is not None:
            await self.before()
        answer = await decide_forwarded(self.app.app, request, left)
        if self.after is not None:
            await self.after()
        return answer

    async def start(self):
        await self.scheduler.start()
        await self.listener.start()
        if self.servers is not None:
            await self.servers.listen(self.listener.serve)

    async def stop(self):
        await self.client.aclose()
        if self.servers is not None:
            self.servers.stop_listening()
        await self.listener.close()
        await self.peers.close()
        await self.scheduler.stop()
        self.presence.end()
        self.lent.close()

    def fall_silent(self):
        """As one that has no more connections looks to the others."""
        self.listener.stop_listening()
        if self.servers is not None:
            self.servers.stop_listening()
        for writer in list(self.listener.connections):
            writer.transport.abort()

    def vanish(self):
        """As kill -9 looks to the others."""
        self.fall_silent()
        self.presence.end()


@pytest.fixture
def store():
    return MemoryStore(CLOCK.now, RandomIds().commit_id)


@pytest.fixture
async def start_worker(store):
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:

            async def start(name, **settings):
                worker = Worker(store, Path(folder), name, **settings)
                await worker.start()
                stack.push_async_callback(worker.stop)
                return worker

            yield start


@pytest.fixture
async def home(start_worker):
    """The worker that holds the lease of `default`; the cluster has one node."""
    worker = await start_worker("home")
    answer = await worker.client.put(f"{CLUSTER}/nodes/n", json=node("n", zone="a"))
    assert answer.status_code == 201
    return worker


@pytest.fixture
async def other(home, start_worker):
    return await start_worker("other")


@pytest.fixture
def never(home, committed):
    """Until this event, which comes when all is over, `home` loses its answers, committed or not."""
    over = asyncio.Event()

    async def lose():
        home.vanish()
        await over.wait()

    setattr(home, "after" if committed else "before", lose)
    yield over
    over.set()


async def until(true):
    async def holds():
        return true()

    await once(holds)


def placing(*names):
    return {"pods": [pod(name) for name in names]}


async def test_p19_what_takes_the_replica_is_decided_by_the_lease_holder(home, other):
    item, calls = f"{CLUSTER}/namespaces/shop/pods/p", other.client
    await calls.put(f"{CLUSTER}/namespaces/shop", json={"metadata": {"name": "shop"}})
    placed = (await calls.post(f"{CLUSTER}/placements", json=placing("p"))).json()
    assert placed["results"][0]["outcome"] == "Placed"
    for path in (f"{item}/explanation", f"{CLUSTER}/topology?key=zone", f"{CLUSTER}/violations"):
        assert (await calls.get(path)).status_code == 200
    await calls.patch(item, json={"metadata": {"labels": {"a": "b"}}})
    await calls.post(f"{item}/eviction")
    await calls.patch(CLUSTER, json={"config": {"hardPodAffinityWeight": 3}})
    await calls.post(f"{CLUSTER}/apply", json={"kind": "List", "items": [node("n2")]})
    await calls.get(f"{CLUSTER}/namespaces/shop/resourcequotas")
    for query in ("nodeName=n", "phase=Pending&limit=5", "limit=5&labelSelector=a%3Db"):
        listed = (await calls.get(f"{CLUSTER}/pods?{query}")).json()["items"]
        assert [each["metadata"]["name"] for each in listed] == ["p"]
    await calls.post(f"{CLUSTER}/pods/statuses", json={"items": []})
    await calls.delete(item)
    await calls.delete(f"{CLUSTER}/pods?all=true")
    assert len(home.decided) == 16
    assert other.scheduler.replicas() == {}


async def test_p19_what_is_read_from_the_tables_or_streams_stays(home, other):
    calls = other.client
    assert (await calls.get(f"{CLUSTER}/nodes/n")).json()["metadata"]["name"] == "n"
    assert (await calls.get(f"{CLUSTER}/nodes")).status_code == 200
    assert (await calls.get(f"{CLUSTER}/nodes?limit=5")).status_code == 200
    for query in ("labelSelector=a", "labelSelector=!a"):
        listed = (await calls.get(f"{CLUSTER}/nodes?{query}")).json()["items"]
        assert len(listed) == (query == "labelSelector=!a")
    assert (await calls.get(CLUSTER)).status_code == 200
    assert (await calls.get("/v1/clusters")).status_code == 200
    lines = {"content": b'{"kind":"Node","metadata":{"name":"n3"}}', "headers": {}}
    lines["headers"]["content-type"] = "application/x-ndjson"
    assert (await calls.post(f"{CLUSTER}/apply", **lines)).status_code == 200
    assert home.decided == []


async def test_p19_an_answer_is_the_same_whoever_is_asked(home, other):
    """Status, headers and body; refusals and the problems of bad requests too."""
    requests = [
        ("PUT", "nodes/n", {"json": node("n", zone="a")}),
        ("PUT", "nodes/n", {"json": {"metadata": {"name": "n", "labels": {"a": "?"}}}}),
        ("PUT", "nodes/n", {"json": node("n"), "headers": {"if-match": '"77"'}}),
        ("PATCH", "nodes/n", {"content": b"<a/>", "headers": {"content-type": "text/xml"}}),
        ("POST", "placements", {"content": b"{", "headers": AS_JSON}),
        ("POST", "placements", {"content": b'{"pods":[],"pods":[]}', "headers": AS_JSON}),
        ("POST", "placements?dryrun=true", {"json": placing("p")}),
        ("POST", "placements", {"json": {**placing("p"), "dryRun": True}}),
        ("GET", "namespaces/shop/pods/nobody/explanation", {}),
        ("GET", "topology?key=zone", {}),
        ("GET", "topology", {}),
        ("DELETE", "nodes/nobody", {}),
        ("GET", "nothing", {}),
    ]
    for worker in (home, other):
        worker.client.headers["x-request-id"] = "the-same"
    for method, path, options in requests:
        answers = [
            await worker.client.request(method, f"{CLUSTER}/{path}", **options)
            for worker in (home, other)
        ]
        here, there = ((a.status_code, sorted(a.headers.items())) for a in answers)
        assert here == there, path
        if "dryRun" not in str(options):  # the uid is another one each time
            assert answers[0].content == answers[1].content
    assert home.decided


@pytest.mark.parametrize("forwarded", [True, False])
async def test_p19_what_is_compressed_is_unpacked_before_it_is_forwarded(
    home, other, monkeypatch, forwarded
):
    """A body is forwarded as it unpacks, unless it is too long for that."""
    if not forwarded:
        monkeypatch.setattr("service.api.worker_forwarding.middleware.HANDED_BYTES_MAX", 1_000)
    body = msgspec.json.encode(placing(*map("p{}".format, range(30))))
    assert len(gzip.compress(body)) < 1_000 < len(body)
    answer = await other.client.post(
        f"{CLUSTER}/placements",
        content=gzip.compress(body),
        headers={**AS_JSON, "content-encoding": "gzip", "accept-encoding": "gzip"},
    )
    assert {each["outcome"] for each in answer.json()["results"]} <= {"Placed", "Unschedulable"}
    assert answer.headers["content-encoding"] == "gzip"
    assert [request.body for request in home.received] == [body] * forwarded


async def test_p19_limits_and_tokens_are_looked_at_before_anything_is_forwarded(home, start_worker):
    strict = await start_worker("strict", token="secret", body_bytes_max=1024)
    assert problem(await strict.client.get(f"{CLUSTER}/violations"), 401) == "Unauthorized"
    token = {**AS_JSON, "authorization": "Bearer secret"}
    long = await strict.client.put(f"{CLUSTER}/nodes/n", content=b" " * 2000, headers=token)
    assert problem(long, 413) == "BodyTooLarge"
    assert home.decided == []


async def test_p19_conditions_are_honored_by_whoever_decides_and_else_refused_at_once(home, other):
    calls, unmet = other.client, {"if-match": '"9-9"'}
    asked = await calls.post(f"{CLUSTER}/placements", json=placing("p"), headers=unmet)
    assert problem(asked, 400) == "MalformedRequest"
    assert home.decided == []
    for condition in (unmet, {"if-none-match": "*"}):
        for body in ({"config": {}}, {}):
            answer = await calls.put(CLUSTER, json=body, headers=condition)
            assert problem(answer, 412) == "PreconditionFailed"
        answer = await calls.delete(f"{CLUSTER}/nodes/n", headers=condition)
        assert problem(answer, 412) == "PreconditionFailed"
        answer = await calls.delete(CLUSTER, headers=condition)
        assert problem(answer, 412) == "PreconditionFailed"
    assert len(home.decided) == 6


async def test_p19_who_asks_is_told_to_the_other_worker_and_not_by_which_secret(home, start_worker):
    strict = await start_worker("strict", token="secret")
    headers = {"authorization": "Bearer secret", "cookie": "a=b", "if-match": "*"}
    answer = await strict.client.patch(f"{CLUSTER}/nodes/n", json={}, headers=headers)
    assert answer.status_code == 200
    [forwarded] = home.received
    assert forwarded.principal == BOOTSTRAP
    names = {name for name, _ in forwarded.headers}
    assert b"if-match" in names
    assert not names & {b"authorization", b"cookie"}


async def test_p11_a_request_is_the_same_to_whichever_worker_decides_it(home, start_worker):
    """What proves who asks does not travel, and is no part of what the key's first request was."""
    strict = await start_worker("strict", token="secret")
    again = {"json": placing("p"), "headers": KEY | {"authorization": "Bearer secret"}}
    answer = await strict.client.post(f"{CLUSTER}/placements", **again)
    assert len(home.decided) == 1
    home.vanish()
    repeated = await strict.client.post(f"{CLUSTER}/placements", **again)
    assert len(home.decided) == 1
    assert (repeated.status_code, repeated.content) == (200, answer.content)


async def test_p11_a_key_of_somebody_else_is_another_request(home, start_worker):
    """Where there is no token everybody asks, and where there is one its holder."""
    for worker, status in ((home, 200), (await start_worker("strict", token="secret"), 422)):
        headers = KEY | {"authorization": "Bearer secret"}
        answer = await worker.client.post(
            f"{CLUSTER}/placements", json=placing("p"), headers=headers
        )
        assert answer.status_code == status
    assert problem(answer, 422) == "IdempotencyKeyReused"


async def test_p19_a_connection_that_closed_since_is_no_way_to_forward(home, other, monkeypatch):
    """Nothing was sent, so nothing was begun there, and the request is decided here."""

    def closed(writer, data):
        raise RuntimeError("the handler is closed")

    assert (await other.client.get(f"{CLUSTER}/violations")).status_code == 200
    monkeypatch.setattr(asyncio.StreamWriter, "write", closed)
    answer = await other.client.post(f"{CLUSTER}/placements", json=placing("p"))
    assert answer.json()["results"][0]["outcome"] == "Placed"
    assert len(home.decided) == 1


async def test_p19_what_nobody_known_has_asked_is_refused_by_whoever_decides(home):
    path = f"{CLUSTER}/violations"
    for principal, status in ((None, 401), (EVERYBODY, 200)):
        request = ForwardedRequest("GET", path, path.encode(), b"", [], b"", principal)
        assert (await decide_forwarded(home.app.app, request)).status == status


async def test_p19_nothing_is_forwarded_twice(home, other, start_worker, store):
    """A worker to which a request is forwarded decides it, whatever it knows of leases by then."""
    third = await start_worker("third")
    assert await third.cluster_owners.elsewhere("default") == "home"
    await store.release_lease(1, "requests@s", "home")
    assert await store.claim_lease(1, "requests@s", "third", 60)
    assert await other.cluster_owners.elsewhere("default") == "third"
    assert await third.cluster_owners.elsewhere("default") == "home"
    answer = await other.client.post(f"{CLUSTER}/placements", json=placing("p"))
    assert answer.json()["results"][0]["outcome"] == "Placed"
    assert len(third.decided) == 1
    assert home.decided == []


async def test_p19_who_cannot_be_reached_is_done_without_at_once(home, other, store):
    home.fall_silent()
    for number in range(3):
        answer = await other.client.post(f"{CLUSTER}/placements", json=placing(f"p{number}"))
        assert answer.json()["results"][0]["outcome"] == "Placed"
    # The lease still is the other one's: nothing had to wait for its end.
    lease = await store.claim_lease(1, "requests@s", "other", 1)
    assert lease.holder == "home"


async def test_p19_the_place_of_one_that_has_died_is_taken_at_once(home, other, store):
    home.vanish()
    for number in range(2):
        answer = await other.client.post(f"{CLUSTER}/placements", json=placing(f"p{number}"))
        assert answer.json()["results"][0]["outcome"] == "Placed"
    lease = await store.claim_lease(1, "requests@s", "somebody", 1)
    assert lease.holder == "other"


def test_p19_a_process_that_is_killed_is_dead_to_the_others(tmp_path):
    own = Liveness(tmp_path, "own")
    code = (
        "import pathlib, sys; from service.api.worker_forwarding.liveness import Liveness;"
        "presence = Liveness(pathlib.Path(sys.argv[1]), 'other'); print(flush=True); input()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        assert (own.lives("own"), own.lives("other"), own.lives("nobody")) == (True, True, False)
        other.kill()
        other.wait()
        assert not own.lives("other")
    own.end()


async def test_p19_a_worker_about_to_stop_answers_what_it_has_begun_and_takes_no_more(home, other):
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def hold():
        begun.set()
        await go_on.wait()

    home.before = hold
    asked = asyncio.create_task(other.client.post(f"{CLUSTER}/placements", json=placing("p")))
    await begun.wait()
    stopping = asyncio.create_task(home.listener.close())
    await asyncio.sleep(0)
    late = await other.client.post(f"{CLUSTER}/placements", json=placing("late"))
    assert late.json()["results"][0]["outcome"] == "Placed"
    assert len(home.decided) == 1
    go_on.set()
    await stopping
    assert (await asked).json()["results"][0]["outcome"] == "Placed"


@pytest.mark.parametrize("committed", [True, False])
async def test_p19_a_lost_answer_to_a_request_with_a_key_is_made_up_for_once(
    home, other, store, committed, never
):
    """P11: the record of the first attempt, if it was committed, is the answer of the second."""
    again = {"json": placing("p"), "headers": KEY}
    answer = await other.client.post(f"{CLUSTER}/placements", **again)
    assert answer.status_code == 200
    assert answer.json()["results"][0]["outcome"] == "Placed"
    assert (await store.head(1)).revision == 3
    home.before = home.after = None
    never.set()
    await asyncio.wait(home.listener.deciding)
    # The first attempt has come to its end as well: it found the record.
    assert (await store.head(1)).revision == 3
    repeated = await other.client.post(f"{CLUSTER}/placements", **again)
    assert repeated.content == answer.content


@pytest.mark.parametrize("committed", [True, False])
async def test_p19_a_lost_answer_to_a_request_without_a_key_is_an_unknown_outcome(
    home, other, committed, never
):
    """P4: it may be done already, and to do it again could be once too often."""
    answer = await other.client.post(f"{CLUSTER}/placements", json=placing("p"))
    assert problem(answer, 503) == OutcomeUnknown.__name__
    assert answer.headers["retry-after"]
    # What changes nothing is decided here then.
    assert (await other.client.get(f"{CLUSTER}/violations")).status_code == 200


async def test_p19_a_refusal_after_a_lost_answer_is_told_as_an_unknown_outcome(home, other):
    never = asyncio.Event()

    async def lose():
        home.vanish()
        await never.wait()

    home.before = lose
    path = f"{CLUSTER}/namespaces/shop/pods/nobody/eviction"
    answer = await other.client.post(path, headers=KEY)
    assert problem(answer, 503) == OutcomeUnknown.__name__
    assert problem(await other.client.post(path, headers=KEY), 404) == "NotFound"
    never.set()


async def test_p19_a_worker_that_stands_still_holds_up_nobody_who_may_ask_again(
    home, other, monkeypatch
):
    """As after SIGSTOP: it is connected, and says nothing."""
    monkeypatch.setattr(peers_module, "PING_SECONDS", 0.01)
    assert (await other.client.get(f"{CLUSTER}/violations")).status_code == 200

    for writer in list(home.listener.connections):
        writer.transport.pause_reading()
    answer = await other.client.post(f"{CLUSTER}/placements", json=placing("p"), headers=KEY)
    assert answer.json()["results"][0]["outcome"] == "Placed"
    # By now that is known, and nothing is forwarded to it, with or without a key.
    decided = len(home.decided)
    plain = await other.client.post(f"{CLUSTER}/placements", json=placing("q"))
    assert plain.json()["results"][0]["outcome"] == "Placed"
    for writer in list(home.listener.connections):
        writer.transport.resume_reading()
    # It goes on: the request that it had not read yet is decided late, and finds its record.
    await until(lambda: len(home.decided) > decided)
    await until(lambda: not home.listener.deciding)
    await until(lambda: other.peers.answers("home"))
    assert (await other.client.get(f"{CLUSTER}/violations")).status_code == 200
    assert home.decided[-1] == ("POST", f"{CLUSTER}/placements"), "the other has taken its place"
    pods = (await other.client.get(f"{CLUSTER}/pods")).json()["items"]
    assert sorted(each["metadata"]["name"] for each in pods) == ["p", "q"]


async def test_p19_a_caller_that_leaves_changes_nothing_for_the_others(home, other):
    go_on = asyncio.Event()
    home.before = go_on.wait
    leaving = asyncio.create_task(other.client.post(f"{CLUSTER}/placements", json=placing("p")))
    await until(lambda: home.decided)
    leaving.cancel()
    staying = asyncio.create_task(other.client.post(f"{CLUSTER}/placements", json=placing("q")))
    await until(lambda: len(home.decided) == 2)
    go_on.set()
    assert (await staying).json()["results"][0]["outcome"] == "Placed"
    await until(lambda: not home.listener.deciding)
    pods = (await other.client.get(f"{CLUSTER}/pods")).json()["items"]
    assert sorted(each["metadata"]["name"] for each in pods) == ["p", "q"]


async def test_p19_nonsense_on_the_socket_ends_that_connection_only(home, other):
    for nonsense in (b"\xff" * 100, b"\x00\x00\x00\x03abc", b""):
        reader, writer = await asyncio.open_unix_connection(home.socket)
        writer.write(nonsense)
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()
    assert (await other.client.get(f"{CLUSTER}/violations")).status_code == 200
    assert len(home.decided) == 1


def test_p19_a_path_that_no_system_takes_for_a_socket_is_refused():
    with pytest.raises(ValueError, match="too long"):
        socket_of(Path("/" + "x" * 100), "w")


@asynccontextmanager
async def placed_meanwhile(home, other):
    """A placement that `home` has begun and goes on with in the end; if its connection ended, its outcome were unknown."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def hold():
        home.before = None
        begun.set()
        await go_on.wait()

    home.before = hold
    asked = asyncio.create_task(other.client.post(f"{CLUSTER}/placements", json=placing("p")))
    await begun.wait()
    try:
        yield
    finally:
        go_on.set()
        answer = await asked
    assert answer.json()["results"][0]["outcome"] == "Placed"


def many(count, **options):
    """A placement with a short body and a long answer."""
    return {"template": pod("many"), "replicas": count, **options}


async def test_p19_an_answer_larger_than_a_frame_ends_nobody_elses_wait(home, other, monkeypatch):
    monkeypatch.setattr(peers_module, "FRAME_BYTES_MAX", 20_000)
    monkeypatch.setattr(peers_module, "PART_BYTES_MAX", 1_000)
    async with placed_meanwhile(home, other):
        large = await other.client.post(f"{CLUSTER}/placements", json=many(150, dryRun=True))
    assert (len(large.json()["results"]), len(large.content) > 20_000) == (150, True)
    assert len(home.decided) == 2


async def test_p19_a_request_larger_than_a_frame_is_decided_where_it_arrived(
    home, other, monkeypatch
):
    monkeypatch.setattr(peers_module, "FRAME_BYTES_MAX", 20_000)
    body = msgspec.json.encode(placing("q")) + b" " * 20_000
    async with placed_meanwhile(home, other):
        large = await other.client.post(f"{CLUSTER}/placements", content=body, headers=AS_JSON)
    assert large.json()["results"][0]["outcome"] == "Placed"
    assert len(home.decided) == 1


@pytest.mark.parametrize("small", ["home", "other"])
async def test_p19_an_answer_without_room_in_either_worker_is_refused_unless_something_was_changed(
    start_worker, small
):
    limits = dict.fromkeys(("home", "other"), 256 * 1024**2) | {small: 100_000}
    home, other = [
        await start_worker(name, bytes_in_flight_max=limit) for name, limit in limits.items()
    ]
    await home.client.put(f"{CLUSTER}/nodes/n", json=node("n", zone="a"))
    dry = await other.client.post(f"{CLUSTER}/placements", json=many(1_000, dryRun=True))
    assert problem(dry, 429) == "TooManyBytes"
    done = await other.client.post(f"{CLUSTER}/placements", json=many(1_000))
    assert (done.status_code, len(done.content) > 100_000) == (200, True)
    assert len(home.decided) == 2
    await until(lambda: home.budget.in_flight == other.budget.in_flight == 0)


# Clients that leave


@pytest.fixture
async def paused(start_worker):
    """A lease holder whose decisions pause after each step; the cluster has one node."""
    worker = await start_worker("home", limits=Limits(slice_seconds=0))
    await worker.client.put(f"{CLUSTER}/nodes/n", json=node("n", zone="a"))
    return worker


async def test_p19_a_placement_ends_where_it_is_decided_when_its_client_leaves_elsewhere(
    paused, start_worker, monkeypatch
):
    monkeypatch.setattr("service.api.worker_forwarding.sockets.PING_SECONDS", 0.01)
    other = await start_worker("other")
    client = LeavingClient(
        other.app, f"{CLUSTER}/placements", placing(*map("p{}".format, range(50)))
    )

    async def has_left():
        client.left.set()
        await paused.left[0]()

    paused.before = has_left
    await client.request
    assert client.status == 503
    listed = await paused.client.get(f"{CLUSTER}/pods")
    assert listed.json()["items"] == []


async def test_p19_the_clients_of_a_worker_that_is_gone_have_left_too(paused, start_worker):
    other = await start_worker("other")

    async def has_gone():
        await other.peers.close()
        await paused.left[0]()

    paused.before = has_gone
    answer = await other.client.post(f"{CLUSTER}/placements", json=placing("p"))
    assert problem(answer, 503) == "OutcomeUnknown"
