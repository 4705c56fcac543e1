"""A decision ends when its time is up or its client has left, and leaves nothing of it behind."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from typing_extensions import override

from service.model.log.commit import IdempotencyKey
from service.runtime.clock import SystemClock
from service.runtime.ids import RandomIds
from service.scheduler.protocol.limits import Limits
from service.store.postgres import PostgresStore
from tests.api.conftest import MakeHarness
from tests.api.harness import CLUSTER, Harness, HurriedClock, node, pod, problem
from tests.api.leaving import LeavingClient
from tests.support.memory_store.log import MemoryLog
from tests.support.memory_store.state import MemoryState
from tests.support.memory_store.store import MemoryStore

PLACEMENTS = f"{CLUSTER}/placements"
OVER_CLUSTERS = "/v1/placements"
LIMITS = Limits(request_seconds_max=5)
MANY = 100
"""So many pods take longer than that, at the pace of `TickingClock`."""

Json = dict[str, Any]


class TickingClock(HurriedClock):
    """A clock by which every look at it takes a while, so that time is up after so many steps."""

    tick_seconds = 0.0

    @override
    def monotonic(self) -> float:
        self.advance(self.tick_seconds)
        return super().monotonic()


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


@pytest.fixture
async def harness(make_harness: MakeHarness, clock: TickingClock) -> Harness:
    return await furnished(make_harness, clock)


async def furnished(
    make_harness: MakeHarness, clock: TickingClock, store: Any = None, limits: Limits = LIMITS
) -> Harness:
    """Three nodes in two zones, and a pod on one of them."""
    made = await make_harness(store=store, clock=clock, limits=limits)
    for name, zone in (("n1", "a"), ("n2", "b"), ("n3", "b")):
        large = node(name, zone=zone)
        large["status"]["allocatable"] = {"cpu": "4000", "memory": "8Gi", "pods": "1000"}
        await made.put(f"nodes/{name}", large)
    await made.place(pod("here"))
    return made


def distinct(count: int) -> list[Json]:
    """Pods with rules about each other, no two of which are of one class."""
    return [
        pod(f"p{number}", affinity=_apart_from(f"v{number}"), priority=number)
        for number in range(count)
    ]


def _apart_from(value: str) -> Json:
    unlike = {"key": "x", "operator": "NotIn", "values": [value]}
    term = {"labelSelector": {"matchExpressions": [unlike]}, "topologyKey": "zone"}
    preferred = [{"weight": 1, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def group_without_room(count: int) -> list[Json]:
    """A group of which all but the last find nodes, so that all ways are searched."""
    members = [pod(f"p{number}") for number in range(count)]
    members.append(pod("last", nodeSelector={"zone": "nowhere"}))
    return members


REQUESTS: dict[str, Json] = {
    "one by one": {"pods": distinct(MANY)},
    "dry run": {"pods": distinct(MANY), "dryRun": True},
    "group": {"pods": distinct(MANY), "policy": "AllOrNothing"},
    "search": {"pods": group_without_room(20), "policy": "AllOrNothing"},
    "explained": {"pods": distinct(MANY), "policy": "AllOrNothing", "explain": "Full"},
    "refused": {
        "pods": [pod(f"p{n}", schedulerName="nobody") for n in range(MANY)],
        "policy": "AllOrNothing",
    },
}


class State:
    """What a cluster is, stored and counted."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness

    async def now(self) -> Any:
        head = await self._harness.store.log.head(1)
        listed = await self._harness.client.get(f"{CLUSTER}/pods")
        names = [each["metadata"]["name"] for each in listed.json()["items"]]
        return head.revision, names, self._harness.scheduler.replicas()["default"]


@pytest.mark.parametrize("asked", REQUESTS.values(), ids=REQUESTS)
async def test_a_placement_ends_when_its_time_is_up(
    harness: Harness, clock: TickingClock, asked: Json
) -> None:
    state = State(harness)
    before = await state.now()
    clock.tick_seconds = 0.5
    answer = await harness.client.post(PLACEMENTS, json=asked)
    clock.tick_seconds = 0
    assert problem(answer, 503) == "Overloaded"
    assert "in time" in answer.json()["detail"]
    assert int(answer.headers["retry-after"]) >= 1
    assert await state.now() == before


