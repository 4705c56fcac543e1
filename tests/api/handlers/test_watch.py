"""Watching over HTTP: framing, filters, resuming, and how streams end (A10, A11)."""

import asyncio
import random
from functools import partial
from typing import Any

import pytest

from service.api.http import streaming
from service.api.resources.watch import routes as watching
from service.api.resources.watch.sse import EventWriter
from service.api.resources.watch.stream import ChangeStream
from service.model.core.errors import HistoryReplaced
from service.scheduler.protocol.limits import Limits
from service.scheduler.watching import WatchSelection
from tests.api.conftest import MakeHarness
from tests.api.following import WATCH, Event, changes, parse_events, stream, watched
from tests.api.harness import CLUSTER, Harness, node, pod, problem
from tests.seeds import chance
from tests.waiting import WAIT_SECONDS, once

NEVER_TRIED = {"schedulerName": "other"}
"""Of pods that are to stay as they are."""


async def test_an_event_has_id_type_kind_and_object(over_each_store: Harness):
    await over_each_store.put_node("n1")

    events = await watched(over_each_store, 1)

    stored = (await over_each_store.client.get(f"{CLUSTER}/nodes/n1")).json()
    assert events == [
        Event("ADDED", "2", {"kind": "Node", "object": stored}),
        Event(
            "BOOKMARK", "2", {"kind": "Bookmark", "object": {"metadata": {"resourceVersion": "2"}}}
        ),
    ]


async def test_a_deleted_object_comes_with_its_last_state_and_the_revision_of_its_end(
    over_each_store: Harness,
):
    await over_each_store.put_node("n1", zone="a")
    await over_each_store.put_node("n1", zone="b")
    await over_each_store.client.delete(f"{CLUSTER}/nodes/n1")

    added, modified, deleted, _ = await watched(over_each_store, 1)

    assert [e.type for e in (added, modified, deleted)] == ["ADDED", "MODIFIED", "DELETED"]
    metadata = deleted.data["object"]["metadata"]
    assert metadata["labels"] == {"zone": "b"}
    assert metadata["resourceVersion"] == deleted.id == "4"


async def test_the_configuration_is_watched_as_the_kind_cluster(harness: Harness):
    await harness.client.patch(CLUSTER, json={"config": {"hardPodAffinityWeight": 7}})

    created, changed, _ = await watched(harness, 0)

    assert (created.type, changed.type) == ("ADDED", "MODIFIED")
    assert changed.data["kind"] == "Cluster"
    assert changed.data["object"]["metadata"] == {"name": "default", "resourceVersion": "2"}
    assert changed.data["object"]["config"]["hardPodAffinityWeight"] == 7


async def test_a_manifest_with_line_ends_is_one_event(harness: Harness):
    body = b'{"metadata":{"name":"p",\r\n"namespace":"shop"},"spec":{"schedulerName":"other","containers":[\n\n{"name":"c"}]}}'
    path = f"{CLUSTER}/namespaces/shop/pods/p"
    assert (
        await harness.client.put(path, content=body, headers={"content-type": "application/json"})
    ).status_code == 201

    [event, _] = await watched(harness, 1)

    assert event.data["object"] == (await harness.client.get(path)).json()


# Where a watch begins


async def test_since_revision_is_exclusive_and_last_event_id_wins(harness: Harness):
    for number in range(5):
        await harness.put_node(f"n{number}")

    assert changes(await watched(harness, 4)) == [("ADDED", "n3"), ("ADDED", "n4")]
    last = {"headers": {"Last-Event-ID": "5"}}
    assert changes(await watched(harness, 1, **last)) == [("ADDED", "n4")]
    assert changes(await watched(harness, None, **last)) == [("ADDED", "n4")]


async def test_without_a_revision_a_bookmark_says_where_the_watch_began(over_each_store: Harness):
    await over_each_store.put_node("before")
    async with stream(over_each_store) as watch:
        await over_each_store.put_node("after")
        begin, event = await watch.until(2)

    assert (begin.type, begin.id) == ("BOOKMARK", "2")
    assert (event.type, event.name) == ("ADDED", "after")


