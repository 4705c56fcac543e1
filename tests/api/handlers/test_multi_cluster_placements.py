"""Placements over several clusters: which one is chosen, what is told, and what holds in races."""

import asyncio
from collections import Counter
from itertools import count
from typing import Any

import httpx
import pytest

from service.api.bodies.multi_cluster_requests import parse_over_clusters
from service.api.handlers import multi_cluster_placements as handlers
from service.model.core.errors import StorageUnavailable
from service.model.log.commit import Head
from service.model.pods.template_cache import TemplateCache
from service.scheduler.multi_cluster import placer as multi_cluster_placement
from service.scheduler.multi_cluster.cluster_bids import ClusterQuery
from service.scheduler.protocol.placements import PlacementAnswer
from service.store.postgres import PostgresStore
from tests.api.harness import Harness, node, pod, problem

KEY = "moorage.dev/cluster"
WEB = {"matchLabels": {"app": "web"}}
SPREAD = [
    {"topologyKey": KEY, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB}
]
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": KEY, "labelSelector": WEB}
        ]
    }
}
TOGETHER = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": KEY, "labelSelector": WEB}
        ]
    }
}

AFTER_CHOICE = 2
"""A request looks at its leases before it chooses for its first pod, and then before it has it placed."""

Json = dict[str, Any]


async def clusters(harness: Harness, **cpus: int) -> None:
    """Make clusters with one node of so many cpus each."""
    for name, cpu in cpus.items():
        made = await harness.client.put(f"/v1/clusters/{name}", json={"config": {}})
        assert made.status_code == 201, made.text
        manifest = node(f"{name}-0")
        manifest["status"]["allocatable"] |= {"cpu": str(cpu), "pods": "100"}
        there = await harness.client.put(f"/v1/clusters/{name}/nodes/{name}-0", json=manifest)
        assert there.status_code == 201, there.text


async def asked(harness: Harness, *pods: Json, **options: Any) -> httpx.Response:
    body = {"clusters": ["east", "west"], "pods": list(pods), **options}
    return await harness.client.post("/v1/placements", json=body)


async def placed(harness: Harness, *pods: Json, **options: Any) -> list[Json]:
    answer = await asked(harness, *pods, **options)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["results"])


async def there(harness: Harness) -> dict[str, list[str]]:
    """The names of the pods in each cluster."""
    found = {}
    for name in ("east", "west"):
        answer = await harness.client.get(f"/v1/clusters/{name}/pods")
        found[name] = [each["metadata"]["name"] for each in answer.json()["items"]]
    return found


async def test_the_cluster_with_the_smallest_share_in_use_takes_the_pod(
    over_each_store: Harness,
) -> None:
    """R06."""
    await clusters(over_each_store, east=4, west=8)
    chosen = [
        (await placed(over_each_store, pod(f"web-{each}")))[0]["cluster"] for each in range(6)
    ]
    assert chosen == ["east", "west", "west", "east", "west", "west"]
    listed = await placed(over_each_store, pod("web-6"), pod("web-7"), strategy="AsListed")
    assert [(each["cluster"], each["nodeName"]) for each in listed] == [("east", "east-0")] * 2
    (again,) = await placed(over_each_store, pod("web-6"), clusters=["west", "east"])
    assert (again["outcome"], again["cluster"]) == ("AlreadyPlaced", "east")
    assert again["uid"] == listed[0]["uid"]


async def test_a_refusal_tells_why_each_cluster_refused(harness: Harness) -> None:
    await clusters(harness, east=1, west=2)
    await placed(harness, pod("web-0"), pod("web-1"), pod("web-2"))
    (refused,) = await placed(harness, pod("web-3"))
    assert (refused["outcome"], refused["cluster"]) == ("Unschedulable", None)
    assert [(each["cluster"], each["message"]) for each in refused["refusals"]] == [
        (name, "0/1 nodes are available: 1 Insufficient cpu.") for name in ("east", "west")
    ]
    (queued,) = await placed(harness, pod("web-3"), onUnschedulable="Queue", strategy="AsListed")
    assert (queued["outcome"], queued["cluster"]) == ("Queued", "east")
    assert queued["uid"]
    (tried,) = await placed(harness, pod("web-3"), clusters=["west", "east"])
    assert [each["cluster"] for each in tried["refusals"]] == ["east"], "its cluster alone is asked"


