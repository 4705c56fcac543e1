"""Clusters, their numbers, counts and leases, and hints, on every store."""

import asyncio
from contextlib import aclosing

import msgspec
import pytest

from service.model.cluster.cluster_config import ClusterConfig
from service.model.core.errors import Conflict, NotFound
from service.model.log.commit import Diverged, IdempotencyKey, LogPage
from service.model.log.lease import LEASE_SECONDS_MAX, ReplicaState
from service.model.log.pages import NO_OBJECTS, ClusterCounts
from tests.store.history import AnyStore, answer, committed, create, whole_log


async def test_the_cluster_default_is_there_from_the_start(store: AnyStore):
    (row,) = await store.clusters.all()
    assert (row.name, row.head.revision) == ("default", 1)
    assert row.config == msgspec.json.encode(ClusterConfig())
    assert row == await store.clusters.get("default")


async def test_a_cluster_begins_with_its_configuration_at_revision_one(store: AnyStore):
    row = await store.clusters.create("shop", b'{"placePendingPods":false}')
    assert row.counts == NO_OBJECTS
    page = await whole_log(store, row.cluster_id)
    (change,) = page.changes
    assert (change.revision, change.kind, change.name, change.created) == (
        1,
        "Cluster",
        "config",
        True,
    )
    assert change.body == row.config == b'{"placePendingPods":false}'
    assert (page.floor, page.tip) == (0, row.head.tip)
    assert await store.clusters.find("shop") == row.cluster_id


async def test_a_name_is_taken_only_once(store: AnyStore):
    await store.clusters.create("shop", b"{}")
    with pytest.raises(Conflict):
        await store.clusters.create("shop", b"{}")
    rows = await store.clusters.all()
    assert [row.name for row in rows] == ["default", "shop"]
    assert await store.clusters.ids() == [row.cluster_id for row in rows]


async def test_a_cluster_made_again_has_another_number_and_nothing_of_the_old_one(store: AnyStore):
    old = await store.clusters.create("shop", b"{}")
    await committed(store, old.cluster_id, create("a"), idempotency=[answer("k")])
    await store.leases.acquire(old.cluster_id, "queue", "w1", 60)
    assert await store.clusters.delete(old.cluster_id)
    assert not await store.clusters.delete(old.cluster_id)
    new = await store.clusters.create("shop", b"{}")
    assert new.cluster_id not in (old.cluster_id, await store.clusters.find("default"))
    assert (new.head.revision, new.counts) == (4, NO_OBJECTS)
    for cluster_id in (old.cluster_id, new.cluster_id):
        assert await store.log.find_answers(cluster_id, [IdempotencyKey("placePods", "k")]) == ()
    assert await store.leases.acquire(new.cluster_id, "queue", "w2", 60)


async def test_a_name_never_has_a_revision_twice(store: AnyStore):
    """Whoever stands where a log ended, or anywhere in it, stands below the one that follows."""
    ends = [-1]
    for number in range(5):
        made = (await store.clusters.create("shop", b"{}")).cluster_id
        floor = ends[-1] + 1
        page = await store.log.read(made, floor, None, 10)
        assert isinstance(page, LogPage)
        assert [change.revision for change in page.changes] == [page.head.revision] == [floor + 1]
        assert page.floor == floor
        assert isinstance(await store.log.read(made, ends[-1], None, 10), Diverged)
        await committed(store, made, *(create(f"pod-{each}") for each in range(number + 1)))
        ends.append((await store.log.head(made)).revision)
        assert await store.clusters.delete(made)
    assert ends == sorted(set(ends))
    assert (await store.clusters.create("another", b"{}")).head.revision == 1


async def test_what_a_deleted_cluster_was_lifted_to_is_remembered(store: AnyStore):
    made = (await store.clusters.create("shop", b"{}")).cluster_id
    await store.recovery.lift_revision(made)
    lifted = (await store.log.head(made)).revision
    assert await store.clusters.delete(made)
    again = await store.clusters.create("shop", b"{}")
    assert again.head.revision == lifted + 2


async def test_unknown_names_are_not_found(store: AnyStore):
    for call in (store.clusters.get("nowhere"), store.clusters.find("nowhere")):
        with pytest.raises(NotFound):
            await call


async def test_nodes_pods_and_pending_pods_are_counted(store: AnyStore, cluster_id: int):
    await committed(
        store,
        cluster_id,
        create("n1", kind="Node", namespace=""),
        create("a", node_name="n1"),
        create("b"),
        create("c", node_name="not-there-yet"),
    )
    counts = ClusterCounts(nodes=1, pods=3, pending=1)
    assert await store.clusters.counts(cluster_id) == counts
    assert (await store.clusters.get("default")).counts == counts


