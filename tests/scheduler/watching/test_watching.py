"""A10 and A11 below HTTP: what a watch is given, and how it ends."""

import asyncio
import random
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest

from service.model.core.errors import (
    Compacted,
    HistoryReplaced,
    NotFound,
    Overloaded,
    StorageUnavailable,
)
from service.model.core.primitives import LabelSelector
from service.model.log.commit import Change, CommitInfo, Head, LogPage
from service.scheduler.protocol.intents import DeleteObject
from service.scheduler.protocol.limits import Limits
from service.scheduler.watching import WatchSelection
from service.scheduler.watching.recent_commits import RecentCommits
from tests.builders import node, pod
from tests.scheduler.world import World, world
from tests.seeds import chance
from tests.waiting import WAIT_SECONDS

AT = datetime(2026, 1, 1, tzinfo=UTC)
LIMITS = Limits(watch_pause_seconds=0)
MANY_BYTES = 10**9


@asynccontextmanager
async def watched(**limits: Any):
    """A world in which others' changes are found by polling alone."""
    async with world(limits=msgspec.structs.replace(LIMITS, **limits)) as w:
        yield w


async def open_watch(w: World, since: int | None = None, worker: int = 0):
    return await w.schedulers[worker].watching.open("default", since)


async def taken(w: World, watch: Any, until: int) -> list[Change]:
    """The changes that a watch is given up to a revision."""
    changes: list[Change] = []
    async with asyncio.timeout(WAIT_SECONDS):
        while watch.revision < until:
            commits = await watch.next()
            changes += [change for commit in commits for change in commit.changes]
    return changes


async def random_history(w: World, seed: int = 1, steps: int = 30) -> None:
    """Commits of one change and of many, with deletions among them."""
    rng = chance(seed)
    for _ in range(steps):
        names = rng.sample(["a", "b", "c", "d", "e"], rng.randint(1, 4))
        stored = [name for name in names if await w.stored("Node", "", name)]
        if stored and rng.random() < 0.3:
            await w.ask(DeleteObject(kind="Node", name=stored[0]))
        else:
            await w.apply(*(node(name).label(step=str(rng.random())) for name in names))


async def test_a10_a_watch_gives_the_log_as_it_is():
    async with watched() as w:
        watch = await open_watch(w, 0)
        await random_history(w)

        changes = await taken(w, watch, await w.head_revision())

        assert changes == w.log()
        watch.close()


async def test_a10_a_watch_resumes_from_any_revision_also_within_a_commit():
    async with watched() as w:
        await random_history(w)
        log, head = w.log(), await w.head_revision()
        for since in range(head):
            watch = await open_watch(w, since)
            assert await taken(w, watch, head) == log[since:]
            watch.close()


async def test_a10_a_watch_without_a_revision_begins_at_the_present():
    async with watched() as w:
        await w.apply(node("before"))
        watch = await open_watch(w)
        assert watch.revision == await w.head_revision()
        await w.apply(node("after"))

        [commit] = await watch.next()

        assert [change.name for change in commit.changes] == ["after"]
        watch.close()


async def test_a10_commits_are_given_whole():
    async with watched(watch_page_changes=3) as w:
        watch = await open_watch(w)
        await w.apply(*(node(f"n{number}") for number in range(10)))
        await w.apply(node("last"))

        [first] = await watch.next()
        [second] = await watch.next()

        assert len(first.changes) == 10
        assert watch.revision == second.info.last
        watch.close()


@pytest.mark.parametrize("ring_changes", [1, 5, 1000])
async def test_a_watcher_behind_the_ring_reads_pages_until_it_has_caught_up(ring_changes: int):
    async with watched(watch_ring_changes=ring_changes, watch_page_changes=4) as w:
        slow, quick = await open_watch(w, 0), await open_watch(w, 0)
        await slow.next()
        await random_history(w)
        head = await w.head_revision()
        await taken(w, quick, head)
        begun = slow.revision

        assert await taken(w, slow, head) == w.log()[begun:]
        quick.close()
        slow.close()