async def test_rules_over_clusters_choose_and_refuse(harness: Harness) -> None:
    """R06."""
    await clusters(harness, east=90, west=3)
    spread = [pod(f"web-{each}", topologySpreadConstraints=SPREAD) for each in range(8)]
    results = await placed(harness, *spread)
    assert Counter(each["cluster"] for each in results) == {"east": 4, "west": 3, None: 1}
    assert {each["reason"] for each in results[7]["refusals"]} == {"ClusterTopology", None}
    soft = [{**SPREAD[0], "whenUnsatisfiable": "ScheduleAnyway"}]
    (anyway,) = await placed(harness, pod("web-7", topologySpreadConstraints=soft))
    assert anyway["cluster"] == "east"


async def test_anti_affinity_and_affinity_over_clusters(harness: Harness) -> None:
    """R06."""
    await clusters(harness, east=9, west=8)
    first, second, third = await placed(
        harness, *(pod(f"web-{each}", affinity=APART) for each in range(3))
    )
    assert {first["cluster"], second["cluster"]} == {"east", "west"}
    assert third["outcome"] == "Unschedulable"
    assert all("anti-affinity" in each["message"] for each in third["refusals"])
    (unlike,) = await placed(harness, pod("web-9"))
    assert unlike["outcome"] == "Unschedulable", "the rules of placed pods count as well"
    direct = await harness.client.post(
        "/v1/clusters/east/placements", json={"pods": [pod("web-9")]}
    )
    assert direct.json()["results"][0]["outcome"] == "Unschedulable"


async def test_preferred_affinity_over_clusters_is_weighed(harness: Harness) -> None:
    """R06."""

    def preferring(kind: str, *weights: tuple[int, str]) -> Json:
        terms = [
            {
                "weight": weight,
                "podAffinityTerm": {
                    "topologyKey": KEY,
                    "labelSelector": {"matchLabels": {"app": app}},
                },
            }
            for weight, app in weights
        ]
        return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": terms}}

    await clusters(harness, east=40, west=80)
    cache = pod("cache")
    cache["metadata"]["labels"] = {"app": "cache"}
    await placed(harness, cache, clusters=["east"])
    await placed(harness, pod("web-0"), pod("web-1"), clusters=["west"])
    near = preferring("podAffinity", (3, "cache"), (1, "web"))
    (drawn,) = await placed(harness, pod("web-2", affinity=near))
    assert drawn["cluster"] == "east", "three times one is more than two"
    far = preferring("podAntiAffinity", (1, "web"))
    (driven,) = await placed(harness, pod("web-3", affinity=far))
    assert driven["cluster"] == "east", "one is less than two"
    (plain,) = await placed(harness, pod("web-4"))
    assert plain["cluster"] == "west", "with the smaller share in use"


async def test_pods_that_belong_together_follow_the_first(harness: Harness) -> None:
    await clusters(harness, east=4, west=4)
    results = await placed(harness, *(pod(f"web-{each}", affinity=TOGETHER) for each in range(5)))
    assert [each["cluster"] for each in results] == ["east"] * 4 + [None]
    reasons = {each["cluster"]: each["reason"] for each in results[4]["refusals"]}
    assert reasons == {"east": None, "west": "ClusterTopology"}


async def test_a_group_goes_to_one_cluster_as_a_whole(harness: Harness) -> None:
    await clusters(harness, east=2, west=3)
    body = {"template": pod("job"), "replicas": 3, "policy": "AllOrNothing"}
    tried = await harness.client.post("/v1/placements", json={**body, "dryRun": True})
    assert [each["cluster"] for each in tried.json()["results"]] == ["west"] * 3
    assert await there(harness) == {"east": [], "west": []}
    answer = await harness.client.post("/v1/placements", json=body)
    assert [each["cluster"] for each in answer.json()["results"]] == ["west"] * 3
    assert answer.json()["committed"]
    assert await there(harness) == {"east": [], "west": ["job-0", "job-1", "job-2"]}


async def test_what_is_wrong_is_named(harness: Harness) -> None:
    await clusters(harness, east=4)
    wrong: list[tuple[Json, int, str | None]] = [
        ({"clusters": []}, 422, "clusters"),
        ({"clusters": ["east", "east"]}, 422, "clusters[1]"),
        ({"clusters": ["no/name"]}, 422, "clusters[0]"),
        ({"strategy": "Best"}, 422, "strategy"),
        ({"preemption": "Evict"}, 422, "preemption"),
        ({"nothing": 1}, 422, "nothing"),
        ({"clusters": ["east", "gone"]}, 404, None),
    ]
    for options, code, field in wrong:
        answer = await asked(harness, pod("web-0"), **{"clusters": ["east"], **options})
        assert answer.status_code == code, answer.text
        if field is not None:
            assert answer.json()["errors"][0]["field"] == field
    with_domains = [{**SPREAD[0], "minDomains": 2}]
    answer = await asked(
        harness, pod("web-0", topologySpreadConstraints=with_domains), clusters=["east"]
    )
    assert "minDomains" in answer.json()["errors"][0]["field"]
    other = pod("web-0")
    await placed(harness, other, clusters=["east"])
    other["metadata"]["labels"] = {"app": "other"}
    assert problem(await asked(harness, other, clusters=["east"]), 409) == "PodDiffers"


