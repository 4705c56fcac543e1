"""Races, the pipeline and what operators see: groups E, N, O and P over HTTP.

The letters and numbers are rows of `docs/requirements.md`.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from typing_extensions import override

from service.runtime.clock import SystemClock
from service.runtime.ids import RandomIds
from service.store.postgres import PostgresStore
from tests.api.conftest import MakeHarness
from tests.api.harness import CLUSTER, Harness, problem
from tests.api.story import path_of, tell
from tests.builders import REQUIRED_DURING_EXECUTION, PodBuilder, matching, node, pod, requirement
from tests.support.memory_store.store import MemoryStore

HOST = "kubernetes.io/hostname"


@pytest.fixture
async def two_stores(each_database_url: str | None) -> AsyncIterator[list[Any]]:
    """Two ways to what is stored, over each store in turn; closed after those who use them."""
    if each_database_url is None:
        yield [MemoryStore(SystemClock().now, RandomIds().commit_id)] * 2
        return
    stores = [PostgresStore(each_database_url) for _ in range(2)]
    yield stores
    for store in stores:
        await store.close()


@pytest.fixture
async def two_processes(two_stores: list[Any], make_harness: MakeHarness) -> list[Harness]:
    """Two applications that share nothing but what is stored."""
    return [await make_harness(store) for store in two_stores]


async def race(pods: list[PodBuilder], *processes: Harness) -> list[str | None]:
    """Where the pods are placed, each by a request of its own, all at the same time."""
    turns = [processes[number % len(processes)] for number in range(len(pods))]
    answers = await asyncio.gather(
        *(each.place(one) for each, one in zip(turns, pods, strict=True))
    )
    return [answer["results"][0]["nodeName"] for answer in answers]


# Group E: races


async def test_first_pods_raced_end_in_one_domain(two_processes: list[Harness]) -> None:
    """E04: fifty self-affine pods at the same time, and one zone for all of them."""
    nodes = [node(f"n{number}").label(zone=f"z{number}") for number in range(4)]
    await tell(two_processes[0], *nodes)
    own = pod("s").label(service="S").require_affinity("zone", matching(service="S"))
    chosen = await race([own.named(f"s-{number}") for number in range(50)], *two_processes)
    assert len(set(chosen)) == 1
    assert None not in chosen


async def test_one_on_a_node_holds_in_a_race(two_processes: list[Harness]) -> None:
    """E05: as many nodes as pods, and every pod finds its own."""
    names = [f"n{number:02}" for number in range(20)]
    await tell(two_processes[0], *(node(name).label({HOST: name}) for name in names))
    apart = pod("s").label(service="S").require_anti_affinity(HOST, matching(service="S"))
    chosen = await race([apart.named(f"s-{number}") for number in range(20)], *two_processes)
    assert sorted(filter(None, chosen)) == names


async def test_evenness_holds_in_a_race(two_processes: list[Harness]) -> None:
    """E05: nine pods over three zones end three by three."""
    names = ("n0", "n1", "n2")
    await tell(two_processes[0], *(node(name).label(zone=name) for name in names))
    even = pod("s").label(service="S").spread(1, "zone")
    chosen = await race([even.named(f"s-{number}") for number in range(9)], *two_processes)
    assert Counter(chosen) == dict.fromkeys(names, 3)


# Group N: the pipeline


async def test_a_node_is_chosen_among_those_that_pass_everything(harness: Harness) -> None:
    """N01, N02: the best by score is no choice if a single rule speaks against it."""
    story = await tell(
        harness,
        node("best").label(zone="a", disk="ssd").cordon(),
        node("good").label(zone="a"),
        node("small").label(zone="a", disk="ssd").allocatable(cpu="1"),
        node("elsewhere").label(zone="b", disk="ssd"),
    )
    wanting = pod("p").request(cpu="2").node_selector(zone="a")
    wanting = wanting.prefer_node(100, requirement("disk", "In", "ssd"))
    answer = await story.explain(wanting)
    assert answer["feasible"] == ["good"]
    assert all(scores.keys() == {"good"} for scores in answer["scores"].values())
    assert {plugin: list(by_node) for plugin, by_node in answer["filters"].items()} == {
        "NodeAffinity": ["elsewhere"],
        "NodeResourcesFit": ["small"],
        "NodeUnschedulable": ["best"],
    }
    assert await story.place(wanting) == ["good"]


async def test_attraction_and_evenness_go_together(harness: Harness) -> None:
    """N03: in the zone of the database, and even over its hosts."""
    zones = {"n1": "a", "n2": "a", "n3": "b"}
    story = await tell(
        harness,
        *(node(name).label({HOST: name}, zone=zone) for name, zone in zones.items()),
        pod("db").label(app="db").on("n1"),
    )
    web = pod("web-0").label(app="web").require_affinity("zone", matching(app="db"))
    web = web.spread(1, HOST, nodeAffinityPolicy="Honor").node_selector(zone="a")
    chosen = await story.place(*(web.named(f"web-{number}") for number in range(4)))
    assert Counter(chosen) == {"n1": 2, "n2": 2}


async def test_weights_of_a_profile_change_the_ranking(harness: Harness) -> None:
    """N04: node affinity against inter-pod affinity; Kubernetes' weights are 2 and 2."""
    story = await tell(
        harness,
        node("near").label({HOST: "near"}),
        node("ssd").label({HOST: "ssd"}, disk="ssd"),
        pod("db").label(app="db").on("near"),
    )
    torn = pod("p").prefer_affinity(1, HOST, matching(app="db"))
    torn = torn.prefer_node(1, requirement("disk", "In", "ssd"))

    async def best_with(plugin: str) -> list[str]:
        plugins = {"score": {"enabled": [{"name": plugin, "weight": 50}]}}
        profile = {"schedulerName": "default-scheduler", "plugins": plugins}
        await story.configure(profiles=[profile])
        return list((await story.explain(torn))["best"])

    assert await best_with("InterPodAffinity") == ["near"]
    assert await best_with("NodeAffinity") == ["ssd"]


