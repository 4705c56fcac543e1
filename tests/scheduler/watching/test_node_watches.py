"""A10 for the watches of single nodes: they are told what concerns their pods, and sleep otherwise."""

import asyncio
from typing import Any
from uuid import UUID

import msgspec
import pytest

from service.model.core.errors import Compacted
from service.model.log.commit import Change, CommitInfo
from service.model.selection.object_filters import FieldRequirement
from service.scheduler.protocol.intents import DeleteObject
from service.scheduler.watching import LoggedCommit, WatchSelection
from service.scheduler.watching.node_commits import NodeIndex
from tests.builders import pod
from tests.scheduler.watching.test_watching import AT, change, watched
from tests.scheduler.world import World
from tests.seeds import chance
from tests.waiting import once

PODS = frozenset({"Pod"})
NODES = ("n1", "n2", "n3")
ON_N1 = b'{"spec":{"nodeName":"n1"}}'
ON_N2 = b'{"spec":{"nodeName":"n2"}}'


def on_node(name: str, *others: FieldRequirement) -> WatchSelection:
    return WatchSelection(kinds=PODS, fields=(FieldRequirement("spec.nodeName", name), *others))


async def open_watch(w: World, node: str, since: int | None = None) -> Any:
    return await w.schedulers[0].watching.open("default", since, node=node)


def told(selection: WatchSelection, changes: Any) -> list[tuple[int, str]]:
    return [(each.revision, event) for each in changes if (event := selection.event(each))]


async def pods_move(w: World, seed: int, steps: int) -> None:
    """Pods come, pass from node to node, and end; some commits are of one change, others of many."""
    rng = chance(seed)
    for _ in range(steps):
        names = rng.sample(["a", "b", "c", "d", "e"], rng.randint(1, 4))
        stored = [name for name in names if await w.stored("Pod", "default", name)]
        if stored and rng.random() < 0.3:
            await w.ask(DeleteObject(kind="Pod", namespace="default", name=stored[0]))
        else:
            labelled = [pod(name).label(step=str(rng.random())) for name in names]
            await w.apply(*(each.on(rng.choice(NODES)) for each in labelled))


@pytest.mark.parametrize("ring_changes", [1, 6, 1000])
@pytest.mark.parametrize("seed", [1, 2])
async def test_a_watch_of_a_node_tells_what_a_watch_of_everything_would(
    ring_changes: int, seed: int
):
    async with watched(watch_ring_changes=ring_changes, watch_page_changes=3) as w:
        watches = {name: await open_watch(w, name) for name in NODES}
        begun, given = await w.head_revision(), {name: list[Any]() for name in NODES}
        ended = asyncio.Event()

        async def follow(name: str) -> None:
            while not ended.is_set():
                commits = await watches[name].next()
                given[name] += [each for commit in commits or () for each in commit.changes]

        tasks = [asyncio.create_task(follow(name)) for name in NODES[:2]]
        await pods_move(w, seed, 15)
        tasks.append(asyncio.create_task(follow(NODES[2])))  # this one begins to read late
        await pods_move(w, seed + 10, 15)
        log, last = w.log()[begun:], await w.head_revision()
        expected = {name: told(on_node(name), log) for name in NODES}

        async def all_is_told() -> bool:
            return {name: told(on_node(name), given[name]) for name in NODES} == expected

        await once(all_is_told)
        ended.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert all(expected.values())
        assert [watch.revision for watch in watches.values()] == [last] * 3
        for watch in watches.values():
            watch.close()


async def test_a_sleeping_watch_keeps_up_with_the_log_and_resumes_after_it():
    async with watched(watch_ring_changes=1) as w:
        watch = await open_watch(w, "n1")
        sleeping = asyncio.create_task(watch.next())
        for number in range(5):
            await w.apply(pod(f"p{number}").on("n2"))
            await w.others()
        assert not sleeping.done()
        sleeping.cancel()
        await asyncio.wait([sleeping])
        assert watch.revision == await w.head_revision()

        await w.apply(pod("p0").on("n1"))
        [commit] = await watch.next()

        assert told(on_node("n1"), commit.changes) == [(await w.head_revision(), "ADDED")]
        watch.close()


async def test_the_last_watch_of_a_node_takes_the_index_with_it():
    async with watched() as w:
        everything = await w.schedulers[0].watching.open("default", 0)
        await everything.next()
        watch = await open_watch(w, "n1", 0)
        await watch.next()
        feed = everything.feed
        assert feed.ring.nodes is not None
        watch.close()
        watch.close()
        assert feed.ring.nodes is None
        everything.close()


def logged(number: int, *changes: Change) -> LoggedCommit:
    first, last = changes[0].revision, changes[-1].revision
    info = CommitInfo(
        commit_id=UUID(int=number),
        parent=UUID(int=number - 1),
        first=first,
        last=last,
        planned_at=0,
        kind="Test",
        at=AT,
    )
    return LoggedCommit(info, changes)