async def test_manifests_go_to_clusters_as_they_were_sent() -> None:
    """So what a cluster knows of their specs, by their bytes, is found again: only spaces are left out."""
    spec = b'{"containers":[{"name":"c","resources":{"requests":{"cpu":1.50}}}]}'
    one = b'{"spec":' + spec + b',"metadata":{"name":"web-0","namespace":"shop"}}'
    several = b'{"pods": [' + one + b', {"metadata":{"name":"b"},"spec":' + spec + b"}]}"
    body = await parse_over_clusters(several, TemplateCache(), 10, 10)
    sent = body.to_cluster(ClusterQuery(cluster="east", indices=[0]))
    assert sent.startswith(b'{"pods":[' + one + b"],")
    template = b'{"template": ' + one + b', "replicas": 2, "strategy": null}'
    body = await parse_over_clusters(template, TemplateCache(), 10, 10)
    sent = body.to_cluster(ClusterQuery(cluster="east", indices=[1]))
    assert b'{"spec":' + spec + b',"metadata":{"name":"web-0-1","namespace":"shop"}}' in sent


async def test_only_clusters_where_the_caller_may_place_are_asked_and_named(
    make_harness: Any,
) -> None:
    harness = await make_harness(token="secret")
    admin = {"authorization": "Bearer secret"}
    harness.client.headers.update(admin)
    await clusters(harness, east=1, west=4)
    put = await harness.client.put(
        "/v1/principals/shopper",
        json={"grants": [{"role": "scheduler", "cluster": "east", "namespace": "shop"}]},
    )
    assert put.status_code in {200, 201}, put.text
    token = (await harness.client.post("/v1/principals/shopper/tokens", json={})).json()["token"]
    harness.client.headers.update({"authorization": f"Bearer {token}"})
    everywhere = {"pods": [pod("web-0"), pod("web-1")]}
    answer = await harness.client.post("/v1/placements", json=everywhere)
    assert [each["cluster"] for each in answer.json()["results"]] == ["east", None]
    assert "west" not in answer.text
    assert list(answer.json()["revisions"]) == ["east"]
    assert problem(await asked(harness, pod("web-2")), 403) == "Forbidden"
    elsewhere = {"pods": [pod("web-3", "other")]}
    assert problem(await harness.client.post("/v1/placements", json=elsewhere), 403) == "Forbidden"


async def test_no_choice_rests_on_a_state_that_cannot_be_confirmed(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain dry run is answered from memory then, perhaps without what another server placed."""
    await clusters(harness, east=4, west=4)
    await placed(harness, pod("web-0"))

    async def no_head(_cluster_id: int) -> Head:
        raise StorageUnavailable("No connection.")

    monkeypatch.setattr(harness.store, "head", no_head)
    plain = {"pods": [pod("web-1")], "dryRun": True}
    answer = await harness.client.post("/v1/clusters/east/placements", json=plain)
    assert answer.status_code == 200, answer.text
    assert problem(await asked(harness, pod("web-1")), 503) == "StorageUnavailable"


class Stop:
    """Stops the first request that has chosen a cluster: before that cluster is asked to place, or after.

    Its leases run out meanwhile, so that others go on.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, after: bool = False) -> None:
        self._reached, self.go_on = asyncio.Event(), asyncio.Event()
        self._after = after
        self._monkeypatch = monkeypatch
        self._place = handlers.ClustersAsCaller.place

    async def at(self, harness: Harness, *pods: Json, **options: Any) -> "asyncio.Task[Any]":
        """A request that stands still there."""

        async def place(clusters: Any, ask: ClusterQuery) -> PlacementAnswer:
            if ask.dry_run or self._reached.is_set():
                return await self._place(clusters, ask)
            answer = await self._place(clusters, ask) if self._after else None
            if ask.leases is not None:
                for number, name in ask.leases.names:
                    await harness.store.acquire_lease(number, name, ask.leases.holder, 0)
            self._reached.set()
            await self.go_on.wait()
            return answer or await self._place(clusters, ask)

        self._monkeypatch.setattr(handlers.ClustersAsCaller, "place", place)
        task = asyncio.create_task(asked(harness, *pods, **options))
        await self._reached.wait()
        return task