@pytest.mark.parametrize("ring_changes", [1, 5, 1000])
@pytest.mark.parametrize("since", [0, 3, 17])
async def test_a10_a_watch_stands_where_what_it_has_given_ends(ring_changes: int, since: int):
    """Wherever it stops it can be resumed: nothing is lost, nothing comes twice."""
    async with watched(watch_ring_changes=ring_changes, watch_page_changes=4) as w:
        await random_history(w)
        log, head = w.log(), await w.head_revision()
        watch, given = await open_watch(w, since), since
        assert watch.revision == since
        while watch.revision < head:
            commits = await watch.next()
            given += sum(len(commit.changes) for commit in commits)
            assert watch.revision == given == commits[-1].info.last
            later = await open_watch(w, watch.revision)
            assert await taken(w, later, head) == log[given:]
            later.close()
        watch.close()


async def test_many_watchers_share_one_reader_of_the_log():
    async with watched() as w:
        watches = [await open_watch(w) for _ in range(50)]
        waiting = [asyncio.create_task(watch.next()) for watch in watches]
        await w.others()
        reads = w.store.calls["read_log"]
        await w.apply(node("a"))

        given = await asyncio.gather(*waiting)

        assert all(commits == given[0] for commits in given)
        assert w.store.calls["read_log"] - reads <= 3  # the loop's among them
        for watch in watches:
            watch.close()


async def test_the_last_watcher_to_leave_ends_the_reader():
    async with watched() as w:
        one, other = await open_watch(w, 0), await open_watch(w, 0)
        await one.next()
        await other.next()
        watching = w.schedulers[0].watching
        assert watching.watchers == 2
        one.close()
        assert watching.cluster_ids == {1}
        other.close()
        assert (watching.watchers, watching.cluster_ids) == (0, set())

        again = await open_watch(w, 0)
        assert await taken(w, again, 1) == w.log()
        again.close()


async def test_a_cancelled_call_takes_nothing():
    async with watched() as w:
        watch = await open_watch(w, 0)
        await taken(w, watch, 1)
        for _ in range(20):
            waiting = asyncio.create_task(watch.next())
            await w.apply(node("a").label(now=str(random.random())))
            waiting.cancel()
            await asyncio.wait([waiting])
            if not waiting.cancelled():
                break
        revision = watch.revision
        await w.apply(node("b"))

        assert await taken(w, watch, await w.head_revision()) == w.log()[revision:]
        watch.close()


async def test_p14_without_a_hint_another_workers_commit_is_found_by_polling():
    async with world(workers=2, limits=LIMITS) as w:
        watch = await open_watch(w, worker=1)
        waiting = asyncio.create_task(watch.next())
        await w.apply(node("a"), worker=0)
        await w.others()
        assert not waiting.done()

        await w.pass_time(LIMITS.poll_seconds)

        assert waiting.done()
        watch.close()


async def test_p14_a_hint_wakes_the_watchers_and_the_loops_of_other_workers():
    async with world(workers=2, limits=LIMITS) as w:
        w.store.hints = True
        await w.place(pod("warm"), worker=1)
        watch = await open_watch(w, worker=1)
        waiting = asyncio.create_task(watch.next())
        await w.others()
        await w.apply(node("a"), worker=0)
        await w.others()

        assert waiting.done()
        assert w.schedulers[1].replicas()["default"][0] == await w.head_revision()
        watch.close()


# How a watch ends


async def test_a_compacted_revision_cannot_be_watched():
    async with watched() as w:
        await random_history(w)
        w.clock.advance(1)
        floor, _ = await w.store.housekeeping.compact(1, keep_changes=5, keep_seconds=0)

        with pytest.raises(Compacted, match=str(floor)):
            await open_watch(w, floor - 1)

        watch = await open_watch(w, floor)
        assert await taken(w, watch, await w.head_revision()) == w.log()
        watch.close()


async def test_a_watch_that_compaction_overtakes_is_told_so():
    async with watched(watch_ring_changes=2) as w:
        watch = await open_watch(w)
        waiting = asyncio.create_task(watch.next())
        await w.others()
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        await random_history(w)
        await w.others()
        w.clock.advance(1)
        await w.store.housekeeping.compact(1, keep_changes=0, keep_seconds=0)

        with pytest.raises(Compacted):
            await watch.next()
        watch.close()