async def test_the_total_is_made_of_scores_and_default_weights(harness: Harness) -> None:
    """N04, C01, G09: each plugin's normalised scores are told, and add up to the total."""
    weights = {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "NodeResourcesFit": 1,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    story = await tell(
        harness,
        node("n1").label({HOST: "n1"}, disk="ssd").taint("slow", effect="PreferNoSchedule"),
        node("n2").label({HOST: "n2"}),
        pod("q").label(app="q").request(cpu="2").on("n1"),
    )
    wanting = pod("p").label(app="q").request(cpu="1").spread(1, HOST, soft=True)
    wanting = wanting.prefer_node(5, requirement("disk", "In", "ssd"))
    wanting = wanting.prefer_affinity(5, HOST, matching(app="q"))
    answer = await story.explain(wanting)
    assert answer["scoreSkipped"] == []
    for name in ("n1", "n2"):
        told = {plugin: scores[name] for plugin, scores in answer["scores"].items()}
        assert told.keys() == weights.keys()
        assert all(0 <= score <= 100 for score in told.values())
        total = sum(weights[plugin] * score for plugin, score in told.items())
        assert answer["total"][name] == total


async def test_a_stale_writer_is_told_so_and_placements_decide_again(harness: Harness) -> None:
    """N05: preconditions for objects; a placement says at which revisions it was decided."""
    story = await tell(harness, node("n1"))
    stale = (await story.read(node("n1")))["metadata"]["resourceVersion"]
    await story.put(node("n1").label(zone="a"))
    answer = await harness.client.put(
        f"{CLUSTER}/nodes/n1", json=node("n1"), headers={"if-match": f'"{stale}"'}
    )
    assert problem(answer, 412) == "PreconditionFailed"
    present = await story.read(node("n1"))
    assert present["metadata"]["labels"] == {"zone": "a"}
    patch = {"metadata": {"labels": {"zone": "b"}, "resourceVersion": stale}}
    answer = await harness.client.patch(f"{CLUSTER}/nodes/n1", json=patch)
    assert problem(answer, 409) == "RevisionConflict"
    answer = await harness.client.delete(f"{CLUSTER}/nodes/n1", headers={"if-match": f'"{stale}"'})
    assert problem(answer, 412) == "PreconditionFailed"
    assert await story.read(node("n1")) == present
    placed = await harness.place(pod("p"))
    assert placed["attempts"] == 1, "nobody else commits anything"
    planned = int(present["metadata"]["resourceVersion"])
    assert placed["results"][0]["plannedRevision"] == planned
    assert placed["revision"] == planned + 1


async def test_affinity_of_a_placed_pod_may_not_change(harness: Harness) -> None:
    """N07: neither added nor taken away; that of a pending pod may."""
    wanting = pod("p").require_node(requirement("zone", "In", "a"))
    story = await tell(harness, node("n1").label(zone="a"))
    assert await story.place(wanting) == ["n1"]
    patch: dict[str, Any] = {"spec": {"affinity": None}}
    answer = await harness.client.patch(f"{CLUSTER}/{path_of(wanting)}", json=patch)
    assert problem(answer, 422) == "InvalidManifest"
    assert [error["field"] for error in answer.json()["errors"]] == ["spec.affinity"]
    pending = wanting.named("pending").node_selector(zone="nowhere")
    await story.put(pending)
    answer = await harness.client.patch(f"{CLUSTER}/{path_of(pending)}", json=patch)
    assert answer.status_code == 200


async def test_one_constraint_may_be_hard_and_another_soft(harness: Harness) -> None:
    """N08: zones must be even, hosts should be; the same constraint can be either."""
    zones = {"n1": "a", "n2": "b", "n3": "b"}
    story = await tell(
        harness,
        *(node(name).label({HOST: name}, zone=zone) for name, zone in zones.items()),
        pod("q-1").label(app="foo").on("n1"),
        pod("q-2").label(app="foo").on("n1"),
        pod("q-3").label(app="foo").on("n2"),
    )
    foo = pod("p").label(app="foo")
    mixed = await story.explain(foo.spread(1, "zone").spread(1, HOST, soft=True))
    assert mixed["feasible"] == ["n2", "n3"]
    assert mixed["scores"]["PodTopologySpread"]["n3"] > mixed["scores"]["PodTopologySpread"]["n2"]
    assert await story.feasible(foo.spread(1, HOST)) == ["n3"]
    assert await story.feasible(foo.spread(1, HOST, soft=True)) == ["n1", "n2", "n3"]


# Group O: what operators see


async def attempts(harness: Harness) -> dict[str, float]:
    """Pods asked to be placed, by result, as scraped."""
    lines = (await harness.client.get("/metrics")).text.splitlines()
    found = {}
    for line in lines:
        if line.startswith("scheduler_schedule_attempts_total{"):
            result = line.split('result="')[1].split('"')[0]
            found[result] = float(line.rsplit(" ", 1)[1])
    return found


async def test_attempts_are_counted_by_result(harness: Harness) -> None:
    """O01: scheduled and unschedulable; what did not happen is counted as 0."""
    story = await tell(harness, node("n1"))
    await story.place(pod("a"), pod("b"), pod("c").node_selector(zone="none"))
    assert await attempts(harness) == {"scheduled": 2, "unschedulable": 1, "error": 0}


async def scraped(harness: Harness, name: str, **labels: str) -> list[Sample]:
    """The samples of one metric, as Prometheus reads them, that have these labels."""
    text = (await harness.client.get("/metrics")).text
    return [
        sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and sample.labels.items() >= labels.items()
    ]


def quantile(share: float, buckets: list[Sample]) -> float:
    """The least bound below which this share of the observations is; buckets count upwards."""
    bounds = sorted((float(each.labels["le"]), each.value) for each in buckets)
    return next(bound for bound, count in bounds if count >= share * bounds[-1][1] > 0)


class CommitClock(SystemClock):
    """Time passes only while something is committed."""

    def __init__(self) -> None:
        self.passed = 0.0

    @override
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.passed)

    @override
    def monotonic(self) -> float:
        return self.passed


