"""A worker that stands still for minutes, while others go on: what it held, what it planned, what it knew."""

import asyncio
from contextlib import contextmanager

import pytest

from service.model.core.errors import Overloaded
from service.scheduler.controllers.leases import HeldLease
from service.scheduler.protocol.limits import Limits
from tests.builders import matching, node, pod
from tests.scheduler.world import world

MINUTES = 300.0


def one_per_zone(name):
    return pod(name).label(app="x").require_anti_affinity("zone", matching(app="x"))


@contextmanager
def writes_held(w, worker):
    """What this worker sends is under way until the event is set, or to the end."""
    commit, acquire, go_on = w.store.log.commit, w.store.leases.acquire, asyncio.Event()

    async def held(cluster_id, request):
        if request.commit_id.fields[0] == worker + 1:
            await go_on.wait()
        return await commit(cluster_id, request)

    async def leased(cluster_id, name, holder, seconds):
        if holder.startswith(f"{worker + 1:08x}"):
            await go_on.wait()
        return await acquire(cluster_id, name, holder, seconds)

    w.store.log.commit, w.store.leases.acquire = held, leased
    try:
        yield go_on
    finally:
        go_on.set()


async def stand_still(w, seconds=MINUTES):
    for _ in range(int(seconds / 5)):
        await w.pass_time(5)


@pytest.mark.parametrize("compacted", [True, False])
async def test_p3_p12_what_was_on_its_way_through_minutes_is_lost_and_never_given_out(compacted):
    """Nobody waits any more for what was asked before; who asks now is answered on today's state."""
    async with world(workers=2) as w:
        await w.apply(node("n-a").label(zone="a"))
        await w.place(pod("warm"), worker=1)
        with writes_held(w, 0) as go_on:
            asked = asyncio.create_task(w.place(one_per_zone("p0"), worker=0))
            await w.others()
            assert (await w.place(one_per_zone("rival"), worker=1)).results[0].node_name == "n-a"
            for number in range(20):
                await w.apply(node(f"n{number}").label(zone="a"), worker=1)
            await stand_still(w)
            if compacted:
                await w.store.housekeeping.compact(1, keep_changes=0, keep_seconds=0)
            loads = w.store.calls["load"]
            go_on.set()
            with pytest.raises(Overloaded):
                await asked
            refused = await w.place(one_per_zone("p1"), worker=0)
            assert refused.results[0].outcome == "Unschedulable"
            assert w.store.calls["load"] - loads == compacted
            assert set(await w.nodes_of_pods()) == {"warm", "rival"}
            await w.assert_replicas_agree()


async def test_p16_a_turn_of_the_queue_that_outlasts_its_lease_places_nothing_twice():
    """Another worker has the lease by then, and has placed what the turn was for."""
    async with world(workers=2) as w:
        await w.apply(pod("p"), worker=0)
        await w.place(pod("warm"), worker=1, dry_run=True)
        await w.others(300)
        with writes_held(w, 0) as go_on:
            await w.apply(node("n1"), worker=1)
            await w.pass_time(1)
            assert await w.nodes_of_pods() == {"p": None}
            await stand_still(w, 30)
            assert await w.nodes_of_pods() == {"p": "n1"}
            assert w.store.states[1].leases["pending"].holder.startswith("00000002")
            go_on.set()
            await w.others(300)
            bound = [change for change in w.log() if change.name == "p" and change.node_name]
            assert len(bound) == 1
            await w.assert_replicas_agree()


async def test_p16_a_lease_ends_for_its_holder_before_anybody_else_can_have_it():
    """By the holder's own clock, counted from before it asked; the database counts from after."""
    async with world() as w:
        leases = [
            HeldLease(
                w.store,
                w.clock,
                1,
                name="work",
                holder=name,
                seconds=3.0,
                is_elsewhere=lambda _: False,
            )
            for name in ("w1", "w2")
        ]
        acquire = w.store.leases.acquire

        async def slowly(*arguments):
            w.clock.advance(0.5)
            lease = await acquire(*arguments)
            w.clock.advance(0.5)
            return lease

        w.store.leases.acquire = slowly
        assert await leases[0].acquire()
        assert not await leases[1].acquire()
        assert leases[0].held
        w.clock.advance(1.0)
        assert not leases[0].held
        assert await acquire(1, "work", "w2", 3.0) is None
        # The pause: the worker did not run, yet it knows as soon as it does.
        w.clock.advance(MINUTES)
        assert not leases[0].held
        assert await leases[1].acquire()
        assert leases[1].held
        assert leases[1].database_time() <= w.clock.now()


async def test_p14_with_every_notification_lost_polling_alone_is_enough():
    async with world(workers=3) as w:
        assert not w.store.hints
        await w.apply(node("n1"))
        for worker in (1, 2):
            await w.place(pod(f"warm-{worker}"), worker=worker)
        await w.apply(node("n2"), worker=0)
        await w.pass_time(Limits().poll_seconds)
        await w.others(1_000)
        states = {each.replicas()["default"][0] for each in w.schedulers}
        assert states == {await w.head_revision()}