@pytest.mark.parametrize(
    ("parameters", "headers", "code"),
    [
        ({"sinceRevision": "x"}, {}, "MalformedRequest"),
        ({"sinceRevision": "-1"}, {}, "MalformedRequest"),
        ({}, {"Last-Event-ID": "abc"}, "MalformedRequest"),
        ({}, {"Last-Event-ID": "9" * 30}, "MalformedRequest"),
        ({"kind": "Pods"}, {}, "MalformedRequest"),
        ({"labelSelector": "=="}, {}, "MalformedRequest"),
        ({"timeoutSeconds": "0"}, {}, "MalformedRequest"),
        ({"since": "1"}, {}, "MalformedRequest"),
        ({"fieldSelector": "spec.nodeName=n1"}, {}, "MalformedRequest"),
        ({"kind": "Pod,Node", "fieldSelector": "spec.nodeName=n1"}, {}, "MalformedRequest"),
        ({"kind": "Pod", "fieldSelector": "spec.nodeName"}, {}, "MalformedRequest"),
        ({"nodeName": "n1"}, {}, "MalformedRequest"),
        ({"kind": "Node", "nodeName": "n1"}, {}, "MalformedRequest"),
    ],
)
async def test_what_cannot_be_read_is_refused(
    harness: Harness, parameters: dict[str, str], headers: dict[str, str], code: str
):
    answer = await harness.client.get(WATCH, params=parameters, headers=headers)
    assert problem(answer, 400) == code


async def test_a_revision_that_is_not_reached_yet_is_refused(harness: Harness):
    assert problem(await harness.client.get(f"{WATCH}?sinceRevision=99"), 503) == (
        "RevisionNotReached"
    )


async def test_an_unknown_cluster_is_not_found(harness: Harness):
    assert problem(await harness.client.get("/v1/clusters/none/watch"), 404) == "NotFound"


async def test_a_compacted_revision_is_gone(over_each_store: Harness):
    for number in range(5):
        await over_each_store.put_node(f"n{number}")
    cluster_id = await over_each_store.store.clusters.find("default")
    await over_each_store.store.housekeeping.compact(cluster_id, keep_changes=2, keep_seconds=0)

    answer = await over_each_store.client.get(f"{WATCH}?sinceRevision=3")

    assert problem(answer, 410) == "Compacted"
    assert changes(await watched(over_each_store, 4)) == [("ADDED", "n3"), ("ADDED", "n4")]


async def test_head_answers_at_once(harness: Harness):
    async with asyncio.timeout(WAIT_SECONDS):
        answer = await harness.client.head(WATCH)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["moorage-revision"] == "1"


# Filters


async def test_a_watch_can_be_narrowed(harness: Harness):
    await harness.put_node("n1")
    await harness.put_pod("web-0", **NEVER_TRIED)
    await harness.put("namespaces/other/pods/p", pod("p", "other", **NEVER_TRIED))

    assert changes(await watched(harness, 1, kind="Node")) == [("ADDED", "n1")]
    assert changes(await watched(harness, 1, kind="Pod,Node", namespace="other")) == [
        ("ADDED", "p")
    ]
    assert changes(await watched(harness, 1, labelSelector="app in (web)")) == [
        ("ADDED", "web-0"),
        ("ADDED", "p"),
    ]


async def test_objects_that_start_or_cease_to_match_are_added_or_deleted(over_each_store: Harness):
    put = over_each_store.put_node
    for zone in ("b", "a", "a", "b"):
        await put("n", zone=zone, again=str(random.random()))

    events = await watched(over_each_store, 1, labelSelector="zone=a")

    assert changes(events) == [("ADDED", "n"), ("MODIFIED", "n"), ("DELETED", "n")]
    assert [event.id for event in events] == ["3", "4", "5", "5"]


