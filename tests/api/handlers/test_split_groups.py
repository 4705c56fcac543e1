"""Groups that are placed in several clusters: all of their pods or none, whatever fails in between."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from service.api.handlers import multi_cluster_placements as handlers
from service.scheduler.controllers import group_recovery as unfinished_split_groups
from service.scheduler.controllers.group_recovery import SplitGroupController
from service.scheduler.multi_cluster.cluster_bids import ClusterQuery
from service.scheduler.protocol.intents import AdvanceGroup
from service.scheduler.protocol.limits import Limits
from service.store.postgres import PostgresStore
from tests.api.conftest import MakeHarness
from tests.api.handlers.test_multi_cluster_placements import APART, SPREAD, TOGETHER, clusters
from tests.api.harness import Harness, pod, problem
from tests.waiting import LOOK_SECONDS, WAIT_SECONDS, once

CLUSTERS = ("east", "west", "north")
STEPS = ("reserve", "reserve", "reserve", "Commit", "Bind", "Bind", "Forget")
"""What a request does to place a group in three clusters, in this order."""
DECIDED = STEPS.index("Commit")
JOB = {"template": pod("job"), "replicas": 5, "policy": "AllOrNothing", "splitGroups": True}
NAMES = [f"job-{each}" for each in range(5)]


async def asked(harness: Harness, **options: Any) -> Any:
    return await harness.client.post("/v1/placements", json={**JOB, **options})


async def nodes(harness: Harness, *names: str) -> dict[str, dict[str, str | None]]:
    """The node of each pod, by cluster."""
    found = {}
    for name in names or ("east", "west"):
        answer = await harness.client.get(f"/v1/clusters/{name}/pods")
        items = answer.json()["items"]
        found[name] = {each["metadata"]["name"]: each["spec"].get("nodeName") for each in items}
    return found


async def test_a_group_that_no_cluster_takes_is_placed_in_several(over_each_store: Harness) -> None:
    """R06."""
    harness = over_each_store
    await clusters(harness, east=2, west=3)
    whole = await asked(harness, splitGroups=False)
    assert {each["outcome"] for each in whole.json()["results"]} <= {
        "Unschedulable",
        "GroupRefused",
    }
    tried = await asked(harness, dryRun=True)
    assert await nodes(harness) == {"east": {}, "west": {}}
    answer = await asked(harness)
    assert answer.status_code == 200, answer.text
    for told in (tried.json(), answer.json()):
        chosen = [each["cluster"] for each in told["results"]]
        assert sorted(chosen) == ["east"] * 2 + ["west"] * 3, told
        assert [each["name"] for each in told["results"]] == NAMES
    assert (tried.json()["committed"], answer.json()["committed"]) == (False, True)
    found = await nodes(harness)
    assert {name: set(pods.values()) for name, pods in found.items()} == {
        "east": {"east-0"},
        "west": {"west-0"},
    }
    again = await asked(harness)
    assert [(each["outcome"], each["uid"]) for each in again.json()["results"]] == [
        ("AlreadyPlaced", each["uid"]) for each in answer.json()["results"]
    ]


@pytest.fixture
def stops() -> Iterator[list["Stop"]]:
    """The stops of a test: at its end all requests go on, else the application would wait for them."""
    made: list[Stop] = []
    yield made
    for each in made:
        each.go_on.set()


class Stop:
    """Stops one request for ever, as a kill would, before one of its steps or after it; its leases run out."""

    def __init__(
        self,
        stops: "list[Stop]",
        monkeypatch: pytest.MonkeyPatch,
        harness: Harness,
        at: int,
        when: str,
    ) -> None:
        stops.append(self)
        self._harness, self._at, self._when = harness, at, when
        self._steps: list[str] = []
        self._reached, self.go_on = asyncio.Event(), asyncio.Event()
        self._leases: Any = None
        place, advance = handlers.ClustersAsCaller.place, handlers.ClustersAsCaller.advance

        async def placing(clusters: Any, ask: ClusterQuery) -> Any:
            if ask.dry_run or ask.reserving is None:
                return await place(clusters, ask)
            self._leases = self._leases or ask.leases
            return await self._step("reserve", lambda: place(clusters, ask))

        async def advancing(clusters: Any, cluster: str, step: AdvanceGroup) -> Any:
            return await self._step(step.step, lambda: advance(clusters, cluster, step))

        monkeypatch.setattr(handlers.ClustersAsCaller, "place", placing)
        monkeypatch.setattr(handlers.ClustersAsCaller, "advance", advancing)

    async def __call__(self, name: str) -> "asyncio.Task[Any]":
        """A request that stands still there."""
        task = asyncio.create_task(asked(self._harness, template=pod(name), clusters=CLUSTERS))
        reached = asyncio.create_task(self._reached.wait())
        await asyncio.wait([task, reached], return_when=asyncio.FIRST_COMPLETED)
        assert self._reached.is_set(), task.result().text
        return task

    async def _step(self, name: str, take: Any) -> Any:
        number = len(self._steps)
        self._steps.append(name)
        if number != self._at or self._reached.is_set():
            return await take()
        assert name == STEPS[number], self._steps
        answer = await take() if self._when == "after" else None
        for number, lease in self._leases.names:
            await self._harness.store.acquire_lease(number, lease, self._leases.holder, 0)
        self._reached.set()
        await self.go_on.wait()
        return answer or await take()


async def uids(harness: Harness) -> dict[str, str]:
    """The uid of each pod, bound or not; none may be in two clusters."""
    found: dict[str, str] = {}
    for name in CLUSTERS:
        answer = await harness.client.get(f"/v1/clusters/{name}/pods")
        there = {
            each["metadata"]["name"]: each["metadata"]["uid"] for each in answer.json()["items"]
        }
        assert not there.keys() & found.keys()
        found |= there
    return found


async def internal(harness: Harness) -> list[str]:
    """What clusters remember of groups that have not come to their end."""
    found = []
    for name in CLUSTERS:
        number = await harness.store.find_cluster(name)
        for kind in ("GroupReservation", "SplitGroup"):
            page = await harness.store.list_objects(number, kind, limit=100)
            found += [f"{name}: {kind} {row.name}" for row in page.rows]
    return found


async def bound(harness: Harness) -> Counter[bool]:
    """How many pods have a node, and how many have none."""
    pods = await nodes(harness, *CLUSTERS)
    return Counter(node is not None for each in pods.values() for node in each.values())


async def clear(harness: Harness) -> None:
    for name, pods in (await nodes(harness, *CLUSTERS)).items():
        for each in pods:
            await harness.client.delete(f"/v1/clusters/{name}/namespaces/shop/pods/{each}")


async def test_whoever_asks_again_finds_a_group_placed_whatever_was_killed_when(
    over_each_store: Harness, monkeypatch: pytest.MonkeyPatch, stops: list[Stop]
) -> None:
    """R06: the request that stood still does no harm either when it goes on."""
    harness = over_each_store
    await clusters(harness, east=2, west=2, north=2)
    for at in range(len(STEPS)):
        for when in ("before", "after"):
            with monkeypatch.context() as patched:
                stop = Stop(stops, patched, harness, at, when)
                killed = await stop(f"job{at}{when}")
                begun = await uids(harness)
                again = await asked(harness, template=pod(f"job{at}{when}"), clusters=CLUSTERS)
                assert again.status_code == 200, again.text
                results = again.json()["results"]
                told = {each["name"]: each["uid"] for each in results}
                decided = at > DECIDED or (at == DECIDED and when == "after")
                outcomes = {each["outcome"] for each in results}
                assert outcomes == {"AlreadyPlaced" if decided else "Placed"}, (at, when)
                assert await bound(harness) == {True: 5}
                assert told == await uids(harness)
                assert (told == begun) is decided, (at, when)
                stop.go_on.set()
                await killed
                assert told == await uids(harness)
                assert await bound(harness) == {True: 5}
                assert await internal(harness) == []
            await clear(harness)


@pytest.fixture
async def hasty(
    database_url: str, make_harness: MakeHarness, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Harness]:
    """The application over PostgreSQL; the time of a group is over at once, and is looked at often."""
    monkeypatch.setattr(unfinished_split_groups, "PAUSE_SECONDS", LOOK_SECONDS)
    limits = Limits(
        request_seconds_max=WAIT_SECONDS, poll_seconds=0.01, group_reservation_seconds=0
    )
    async with AsyncExitStack() as stack:
        store = PostgresStore(database_url)
        stack.push_async_callback(store.close)
        yield await make_harness(store=store, limits=limits)


@pytest.mark.parametrize("at", range(len(STEPS)))
async def test_a_group_ends_by_itself_whatever_was_killed_when(
    hasty: Harness, monkeypatch: pytest.MonkeyPatch, stops: list[Stop], at: int
) -> None:
    """R06: bound everywhere or gone everywhere, though nobody asks again; no room is kept."""
    await clusters(hasty, east=2, west=2, north=2)
    tick = SplitGroupController.tick
    for when in ("before", "after"):
        with monkeypatch.context() as patched:
            patched.setattr(SplitGroupController, "tick", lambda _: None)
            stop = Stop(stops, patched, hasty, at, when)
            killed = await stop("job")
            patched.setattr(SplitGroupController, "tick", tick)

            async def ended() -> bool:
                return await internal(hasty) == []

            await once(ended)
            decided = at > DECIDED or (at == DECIDED and when == "after")
            expected = {True: 5} if decided else {}
            assert await bound(hasty) == expected, when
            stop.go_on.set()
            answer = await killed
            assert (answer.status_code == 200) is decided, answer.text
            await once(ended)
            assert await bound(hasty) == expected
        await clear(hasty)


async def seen(harness: Harness, cluster: str, name: str) -> Any:
    answer = await harness.client.get(f"/v1/clusters/{cluster}/namespaces/shop/pods/{name}")
    return answer.json()


async def test_what_is_reserved_counts_for_everybody_and_is_seen_as_waiting(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, stops: list[Stop]
) -> None:
    await clusters(harness, east=2, west=2, north=2)
    stop = Stop(stops, monkeypatch, harness, DECIDED, "before")
    group = await stop("job")
    waiting = await seen(harness, "east", "job-0")
    assert "nodeName" not in waiting["spec"]
    assert waiting["status"]["nominatedNodeName"] == "east-0"
    assert waiting["status"]["conditions"][0]["reason"] == "GroupReserved"
    place = "/v1/clusters/east/placements"
    urgent = {"pods": [pod("urgent", priority=1000)], "policy": "AllOrNothing"}
    answer = await harness.client.post(place, json=urgent)
    (refused,) = answer.json()["results"]
    assert refused["message"] == "0/1 nodes are available: 1 Insufficient cpu."
    alone = pod("alone", affinity=APART)
    alone["spec"]["containers"] = [{"name": "c"}]
    answer = await harness.client.post(place, json={"pods": [alone]})
    assert "anti-affinity" in answer.json()["results"][0]["message"]
    answer = await harness.client.post(place, json={"pods": [pod("job-0")]})
    (denied,) = answer.json()["results"]
    assert (denied["outcome"], denied["reason"]) == ("Denied", "GroupReserved")
    binding = "/v1/clusters/east/namespaces/shop/pods/job-0/binding"
    refused = await harness.client.post(binding, json={"target": {"name": "east-0"}, "force": True})
    assert problem(refused, 409) == "Conflict"
    explained = await harness.client.get("/v1/clusters/east/namespaces/shop/pods/job-0/explanation")
    assert "reserved" in explained.json()["message"]
    stop.go_on.set()
    await group
    assert await bound(harness) == {}, "its leases had ended"


async def test_what_befalls_a_reserved_pod_befalls_a_pod_that_is_bound(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, stops: list[Stop]
) -> None:
    await clusters(harness, east=2, west=2, north=2)
    stop = Stop(stops, monkeypatch, harness, DECIDED, "after")
    group = await stop("job")
    there = await nodes(harness, *CLUSTERS)
    cluster, name = next((c, n) for c, pods in there.items() for n in pods if pods[n] is None)
    gone = await harness.client.delete(f"/v1/clusters/{cluster}/namespaces/shop/pods/{name}")
    assert gone.status_code == 200
    other = next(c for c, pods in there.items() if c != cluster and None in pods.values())
    evicted = next(iter(there[other]))
    path = f"/v1/clusters/{other}/namespaces/shop/pods/{evicted}"
    assert (await harness.client.post(f"{path}/eviction", json={})).status_code in {200, 201}
    stop.go_on.set()
    assert (await group).status_code == 200
    assert await internal(harness) == []
    pods = await nodes(harness, *CLUSTERS)
    assert name not in pods[cluster]
    assert "deletionTimestamp" in (await seen(harness, other, evicted))["metadata"]
    assert set(pods[other].values()) == {f"{other}-0"}, "what is evicted is to stop on its node"


async def test_rules_over_clusters_split_a_group_or_keep_it_together(harness: Harness) -> None:
    """R06."""
    await clusters(harness, east=9, west=9, north=1)
    results = (
        await asked(
            harness, template=pod("job", topologySpreadConstraints=SPREAD), clusters=CLUSTERS
        )
    ).json()["results"]
    assert Counter(each["cluster"] for each in results) == {"east": 2, "west": 2, "north": 1}
    await clear(harness)
    apart = await asked(harness, template=pod("job", affinity=APART), clusters=CLUSTERS, replicas=3)
    assert {each["cluster"] for each in apart.json()["results"]} == set(CLUSTERS)
    await clear(harness)
    for _ in range(2):
        too_many = await asked(
            harness, template=pod("job", affinity=APART), clusters=CLUSTERS, replicas=4
        )
        assert {each["cluster"] for each in too_many.json()["results"]} == {None}
    assert await bound(harness) == {}
    together = await asked(
        harness, template=pod("job", affinity=TOGETHER), clusters=CLUSTERS, replicas=10
    )
    assert {each["cluster"] for each in together.json()["results"]} == {None}
    assert await internal(harness) == []


async def test_members_of_a_pod_group_are_counted_over_clusters(harness: Harness) -> None:
    await clusters(harness, east=2, west=2, north=2)
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "shop"},
        "spec": {"minMember": 4},
    }
    for name in ("east", "west"):
        path = f"/v1/clusters/{name}/namespaces/shop/podgroups/train"
        made = await harness.client.put(path, json=group)
        assert made.status_code == 201, made.text
    members = [pod(f"job-{each}") for each in range(5)]
    for each in members:
        each["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "train"

    async def placed(*pods: Any) -> list[Any]:
        body = {"pods": pods, "clusters": CLUSTERS, "splitGroups": True}
        answer = await harness.client.post("/v1/placements", json=body)
        assert answer.status_code == 200, answer.text
        return list(answer.json()["results"])

    assert {each["outcome"] for each in await placed(*members[:3])} == {"Unschedulable"}
    four = await placed(*members[:4])
    assert Counter(each["cluster"] for each in four) == {"east": 2, "west": 2}
    assert (await placed(members[4]))[0]["outcome"] == "Unschedulable", "north has no such group"
    cluster, name = four[0]["cluster"], four[0]["name"]
    await harness.client.delete(f"/v1/clusters/{cluster}/namespaces/shop/pods/{name}")
    (anew,) = await placed(members[4])
    assert (anew["outcome"], anew["cluster"]) == ("Placed", cluster), "with three placed elsewhere"


async def test_a_pod_with_which_more_would_be_bound_is_in_no_split_group(harness: Harness) -> None:
    await clusters(harness, east=2, west=2, north=2)
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    answer = await asked(harness, template=pod("job", volumes=volumes), clusters=CLUSTERS)
    assert {each["cluster"] for each in answer.json()["results"]} == {None}
    assert await bound(harness) == {}
    wrong = await asked(harness, splitGroups="yes")
    assert wrong.status_code == 422
    assert wrong.json()["errors"][0]["field"] == "splitGroups"
