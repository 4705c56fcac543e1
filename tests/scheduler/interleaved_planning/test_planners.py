"""Large plans beside placements: nobody waits for them, and they see what was committed."""

import asyncio
from typing import Any

import pytest

from service.model.core.errors import NotFound, Overloaded
from service.scheduler.protocol.intents import MakePlan
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.plans import Place, PlanBounds, Planned, RemoveNodes, Selection
from tests.builders import HOST, matching, node, pod
from tests.scheduler.world import StillClock, World, world

NODES = 20
LOST = tuple(f"n{number}" for number in range(0, NODES, 2))


class TickingClock(StillClock):
    """A clock by which some time passes each time it is read, so that every slice ends."""

    def monotonic(self) -> float:
        self.seconds += 0.0002
        return super().monotonic()

    async def sleep(self, seconds: float) -> None:
        """Pauses of less than a second are over as soon as others had a turn."""
        await super().sleep(seconds if seconds >= 1 else 0)


def ticking(_world: World, _worker: int) -> dict[str, Any]:
    return {
        "clock": TickingClock(),
        "limits": Limits(plan_slice_seconds=0.0001, plans_waiting_max=2),
    }


async def fill(w: World) -> None:
    await w.apply(*(node(f"n{number}").label({HOST: f"n{number}"}) for number in range(NODES)))
    await w.place(*(web(number) for number in range(5 * NODES)))


def web(number: int) -> Any:
    return pod(f"web-{number}").label(app="web").prefer_anti_affinity(1, HOST, matching(app="web"))


def zone_lost(**rest: Any) -> MakePlan:
    removed = RemoveNodes(Selection(names=LOST))
    return MakePlan(changes=(removed,), goal=Place(displaced=True), **rest)


async def planned(w: World, intent: MakePlan, worker: int = 0) -> Planned:
    return await w.schedulers[worker].planners.plan("default", intent)


async def test_a_placement_is_answered_while_a_plan_is_made() -> None:
    async with world(apart=ticking) as w:
        await fill(w)
        await planned(w, zone_lost())
        head = await w.head_revision()
        planning = asyncio.create_task(planned(w, zone_lost()))
        await w.others(5)
        placed = await w.place(pod("urgent"))
        assert placed.results[0].outcome == "Placed"
        assert not planning.done()
        found = await planning
        assert found.revision == head
        assert found.complete
        assert (await planned(w, zone_lost())).revision == head + 1


async def test_a_plan_sees_all_that_others_have_committed_before_it() -> None:
    async with world(workers=2) as w:
        await fill(w)
        first = await planned(w, zone_lost())
        await w.place(pod("more"), worker=1)
        await w.apply(node("n99"), worker=1)
        again = await planned(w, zone_lost())
        assert again.revision == first.revision + 2 == await w.head_revision()
        assert again.before.nodes == NODES + 1
        assert again.before.pods["default"] == 5 * NODES + 1
        assert await planned(w, zone_lost(), worker=1) == again
        await w.assert_replicas_agree()


async def test_plans_leave_the_replica_and_the_log_alone() -> None:
    async with world(limits=Limits(plan_small_pods_max=16)) as w:
        await fill(w)
        await w.others()
        before, changes = w.schedulers[0].replicas(), w.log()
        small = MakePlan(goal=Place(pods=(w.pod(pod("one")).to_place(),)))
        assert (await planned(w, small)).complete
        assert (await planned(w, zone_lost(explain="Summary"))).complete
        await w.others()
        assert w.schedulers[0].replicas() == before
        assert w.log() == changes


async def test_a_refused_plan_costs_the_next_one_nothing() -> None:
    async with world() as w:
        await fill(w)
        missing = MakePlan(
            changes=(
                RemoveNodes(Selection(names=LOST)),
                RemoveNodes(Selection(names=("nowhere",))),
            )
        )
        expected = await planned(w, zone_lost())
        with pytest.raises(NotFound):
            await planned(w, missing)
        assert await planned(w, zone_lost()) == expected


async def test_too_many_plans_at_once_are_refused() -> None:
    async with world(apart=ticking) as w:
        await fill(w)
        plans = [asyncio.create_task(planned(w, zone_lost())) for _ in range(4)]
        results = await asyncio.gather(*plans, return_exceptions=True)
        assert sum(isinstance(each, Planned) for each in results) == 2
        assert sum(isinstance(each, Overloaded) for each in results) == 2


async def test_a_plan_whose_caller_goes_away_is_ended_in_order() -> None:
    async with world(apart=ticking) as w:
        await fill(w)
        expected = await planned(w, zone_lost())
        planning = asyncio.create_task(planned(w, zone_lost()))
        await w.others(5)
        planning.cancel()
        assert await planned(w, zone_lost()) == expected


async def test_a_plan_that_is_out_of_time_tells_what_it_has_not_tried() -> None:
    async with world(apart=ticking) as w:
        await fill(w)
        found = await planned(w, zone_lost(bounds=PlanBounds(seconds=0.003)))
        assert not found.complete
        assert {each.reason for each in found.unplaced} == {"SecondsOver"}
        assert (await planned(w, zone_lost())).complete


async def test_a_replica_for_plans_is_dropped_when_it_is_not_used() -> None:
    limits = Limits(plan_fork_idle_seconds=60, plan_fork_behind_max=3)
    async with world(limits=limits) as w:
        await fill(w)
        expected = await planned(w, zone_lost())
        for seconds in (30, 120, 1):
            await w.pass_time(seconds)
            assert await planned(w, zone_lost()) == expected
        await w.place(*(pod(f"more-{number}") for number in range(10)))
        assert (await planned(w, zone_lost())).before.pods["default"] == 5 * NODES + 10


async def test_a_server_that_stops_waits_for_no_plan_to_be_complete() -> None:
    async with world(apart=ticking) as w:
        await fill(w)
        await planned(w, zone_lost())
        asked = tuple(w.pod(pod(f"more-{number}")).to_place() for number in range(600))
        long = MakePlan(goal=Place(pods=asked))
        plans = [asyncio.create_task(planned(w, long)) for _ in range(2)]
        await w.others(30)
        await w.schedulers[0].stop()
        first, second = await asyncio.gather(*plans, return_exceptions=True)
        assert isinstance(first, Planned)
        assert not first.complete
        assert isinstance(second, Overloaded)