async def test_the_agent_of_a_node_is_told_of_its_own_pods(over_each_store: Harness):
    harness = over_each_store
    for name in ("n1", "n2"):
        await harness.put_node(name)
    async with (
        stream(harness, kind="Pod", fieldSelector="spec.nodeName=n1") as agent,
        stream(harness, kind="Pod", nodeName="n2") as other,
        stream(harness, kind="Pod", fieldSelector="spec.nodeName=,status.phase=Pending") as waiting,
    ):
        await harness.put_pod("p", **NEVER_TRIED)
        for node_name in ("n1", "n1", "n2"):
            manifest = pod("p", nodeName=node_name, **NEVER_TRIED)
            manifest["metadata"]["labels"] = {"again": str(random.random())}
            await harness.put("namespaces/shop/pods/p", manifest)
        await harness.client.delete(f"{CLUSTER}/namespaces/shop/pods/p")
        for each in (agent, other, waiting):
            await each.until_last("DELETED")
        told = [changes(each.events) for each in (agent, other, waiting)]

    assert told == [
        [("ADDED", "p"), ("MODIFIED", "p"), ("DELETED", "p")],
        [("ADDED", "p"), ("DELETED", "p")],
        [("ADDED", "p"), ("DELETED", "p")],
    ]
    left = [event for event in agent.events if event.type == "DELETED"]
    assert left[0].data["object"]["spec"]["nodeName"] == "n2"


async def test_other_fields_can_be_watched_like_in_lists(over_each_store: Harness):
    await over_each_store.put_node("n1")
    await over_each_store.put_node("n2")
    path = f"{CLUSTER}/nodes/n1"
    for cordoned in (True, False):
        await over_each_store.client.patch(path, json={"spec": {"unschedulable": cordoned}})

    cordoned = await watched(
        over_each_store, 1, kind="Node", fieldSelector="spec.unschedulable=true"
    )
    named = await watched(
        over_each_store, 1, kind="Node,Pod", fieldSelector="metadata.name=n1,metadata.name!=n2"
    )

    assert changes(cordoned) == [("ADDED", "n1"), ("DELETED", "n1")]
    assert changes(named) == [("ADDED", "n1"), ("MODIFIED", "n1"), ("MODIFIED", "n1")]


async def test_bookmarks_pass_over_what_is_filtered_out(make_harness: MakeHarness):
    harness = await make_harness(watch_bookmark_seconds=0.02)
    async with stream(harness, kind="Pod") as watch:
        for number in range(3):
            await harness.put_node(f"n{number}")
        await watch.until_id("4")

    assert {event.type for event in watch.events} == {"BOOKMARK"}


# What holds of every stream


async def random_changes(harness: Harness, seed: int, count: int) -> None:
    rng = chance(seed)
    for _ in range(count):
        name = f"n{rng.randrange(6)}"
        roll = rng.random()
        if roll < 0.25:
            await harness.client.delete(f"{CLUSTER}/nodes/{name}")
        elif roll < 0.5:
            items = [node(f"n{rng.randrange(6)}x{index}", r=str(roll)) for index in range(5)]
            unique = {item["metadata"]["name"]: item for item in items}
            body = {"kind": "List", "items": list(unique.values())}
            answer = await harness.client.post(f"{CLUSTER}/apply", json=body)
            assert answer.status_code == 200
        else:
            await harness.put_node(name, r=str(roll))


async def logged(harness: Harness) -> list[tuple[str, str, str]]:
    cluster_id = await harness.store.clusters.find("default")
    page = await harness.store.log.read(cluster_id, 0, None, 1_000_000)
    return [
        (str(c.revision), _type_of(c), "default" if c.kind == "Cluster" else c.name)
        for c in page.changes
    ]


def _type_of(change: Any) -> str:
    if change.verb == "Delete":
        return "DELETED"
    return "ADDED" if change.created else "MODIFIED"


async def test_a10_the_transcript_equals_the_log_wherever_it_begins(over_each_store: Harness):
    async with stream(over_each_store, sinceRevision=0) as watch:
        await random_changes(over_each_store, seed=1, count=40)
        log = await logged(over_each_store)
        await watch.until(len(log))
    assert [(e.id, e.type, e.name) for e in watch.events if e.type != "BOOKMARK"] == log

    for since in range(0, len(log), 7):
        async with stream(over_each_store, sinceRevision=since) as later:
            events = await later.until(len(log) - since)
        assert [(e.id, e.type, e.name) for e in events] == log[since:]


