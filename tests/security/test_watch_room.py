"""What watches hold of the log is bounded, also if their clients read nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import msgspec
import pytest

from service.api.http import streaming
from service.api.http.byte_budget import Budget, ByteReservation
from service.api.http.streaming import PIECE_BYTES
from service.api.http.watch_budget import WATCH_PART, WatchRoom, WatchShare
from service.api.resources.watch import routes as watch_handlers
from service.model.log.commit import Head
from service.store.postgres import PostgresStore
from tests.api.conftest import MakeHarness
from tests.api.following import Stream, stream
from tests.api.harness import CLUSTER, Harness, node, problem
from tests.store.history import AnyStore, committed, create, put
from tests.waiting import WAIT_SECONDS, once

MIB = 1024 * 1024
BUDGET = 16 * MIB
POD_BYTES = 240_000
CHANGES = 260


def large(number: int) -> bytes:
    metadata = {"name": "large", "namespace": "shop", "annotations": {"n": str(number)}}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "x": "x" * POD_BYTES}
    return msgspec.json.encode(body)


async def change(store: AnyStore, times: int) -> Head:
    """Change a large pod so often, each time in a commit of its own."""
    head = await committed(store, 1, create("large", namespace="shop", body=large(0)))
    for number in range(1, times):
        head = await committed(store, 1, put("large", namespace="shop", body=large(number)))
    return head


class Unread(Stream):
    """A watch whose client takes the start of the answer, and then nothing until it is told to read."""

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            await super()._send(message)


def unread(harness: Harness, since: int, **parameters: Any) -> Stream:
    """A watch whose client does not read."""
    made = Unread(harness.app, {"sinceRevision": since, **parameters})
    made.reading.clear()
    return made


async def leave(streams: list[Stream]) -> None:
    for each in streams:
        each.left.set()
        each.reading.set()
    async with asyncio.timeout(WAIT_SECONDS):
        await asyncio.gather(*(each.task for each in streams))


async def are_held(harness: Harness, streams: list[Stream]) -> bool:
    """Whether each watch either has a page that its client does not read, or waits for room."""
    blocked = sum(each.blocked.is_set() for each in streams)
    return blocked + harness.budget.watches.waiting == len(streams)


@pytest.fixture
async def over_postgres(make_harness: MakeHarness, database_url: str) -> AsyncIterator[Harness]:
    async with AsyncExitStack() as stack:
        store = PostgresStore(database_url)
        stack.push_async_callback(store.close)
        yield await make_harness(store, bytes_in_flight_max=BUDGET)


async def test_watches_that_nobody_reads_hold_no_more_than_their_share(over_postgres: Harness):
    harness = over_postgres
    await harness.put_node("n")
    since = (await harness.store.log.head(1)).revision
    await change(harness.store, CHANGES)
    streams = [unread(harness, since) for _ in range(20)]
    await once(partial(are_held, harness, streams))
    share, largest = harness.budget.watches, 4 * POD_BYTES
    assert share.waiting > 0, "not all of them have a page"
    assert share.bytes_max - largest < share.held <= share.bytes_max == BUDGET // WATCH_PART
    assert harness.budget.in_flight <= BUDGET
    answer = await harness.client.get(f"{CLUSTER}/nodes")
    assert [each["metadata"]["name"] for each in answer.json()["items"]] == ["n"]
    await leave(streams)
    assert (share.held, share.waiting, harness.budget.in_flight) == (0, 0, 0)


async def test_nothing_is_missed_by_those_who_waited_for_room(make_harness: MakeHarness):
    harness = await make_harness(bytes_in_flight_max=BUDGET)
    since = (await harness.store.log.head(1)).revision
    head = await change(harness.store, 12)
    streams = [unread(harness, since) for _ in range(8)]
    await once(partial(are_held, harness, streams))
    assert harness.budget.watches.waiting > 0
    for each in streams:
        each.reading.set()
    expected = [str(revision) for revision in range(since + 1, head.revision + 1)]
    for each in streams:
        await each.until_id(str(head.revision))
        assert [event.id for event in each.events] == expected
    await leave(streams)


async def test_slow_readers_are_cut_off_and_make_room(
    make_harness: MakeHarness, monkeypatch: pytest.MonkeyPatch
):
    harness = await make_harness(bytes_in_flight_max=BUDGET)
    since = (await harness.store.log.head(1)).revision
    await change(harness.store, 12)
    monkeypatch.setattr(streaming, "READER_SECONDS_MAX", 0.01)
    streams = [unread(harness, since) for _ in range(8)]
    async with asyncio.timeout(WAIT_SECONDS):
        await asyncio.gather(*(each.task for each in streams))
    assert not any(each.complete for each in streams)
    assert (harness.budget.watches.held, harness.budget.in_flight) == (0, 0)


async def test_changes_of_other_kinds_are_read_without_their_bodies(over_postgres: Harness):
    since = (await over_postgres.store.log.head(1)).revision
    await change(over_postgres.store, 20)
    body = msgspec.json.encode(node("n"))
    await committed(over_postgres.store, 1, create("n", kind="Node", namespace="", body=body))
    held = list[int]()
    read_log = over_postgres.store.log.read

    async def noted(*arguments: Any, **options: Any) -> Any:
        page = await read_log(*arguments, **options)
        if "bodies" in options:
            held.append(sum(len(each.body) for each in page.changes))
        return page

    over_postgres.store.log.read = noted
    async with stream(over_postgres, sinceRevision=since, kind="Node") as watch:
        await watch.until(1)
    assert [each.name for each in watch.events] == ["n"]
    assert held
    assert max(held) < POD_BYTES


async def test_a_caller_holds_a_part_of_the_share_and_others_go_on():
    share = Budget(16 * MIB).watches
    own = [WatchRoom(share, "greedy") for _ in range(10)]
    waiting = [asyncio.create_task(each.reserve(MIB // 2)) for each in own]
    await asyncio.sleep(0)
    assert (share.held, share.waiting) == (MIB, 8)
    other = WatchRoom(share, "other")
    await other.reserve(MIB // 2)
    own[0].settle(0)
    assert share.waiting == 7
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    for each in (*own, other):
        each.settle(0)
    assert (share.held, share.waiting) == (0, 0)


async def test_a_watch_that_is_let_in_as_it_leaves_gives_its_room_back():
    share = Budget(4 * MIB).watches
    first, second, third = (WatchRoom(share, None) for _ in range(3))
    await first.reserve(MIB)
    leaving = asyncio.create_task(second.reserve(MIB))
    await asyncio.sleep(0)
    assert share.waiting == 1
    first.settle(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    assert share.held == 0
    await third.reserve(MIB)
    assert share.held == MIB


async def test_watches_get_room_in_their_order_also_the_largest():
    share = Budget(16 * MIB).watches
    holder, large_one, small = (WatchRoom(share, None) for _ in range(3))
    await holder.reserve(2 * MIB)
    waiting = asyncio.create_task(large_one.reserve(8 * MIB))
    await asyncio.sleep(0)
    assert not small.fits(MIB + 1), "who came first is not overtaken for ever"
    holder.settle(0)
    await waiting
    assert share.held == 8 * MIB, "one that is larger than the share is let in alone"
    large_one.settle(0)
    assert small.fits(MIB + 1)


async def test_room_that_other_requests_give_back_lets_watches_in():
    budget = Budget(16 * MIB)
    share = budget.watches
    first, second = WatchRoom(share, None), WatchRoom(share, None)
    request = ByteReservation(budget)
    request.take(15 * MIB)
    await first.reserve(MIB // 2)
    waiting = asyncio.create_task(second.reserve(MIB))
    await asyncio.sleep(0)
    assert share.waiting == 1
    request.release(15 * MIB)
    await waiting
    assert share.held == MIB + MIB // 2


async def test_a_large_commit_of_one_caller_keeps_nobody_else_out():
    share = Budget(256 * MIB).watches
    greedy, other, other_again = WatchRoom(share, "greedy"), WatchRoom(share, "other"), admin(share)
    await greedy.reserve(66 * MIB)
    assert other.fits(MIB)
    await other.reserve(MIB)
    assert other_again.fits(MIB)
    assert not WatchRoom(share, "greedy").fits(1), "it waits for itself"


def admin(share: WatchShare) -> WatchRoom:
    return WatchRoom(share, None)


async def test_small_events_wait_for_nobody_else():
    share = Budget(16 * MIB).watches
    holders = [WatchRoom(share, f"caller-{number}") for number in range(4)]
    for each in holders:
        await each.reserve(MIB)
    waiting = asyncio.create_task(WatchRoom(share, "first").reserve(MIB))
    await asyncio.sleep(0)
    assert share.waiting == 1
    assert admin(share).fits(PIECE_BYTES)
    assert WatchRoom(share, "small").fits(PIECE_BYTES)
    assert not WatchRoom(share, "small").fits(PIECE_BYTES + 1), "there is a line"
    assert not WatchRoom(share, "caller-0").fits(100), "it is above its part"
    waiting.cancel()


async def test_all_that_is_beyond_the_parts_is_another_share_at_most():
    share = Budget(16 * MIB).watches
    rooms = [WatchRoom(share, f"caller-{number}") for number in range(8)]
    taking = [asyncio.create_task(each.reserve(4 * MIB)) for each in rooms]
    await asyncio.sleep(0)
    assert (share.held, share.waiting) == (4 * MIB, 7)
    assert WatchRoom(share, "small").fits(MIB), "it waits for no one who wants more than a part"
    for done, each in zip(taking, rooms, strict=True):
        await done
        assert share.held <= 2 * share.bytes_max
        each.settle(0)
    assert (share.held, share.waiting) == (0, 0)


async def test_who_leaves_the_line_lets_those_behind_it_in():
    share = Budget(16 * MIB).watches
    holder, large_one, small = (WatchRoom(share, each) for each in ("a", "b", "c"))
    others = [WatchRoom(share, f"other-{number}") for number in range(2)]
    for each in (holder, *others):
        await each.reserve(MIB)
    await admin(share).reserve(MIB // 2)
    first = asyncio.create_task(large_one.reserve(MIB))
    await asyncio.sleep(0)
    second = asyncio.create_task(small.reserve(MIB // 2))
    await asyncio.sleep(0)
    assert share.waiting == 2
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert share.waiting == 0
    await second


class Drips(Unread):
    """A watch whose client reads one piece after the other, each at the last moment."""

    seconds = 0.0
    """How many seconds the client takes for each piece."""

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body":
            await asyncio.sleep(self.seconds)
        await super()._send(message)


async def test_a_page_has_to_be_read_in_time_and_not_piece_by_piece(
    make_harness: MakeHarness, monkeypatch: pytest.MonkeyPatch
):
    harness = await make_harness(bytes_in_flight_max=BUDGET)
    since = (await harness.store.log.head(1)).revision
    await change(harness.store, 4)
    monkeypatch.setattr(streaming, "READER_SECONDS_MAX", 0.2)
    monkeypatch.setattr(streaming, "PAGE_BYTES_PER_SECOND_MIN", 2**40)
    made = Drips(harness.app, {"sinceRevision": since, "timeoutSeconds": 1})
    made.seconds = 0.06
    async with asyncio.timeout(WAIT_SECONDS):
        await made.task
    assert not made.complete
    assert "ERROR" not in made.text
    assert (harness.budget.watches.held, harness.budget.in_flight) == (0, 0)


async def test_a_watch_keeps_its_place_in_the_line_across_bookmarks(make_harness: MakeHarness):
    harness = await make_harness(bytes_in_flight_max=BUDGET, watch_bookmark_seconds=0.01)
    share = harness.budget.watches
    holder = admin(share)
    async with stream(harness) as watch:
        await watch.until(1)
        await holder.reserve(share.bytes_max)
        blockers = [WatchRoom(share, str(number)) for number in range(4)]
        for each in blockers:
            each.settle(MIB)
        await change(harness.store, 1)
        await once(partial(is_waiting, harness))
        [first] = share.line
        count = len(watch.events)
        await watch.until(count + 3)
        assert list(share.line) == [first]
        for each in (*blockers, holder):
            each.settle(0)
        await watch.until_last("ADDED")


async def is_waiting(harness: Harness) -> bool:
    return harness.budget.watches.waiting == 1


async def test_a_watch_that_finds_no_room_to_begin_is_told_to_come_back(
    make_harness: MakeHarness, monkeypatch: pytest.MonkeyPatch
):
    harness = await make_harness(bytes_in_flight_max=BUDGET)
    await harness.put_node("n")
    full(harness)
    monkeypatch.setattr(watch_handlers, "OPEN_SECONDS_MAX", 0.01)
    answer = await harness.client.get(f"{CLUSTER}/watch?sinceRevision=1")
    assert problem(answer, 503) == "Overloaded"
    assert answer.headers["retry-after"]
    assert harness.scheduler.watching.watchers == 0


async def test_a_watch_whose_client_leaves_before_it_begins_gives_up_its_seat(
    make_harness: MakeHarness, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(watch_handlers, "OPEN_SECONDS_MAX", 2 * WAIT_SECONDS)
    harness = await make_harness(bytes_in_flight_max=BUDGET)
    await harness.put_node("n")
    full(harness)
    made = Stream(harness.app, {"sinceRevision": 1})
    await once(partial(is_waiting, harness))
    made.left.set()
    async with asyncio.timeout(WAIT_SECONDS):
        await made.task
    assert (harness.scheduler.watching.watchers, harness.budget.watches.waiting) == (0, 0)


def full(harness: Harness) -> None:
    """Leave no room for pages."""
    for number in range(4):
        WatchRoom(harness.budget.watches, str(number)).settle(MIB)
