"""Pages of any size add up to the list, whatever the names, in both stores."""

import random
from collections.abc import Awaitable, Callable
from itertools import product
from typing import Any

import pytest

from service.model.log.commit import ObjectKey
from service.model.log.pages import PAGE_BYTES_MAX, ObjectPage
from tests.store.history import AnyStore, committed, create, rows
from tests.store.paging import NAMES, SCOPES
from tests.store.test_events import event

KEYS = [*product(SCOPES, NAMES[:6]), *(("a", name) for name in NAMES[6:])]
MANY = 1_000
Key = tuple[str, ...]


def shuffled(keys: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return random.Random(1).sample(keys, len(keys))


async def in_pages(read: Callable[[Any, int], Awaitable[list[Key]]], size: int) -> list[Key]:
    """All keys, page by page: each page but the last is full, and begins after the one before."""
    found: list[Key] = []
    while page := await read(found[-1] if found else None, size):
        assert len(page) <= size
        found += page
        assert len(found) <= MANY, "the pages have no end"
        if len(page) < size:
            break
    return found


async def assert_pages_add_up(read: Callable[[Any, int], Awaitable[list[Key]]], keys: Any) -> None:
    whole = await read(None, MANY)
    assert whole == sorted(keys)
    for size in range(1, len(whole) + 2):
        assert await in_pages(read, size) == whole, size


async def test_pages_of_objects_add_up_to_the_list(store: AnyStore, cluster_id: int):
    """Of all namespaces, of one, and of a node; other kinds and clusters leave no gaps."""
    changes = [
        create(name, namespace=scope, kind=kind, node_name="n" if len(name) % 2 else None)
        for kind, (scope, name) in product(("Pod", "PodGroup"), shuffled(KEYS))
    ]
    await committed(store, cluster_id, *changes)
    other = await store.clusters.create("other", b"{}")
    await committed(store, other.cluster_id, create("a-1", namespace="a"))

    def reading(**options: Any) -> Callable[[Any, int], Awaitable[list[Key]]]:
        async def read(after: Any, limit: int) -> list[Key]:
            page = await store.objects.list(cluster_id, "Pod", after=after, limit=limit, **options)
            return [(row.namespace, row.name) for row in page.rows]

        return read

    of_node = [key for key in KEYS if len(key[1]) % 2]
    await assert_pages_add_up(reading(), KEYS)
    await assert_pages_add_up(reading(node_name="n"), of_node)
    for scope in ("a", "a-0"):
        own = [key for key in KEYS if key[0] == scope]
        await assert_pages_add_up(reading(namespace=scope), own)
        both = [key for key in of_node if key[0] == scope]
        await assert_pages_add_up(reading(namespace=scope, node_name="n"), both)


async def test_a_page_begins_after_any_key_whether_that_is_there_or_not(
    store: AnyStore, cluster_id: int
):
    """What a token names may have been deleted since."""
    here, gone = KEYS[::2], KEYS[1::2]
    await committed(store, cluster_id, *(create(name, namespace=scope) for scope, name in here))
    for after in gone:
        page = await store.objects.list(cluster_id, "Pod", after=after, limit=MANY)
        assert [row.key[1:] for row in page.rows] == sorted(key for key in here if key > after)
        own = await store.objects.list(
            cluster_id, "Pod", namespace=after[0], after=after, limit=MANY
        )
        wanted = [key for key in here if key > after and key[0] == after[0]]
        assert [row.key[1:] for row in own.rows] == sorted(wanted)


async def test_pages_of_events_add_up_to_the_list(store: AnyStore, cluster_id: int):
    told = [event(name, namespace=scope) for scope, name in shuffled(KEYS)]
    await store.events.add(cluster_id, told)
    keys = [(each.namespace, each.name) for each in told]

    def reading(namespace: str | None) -> Callable[[Any, int], Awaitable[list[Key]]]:
        async def read(after: Any, limit: int) -> list[Key]:
            page = await store.events.list(
                cluster_id, namespace=namespace, after=after, limit=limit
            )
            return [(row.event.namespace, row.name) for row in page.rows]

        return read

    await assert_pages_add_up(reading(None), keys)
    await assert_pages_add_up(reading("a"), [key for key in keys if key[0] == "a"])


async def test_p13_ranges_of_all_kinds_add_up_to_the_cluster(store: AnyStore, cluster_id: int):
    kinds = ("Node", "Pod", "PodGroup")
    changes = [
        create(name, namespace=scope, kind=kind)
        for kind, (scope, name) in product(kinds, shuffled(KEYS[::3]))
    ]
    await committed(store, cluster_id, *changes)

    async def read(after: Any, limit: int) -> list[Key]:
        page = await store.objects.read(cluster_id, after and ObjectKey(*after), limit)
        return [tuple(row.key) for row in page.rows]

    whole = await read(None, MANY)
    assert whole == sorted([("Cluster", "", "config"), *(tuple(each.key) for each in changes)])
    for size in range(1, len(whole) + 2):
        assert await in_pages(read, size) == whole, size
    assert len(await rows(store, cluster_id)) == len(changes)


LARGE = b"x" * (PAGE_BYTES_MAX - 8_000)


async def test_p13_a_page_ends_with_the_object_that_makes_it_too_large(
    store: AnyStore, cluster_id: int
):
    """So no page has more bytes than its bound and an object more; all pages together are the cluster."""
    await committed(store, cluster_id, *(create(name, body=LARGE) for name in "abc"))

    def names(page: ObjectPage) -> list[str]:
        return [row.name for row in page.rows]

    listed = await store.objects.list(cluster_id, "Pod", limit=MANY)
    assert (names(listed), listed.is_last(MANY)) == (["a", "b"], False)
    rest = await store.objects.list(cluster_id, "Pod", after=("default", "b"), limit=MANY)
    assert (names(rest), rest.is_last(MANY)) == (["c"], True)
    ranged = await store.objects.read(cluster_id, None, MANY)
    assert (names(ranged), ranged.is_last(MANY)) == (["config", "a", "b"], False)
    rest = await store.objects.read(cluster_id, ranged.rows[-1].key, MANY)
    assert (names(rest), rest.is_last(MANY)) == (["c"], True)
    assert len(await rows(store, cluster_id)) == 3


@pytest.mark.parametrize("namespaces", [["a"], ["a", "b"], ["c"], None])
async def test_p13_ranges_of_some_namespaces_leave_out_what_is_in_others(
    store: AnyStore, cluster_id: int, namespaces: list[str] | None
):
    """And the others themselves; what is in no namespace is everybody's."""
    keys = [("Node", "", "b"), ("PodGroup", "b", "a"), *(("Namespace", "", name) for name in "abc")]
    keys += [("Pod", namespace, name) for namespace in "ab" for name in "bc"]
    changes = (create(name, kind=kind, namespace=namespace) for kind, namespace, name in keys)
    await committed(store, cluster_id, *changes)

    def is_within(key: Key) -> bool:
        kind, namespace, name = key
        return namespaces is None or (
            (name if kind == "Namespace" else namespace) in ["", *namespaces] or kind == "Node"
        )

    async def read(after: Any, limit: int) -> list[Key]:
        start = after and ObjectKey(*after)
        page = await store.objects.read(cluster_id, start, limit, namespaces)
        return [tuple(row.key) for row in page.rows]

    wanted = sorted([("Cluster", "", "config"), *filter(is_within, keys)])
    for size in (1, 2, 100):
        assert await in_pages(read, size) == wanted