def moved(revision: int, **fields: Any) -> Change:
    given = {"kind": "Pod", "node_name": "n1", "fields_before": b"", **fields}
    return msgspec.structs.replace(change(revision), **given)


def test_a_commit_wakes_those_whose_pods_it_concerns_and_nobody_else():
    index = NodeIndex(0)
    left, entered, other, pending = (index.wait(name) for name in ("n1", "n2", "n3", ""))
    came = moved(7, node_name="n2", fields_before=b'{"spec.nodeName":"n1"}')
    index.add(0, logged(5, came, moved(8, node_name="n4"), moved(9, kind="Node", node_name=None)))
    assert left.position == entered.position == (6, UUID(int=4))
    assert left.news.is_set()
    assert not other.news.is_set()
    assert not pending.news.is_set()
    index.add(1, logged(6, moved(10, node_name=None, created=True, fields_before=None)))
    assert pending.news.is_set()
    assert [each.changes for each in index.after("n2", 0, 9, 999)] == [[came]]
    assert index.after("n3", 0, 9, 999) == []
    assert index.after("n2", 1, 9, 999) == []


def test_a_commit_of_which_it_is_not_known_whom_it_concerns_wakes_all():
    index = NodeIndex(0)
    waiter = index.wait("n3")
    own, unknown = logged(1, moved(1, node_name="n3")), logged(2, moved(2, fields_before=None))
    index.add(0, own)
    index.add(1, unknown)
    assert waiter.news.is_set()
    assert index.after("n3", 0, 9, 999) == [own, unknown]
    assert index.after("n1", 0, 9, 999) == [unknown]
    index.drop_before(1)
    assert index.after("n3", 0, 9, 999) == [unknown]
    index.drop_before(2)
    assert index.after("n3", 0, 9, 999) == []


def test_a_waiter_that_gave_up_is_not_woken():
    index = NodeIndex(0)
    waiter = index.wait("n1")
    index.stop_waiting(waiter)
    index.stop_waiting(waiter)
    index.add(0, logged(1, moved(1)))
    assert not waiter.news.is_set()


RUNNING = FieldRequirement("status.phase", "Running")


@pytest.mark.parametrize(
    ("fields", "event"),
    [
        ({"body": ON_N1, "created": True}, "ADDED"),
        ({"body": ON_N2, "created": True}, None),
        ({"body": ON_N1, "fields_before": b'{"spec.nodeName":""}'}, "ADDED"),
        ({"body": ON_N1, "fields_before": b'{"status.phase":"Running"}'}, "MODIFIED"),
        ({"body": ON_N1, "fields_before": b""}, "MODIFIED"),
        ({"body": ON_N2, "fields_before": b'{"spec.nodeName":"n1"}'}, "DELETED"),
        ({"body": ON_N2, "fields_before": b'{"spec.nodeName":"n3"}'}, None),
        ({"body": ON_N1, "verb": "Delete"}, "DELETED"),
        ({"body": ON_N2, "verb": "Delete"}, None),
        ({"body": ON_N1, "kind": "Node"}, None),
    ],
)
def test_a_pod_that_comes_to_a_node_is_added_and_one_that_leaves_it_is_deleted(
    fields: dict[str, Any], event: str | None
):
    given = {"kind": "Pod", **fields}
    assert on_node("n1").event(msgspec.structs.replace(change(1), **given)) == event


def test_all_that_is_asked_has_to_be_so_before_and_after():
    selection = on_node("n1", RUNNING)
    running = b'{"spec":{"nodeName":"n1"},"status":{"phase":"Running"}}'
    assert selection.event(moved(1, body=ON_N1)) is None  # pending before and after
    was_pending = moved(1, body=running, fields_before=b'{"status.phase":"Pending"}')
    assert selection.event(was_pending) == "ADDED"
    ended = moved(1, body=ON_N1, fields_before=b'{"status.phase":"Running"}')
    assert selection.event(ended) == "DELETED"


def test_where_a_server_of_an_earlier_version_noted_nothing_the_watch_ends():
    unknown = moved(7, body=ON_N1, fields_before=None)
    with pytest.raises(Compacted, match="the change 7"):
        on_node("n1").event(unknown)
    assert on_node("n1").event(msgspec.structs.replace(unknown, created=True)) == "ADDED"
    by_name = WatchSelection(kinds=PODS, fields=(FieldRequirement("metadata.name", "x"),))
    assert by_name.event(unknown) is None  # a name is what it was


@pytest.mark.parametrize(
    ("selection", "node"),
    [
        (on_node("n1", RUNNING), "n1"),
        (on_node(""), ""),
        (WatchSelection(kinds=PODS, fields=(RUNNING,)), None),
        (
            WatchSelection(
                kinds=PODS, fields=(FieldRequirement("spec.nodeName", "n1", wanted=False),)
            ),
            None,
        ),
        (WatchSelection(), None),
    ],
)
def test_a_watch_is_of_one_node_if_only_its_pods_can_match(
    selection: WatchSelection, node: str | None
):
    assert selection.node == node
