"""P16: whoever holds a lease stops before anybody else can have it, however slow the database answers."""

import asyncio

import pytest

from service.model.log.lease import Lease
from service.scheduler.controllers.leases import HeldLease
from service.scheduler.ownership.cluster_owners import ClusterOwners
from service.scheduler.protocol.limits import Limits
from tests.builders import node, pod
from tests.scheduler.world import CountedIds, StillClock, world
from tests.support.memory_store.leases import MemoryLeases
from tests.support.memory_store.store import MemoryStore

SECONDS = 9.0
STEP = 0.5
WAYS = [(0.0, 0.0), (2.0, 0.0), (0.0, 2.0), (2.0, 2.0), (0.0, 8.5), (4.0, 4.5)]
"""How long a request is on its way to the database, and its answer on the way back."""


class Distant(MemoryStore):
    """A store far away: each lease is given a while after it is asked for, and known later still."""

    def __init__(self, clock: StillClock) -> None:
        super().__init__(clock.now, CountedIds(0).commit_id)
        self.clock = clock
        self.way = (0.0, 0.0)
        self.leases = DistantLeases(self)

    def may_be_had(self, name: str, holder: str) -> bool:
        """Whether the database would give the lease to this one now."""
        held = self.states[1].leases.get(name)
        return held is None or held.holder == holder or held.until < self.clock.now()


class DistantLeases(MemoryLeases):
    def __init__(self, store: Distant) -> None:
        super().__init__(store.state)
        self._store = store

    async def acquire(
        self, cluster_id: int, name: str, holder: str, seconds: float
    ) -> Lease | None:
        there, back = self._store.way
        await self._store.clock.sleep(there)
        lease = await super().acquire(cluster_id, name, holder, seconds)
        await self._store.clock.sleep(back)
        return lease


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def store(clock: StillClock) -> Distant:
    return Distant(clock)


def lease_of(store: Distant, holder: str) -> HeldLease:
    return HeldLease(
        store,
        store.clock,
        1,
        name="work",
        holder=holder,
        seconds=SECONDS,
        is_elsewhere=lambda _: False,
    )


async def others() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def pass_time(store: Distant, lease: HeldLease, seconds: float) -> list[bool]:
    """When the lease was held, step by step: never while another could have had it."""
    held = []
    for _ in range(round(seconds / STEP)):
        store.clock.advance(STEP)
        await others()
        assert not (lease.held and store.may_be_had("work", "other"))
        held.append(lease.held)
    return held


@pytest.mark.parametrize("way", WAYS)
async def test_p16_a_lease_is_counted_from_before_it_was_asked_for(
    store: Distant, way: tuple[float, float]
) -> None:
    store.way, lease = way, lease_of(store, "one")
    asking = asyncio.create_task(lease.acquire())
    await others()
    held = await pass_time(store, lease, 2 * SECONDS)
    assert await asking
    # From the answer until the time has passed that it was asked for.
    first, last = round(sum(way) / STEP), round(SECONDS / STEP)
    assert [index + 1 for index, each in enumerate(held) if each] == list(
        range(max(first, 1), last)
    )


@pytest.mark.parametrize("way", WAYS)
async def test_p16_prolonging_is_counted_likewise_and_an_old_lease_ends_meanwhile(
    store: Distant, way: tuple[float, float]
) -> None:
    lease = lease_of(store, "one")
    assert await lease.acquire()
    await pass_time(store, lease, 2 * SECONDS / 3)
    store.way = way
    asking = asyncio.create_task(lease.acquire())
    await others()
    await pass_time(store, lease, 2 * SECONDS)
    assert await asking in {True, False}
    assert not lease.held


async def test_p16_an_answer_that_comes_when_the_lease_has_ended_gives_none(
    store: Distant,
) -> None:
    store.way, lease = (0.0, SECONDS), lease_of(store, "one")
    asking = asyncio.create_task(lease.acquire())
    await others()
    assert not any(await pass_time(store, lease, 2 * SECONDS))
    assert not await asking


async def test_p16_who_is_refused_or_gives_back_holds_nothing(store: Distant) -> None:
    one, two = lease_of(store, "one"), lease_of(store, "two")
    assert await one.acquire()
    assert not await two.acquire()
    assert (one.held, two.held) == (True, False)
    await one.release()
    assert not one.held
    assert await two.acquire()
    await two.relinquish()
    assert not two.held
    store.clock.advance(0.001)
    assert await store.leases.expired(["work"]) == [("work", "default")]


@pytest.mark.parametrize("way", WAYS)
async def test_p16_the_databases_time_is_never_taken_for_later_than_it_is(
    store: Distant, way: tuple[float, float]
) -> None:
    """Nor for earlier than by the way there and back."""
    store.way, lease = way, lease_of(store, "one")
    asking = asyncio.create_task(lease.acquire())
    await others()
    await pass_time(store, lease, sum(way))
    await asking
    for _ in range(3):
        behind = (store.clock.now() - lease.database_time()).total_seconds()
        assert 0 <= behind <= sum(way)
        store.clock.advance(1.0)


async def test_p16_no_pod_is_placed_by_who_may_have_lost_the_lease_of_the_queue() -> None:
    """The answer to its last request for the lease was slow; another worker may have it by now."""
    async with world(workers=1) as w:
        seconds = Limits().pending_lease_seconds
        acquire, release = w.store.leases.acquire, asyncio.Event()

        async def slowly(*arguments: object) -> object:
            lease = await acquire(*arguments)
            await release.wait()
            return lease

        w.store.leases.acquire = slowly
        await w.apply(pod("p"))
        await w.others()
        w.clock.advance(seconds - 0.5)
        release.set()
        await w.others()
        assert w.schedulers[0].pending.get(1).lease.held
        release.clear()
        w.clock.advance(0.5)
        await w.apply(node("n"))
        await w.others()
        assert await w.nodes_of_pods() == {"p": None}
        release.set()
        await w.others()
        assert await w.nodes_of_pods() == {"p": "n"}


async def test_p16_what_is_known_of_an_owner_grows_old_from_when_it_was_asked(
    store: Distant, clock: StillClock
) -> None:
    """P19: a worker whose answer was slow asks again before it takes a cluster for its own."""
    limits = Limits()
    cluster_owners = [
        ClusterOwners(store, clock, limits, server="s", own=name) for name in ("one", "two")
    ]
    store.way = (0.0, limits.owner_lease_seconds - 1)
    asking = asyncio.create_task(cluster_owners[0].elsewhere("default"))
    await others()
    clock.advance(limits.owner_lease_seconds - 1)
    assert await asking is None
    store.way = (0.0, 0.0)
    clock.advance(1.5)
    assert await cluster_owners[1].elsewhere("default") is None
    assert await cluster_owners[0].elsewhere("default") == "two"
    for each in cluster_owners:
        await each.close()