async def test_the_pods_of_some_namespaces_are_counted_alone(store: AnyStore, cluster_id: int):
    await committed(
        store,
        cluster_id,
        create("n1", kind="Node", namespace=""),
        create("a", namespace="shop", node_name="n1"),
        create("b", namespace="shop"),
        create("a", namespace="bank"),
        create("c", namespace="post", node_name="n1"),
    )
    counted = await store.clusters.count_pods({cluster_id: ["post", "shop", "unknown"]})
    assert counted == {cluster_id: ClusterCounts(nodes=0, pods=3, pending=1)}
    assert await store.clusters.count_pods({cluster_id: []}) == {cluster_id: NO_OBJECTS}


async def test_the_pods_of_several_clusters_are_counted_at_once(store: AnyStore, cluster_id: int):
    other = (await store.clusters.create("other", b"{}")).cluster_id
    for number, pods in ((cluster_id, "ab"), (other, "cde")):
        for namespace in ("shop", "bank"):
            await committed(store, number, *(create(each, namespace=namespace) for each in pods))
    wanted = {cluster_id: ["shop"], other: ["bank", "shop", "shop"], 999_999: ["shop"]}
    assert await store.clusters.count_pods(wanted) == {
        cluster_id: ClusterCounts(nodes=0, pods=2, pending=2),
        other: ClusterCounts(nodes=0, pods=6, pending=6),
        999_999: NO_OBJECTS,
    }


async def test_clusters_share_nothing(store: AnyStore, cluster_id: int):
    other = (await store.clusters.create("other", b"{}")).cluster_id
    await committed(store, cluster_id, create("a"), idempotency=[answer("k")])
    await committed(store, other, create("a", body=b"other"), idempotency=[answer("k")])
    found = await store.objects.get(other, "Pod", "default", "a")
    assert found.row is not None
    assert found.row.body == b"other"
    assert found.head.revision == 2


async def test_who_claims_a_lease_learns_whose_it_is(store: AnyStore, cluster_id: int):
    """P19: what a worker goes by that hands a request over."""
    own = await store.leases.claim(cluster_id, "requests", "w1", 60)
    assert own is not None
    assert own.holder == "w1"
    told = await store.leases.claim(cluster_id, "requests", "w2", 60)
    assert told == own
    prolonged = await store.leases.claim(cluster_id, "requests", "w1", 0)
    assert prolonged is not None
    assert prolonged.until < own.until
    taken = await store.leases.claim(cluster_id, "requests", "w2", 60)
    assert taken is not None
    assert taken.holder == "w2"
    assert await store.leases.claim(999_999, "requests", "w1", 60) is None


async def test_a_lease_is_passed_on_by_whoever_holds_it(store: AnyStore, cluster_id: int):
    """P19: from then on it is the other one's, and nobody else's in between."""
    lease = (cluster_id, "requests")
    assert await store.leases.claim(*lease, "w1", 60)
    assert not await store.leases.transfer(*lease, "w2", "w3", 60)
    assert await store.leases.transfer(*lease, "w1", "w2", 60)
    assert not await store.leases.transfer(*lease, "w1", "w3", 60)
    told = await store.leases.claim(*lease, "w1", 60)
    assert told is not None
    assert told.holder == "w2"
    assert await store.leases.claim(*lease, "w2", 0)
    assert not await store.leases.transfer(*lease, "w2", "w3", 60), "it has ended"


async def test_workers_tell_that_they_are_there_and_learn_who_has_how_many_leases(
    store: AnyStore, cluster_id: int
):
    other = (await store.clusters.create("other", b"{}")).cluster_id
    for number in (cluster_id, other):
        await store.leases.claim(number, "requests@*", "w1", 60)
    await store.leases.claim(other, "pending", "w2", 60)
    assert await store.workers.register("*", "w1", "requests@*", 60) == {"w1": 2}
    assert await store.workers.register("*", "w2", "requests@*", 60) == {"w1": 2, "w2": 0}
    assert await store.workers.register("host:1", "w3", "requests@host:1", 60) == {"w3": 0}
    await store.workers.register("*", "w2", "requests@*", 0)
    assert await store.workers.register("*", "w1", "requests@*", 60) == {"w1": 2}, "w2 is late"
    await store.workers.register("*", "w2", "requests@*", 60)
    await store.workers.deregister("*", "w1")
    assert await store.workers.register("*", "w2", "requests@*", 60) == {"w2": 0}


