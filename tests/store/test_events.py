"""Events in both stores: counted where they are equal, listed by key, swept, gone with their cluster."""

import pytest
from msgspec.structs import replace

from service.model.core.errors import NotFound
from service.model.log.events import Event
from service.model.log.results import Lost
from tests.store.history import commit_on, create

FIRST, LATER, NEVER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z", "2199-01-01T00:00:00Z"


def event(pod, *, namespace="shop", reason="Evicted", message="why", at=FIRST, revision=2):
    return Event(
        namespace=namespace,
        pod=pod,
        uid=f"uid of {pod}",
        type="Warning",
        reason=reason,
        message=message,
        revision=revision,
        first=at,
        last=at,
    )


async def listed(store, cluster_id, **options):
    page = await store.events.list(cluster_id, limit=100, **options)
    return [(row.event.namespace, row.event.pod, row.event.count) for row in page.rows]


async def test_equal_events_are_counted(store, cluster_id):
    again = replace(event("a", at=LATER, revision=9), count=2)
    await store.events.add(cluster_id, [event("a"), event("b"), event("a")])
    await store.events.add(cluster_id, [again, event("a", message="another")])
    page = await store.events.list(cluster_id, limit=100)
    assert page.head == await store.log.head(cluster_id)
    found = {(row.event.pod, row.event.message): row for row in page.rows}
    assert {key: row.event.count for key, row in found.items()} == {
        ("a", "why"): 4,
        ("a", "another"): 1,
        ("b", "why"): 1,
    }
    a = found["a", "why"].event
    assert (a.first, a.last, a.revision) == (FIRST, LATER, 9)
    assert found["a", "why"].name == a.name


async def test_what_is_told_late_takes_nothing_back(store, cluster_id):
    """Workers tell of what happened some time after it, in any order, and in one call or two."""
    await store.events.add(cluster_id, [event("a", at=LATER, revision=9)])
    await store.events.add(cluster_id, [event("a", at=FIRST, revision=2)])
    both = [event("b", at=LATER, revision=9), event("b", at=FIRST, revision=2)]
    await store.events.add(cluster_id, both)
    for row in (await store.events.list(cluster_id, limit=100)).rows:
        told = row.event
        assert (told.last, told.revision, told.count) == (LATER, 9, 2)


async def test_lists_are_by_key_and_go_on_after_one(store, cluster_id):
    for each in ("b/x", "a/y", "b/w", "a/z"):
        namespace, _, name = each.partition("/")
        await store.events.add(cluster_id, [event(name, namespace=namespace)])
    everything = [("a", "y", 1), ("a", "z", 1), ("b", "w", 1), ("b", "x", 1)]
    assert await listed(store, cluster_id) == everything
    assert await listed(store, cluster_id, namespace="b") == everything[2:]
    two = await store.events.list(cluster_id, limit=2)
    key = (two.rows[-1].event.namespace, two.rows[-1].name)
    assert await listed(store, cluster_id, after=key) == everything[2:]


async def test_events_of_a_commit_are_kept_with_it_or_not_at_all(store, cluster_id):
    """P1: what a lost race tells of never happened."""
    head = await store.log.head(cluster_id)
    await store.log.commit(
        cluster_id, commit_on(head, create("n1"), events=[event("a"), event("b")])
    )
    result = await store.log.commit(cluster_id, commit_on(head, create("n2"), events=[event("c")]))
    assert isinstance(result, Lost)
    assert await listed(store, cluster_id) == [("shop", "a", 1), ("shop", "b", 1)]


async def test_a_locked_commit_keeps_its_events(store, cluster_id):
    """P6"""
    head = await store.log.head(cluster_id)

    def decide(page):
        return commit_on(page.head, create("n1"), events=[event("a")])

    await store.log.commit_locked(cluster_id, head.revision, head.tip, decide)
    assert await listed(store, cluster_id) == [("shop", "a", 1)]


async def test_the_old_and_the_many_are_swept(store, cluster_id):
    young = [event(f"p{i}", at=NEVER.replace("00Z", f"{i:02}Z")) for i in range(6)]
    old = event("old", at="2020-01-01T00:00:00Z")
    other = event("x", reason="Scheduled", at=NEVER)
    await store.events.add(cluster_id, [*young, old, other])
    swept = await store.events.sweep(cluster_id, keep_seconds=60, keep_rows=4)
    assert swept == 3
    assert await listed(store, cluster_id) == [
        *(("shop", f"p{i}", 1) for i in range(2, 6)),
        ("shop", "x", 1),
    ]
    assert await store.events.sweep(cluster_id, keep_seconds=60, keep_rows=4) == 0


async def test_a_cluster_takes_its_events_with_it(store):
    other = (await store.clusters.create("other", b"{}")).cluster_id
    await store.events.add(other, [event("a")])
    await store.clusters.delete(other)
    await store.events.add(other, [event("b")])
    with pytest.raises(NotFound):
        await store.events.list(other, limit=10)
    again = (await store.clusters.create("other", b"{}")).cluster_id
    assert await listed(store, again) == []