async def test_a11_a_list_and_the_events_after_it_are_the_state(over_each_store: Harness):
    client = over_each_store.client
    await random_changes(over_each_store, seed=2, count=20)
    state: dict[str, Any] = {}
    page = (await client.get(f"{CLUSTER}/nodes?limit=3")).json()
    since = page["metadata"]["resourceVersion"]
    while True:
        state |= {item["metadata"]["name"]: item for item in page["items"]}
        if not (token := page["metadata"].get("continue")):
            break
        await random_changes(over_each_store, seed=len(state), count=3)
        page = (await client.get(f"{CLUSTER}/nodes?limit=3&continue={token}")).json()

    for event in await watched(over_each_store, int(since), kind="Node"):
        if event.type == "DELETED":
            state.pop(event.name, None)
        elif event.type != "BOOKMARK":
            state[event.name] = event.data["object"]

    present = (await client.get(f"{CLUSTER}/nodes")).json()["items"]
    assert sorted(state.values(), key=lambda item: item["metadata"]["name"]) == present


async def test_a10_no_bookmark_stands_within_a_commit(make_harness: MakeHarness):
    harness = await make_harness(watch_bookmark_seconds=0.001)
    ends = {1}
    async with stream(harness) as watch:
        for _ in range(20):
            items = [node(f"n{index}", r=str(random.random())) for index in range(9)]
            body = {"kind": "List", "items": items}
            answer = await harness.client.post(f"{CLUSTER}/apply", json=body)
            ends.add(answer.json()["revision"])
        await watch.until_id(str(max(ends)))

    assert {int(e.id) for e in watch.events if e.type == "BOOKMARK"} <= ends


def assert_bookmarks_are_true(
    events: list[Event], log: list[tuple[str, str, str]], since: int
) -> list[int]:
    """Before each bookmark all changes up to it were sent, and no others; where they stand."""
    given, bookmarks = list[str](), list[int]()
    for each in events:
        if each.type != "BOOKMARK":
            given.append(each.id)
            continue
        bookmarks.append(int(each.id))
        assert given == [id_ for id_, _, _ in log if since < int(id_) <= int(each.id)]
    return bookmarks


SEVERAL_PAGES = Limits(watch_page_changes=3, watch_ring_changes=5, watch_pause_seconds=0)
AFTER_EACH_PAGE = 1e-9
"""Seconds between bookmarks: the next one is due as soon as there is anything to send."""


async def test_a10_bookmarks_of_a_watch_that_catches_up_are_true_and_lead_on(
    make_harness: MakeHarness,
):
    """Far behind, it reads the log in pages; no bookmark may tell of more than was sent."""
    harness = await make_harness(limits=SEVERAL_PAGES, watch_bookmark_seconds=AFTER_EACH_PAGE)
    await random_changes(harness, seed=3, count=30)
    log = await logged(harness)
    head = log[-1][0]
    async with stream(harness, sinceRevision=0) as watch:
        await watch.until_id(head)
    bookmarks = sorted(set(assert_bookmarks_are_true(watch.events, log, 0)))
    assert len(bookmarks) > 10

    for since in bookmarks[:-1]:
        async with stream(harness, sinceRevision=since) as later:
            await later.until_id(head)
        assert_bookmarks_are_true(later.events, log, since)
        given = [(e.id, e.type, e.name) for e in later.events if e.type != "BOOKMARK"]
        assert given == log[since:]


async def test_a10_a_selection_of_few_objects_passes_over_the_others_page_by_page(
    make_harness: MakeHarness,
):
    harness = await make_harness(limits=SEVERAL_PAGES, watch_bookmark_seconds=AFTER_EACH_PAGE)
    await random_changes(harness, seed=4, count=20)
    await harness.put_pod("p", **NEVER_TRIED)
    await random_changes(harness, seed=5, count=5)
    log = await logged(harness)
    async with stream(harness, sinceRevision=0, kind="Pod") as watch:
        await watch.until_id(log[-1][0])
    pods = [each for each in log if each[2] == "p"]
    assert len(set(assert_bookmarks_are_true(watch.events, pods, 0))) > 5


async def everything() -> None:
    """What may be seen."""