async def test_of_those_who_claim_a_lease_at_the_same_time_all_learn_whose_it_is(
    store: AnyStore, cluster_id: int
):
    claims = (store.leases.claim(cluster_id, "requests", f"w{i}", 60) for i in range(8))
    leases = await asyncio.gather(*claims)
    assert len({lease.holder for lease in leases if lease is not None}) == 1
    assert None not in leases


async def test_a_lease_is_held_by_one_until_it_ends_or_is_given_back(
    store: AnyStore, cluster_id: int
):
    lease = await store.leases.acquire(cluster_id, "queue", "w1", 60)
    assert lease is not None
    assert lease.until > await store.now()
    assert await store.leases.acquire(cluster_id, "queue", "w2", 60) is None
    assert await store.leases.acquire(cluster_id, "evictions", "w2", 60)
    prolonged = await store.leases.acquire(cluster_id, "queue", "w1", 120)
    assert prolonged is not None
    assert prolonged.until > lease.until
    await store.leases.release(cluster_id, "queue", "w2")
    assert await store.leases.acquire(cluster_id, "queue", "w2", 60) is None
    await store.leases.release(cluster_id, "queue", "w1")
    assert await store.leases.acquire(cluster_id, "queue", "w2", 60)


async def test_a_lease_that_has_ended_can_be_taken(store: AnyStore, cluster_id: int):
    await store.leases.acquire(cluster_id, "queue", "w1", 0)
    assert await store.leases.acquire(cluster_id, "queue", "w2", 60)


async def test_a_lease_from_before_the_clock_went_back_can_be_taken(
    store: AnyStore, cluster_id: int
):
    """P16: who holds it may be dead, and nobody else would work until the clock is there again."""
    await store.leases.acquire(cluster_id, "upkeep", "a", 2 * LEASE_SECONDS_MAX)
    assert await store.leases.expired(["upkeep"]) != []
    assert not await store.leases.transfer(cluster_id, "upkeep", "a", "c", 60)
    lease = await store.leases.acquire(cluster_id, "upkeep", "b", 60)
    assert lease is not None
    assert lease.holder == "b"
    assert await store.leases.expired(["upkeep"]) == []


async def test_clusters_that_nobody_looks_after_are_found_by_what_their_pods_say(store: AnyStore):
    for name, body in (("a", b'{"x":1}'), ("b", b'{"xy":1}'), ("c", b'{"xyz":1}')):
        row = await store.clusters.create(name, b'{"xy":1}')
        await committed(store, row.cluster_id, create("p", kind="Pod", body=body))
    attended = await store.clusters.find("c")
    await store.leases.acquire(attended, "evictions", "w1", 0)
    assert await store.leases.unattended("evictions", b'"xy') == ["b"]
    assert await store.leases.unattended("queue", b'"xy') == ["b", "c"]


async def test_a_cluster_that_is_gone_has_no_leases(store: AnyStore):
    assert await store.leases.acquire(999_999, "queue", "w1", 60) is None
    await store.leases.release(999_999, "queue", "w1")
    assert await store.housekeeping.sweep_answers(999_999, keep_seconds=0) == 0


async def test_what_processes_say_of_their_replicas_is_the_last_word_of_each(
    store: AnyStore, cluster_id: int
):
    await store.replica_reports.report(
        "b", {cluster_id: ReplicaState(3, "old"), 999_999: ReplicaState(1, "x")}
    )
    await store.replica_reports.report("a", {cluster_id: ReplicaState(4, "new")})
    await store.replica_reports.report("b", {cluster_id: ReplicaState(4, "new")})
    told = [(r.process, r.revision, r.hash) for r in await store.replica_reports.latest()]
    assert told == [("a", 4, "new"), ("b", 4, "new")]
    await store.replica_reports.report("a", {})
    assert [report.process for report in await store.replica_reports.latest()] == ["b"]


async def test_p14_hints_arrive_coalesced_and_the_first_says_look_at_all(
    store: AnyStore, cluster_id: int
):
    async with aclosing(store.listen()) as hints:
        assert await anext(hints) == frozenset()
        for number in (cluster_id, 7, cluster_id, 7):
            store.notify(number)
        heard: frozenset[int] = frozenset()
        while heard != {cluster_id, 7}:
            heard |= await anext(hints)
