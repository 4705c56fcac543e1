"""Clusters are shared out among workers: few move when one comes or goes, and none has more than its share."""

import asyncio
import itertools
from collections import Counter

import pytest

from service.scheduler.ownership.cluster_owners import ClusterOwners
from service.scheduler.ownership.shares import ClusterShares, clusters_to_pass_on, weight
from service.scheduler.protocol.limits import Limits
from tests.scheduler.world import StillClock, TroubledStore

CLUSTERS = [f"c{number}" for number in range(100)]


def settle(where, workers):
    """Have all workers pass clusters on until nobody does; how often that was."""
    moves = 0
    for _ in range(10):
        found = Counter(where.values())
        numbers = {each: found[each] for each in workers}
        passed = {}
        for worker in workers:
            held = [cluster for cluster, holder in where.items() if holder == worker]
            passed |= dict(clusters_to_pass_on(worker, held, numbers))
        where |= passed
        moves += len(passed)
        if not passed:
            return moves
    raise AssertionError("they never settle")


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7])
def test_each_worker_gets_its_share_wherever_the_clusters_were(workers):
    names = [f"w{number}" for number in range(workers)]
    where = dict.fromkeys(CLUSTERS, names[0])
    settle(where, names)
    assert max(Counter(where.values()).values()) == -(-len(CLUSTERS) // workers)


def test_of_two_clusters_two_workers_have_one_each():
    for first in range(20):
        where = dict.fromkeys((f"c{first}", f"c{first + 1}"), "w0")
        settle(where, ["w0", "w1"])
        assert sorted(where.values()) == ["w0", "w1"]


def test_no_more_clusters_move_than_have_to_when_a_worker_comes_or_goes():
    four = ["w0", "w1", "w2", "w3"]
    where = dict.fromkeys(CLUSTERS, "w0")
    settle(where, four)
    assert settle(where, four) == 0
    assert settle(where, [*four, "w4"]) == 20
    heirs = itertools.cycle(["w0", "w0", "w1", "w2"])
    where = {each: next(heirs) if at == "w4" else at for each, at in where.items()}
    assert settle(where, four) == 5


def test_a_hundred_workers_do_not_all_give_to_the_one_that_comes():
    where = {f"c{number}": f"w{number % 99}" for number in range(990)}
    assert settle(where, [f"w{number}" for number in range(100)]) == 9


def test_a_worker_that_was_started_again_weighs_what_it_did():
    assert weight("c", "a@h:1") == weight("c", "x@h:1") != weight("c", "a@h:2")
    assert weight("c", "a") != weight("c", "b")


class Worker:
    """What one worker knows; it can have every other one load a cluster, or none."""

    def __init__(self, store, clock, name, *, reached=True, dead=(), siblings=()):
        self.owners = ClusterOwners(
            store, clock, Limits(), server="*", own=name, lives=lambda each: each not in dead
        )
        self.prepared = []

        async def prepare(worker, cluster):
            self.prepared.append((worker, cluster))
            return reached

        self.shares = ClusterShares(
            *(self.owners, clock, Limits().owner_lease_seconds, prepare),
            ends_too=lambda each: each in siblings,
        )


@pytest.fixture
def clock():
    return StillClock()


@pytest.fixture
async def store(clock):
    made = TroubledStore(clock, None)
    await made.clusters.create("other", b"{}")
    return made


async def both_held_by(worker):
    for cluster in ("default", "other"):
        assert await worker.owners.elsewhere(cluster) is None


async def test_p19_who_has_too_many_passes_one_on_once_the_other_has_loaded_it(store, clock):
    first, second = Worker(store, clock, "w1"), Worker(store, clock, "w2")
    await both_held_by(first)
    await first.shares.rebalance()
    assert first.prepared == [], "nobody else is there"
    await second.shares.rebalance()
    await first.shares.rebalance()
    [(to, passed)] = first.prepared
    assert to == "w2"
    assert first.owners.passed_to(passed) == "w2"
    assert await first.owners.elsewhere(passed) == "w2"
    assert await second.owners.elsewhere(passed) is None
    assert len(first.owners.held()) == len(second.owners.held()) == 1
    for each in (first, second):
        await each.shares.rebalance()
    assert len(first.prepared) == 1
    assert second.prepared == []


async def test_p19_a_worker_tells_that_it_is_there_while_another_loads_a_large_cluster(
    store, clock, monkeypatch
):
    first, second = Worker(store, clock, "w1"), Worker(store, clock, "w2")
    await both_held_by(first)
    await second.shares.rebalance()
    told, announce = asyncio.Semaphore(0), first.owners.announce

    async def counted(seconds):
        told.release()
        return await announce(seconds)

    async def load(worker, cluster):
        for _ in range(3):
            await told.acquire()
        return True

    monkeypatch.setattr(first.owners, "announce", counted)
    await ClusterShares(first.owners, clock, 0.03, load).rebalance()
    assert len(first.owners.held()) == 1


async def test_p19_a_worker_that_is_told_to_stop_gives_its_clusters_to_other_servers(store, clock):
    first = Worker(store, clock, "w1", siblings={"w2"})
    others = [Worker(store, clock, name) for name in ("w2", "w3", "w4")]
    await both_held_by(first)
    for each in (first, *others):
        await each.shares.rebalance()
    await both_held_by(first)
    await first.shares.leave(1)
    given = {cluster: first.owners.passed_to(cluster) for cluster in ("default", "other")}
    assert sorted(given.values()) == ["w3", "w4"]
    assert [(to, cluster) for cluster, to in given.items()] == first.prepared
    assert set(await others[0].owners.announce(60)) == {"w2", "w3", "w4"}
    for cluster, to in given.items():
        assert await others[0].owners.elsewhere(cluster) == to
    # Where only those are that stop as well, whoever is asked next takes a cluster.
    last = Worker(store, clock, "w5", siblings={"w2", "w3", "w4"})
    assert await last.owners.elsewhere("other") == given["other"]
    await last.shares.leave(1)
    assert last.prepared == []


async def test_p19_a_worker_that_is_told_to_stop_gives_nothing_to_one_that_cannot_be_asked(
    store, clock
):
    first, second, third = (Worker(store, clock, name) for name in ("w1", "w2", "w3"))
    await both_held_by(first)
    for each in (second, third):
        await each.shares.rebalance()

    async def not_to_the_second(worker, cluster):
        return worker != "w2"

    await ClusterShares(first.owners, clock, 60, not_to_the_second).leave(1)
    assert {first.owners.passed_to(cluster) for cluster in ("default", "other")} == {"w3"}


async def test_p19_what_is_not_loaded_in_time_is_given_to_another_all_the_same(store, clock):
    first, second = Worker(store, clock, "w1"), Worker(store, clock, "w2")

    async def load_for_ever(worker, cluster):
        await asyncio.Event().wait()

    await both_held_by(first)
    await second.shares.rebalance()
    await ClusterShares(first.owners, clock, 60, load_for_ever).leave(0.01)
    for cluster in ("default", "other"):
        assert first.owners.passed_to(cluster) == "w2"
        assert await second.owners.elsewhere(cluster) is None


async def test_p19_what_the_other_cannot_load_or_who_is_dead_gets_nothing(store, clock):
    first, second = Worker(store, clock, "w1", reached=False), Worker(store, clock, "w2")
    await both_held_by(first)
    await second.shares.rebalance()
    await first.shares.rebalance()
    assert len(first.prepared) == 1
    assert len(first.owners.held()) == 2
    knowing = Worker(store, clock, "w3", dead={"w1", "w2"})
    assert await knowing.owners.announce(60) == {"w3": 0}


async def test_p19_a_worker_that_has_passed_a_cluster_on_and_gets_it_back_decides_it(store, clock):
    first, second = Worker(store, clock, "w1"), Worker(store, clock, "w2")
    await both_held_by(first)
    assert await first.owners.pass_on("other", "w2")
    assert not await first.owners.pass_on("other", "w2"), "it no longer has it"
    assert await second.owners.elsewhere("other") is None
    assert await second.owners.pass_on("other", "w1")
    first.owners.learn("other", "w1")
    clock.advance(Limits().owner_lease_seconds / 2)
    assert await first.owners.elsewhere("other") is None
    for _ in range(20):
        await clock.sleep(0)
    assert first.owners.passed_to("other") is None