async def test_a_watch_that_keeps_up_does_not_notice_compaction():
    async with watched() as w:
        watch = await open_watch(w, 0)
        await random_history(w, steps=10)
        log = w.log()
        given = await taken(w, watch, len(log))
        w.clock.advance(1)
        await w.store.housekeeping.compact(1, keep_changes=0, keep_seconds=0)
        await w.apply(node("later"))
        given += await taken(w, watch, await w.head_revision())

        assert given == log + w.log()
        watch.close()


async def test_p3_another_history_ends_a_watch():
    async with watched() as w:
        await w.apply(node("a"))
        watch = await open_watch(w)
        waiting = asyncio.create_task(watch.next())
        await w.others()
        own = w.store.states[1]
        own.commits[-1] = msgspec.structs.replace(own.commits[-1], commit_id=UUID(int=7))
        own.head = Head(own.head.revision, UUID(int=7), own.head.at)

        await w.pass_time(LIMITS.poll_seconds)

        with pytest.raises(HistoryReplaced):
            await waiting
        watch.close()


async def test_a_watch_of_a_deleted_cluster_ends():
    async with watched() as w:
        watch = await open_watch(w)
        waiting = asyncio.create_task(watch.next())
        await w.others()
        own = w.store.states[1]
        await w.schedulers[0].delete_cluster("default")

        with pytest.raises(NotFound):
            await waiting
        with pytest.raises(NotFound):
            await open_watch(w)
        watch.close()
        w.store.states[1] = own


async def test_a_watch_outlives_a_database_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch):
    async with watched() as w:
        await w.apply(node("warm"))
        watch = await open_watch(w, 0)
        await taken(w, watch, await w.head_revision())
        waiting = asyncio.create_task(watch.next())

        async def unreachable(*_: object) -> None:
            raise StorageUnavailable("No connection.")

        with monkeypatch.context() as patch:
            patch.setattr(w.store.log, "read", unreachable)
            await w.apply(node("a"))
            await w.pass_time(LIMITS.poll_seconds)
        assert not waiting.done()

        await w.pass_time(LIMITS.poll_seconds)

        assert [change.name for commit in await waiting for change in commit.changes] == ["a"]
        watch.close()


async def test_closing_ends_all_watches_and_lets_none_begin():
    async with watched() as w:
        watch, unused = await open_watch(w), await open_watch(w)
        waiting = asyncio.create_task(watch.next())
        await w.others()

        w.schedulers[0].watching.close()

        assert await waiting is None
        assert await unused.next() is None
        watch.close()
        unused.close()
        with pytest.raises(Overloaded):
            await open_watch(w)


async def test_watches_beyond_the_limit_are_refused():
    async with watched(watchers_max=1) as w:
        watch = await open_watch(w, 0)
        await watch.next()
        with pytest.raises(Overloaded):
            await open_watch(w)
        watch.close()
        await open_watch(w)


# The ring


def change(revision: int, body: bytes = b"{}", **fields: Any) -> Change:
    given = {"verb": "Put", "kind": "Pod", "namespace": "shop", "name": "a", "uid": "u"}
    return Change(revision=revision, body=body, **(given | fields))


def commit(number: int, first: int, last: int) -> CommitInfo:
    return CommitInfo(
        commit_id=UUID(int=number),
        parent=UUID(int=number - 1),
        first=first,
        last=last,
        planned_at=0,
        kind="Test",
        at=AT,
    )


def page(*commits: CommitInfo, body: bytes = b"{}") -> LogPage:
    revisions = [r for each in commits for r in range(each.first, each.last + 1)]
    end = commits[-1]
    return LogPage(
        floor=0,
        head=Head(end.last, end.commit_id, AT),
        commits=commits,
        changes=tuple(change(revision, body) for revision in revisions),
        revision=end.last,
        tip=end.commit_id,
    )


def ring(changes_max: int = 100, bytes_max: int = 1000) -> RecentCommits:
    return RecentCommits(Head(0, UUID(int=0), AT), changes_max=changes_max, bytes_max=bytes_max)


def numbers(found: Any) -> list[int]:
    return [each.info.commit_id.int for each in found]