@pytest.mark.parametrize("pages", [0, 1, 2])
async def test_a10_the_last_bookmark_of_a_stream_that_ends_behind_the_head_is_true(
    make_harness: MakeHarness, pages: int
):
    """The time is over, or the server stops, while most of the log has not been sent."""
    harness = await make_harness(limits=SEVERAL_PAGES)
    await random_changes(harness, seed=6, count=20)
    log = await logged(harness)
    watching = harness.scheduler.watching
    made = ChangeStream(
        visible=everything,
        watch=await watching.open("default", 0),
        writer=EventWriter(selection=WatchSelection(), cluster="default"),
        cluster="default",
        path=WATCH,
        from_present=False,
        bookmark_seconds=1_000,
        timeout_seconds=1_000 if pages else 0,
    )
    text = b""
    async for piece in made.pieces():
        text += piece
        if text.count(b"event:") and made.watch.revision > 3 * (pages - 1):
            watching.close()

    events = parse_events(text.decode())
    [bookmark] = assert_bookmarks_are_true(events, log, 0)
    assert bookmark < len(log)
    assert events[-1].type == "BOOKMARK"


# How a stream ends


async def test_a_stream_ends_after_its_time_with_a_bookmark(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(watching, "TIMEOUT_SECONDS_MAX", 0.01)
    async with stream(harness, timeoutSeconds=1) as watch:
        await watch.task
    [begin, end] = watch.events
    assert watch.complete
    assert (begin.type, end.type) == ("BOOKMARK", "BOOKMARK")


async def test_a_stream_that_compaction_overtakes_ends_with_an_error(make_harness: MakeHarness):
    harness = await make_harness(limits=Limits(watch_ring_changes=0))
    async with stream(harness) as watch:
        watch.reading.clear()
        await harness.put_node("unread")
        await watch.blocked.wait()
        for number in range(5):
            await harness.put_node(f"n{number}")
        await once(partial(is_compacted, harness))  # the store judges the commits' age
        watch.reading.set()
        await watch.until(3)
        await watch.task

    _, unread, *later, error = watch.events
    assert unread.name == "unread"
    assert len(later) < 5, "some of the changes are compacted before they are read"
    assert error.type == "ERROR"
    assert error.id == [unread, *later][-1].id  # it has none of its own
    assert (error.data["code"], error.data["status"]) == ("Compacted", 410)
    assert watch.complete


async def is_compacted(harness: Harness) -> bool:
    """Whether no change is left, after one more step of compaction."""
    floor, _ = await harness.store.housekeeping.compact(1, keep_changes=0, keep_seconds=0)
    return floor == (await harness.store.log.head(1)).revision


async def test_a_stream_whose_history_is_replaced_ends_with_an_error(harness: Harness):
    async with stream(harness) as watch:
        feed = harness.scheduler.watching.feeds[1]
        feed.end(HistoryReplaced("Another history."))
        await watch.until(2)
        await watch.task

    assert watch.events[-1].type == "ERROR"
    assert watch.events[-1].data["code"] == "HistoryReplaced"


async def test_a_deleted_cluster_ends_its_streams(harness: Harness):
    await harness.client.put("/v1/clusters/other", json={"config": {}})
    async with stream(harness) as watch:
        await harness.client.delete(CLUSTER)
        await watch.until(2)

    told = watch.events[-1].data
    assert (told["code"], told["detail"]) == (
        "NotFound",
        "There is no cluster 'default' any more.",
    )


async def test_a_slow_reader_is_cut_off(harness: Harness, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(streaming, "READER_SECONDS_MAX", 0.01)
    async with stream(harness) as watch:
        watch.reading.clear()
        await harness.put_node("n")
        async with asyncio.timeout(WAIT_SECONDS):
            await watch.task

    assert not watch.complete
    assert harness.scheduler.watching.watchers == 0


async def test_who_leaves_is_forgotten(harness: Harness):
    async with stream(harness):
        assert harness.scheduler.watching.watchers == 1
    assert harness.scheduler.watching.watchers == 0


async def test_streams_end_when_the_server_drains(harness: Harness):
    async with stream(harness) as watch:
        harness.scheduler.watching.close()
        async with asyncio.timeout(WAIT_SECONDS):
            await watch.task

    assert watch.complete
    assert problem(await harness.client.get(WATCH), 503) == "Overloaded"