async def test_durations_are_those_that_pass(make_harness: MakeHarness) -> None:
    """O01, O03: a commit that takes 0.7 s is that much of the request and of the pod's way."""
    clock = CommitClock()
    harness = await make_harness(clock=clock)
    story = await tell(harness, node("n1"))
    commit = harness.store.log.commit

    async def slowly(*args: Any, **fields: Any) -> Any:
        clock.passed += 0.7
        return await commit(*args, **fields)

    harness.store.log.commit = slowly
    assert await story.place(pod("a")) == ["n1"]
    for name, labels in (
        ("scheduler_pod_scheduling_sli_duration_seconds", {}),
        ("moorage_http_request_duration_seconds", {"operation": "placePods", "status": "200"}),
    ):
        (total,) = await scraped(harness, f"{name}_sum", **labels)
        (count,) = await scraped(harness, f"{name}_count", **labels)
        assert (round(total.value, 3), count.value) == (0.7, 1), name
        buckets = await scraped(harness, f"{name}_bucket", **labels)
        assert 0.7 <= quantile(0.99, buckets) <= 1.5, name


async def test_goals_can_be_computed_from_one_scrape(harness: Harness) -> None:
    """O01, O03: 99 % of placements within half a second, p99 of a plugin, the ratio of successes."""
    story = await tell(harness, node("n1").label({HOST: "n1"}))
    lonely = pod("p").label(app="p").require_anti_affinity(HOST, matching(app="p"))
    chosen = await story.place(*(lonely.named(f"p-{number}") for number in range(4)))
    assert Counter(chosen) == {"n1": 1, None: 3}
    name = "scheduler_pod_scheduling_sli_duration_seconds"
    placements = await scraped(harness, f"{name}_bucket")
    assert quantile(0.99, placements) < float("inf")
    (count,) = await scraped(harness, f"{name}_count")
    assert count.value == 1
    name = "scheduler_plugin_execution_duration_seconds_bucket"
    labels = {"plugin": "InterPodAffinity", "extension_point": "Filter"}
    assert 0 < quantile(0.99, await scraped(harness, name, **labels)) < float("inf")
    tried = await attempts(harness)
    assert tried["scheduled"] / sum(tried.values()) == 1 / 4