async def test_a_choice_is_not_placed_after_another_request_could_choose(
    over_each_store: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R06: whoever stood still between choice and commit for longer than its leases last is refused."""
    harness, stop = over_each_store, Stop(monkeypatch)
    await clusters(harness, east=4, west=4)
    slow = await stop.at(harness, pod("web-0"), strategy="AsListed")
    (other,) = await placed(harness, pod("web-0"), clusters=["west", "east"], strategy="AsListed")
    assert (other["outcome"], other["cluster"]) == ("Placed", "west")
    stop.go_on.set()
    assert problem(await slow, 503) == "Overloaded"
    assert await there(harness) == {"east": [], "west": ["web-0"]}
    (again,) = await placed(harness, pod("web-0"), strategy="AsListed")
    assert (again["outcome"], again["cluster"]) == ("AlreadyPlaced", "west")


async def test_leases_that_have_ended_are_not_taken_anew_under_the_same_choice(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another request may have had them in between: here it placed the same pod, and gave them back."""
    await clusters(harness, east=4, west=4)
    chosen, go_on, looks = asyncio.Event(), asyncio.Event(), count(1)
    keep = multi_cluster_placement.RequestLeases.keep

    async def keeping(leases: Any) -> None:
        if next(looks) == AFTER_CHOICE:
            for number, name in leases.held.names:
                await harness.store.acquire_lease(number, name, leases.held.holder, 0)
            monkeypatch.setattr(multi_cluster_placement, "RENEW_SECONDS", 0.0)
            chosen.set()
            await go_on.wait()
        await keep(leases)

    monkeypatch.setattr(multi_cluster_placement.RequestLeases, "keep", keeping)
    slow = asyncio.create_task(asked(harness, pod("web-0"), strategy="AsListed"))
    await chosen.wait()
    (other,) = await placed(harness, pod("web-0"), clusters=["west", "east"], strategy="AsListed")
    assert other["cluster"] == "west"
    go_on.set()
    assert problem(await slow, 503) == "Overloaded"
    assert await there(harness) == {"east": [], "west": ["web-0"]}


@pytest.mark.parametrize("after", [False, True], ids=["before its commit", "after it"])
async def test_a_server_that_is_killed_after_its_choice_leaves_a_pod_placed_once(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    """R06: its leases run out, as nobody gives them back; who asks again is told or gets it placed."""
    stop = Stop(monkeypatch, after=after)
    await clusters(harness, east=4, west=4)
    killed = await stop.at(harness, pod("web-0"), strategy="AsListed")
    (again,) = await placed(harness, pod("web-0"), clusters=["west", "east"], strategy="AsListed")
    expected = ("AlreadyPlaced", "east") if after else ("Placed", "west")
    assert (again["outcome"], again["cluster"]) == expected
    found = await there(harness)
    assert sorted(found["east"] + found["west"]) == ["web-0"]
    stop.go_on.set()
    await killed


async def test_affinity_that_counts_other_namespaces_is_chosen_for_by_one_at_a_time(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R06: of two first pods in two namespaces that draw each other, the second follows the first."""
    term = {"topologyKey": KEY, "labelSelector": WEB, "namespaces": ["shop", "lab"]}
    rule = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    await clusters(harness, east=4, west=4)
    held: list[set[str]] = []
    real = multi_cluster_placement.RequestLeases.release

    async def noted(leases: Any) -> None:
        held.append({name.rpartition("@")[2] for _, name in leases.held.names})
        await real(leases)

    monkeypatch.setattr(multi_cluster_placement.RequestLeases, "release", noted)
    await placed(harness, pod("web-0", affinity=rule), pod("web-1"))
    await placed(harness, pod("web-2", "lab", affinity=rule))
    await placed(harness, pod("web-3", "lab"))
    assert held == [{"*", "shop"}, {"*", "lab"}, {"lab"}]


@pytest.mark.exploration
async def test_racing_requests_keep_the_skew_and_place_no_pod_twice(
    database_url: str, make_harness: Any
) -> None:
    """R06: two servers on one database; every request is sent to both of them at once."""
    stores = [PostgresStore(database_url) for _ in range(2)]
    try:
        one, two = [await make_harness(store=each) for each in stores]
        await clusters(one, east=90, west=90)
        pods = [pod(f"web-{each}", topologySpreadConstraints=SPREAD) for each in range(9)]
        answers = await asyncio.gather(
            *(placed(each, manifest) for manifest in pods for each in (one, two))
        )
        chosen = {(each["name"], each["cluster"], each["uid"]) for (each,) in answers}
        assert len(chosen) == len(pods), "both servers tell the same"
        found = await there(one)
        assert sorted(map(len, found.values())) == [4, 5]
        assert not set(found["east"]) & set(found["west"])
    finally:
        for each in stores:
            await each.close()
