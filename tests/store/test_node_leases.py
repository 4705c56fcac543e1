"""What both stores know of nodes that report: when they did last, and who has not for long."""

import asyncio

import pytest

from service.model.core.errors import NotFound
from tests.store.history import committed, create


async def some_nodes(store, cluster_id, *names):
    nodes = [create(each, kind="Node", namespace="") for each in names]
    await committed(store, cluster_id, *nodes)


async def test_only_nodes_that_are_there_report(store, cluster_id):
    await some_nodes(store, cluster_id, "a", "b")
    reports = await store.heartbeats.record(cluster_id, ["a", "b", "c", "a"])
    assert reports.known == {"a", "b"}
    assert reports.revision == (await store.log.head(cluster_id)).revision
    assert await store.heartbeats.last(cluster_id, "a") == reports.at
    assert await store.heartbeats.last(cluster_id, "c") is None


async def test_who_has_not_reported_for_so_long_is_silent(store, cluster_id):
    await some_nodes(store, cluster_id, "a", "b")
    looked = await store.heartbeats.check(cluster_id, 0.0)
    assert (looked.any, looked.silent) == (False, frozenset())
    await store.heartbeats.record(cluster_id, ["a"])
    looked = await store.heartbeats.check(cluster_id, 60.0)
    assert (looked.any, looked.silent) == (True, frozenset())
    assert (await store.heartbeats.check(cluster_id, -60.0)).silent == {"a"}
    await store.heartbeats.forget(cluster_id, ["a"])
    assert not (await store.heartbeats.check(cluster_id, -60.0)).any


async def test_nodes_of_a_cluster_that_is_gone_report_to_nobody(store, cluster_id):
    await some_nodes(store, cluster_id, "a")
    await store.heartbeats.record(cluster_id, ["a"])
    await store.clusters.delete(cluster_id)
    with pytest.raises(NotFound):
        await store.heartbeats.record(cluster_id, ["a"])


async def test_many_report_the_same_nodes_in_any_order(store, cluster_id):
    names = [f"n{each:02}" for each in range(40)]
    await some_nodes(store, cluster_id, *names)
    orders = [names, names[::-1]] * 10
    calls = (store.heartbeats.record(cluster_id, each) for each in orders)
    assert all(len(each.known) == 40 for each in await asyncio.gather(*calls))


async def test_clusters_with_nodes_that_need_somebody_are_found(store, cluster_id):
    assert await store.heartbeats.unattended("nodes") == []
    await some_nodes(store, cluster_id, "a")
    assert await store.heartbeats.unattended("nodes") == []
    await store.heartbeats.record(cluster_id, ["a"])
    (name,) = await store.heartbeats.unattended("nodes")
    assert await store.clusters.find(name) == cluster_id
    await store.leases.acquire(cluster_id, "nodes", "me", 60.0)
    assert await store.heartbeats.unattended("nodes") == []


UNREADY = b'{"status":{"conditions":[{"type":"Ready","status":"False"}]}}'


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"spec":{"taints":[{"key":"k","effect":"NoExecute"}]}}', True),
        (b'{"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}}', False),
        (UNREADY, True),
        (b'{"status":{"conditions":[{"status":"Unknown","type":"Ready"}]}}', True),
        (b'{"status":{"conditions":[{"type":"Ready","status":"True"}]}}', False),
        (
            b'{"status":{"conditions":[{"type":"Full","status":"False"},{"type":"Ready","status":"True"}]}}',
            False,
        ),
    ],
)
async def test_nodes_that_need_somebody_are_known_by_their_bodies(store, cluster_id, body, found):
    await committed(store, cluster_id, create("a", kind="Node", namespace="", body=body))
    assert bool(await store.heartbeats.unattended("nodes")) == found
