"""P3, P12 and P13, and reads of objects, on every store."""

import pytest

from service.model.core.errors import NotFound
from service.model.log.commit import BodySelection, Diverged, Head, LogPage
from service.model.log.pages import ObjectPage
from service.model.log.results import Lost
from service.scheduler.protocol.limits import Limits
from service.scheduler.replica.loading import load
from tests.store.history import (
    AnyStore,
    commit_on,
    committed,
    create,
    delete,
    new_id,
    put,
    whole_log,
)


async def read(store: AnyStore, cluster_id: int, after: Head, limit: int = 100) -> LogPage:
    page = await store.log.read(cluster_id, after.revision, after.tip, limit)
    assert isinstance(page, LogPage), page
    return page


async def test_p12_a_page_holds_whole_commits_and_ends_where_the_next_begins(
    store: AnyStore, cluster_id: int
):
    start = await store.log.head(cluster_id)
    heads = [
        await committed(store, cluster_id, *(create(f"{batch}-{number}") for number in range(3)))
        for batch in "abc"
    ]
    page = await read(store, cluster_id, start, limit=4)
    assert (page.revision, page.tip) == (heads[1].revision, heads[1].tip)
    assert [change.revision for change in page.changes] == [2, 3, 4, 5, 6, 7]
    assert [(commit.first, commit.last) for commit in page.commits] == [(2, 4), (5, 7)]
    assert (page.floor, page.head) == (0, heads[2])
    rest = await read(store, cluster_id, heads[1], limit=4)
    assert [change.name for change in rest.changes] == ["c-0", "c-1", "c-2"]
    assert (rest.revision, rest.tip) == (heads[2].revision, heads[2].tip)


@pytest.mark.parametrize("tip_is_known", [True, False])
async def test_p12_a_page_ends_with_the_commit_that_reaches_its_bytes(
    store: AnyStore, cluster_id: int, *, tip_is_known: bool
):
    at = start = await store.log.head(cluster_id)
    for batch in "abc":
        changes = (create(f"{batch}-{number}", body=b"x" * 100) for number in range(3))
        last = await committed(store, cluster_id, *changes)
        await store.log.settle_unknown(cluster_id, commit_on(last, create("never")))
    pages = list[list[int]]()
    head = await store.log.head(cluster_id)
    while at.revision < head.revision:
        tip = at.tip if tip_is_known else None
        page = await store.log.read(cluster_id, at.revision, tip, 100, bytes_max=301)
        assert isinstance(page, LogPage)
        assert page.tip is not None
        pages.append([change.revision for change in page.changes])
        at = Head(page.revision, page.tip, page.head.at)
    assert pages == [[2, 3, 4, 5, 6, 7], [8, 9, 10]]
    alone = await store.log.read(cluster_id, start.revision, start.tip, 100, bytes_max=1)
    assert isinstance(alone, LogPage)
    assert [change.revision for change in alone.changes] == [2, 3, 4], "never part of a commit"


async def test_bodies_of_other_changes_are_left_out_and_not_counted(
    store: AnyStore, cluster_id: int
):
    start = await store.log.head(cluster_id)
    wide = {"body": b"x" * 1000}
    for number in range(3):
        await committed(store, cluster_id, create(f"n{number}", kind="Node", namespace="", **wide))
        await committed(store, cluster_id, create(f"p{number}", namespace="shop", **wide))
        await committed(store, cluster_id, create(f"q{number}", **wide))
    bodies = BodySelection(kinds=frozenset({"Pod"}), namespace="shop")
    page = await store.log.read(
        cluster_id, start.revision, start.tip, 100, bytes_max=2_000, bodies=bodies
    )
    assert isinstance(page, LogPage)
    assert [(each.name, len(each.body)) for each in page.changes] == [
        *(("n0", 0), ("p0", 1000), ("q0", 0)),
        *(("n1", 0), ("p1", 1000)),
    ]


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
async def test_p12_pages_of_any_size_add_up_to_the_log(
    store: AnyStore, cluster_id: int, limit: int
):
    at = await store.log.head(cluster_id)
    for size in (1, 4, 2, 1, 3):
        head = await store.log.head(cluster_id)
        changes = (create(f"pod-{head.revision}-{number}") for number in range(size))
        last = await committed(store, cluster_id, *changes)
        await store.log.settle_unknown(cluster_id, commit_on(last, create("never")))
    seen: list[int] = []
    head = await store.log.head(cluster_id)
    while (at.revision, at.tip) != (head.revision, head.tip):
        page = await read(store, cluster_id, at, limit)
        assert page.commits
        seen += [change.revision for change in page.changes]
        at = Head(page.revision, page.tip or new_id(), head.at)
    assert seen == list(range(2, 13))


