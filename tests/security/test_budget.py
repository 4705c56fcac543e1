"""A process holds no more bytes of bodies and answers than its budget, and gives all of them back, whatever happens."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from service.api.resources.handlers import HANDLERS
from service.model.core.access import Grant, Principal
from tests.api.conftest import MakeHarness
from tests.api.following import stream
from tests.api.harness import CLUSTER, Harness, HurriedClock, node, pod, problem
from tests.security.callers import Callers, by
from tests.store.history import committed, create
from tests.waiting import once

BUDGET = 100_000
JSON, NDJSON = "application/json", "application/x-ndjson"


HOST = ("host", "localhost")


def http_scope(method: str, path: str, *headers: tuple[str, str]) -> dict[str, Any]:
    """What a server tells an application of a request."""
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers],
    }


class Sender:
    """A client that sends a body piece by piece, and what it is answered."""

    def __init__(self, harness: Harness, path: str, kind: str = JSON, *headers: tuple[str, str]):
        self._pieces: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.answer: dict[str, Any] = {}
        self.answered = b""
        scope = http_scope("POST", path, HOST, ("content-type", kind), *headers)
        self.task = asyncio.create_task(harness.app(scope, self._pieces.get, self._take))

    async def _take(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.answer = message
        else:
            self.answered += message["body"]

    def send(self, body: bytes, *, more: bool = True) -> None:
        self._pieces.put_nowait({"type": "http.request", "body": body, "more_body": more})

    def leave(self) -> None:
        self._pieces.put_nowait({"type": "http.disconnect"})

    async def holds(self, harness: Harness, count: int) -> None:
        """Send so much of a body, and wait until it has arrived."""
        self.send(b" " * count)
        await held(harness, harness.budget.in_flight + count)

    async def refused(self) -> tuple[str, dict[str, str]]:
        """Code and headers of the problem that it is told."""
        await self.task
        headers = {name.decode(): value.decode() for name, value in self.answer["headers"]}
        return msgspec.json.decode(self.answered)["code"], headers


def placement(size: int = 0) -> bytes:
    body = msgspec.json.encode({"pods": [pod("p")], "dryRun": True})
    return body + b" " * (size - len(body))


async def held(harness: Harness, count: int) -> None:
    """Wait until so much is held."""

    async def is_held() -> bool:
        return harness.budget.in_flight == count

    await once(is_held)


@pytest.fixture
async def harness(make_harness: MakeHarness) -> AsyncIterator[Harness]:
    """With a small budget, of which all has to be there in the end."""
    harness = await make_harness(bytes_in_flight_max=BUDGET)
    await harness.put_node("n")
    yield harness
    assert harness.budget.in_flight == 0


async def test_the_largest_body_that_is_waited_for_gives_way_to_smaller_ones(harness) -> None:
    """As many as there are, with bodies that never end: others go on."""
    senders = [Sender(harness, f"{CLUSTER}/placements") for _ in range(8)]
    for each in senders:
        each.send(b" " * 30_000)
        await asyncio.sleep(0)
    answer = await harness.client.post(
        f"{CLUSTER}/placements", content=placement(20_000), headers={"content-type": JSON}
    )
    assert answer.status_code == 200
    assert harness.budget.in_flight <= BUDGET
    gone = [each for each in senders if each.task.done()]
    for each in gone:
        code, headers = await each.refused()
        assert (code, each.answer["status"]) == ("TooManyBytes", 429)
        assert headers["retry-after"] == "1"
        assert headers["connection"] == "close"
    assert 8 - len(gone) == 2
    for each in senders:
        each.leave()
        await each.task


async def test_a_body_that_is_the_largest_is_refused_itself(harness) -> None:
    one, other = (Sender(harness, f"{CLUSTER}/placements") for _ in range(2))
    one.send(b" " * 40_000)
    other.send(b" " * 50_000)
    await held(harness, 90_000)
    other.send(b" " * 20_000)
    assert (await other.refused())[0] == "TooManyBytes"
    await held(harness, 40_000)
    one.send(placement(), more=False)
    await one.task
    assert one.answer["status"] == 200


async def test_a_body_larger_than_the_budget_is_refused_and_not_waited_for(harness) -> None:
    sender = Sender(harness, f"{CLUSTER}/placements")
    sender.send(b" " * (BUDGET + 1), more=False)
    assert (await sender.refused())[0] == "TooManyBytes"


async def test_a_length_that_is_only_announced_takes_nothing(harness) -> None:
    senders = [
        Sender(harness, f"{CLUSTER}/placements", JSON, ("content-length", str(BUDGET)))
        for _ in range(3)
    ]
    await asyncio.sleep(0)
    assert harness.budget.in_flight == 0
    answer = await harness.place(pod("p"), dryRun=True)
    assert answer["results"][0]["outcome"] == "Placed"
    for each in senders:
        each.leave()
        await each.task


@pytest.mark.parametrize("kind", [JSON, NDJSON])
async def test_what_is_held_is_given_back_when_the_client_leaves(harness, kind: str) -> None:
    sender = Sender(harness, f"{CLUSTER}/apply", kind)
    sender.send(b" " * 30_000)
    await held(harness, 30_000)
    sender.leave()
    assert (await sender.refused())[0] == "MalformedRequest"
    assert harness.budget.in_flight == 0


@pytest.mark.parametrize("kind", [JSON, NDJSON])
async def test_what_is_held_is_given_back_when_the_server_gives_up(harness, kind: str) -> None:
    sender = Sender(harness, f"{CLUSTER}/apply", kind)
    sender.send(b" " * 30_000)
    await held(harness, 30_000)
    sender.task.cancel()
    with suppress(asyncio.CancelledError):
        await sender.task
    assert harness.budget.in_flight == 0


async def test_what_is_held_is_given_back_when_time_is_up(make_harness) -> None:
    clock = HurriedClock()
    harness = await make_harness(clock=clock, bytes_in_flight_max=BUDGET)
    sender = Sender(harness, f"{CLUSTER}/placements")
    sender.send(b" " * 30_000)
    await held(harness, 30_000)
    clock.advance(3_600)
    sender.send(b" ")
    assert (await sender.refused())[0] == "BodyTimeout"
    assert harness.budget.in_flight == 0


@pytest.mark.parametrize("body", [b"{", b'{"pods":[{}]}', b'{"podRefs":[{"name":"none"}]}'])
async def test_what_is_held_is_given_back_when_the_request_is_refused(harness, body) -> None:
    answer = await harness.client.post(
        f"{CLUSTER}/placements", content=body, headers={"content-type": JSON}
    )
    assert answer.status_code >= 400
    assert harness.budget.in_flight == 0


def lines(start: int, count: int) -> bytes:
    return b"".join(
        msgspec.json.encode(pod(f"p-{number}")) + b"\n" for number in range(start, start + count)
    )


async def test_of_a_stream_only_what_is_not_answered_yet_is_held(make_harness) -> None:
    """It is longer than the budget, and no commit of it is."""
    harness = await make_harness(bytes_in_flight_max=10_000, apply_lines_per_commit=10)
    sender = Sender(harness, f"{CLUSTER}/apply", NDJSON)
    for start in range(0, 200, 10):
        sender.send(lines(start, 10))
        await held(harness, 0)
    sender.send(b"", more=False)
    await sender.task
    results = [msgspec.json.decode(line) for line in sender.answered.splitlines()]
    assert [each["result"] for each in results] == ["Created"] * 200
    assert len(lines(0, 200)) > 3 * 10_000


async def test_a_stream_that_has_to_give_way_says_so_in_its_last_line(make_harness) -> None:
    harness = await make_harness(bytes_in_flight_max=BUDGET, apply_lines_per_commit=1)
    sender = Sender(harness, f"{CLUSTER}/apply", NDJSON)
    sender.send(lines(0, 1))
    await held(harness, 0)
    sender.send(b" " * 90_000)
    await held(harness, 90_000)
    answer = await harness.client.post(
        f"{CLUSTER}/placements", content=placement(20_000), headers={"content-type": JSON}
    )
    assert answer.status_code == 200
    await sender.task
    first, last = map(msgspec.json.decode, sender.answered.splitlines())
    assert (first["result"], last["code"]) == ("Created", "TooManyBytes")


async def test_a_large_answer_that_finds_no_room_is_refused(harness) -> None:
    """It does not take the room of a body that is smaller than itself, but that of a larger one."""
    await harness.put("nodes/wide", node("wide", **{f"l{n}": "v" * 60 for n in range(1_000)}))
    sender = Sender(harness, f"{CLUSTER}/placements")
    sender.send(b" " * 35_000)
    await held(harness, 35_000)
    answer = await harness.client.get(f"{CLUSTER}/nodes/wide")
    assert problem(answer, 429) == "TooManyBytes"
    assert (answer.headers["retry-after"], harness.budget.in_flight) == ("1", 35_000)
    sender.send(b" " * 45_000)
    await held(harness, 80_000)
    answer = await harness.client.get(f"{CLUSTER}/nodes/wide")
    assert (answer.status_code, len(answer.content) > 70_000) == (200, True)
    assert (await sender.refused())[0] == "TooManyBytes"


async def test_what_was_written_is_told_though_there_is_no_room(harness) -> None:
    labels = {f"l{n}": "v" * 60 for n in range(1_000)}
    sender = Sender(harness, f"{CLUSTER}/placements")
    sender.send(b" " * 20_000)
    await held(harness, 20_000)
    answer = await harness.put("nodes/wide", node("wide", **labels))
    assert len(answer.content) > 70_000
    sender.leave()
    await sender.task


async def test_an_answer_is_held_until_its_reader_has_taken_it(harness) -> None:
    """Piece by piece; the rest of it is given back when the reader leaves."""
    await harness.put("nodes/wide", node("wide", **{f"l{n}": "v" * 60 for n in range(1_200)}))
    path, reading = f"{CLUSTER}/nodes/wide", asyncio.Event()

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body":
            await reading.wait()

    scope = http_scope("GET", path, HOST)
    task = asyncio.create_task(harness.app(scope, lambda: None, send))

    async def is_held() -> bool:
        return harness.budget.in_flight > 80_000

    await once(is_held)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert harness.budget.in_flight == 0


WIDE = {f"l{n}": "v" * 60 for n in range(1_000)}
"""Labels of an object that is larger than a piece of an answer."""


async def put_wide(harness: Harness, *names: str) -> None:
    for name in names:
        await harness.put(f"nodes/{name}", node(name, **WIDE))


def test_each_operation_that_is_safe_by_its_method_says_that_it_only_reads() -> None:
    operations = {
        handler.opt["operation"].id: (handler.opt["operation"], "GET" in handler.http_methods)
        for handler in HANDLERS
        if "operation" in handler.opt
    }
    assert {name for name, (operation, safe) in operations.items() if operation.reads != safe} == {
        "confirmBinding",
        "extenderFilter",
        "extenderPrioritize",
        "extenderPreempt",
        "findCapacity",
        "makePlan",
        "simulate",
    }


@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_dry_run_is_refused_where_a_placement_is_told(harness, dry_run) -> None:
    body = {"template": pod("p"), "replicas": 400, "dryRun": dry_run}
    sender = Sender(harness, f"{CLUSTER}/placements")
    await sender.holds(harness, 50_000)
    answer = await harness.client.post(f"{CLUSTER}/placements", json=body)
    if dry_run:
        assert problem(answer, 429) == "TooManyBytes"
    else:
        assert (answer.status_code, len(answer.content) > 70_000) == (200, True)
    sender.leave()
    await sender.task


async def test_a_simulation_is_refused_where_its_answer_finds_no_room(harness) -> None:
    nodes = [node(f"n-{number}") for number in range(20)]
    body = {"nodes": nodes, "place": [pod(f"p-{number}") for number in range(50)]}
    sender = Sender(harness, f"{CLUSTER}/placements")
    await sender.holds(harness, 30_000)
    answer = await harness.client.post("/v1/simulations", json=body)
    assert problem(answer, 429) == "TooManyBytes"
    sender.leave()
    await sender.task


async def test_a_list_that_finds_no_room_is_refused_before_it_begins(harness) -> None:
    await put_wide(harness, "wide")
    sender = Sender(harness, f"{CLUSTER}/placements")
    await sender.holds(harness, 35_000)
    for path in ("nodes", "export"):
        answer = await harness.client.get(f"{CLUSTER}/{path}")
        assert problem(answer, 429) == "TooManyBytes"
        assert answer.headers["retry-after"] == "1"
    sender.leave()
    await sender.task


class Reader:
    """A client that reads an answer, and pauses once it has read so much."""

    def __init__(self, harness: Harness, path: str, pause_after: int) -> None:
        self.status, self.answered, self.complete = 0, b"", False
        self.paused, self.go_on = asyncio.Event(), asyncio.Event()
        self._pause_after = pause_after
        scope = http_scope("GET", path, HOST)
        self.task = asyncio.create_task(harness.app(scope, self.go_on.wait, self._take))
        self.task.add_done_callback(lambda _: self.paused.set())

    async def _take(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            return
        self.answered += message["body"]
        self.complete = not message["more_body"]
        if len(self.answered) >= self._pause_after:
            self.paused.set()
            await self.go_on.wait()


async def test_a_list_that_has_begun_keeps_its_room_for_what_is_to_come(
    harness, monkeypatch
) -> None:
    monkeypatch.setattr("service.api.resources.objects.routes.BATCH_ROWS", 1)
    await harness.client.delete(f"{CLUSTER}/nodes/n")
    await put_wide(harness, "a", "b", "c")
    reader = Reader(harness, f"{CLUSTER}/nodes", 70_000)
    await reader.paused.wait()
    sender = Sender(harness, f"{CLUSTER}/placements")
    sender.send(placement(35_000), more=False)
    assert (await sender.refused())[0] == "TooManyBytes"
    reader.go_on.set()
    await reader.task
    found = msgspec.json.decode(reader.answered)["items"]
    assert [each["metadata"]["name"] for each in found] == ["a", "b", "c"]


async def test_a_list_of_which_a_later_piece_finds_no_room_is_cut_off(harness, monkeypatch) -> None:
    monkeypatch.setattr("service.api.resources.objects.routes.BATCH_ROWS", 1)
    await put_wide(harness, "wide")
    reader = Reader(harness, f"{CLUSTER}/nodes", 1)
    await reader.paused.wait()
    sender = Sender(harness, f"{CLUSTER}/placements")
    await sender.holds(harness, 35_000)
    reader.go_on.set()
    await reader.task
    assert (reader.status, reader.complete, len(reader.answered) < 1_000) == (200, False, True)
    sender.leave()
    await sender.task


async def test_a_watch_takes_a_change_that_is_larger_than_its_room_alone(harness) -> None:
    revision = (await harness.client.get(CLUSTER)).headers["moorage-revision"]
    await put_wide(harness, "wide")
    sender = Sender(harness, f"{CLUSTER}/placements")
    await sender.holds(harness, 35_000)
    async with stream(harness, sinceRevision=revision) as watch:
        await watch.until(1)
    assert [(each.type, each.name) for each in watch.events] == [("ADDED", "wide")]
    sender.leave()
    await sender.task


async def test_a_list_is_read_and_paged_by_bytes_as_well(make_harness) -> None:
    """It has twice as many as there is room for, and some thousand rows would be a batch, or a page."""
    harness = await make_harness(bytes_in_flight_max=9 * 1024**2)
    body = msgspec.json.encode({"metadata": {"name": "n", "annotations": {"a": "x" * 3 * 1024**2}}})
    large = [create(name, kind="Node", namespace="", body=body) for name in "abcdef"]
    await committed(harness.store, 1, *large)
    answer = await harness.client.get(f"{CLUSTER}/nodes")
    assert (answer.status_code, len(answer.json()["items"])) == (200, 6)
    pages, token = [], ""
    while token is not None:
        page = (await harness.client.get(f"{CLUSTER}/nodes?limit=100{token}")).json()
        pages.append(len(page["items"]))
        token = page["metadata"].get("continue")
        token = token and f"&continue={token}"
    assert pages == [2, 2, 2]


@pytest.fixture
def narrow(monkeypatch) -> None:
    """Exports are read from the tables, as where the cluster is not in memory, and sent object by object."""

    async def nothing(*_: object) -> None: ...

    monkeypatch.setattr("service.scheduler.scheduler.Scheduler.loop_here", nothing)
    monkeypatch.setattr("service.api.resources.bulk.export.ROWS_PER_PIECE", 1)


async def test_an_export_holds_what_it_has_read_until_it_is_sent(make_harness, narrow) -> None:
    harness = await make_harness(bytes_in_flight_max=1_000_000)
    await put_wide(harness, "a", "b", "c")
    reader = Reader(harness, f"{CLUSTER}/export", 1)
    await reader.paused.wait()
    assert harness.budget.in_flight > 210_000
    reader.go_on.set()
    await reader.task
    assert len(msgspec.json.decode(reader.answered)["items"]) == 3
    assert harness.budget.in_flight == 0


async def test_an_export_from_memory_holds_no_more_than_what_it_sends(
    make_harness, monkeypatch
) -> None:
    monkeypatch.setattr("service.api.reads.export.BATCH_ROWS", 1)
    harness = await make_harness(bytes_in_flight_max=200_000)
    await put_wide(harness, *"abcdefgh")
    reader = Reader(harness, f"{CLUSTER}/export", 70_000)
    await reader.paused.wait()
    assert 0 < harness.budget.in_flight < 150_000
    reader.go_on.set()
    await reader.task
    assert len(msgspec.json.decode(reader.answered)["items"]) == 8
    assert len(reader.answered) > 500_000


async def test_an_export_is_refused_by_what_its_caller_may_read_of_the_cluster(
    make_harness, narrow
) -> None:
    """What is others' is neither held nor told."""
    harness = await make_harness(bytes_in_flight_max=200_000)
    viewer = Grant("reader", "default", "shop")
    Callers(Principal("tenant", (viewer,))).call(harness)
    for namespace, names in (("shop", "a"), ("other", "bcd")):
        for name in names:
            wide = {**pod(name, namespace), "metadata": {"name": name, "labels": WIDE}}
            await harness.put(f"namespaces/{namespace}/pods/{name}", wide)
    answer = await harness.client.get(f"{CLUSTER}/export")
    assert problem(answer, 429) == "TooManyBytes"
    answer = await harness.client.get(f"{CLUSTER}/export", headers=by("tenant"))
    assert [each["metadata"]["name"] for each in answer.json()["items"]] == ["a"]