def test_the_ring_gives_what_follows_a_commit():
    kept = ring()
    kept.append(page(commit(1, 1, 3), commit(2, 4, 3), commit(3, 4, 4)))  # 2 is a fence
    assert numbers(kept.after(UUID(int=0), 100, MANY_BYTES)) == [1, 2, 3]
    assert numbers(kept.after(UUID(int=1), 100, MANY_BYTES)) == [2, 3]
    assert kept.after(UUID(int=3), 100, MANY_BYTES) == ()
    assert kept.after(UUID(int=9), 100, MANY_BYTES) is None
    assert numbers(kept.after(UUID(int=0), 2, MANY_BYTES)) == [1]
    assert [len(each.changes) for each in kept.after(UUID(int=0), 100, MANY_BYTES) or ()] == [
        3,
        0,
        1,
    ]


def test_what_is_taken_of_the_ring_ends_with_the_commit_that_reaches_the_bytes():
    kept = ring()
    for number in (1, 2, 3, 4):
        kept.append(page(commit(number, number, number), body=b"x" * 20))
    assert numbers(kept.after(UUID(int=0), 100, 39)) == [1, 2]
    assert numbers(kept.after(UUID(int=0), 100, 1)) == [1], "a larger one is taken alone"


@pytest.mark.parametrize(
    ("bounds", "kept"),
    [({"changes_max": 3}, [2, 3]), ({"bytes_max": 20}, [3]), ({"bytes_max": 0}, [3])],
    ids=["changes", "bytes", "the newest stays whatever its size"],
)
def test_the_ring_keeps_within_its_bounds(bounds: dict[str, int], kept: list[int]):
    full = ring(**bounds)
    for number in (1, 2, 3):
        full.append(page(commit(number, number, number), body=b"x" * 20))
    if "changes_max" in bounds:
        full.append(page(commit(4, 4, 4)))
        kept = [2, 3, 4]
    assert full.after(UUID(int=kept[0] - 2), 100, MANY_BYTES) is None
    assert numbers(full.after(UUID(int=kept[0] - 1), 100, MANY_BYTES)) == kept


# What a change is to a watcher

WEB = LabelSelector(match_labels={"app": "web"})
IS_WEB = b'{"metadata":{"labels":{"app":"web"}}}'
IS_DB = b'{"metadata":{"labels":{"app":"db"}}}'


@pytest.mark.parametrize(
    ("fields", "event"),
    [
        ({"body": IS_WEB, "created": True}, "ADDED"),
        ({"body": IS_DB, "created": True}, None),
        ({"body": IS_WEB}, "MODIFIED"),
        ({"body": IS_DB}, None),
        ({"body": b"{}"}, None),
        ({"body": IS_WEB, "labels_before": b'{"app":"db"}'}, "ADDED"),
        ({"body": IS_WEB, "labels_before": b'{"app":"web","v":"1"}'}, "MODIFIED"),
        ({"body": IS_DB, "labels_before": b'{"app":"web"}'}, "DELETED"),
        ({"body": IS_DB, "labels_before": b"{}"}, None),
        ({"body": IS_WEB, "verb": "Delete"}, "DELETED"),
        ({"body": IS_DB, "verb": "Delete"}, None),
    ],
)
def test_a_label_selector_adds_what_starts_to_match_and_deletes_what_ceases_to(
    fields: dict[str, Any], event: str | None
):
    assert WatchSelection(labels=WEB).event(change(1, **fields)) == event


@pytest.mark.parametrize(
    ("selection", "selected"),
    [
        (WatchSelection(), True),
        (WatchSelection(kinds=frozenset({"Pod", "Node"})), True),
        (WatchSelection(kinds=frozenset({"Node"})), False),
        (WatchSelection(namespace="shop"), True),
        (WatchSelection(namespace="other"), False),
    ],
)
def test_a_watch_can_be_narrowed_to_kinds_and_a_namespace(
    selection: WatchSelection, *, selected: bool
):
    events = [selection.event(change(1, created=True)), selection.event(change(1))]
    events.append(selection.event(change(1, verb="Delete")))
    assert events == (["ADDED", "MODIFIED", "DELETED"] if selected else [None] * 3)