async def test_p12_at_the_head_the_page_is_empty(store: AnyStore, cluster_id: int):
    head = await committed(store, cluster_id, create("a"))
    page = await read(store, cluster_id, head)
    assert (page.changes, page.commits) == ((), ())
    assert (page.revision, page.tip) == (head.revision, head.tip)


async def test_p12_a_watcher_may_stand_within_a_commit(store: AnyStore, cluster_id: int):
    await committed(store, cluster_id, create("a"), create("b"), create("c"))
    page = await store.log.read(cluster_id, 2, None, 1)
    assert isinstance(page, LogPage)
    assert [change.name for change in page.changes] == ["b", "c"]
    assert page.revision == 4


async def test_p3_another_history_at_the_same_revision_is_noticed(store: AnyStore, cluster_id: int):
    start = await store.log.head(cluster_id)
    head = await committed(store, cluster_id, create("a"))
    stranger = new_id()
    diverged = Diverged(head, 0)
    assert await store.log.read(cluster_id, start.revision, stranger, 100) == diverged
    assert await store.log.read(cluster_id, head.revision, stranger, 100) == diverged
    assert await store.log.read(cluster_id, head.revision + 1, stranger, 100) == diverged
    assert await store.log.read(cluster_id, start.revision, head.tip, 100) == diverged


async def test_p3_after_a_restore_nobody_takes_new_revisions_for_those_lost(
    store: AnyStore, cluster_id: int
):
    seen = await committed(store, cluster_id, create("a"))
    await store.recovery.lift_revision(cluster_id)
    head = await store.log.head(cluster_id)
    assert head.revision == seen.revision + 1_000_000_000
    assert await store.log.commit(cluster_id, commit_on(seen, create("b"))) == Lost(head)
    known = await store.log.read(cluster_id, seen.revision, seen.tip, 100)
    assert known == Diverged(head, head.revision)
    last = await committed(store, cluster_id, put("a"))
    page = await read(store, cluster_id, head)
    assert (page.revision, page.floor) == (last.revision, head.revision)


async def test_p12_compaction_raises_the_floor_with_what_it_deletes(
    store: AnyStore, cluster_id: int
):
    start = await store.log.head(cluster_id)
    for name in "abcd":
        head = await committed(store, cluster_id, create(name))
    assert await store.housekeeping.compact(cluster_id, keep_changes=2, keep_seconds=0) == (3, True)
    assert await store.housekeeping.compact(cluster_id, keep_changes=2, keep_seconds=0) == (
        3,
        False,
    )
    for tip in (start.tip, None):
        assert await store.log.read(cluster_id, start.revision, tip, 100) == Diverged(head, 3)
    page = await store.log.read(cluster_id, 3, None, 100)
    assert isinstance(page, LogPage)
    assert [change.name for change in page.changes] == ["c", "d"]
    assert page.floor == 3
    assert await store.log.head(cluster_id) == head


async def test_p12_compaction_goes_in_bounded_steps_through_large_commits(
    store: AnyStore, cluster_id: int
):
    await committed(store, cluster_id, *(create(f"pod-{number:02}") for number in range(24)))
    floors = []
    rose = True
    while rose:
        floor, rose = await store.housekeeping.compact(
            cluster_id, keep_changes=0, keep_seconds=0, rows=10
        )
        floors.append(floor)
    assert floors == [10, 20, 25, 25]
    last = await committed(store, cluster_id, create("z"))
    page = await store.log.read(cluster_id, 25, None, 10)
    assert isinstance(page, LogPage)
    assert page.revision == last.revision


async def test_p12_compaction_keeps_what_is_young(store: AnyStore, cluster_id: int):
    await committed(store, cluster_id, create("a"))
    assert await store.housekeeping.compact(cluster_id, keep_changes=0, keep_seconds=3600) == (
        0,
        False,
    )
    assert len((await whole_log(store, cluster_id)).changes) == 2


async def test_p13_a_load_gives_all_objects_in_order_at_the_head(store: AnyStore, cluster_id: int):
    head = await committed(
        store,
        cluster_id,
        create("b", namespace="x"),
        create("a", namespace="x"),
        create("a", namespace="X"),
        create("é", namespace="x"),
        create("n", kind="Node", namespace=""),
    )
    snapshot = await load(store, cluster_id)
    assert snapshot.head == head
    assert [tuple(row.key) for row in snapshot.rows] == [
        ("Cluster", "", "config"),
        ("Node", "", "n"),
        ("Pod", "X", "a"),
        ("Pod", "x", "a"),
        ("Pod", "x", "b"),
        ("Pod", "x", "é"),
    ]