async def test_latency_of_requests_can_be_computed(harness: Harness) -> None:
    """O03: from a histogram by operation."""
    await (await tell(harness, node("n1"))).place(pod("a"))
    lines = (await harness.client.get("/metrics")).text.splitlines()
    name = "moorage_http_request_duration_seconds"
    labels = 'operation="placePods",status="200"'
    buckets = [line for line in lines if line.startswith(f"{name}_bucket{{") and labels in line]
    counts = [float(line.rsplit(" ", 1)[1]) for line in buckets]
    assert counts == sorted(counts)
    assert counts[-1] == 1
    assert f"{name}_count{{{labels}}} 1.0" in lines


async def test_a_placed_pod_has_a_node_and_a_waiting_one_the_reason(harness: Harness) -> None:
    """O04: as `nodeName` and as the condition PodScheduled, in Kubernetes' words."""
    story = await tell(harness, node("n1"))
    waiting = pod("waits").node_selector(zone="none")
    await story.place(pod("p"), waiting, onUnschedulable="Queue")
    placed = await story.read(pod("p"))
    assert placed["spec"]["nodeName"] == "n1"
    (condition,) = (await story.read(waiting))["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
    assert condition["reason"] == "Unschedulable"
    assert condition["message"].startswith(
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
    )


async def test_pods_that_use_a_namespace_selector_are_found(over_each_store: Harness) -> None:
    """O05: in any of the lists of affinity and anti-affinity, a null one not counted."""
    fields = {"namespaceSelector": {}}
    story = await tell(
        over_each_store,
        pod("plain"),
        pod("listed").require_affinity(HOST, matching(a="b"), namespaces=["shop"]),
        pod("null").require_affinity(HOST, matching(a="b"), namespaceSelector=None),
        pod("hard").require_affinity(HOST, matching(a="b"), **fields),
        pod("soft").prefer_anti_affinity(1, "zone", matching(a="b"), **fields),
        pod("rde").require_anti_affinity(
            HOST, matching(a="b"), execution=REQUIRED_DURING_EXECUTION, **fields
        ),
    )
    answer = await story.harness.client.get(f"{CLUSTER}/pods?uses=namespaceSelector")
    names = [item["metadata"]["name"] for item in answer.json()["items"]]
    assert names == ["hard", "rde", "soft"]


async def test_every_rule_has_its_say_on_every_node(harness: Harness) -> None:
    """O07: not only the first failure of a node, and not only a count of nodes."""
    story = await tell(harness, node("n1").cordon().taint("dedicated"), node("n2"))
    wanting = pod("p").request(cpu="100").node_selector(zone="none")
    answer = await story.explain(wanting)
    refusing = {plugin: sorted(by_node) for plugin, by_node in answer["filters"].items()}
    assert refusing == {
        "NodeAffinity": ["n1", "n2"],
        "NodeResourcesFit": ["n1", "n2"],
        "NodeUnschedulable": ["n1"],
        "TaintToleration": ["n1"],
    }
    tried = await harness.place(wanting, dryRun=True, explain="Summary")
    summary = tried["results"][0]["explanation"]
    assert (summary["feasibleCount"], summary["nodes"]) == (0, 2)
    assert summary["reasons"]


# Group P: clients that know more or less


@pytest.mark.parametrize("method", ["put", "patch"])
async def test_unknown_fields_survive_a_client_that_does_not_know_them(
    over_each_store: Harness, method: str
) -> None:
    """P05: outside of what scheduling reads they are kept, inside they are errors."""
    sent = pod("p")
    sent["spec"]["futureField"] = {"of": "a later version"}
    story = await tell(over_each_store, sent)
    change: Any = sent.label(app="web") if method == "put" else {"metadata": {"labels": {"a": "b"}}}
    client: httpx.AsyncClient = story.harness.client
    answer = await client.request(method, f"{CLUSTER}/{path_of(sent)}", json=change)
    assert answer.status_code == 200
    assert (await story.read(sent))["spec"]["futureField"] == {"of": "a later version"}
    sent["spec"]["affinity"] = {"futureAffinity": {}}
    assert (await story.wrong_fields(sent)).keys() == {"spec.affinity.futureAffinity"}