async def test_nothing_is_stored_of_a_placement_that_has_ended_early(
    make_harness: MakeHarness, clock: TickingClock, database_url: str
) -> None:
    async with AsyncExitStack() as stack:
        store = PostgresStore(database_url)
        stack.push_async_callback(store.close)
        harness = await furnished(make_harness, clock, store)
        stack.push_async_callback(harness.scheduler.stop)
        state = State(harness)
        before = await state.now()
        clock.tick_seconds = 0.5
        late = await harness.client.post(PLACEMENTS, json=REQUESTS["one by one"])
        assert problem(late, 503) == "Overloaded"
        clock.tick_seconds = 0.03
        client = LeavingClient(harness.app, PLACEMENTS, REQUESTS["one by one"], idempotency_key="k")
        await deciding(harness)
        client.left.set()
        await client.request
        clock.tick_seconds = 0
        assert await state.now() == before
        assert not await store.log.find_answers(1, [IdempotencyKey("placePods", "k", 0)])


async def test_others_are_decided_as_soon_as_the_time_of_a_placement_is_up(
    harness: Harness, clock: TickingClock
) -> None:
    clock.tick_seconds = 0.5
    long = asyncio.create_task(harness.client.post(PLACEMENTS, json={"pods": distinct(MANY)}))
    await deciding(harness)
    other = asyncio.create_task(harness.client.post(PLACEMENTS, json={"pods": [pod("other")]}))
    assert problem(await long, 503) == "Overloaded"
    clock.tick_seconds = 0
    placed = (await other).json()
    assert [each["outcome"] for each in placed["results"]] == ["Placed"]
    assert (await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/p0")).status_code == 404


async def test_a_key_is_as_unused_after_a_request_that_ran_out_of_time(
    harness: Harness, clock: TickingClock
) -> None:
    asked, key = {"pods": distinct(MANY)}, {"idempotency-key": "k"}
    clock.tick_seconds = 0.5
    late = await harness.client.post(PLACEMENTS, json=asked, headers=key)
    assert problem(late, 503) == "Overloaded"
    clock.tick_seconds = 0
    again = await harness.client.post(PLACEMENTS, json=asked, headers=key)
    assert again.status_code == 200
    assert "idempotent-replayed" not in again.headers
    assert {each["outcome"] for each in again.json()["results"]} == {"Placed"}
    once_more = await harness.client.post(PLACEMENTS, json=asked, headers=key)
    assert once_more.json() == again.json()


async def test_others_do_not_wait_for_a_dry_run_that_takes_long(
    make_harness: MakeHarness, clock: TickingClock
) -> None:
    """It is decided beside placements then, with the same answer."""
    harness = await furnished(make_harness, clock, limits=Limits(request_seconds_max=1_000))
    asked = REQUESTS["dry run"] | {"pods": [*distinct(MANY), pod("q", nodeSelector={"a": "b"})]}
    quick = (await harness.client.post(PLACEMENTS, json=asked)).json()
    clock.tick_seconds = 0.5
    long = asyncio.create_task(harness.client.post(PLACEMENTS, json=asked))
    await deciding(harness)
    other = await harness.place(pod("other"), dryRun=True)
    assert [each["outcome"] for each in other["results"]] == ["Placed"]
    while harness.scheduler.planners.of(1).is_idle:
        assert not long.done(), "it was decided among placements"
        await asyncio.sleep(0)
    clock.tick_seconds = 0
    assert (await long).json() == quick
    assert {each["outcome"] for each in quick["results"]} == {"Placed", "Unschedulable"}


@pytest.mark.parametrize("cause", ["time", "client"])
async def test_a_dry_run_beside_placements_ends_as_well(
    make_harness: MakeHarness, clock: TickingClock, cause: str
) -> None:
    harness = await furnished(make_harness, clock, limits=Limits(request_seconds_max=1_000))
    state = State(harness)
    before = await state.now()
    clock.tick_seconds = 0.5
    client = LeavingClient(harness.app, PLACEMENTS, REQUESTS["dry run"])
    planner = harness.scheduler.planners.of(1)
    while planner.replica.is_loaded is False:  # noqa: ASYNC110 - no event tells this
        await asyncio.sleep(0)
    if cause == "client":
        client.left.set()
    else:
        clock.advance(1_000)
    await client.request
    clock.tick_seconds = 0
    assert client.status == 503
    assert planner.is_idle
    assert planner.replica.is_loaded
    assert await state.now() == before
    again = await harness.place(*distinct(1), dryRun=True)
    assert [each["outcome"] for each in again["results"]] == ["Placed"]


# Clients that leave


async def deciding(harness: Harness) -> None:
    """Wait until a decision is under way: only then the replica has tentative changes."""
    while harness.scheduler.replicas():  # noqa: ASYNC110 - no event tells this
        await asyncio.sleep(0)


@pytest.fixture
def slowly(clock: TickingClock) -> Iterator[None]:
    """Have decisions pause after each step, long before their time is up."""
    clock.tick_seconds = 0.03
    yield
    clock.tick_seconds = 0


@pytest.mark.usefixtures("slowly")
@pytest.mark.parametrize("headers", [{}, {"idempotency_key": "k"}], ids=["", "keyed"])
@pytest.mark.parametrize("asked", REQUESTS.values(), ids=REQUESTS)
async def test_a_placement_ends_when_its_client_leaves(
    harness: Harness, asked: Json, headers: dict[str, str]
) -> None:
    state = State(harness)
    before = await state.now()
    client = LeavingClient(harness.app, PLACEMENTS, asked, **headers)
    await deciding(harness)
    client.left.set()
    await client.request
    assert client.status == 503
    assert await state.now() == before
    assert harness.scheduler.keyed_requests == 0


async def test_a_client_that_leaves_during_the_commit_has_its_pods_placed(
    make_harness: MakeHarness,
) -> None:
    store = MemoryStore(SystemClock().now, RandomIds().commit_id)
    store.log = gated = GatedLog(store.state)
    harness = await make_harness(store=store)
    await harness.put_node("n1")
    gated.gate.clear()
    client = LeavingClient(harness.app, PLACEMENTS, {"pods": [pod("p")]})
    await gated.begun.wait()
    client.left.set()
    gated.gate.set()
    await client.request
    assert client.status == 200
    assert (await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/p")).status_code == 200


class GatedLog(MemoryLog):
    """A log whose commits can be held up."""

    def __init__(self, state: MemoryState) -> None:
        super().__init__(state)
        self.gate = asyncio.Event()
        self.gate.set()
        self.begun = asyncio.Event()

    @override
    async def commit(self, *arguments: Any) -> Any:
        if not self.gate.is_set():
            self.begun.set()
        await self.gate.wait()
        return await super().commit(*arguments)


# Operations that are not decided by the loop of a cluster


def simulation(count: int) -> Json:
    return {"nodes": [node("n1", zone="a")], "place": distinct(count)}


async def test_a_simulation_ends_when_its_time_is_up(harness: Harness, clock: TickingClock) -> None:
    clock.tick_seconds = 0.5
    answer = await harness.client.post("/v1/simulations", json=simulation(MANY))
    assert problem(answer, 503) == "Overloaded"


@pytest.mark.usefixtures("slowly")
async def test_a_simulation_ends_when_its_client_leaves(harness: Harness) -> None:
    client = LeavingClient(harness.app, "/v1/simulations", simulation(MANY))
    client.left.set()
    await client.request
    assert client.status == 503


@pytest.fixture
async def two_clusters(harness: Harness) -> Json:
    """A dry run over two clusters, which asks each of them about each pod."""
    await harness.client.put("/v1/clusters/other", json={"config": {}})
    await harness.client.put("/v1/clusters/other/nodes/n1", json=node("n1"))
    return {"clusters": ["default", "other"], "pods": distinct(60), "dryRun": True}


async def test_a_dry_run_over_clusters_ends_when_its_time_is_up(
    harness: Harness, clock: TickingClock, two_clusters: Json
) -> None:
    clock.tick_seconds = 0.5
    answer = await harness.client.post(OVER_CLUSTERS, json=two_clusters)
    assert problem(answer, 503) == "Overloaded"


@pytest.mark.usefixtures("slowly")
async def test_a_dry_run_over_clusters_ends_when_its_client_leaves(
    harness: Harness, two_clusters: Json
) -> None:
    client = LeavingClient(harness.app, OVER_CLUSTERS, two_clusters)
    client.left.set()
    await client.request
    assert client.status == 503