async def test_p13_ranges_go_on_after_a_key_and_have_the_head_of_their_instant(
    store: AnyStore, cluster_id: int
):
    keys = [("Node", "", "a"), ("Node", "", "é"), ("Pod", "a", "z"), ("Pod", "b", "a")]
    changes = (create(name, kind=kind, namespace=namespace) for kind, namespace, name in keys)
    head = await committed(store, cluster_id, *changes)
    first = await store.objects.read(cluster_id, None, 2)
    assert (first.head, [row.key for row in first.rows]) == (
        head,
        [("Cluster", "", "config"), ("Node", "", "a")],
    )
    head = await committed(store, cluster_id, create("c", namespace="a"), create("A", kind="Node"))
    second = await store.objects.read(cluster_id, first.rows[-1].key, 3)
    assert (second.head, [row.key for row in second.rows]) == (
        head,
        [("Node", "", "é"), ("Node", "default", "A"), ("Pod", "a", "c")],
    )
    last = await store.objects.read(cluster_id, second.rows[-1].key, 3)
    assert [row.key for row in last.rows] == [("Pod", "a", "z"), ("Pod", "b", "a")]
    assert await store.objects.read(cluster_id, last.rows[-1].key, 3) == ObjectPage(head, [])


@pytest.mark.parametrize("rows", [1, 4, 6, 100])
async def test_p13_a_load_of_several_ranges_is_whole(store: AnyStore, cluster_id: int, rows: int):
    await committed(store, cluster_id, *(create(f"pod-{number}") for number in range(11)))
    snapshot = await load(store, cluster_id, Limits(load_rows=rows))
    assert len(snapshot.rows) == len({row.name for row in snapshot.rows}) == 12


async def test_an_object_is_read_with_the_head_of_the_same_instant(
    store: AnyStore, cluster_id: int
):
    await committed(store, cluster_id, create("a", node_name="n1"))
    head = await committed(store, cluster_id, create("b"))
    found = await store.objects.get(cluster_id, "Pod", "default", "a")
    assert found.head == head
    assert found.row is not None
    assert (found.row.revision, found.row.node_name) == (2, "n1")
    absent = await store.objects.get(cluster_id, "Pod", "default", "c")
    assert (absent.head, absent.row) == (head, None)


async def test_lists_are_ordered_and_go_on_after_a_key(store: AnyStore, cluster_id: int):
    keys = [("a", "y"), ("a", "x"), ("b", "w"), ("B", "z")]
    head = await committed(
        store, cluster_id, *(create(name, namespace=namespace) for namespace, name in keys)
    )
    first = await store.objects.list(cluster_id, "Pod", limit=3)
    assert first.head == head
    assert [row.key[1:] for row in first.rows] == [("B", "z"), ("a", "x"), ("a", "y")]
    second = await store.objects.list(cluster_id, "Pod", after=("a", "y"), limit=3)
    assert [row.key[1:] for row in second.rows] == [("b", "w")]
    own = await store.objects.list(cluster_id, "Pod", namespace="a", after=("a", "x"), limit=3)
    assert [row.name for row in own.rows] == ["y"]
    none = await store.objects.list(cluster_id, "Service", limit=3)
    assert (none.head, none.rows) == (head, [])


async def test_lists_are_narrowed_to_a_node(store: AnyStore, cluster_id: int):
    await committed(
        store,
        cluster_id,
        create("a", node_name="n1"),
        create("b", node_name="n2"),
        create("c"),
        create("d", node_name="n1"),
    )
    page = await store.objects.list(cluster_id, "Pod", node_name="n1", limit=10)
    assert [row.name for row in page.rows] == ["a", "d"]


async def test_heads_of_several_clusters_come_together(store: AnyStore, cluster_id: int):
    other = await store.clusters.create("other", b"{}")
    head = await committed(store, cluster_id, create("a"))
    heads = await store.log.heads([cluster_id, other.cluster_id, 999_999])
    assert heads == {cluster_id: head, other.cluster_id: other.head}


async def test_a_deleted_object_is_gone_from_lists_but_in_the_log(store: AnyStore, cluster_id: int):
    await committed(store, cluster_id, create("a"))
    await committed(store, cluster_id, put("a", body=b"last"))
    await committed(store, cluster_id, delete("a", body=b"last"))
    assert (await store.objects.list(cluster_id, "Pod", limit=10)).rows == []
    changes = (await whole_log(store, cluster_id)).changes[1:]
    assert [(change.verb, change.created, change.body) for change in changes] == [
        ("Put", True, b'{"name":"a"}'),
        ("Put", False, b"last"),
        ("Delete", False, b"last"),
    ]


async def test_reading_a_cluster_that_is_gone_finds_nothing(store: AnyStore):
    for call in (
        store.log.head(999_999),
        store.objects.read(999_999, None, 10),
        store.log.read(999_999, 0, None, 10),
        store.objects.get(999_999, "Pod", "default", "a"),
        store.objects.list(999_999, "Pod", limit=10),
        store.clusters.counts(999_999),
        store.recovery.lift_revision(999_999),
        store.recovery.continue_history(999_999, None),
        store.housekeeping.compact(999_999, keep_changes=0, keep_seconds=0),
    ):
        with pytest.raises(NotFound):
            await call
