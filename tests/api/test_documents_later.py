"""What becomes of pods after the first decision: groups B, D, H, L to O and R over HTTP.

The letters and numbers are rows of `docs/requirements.md`.
"""

from typing import Any

import pytest

from service.model.errors import StorageUnavailable
from tests.api.harness import CLUSTER, Harness, problem
from tests.api.story import Story, path_of, tell
from tests.builders import (
    REQUIRED_DURING_EXECUTION,
    PodBuilder,
    matching,
    namespace,
    node,
    pod,
    requirement,
)
from tests.waiting import once

HOST = "kubernetes.io/hostname"


async def violations(story: Story) -> list[dict[str, Any]]:
    """What is broken now, as `GET …/violations` tells it."""
    answer = await story.harness.client.get(f"{CLUSTER}/violations")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


async def placed_by_itself(story: Story, *pods: PodBuilder) -> list[str]:
    """The nodes of stored pods, as soon as all of them have one."""

    async def nodes() -> list[str]:
        specs = [(await story.read(each))["spec"] for each in pods]
        named = [spec["nodeName"] for spec in specs if "nodeName" in spec]
        return named if len(named) == len(pods) else []

    return await once(nodes)


async def test_a_node_that_changed_is_a_violation_of_its_pods_rule(harness: Harness) -> None:
    """B02, M10: the pod stays, and the rule that it breaks is told as ignored."""
    wanting = pod("p").require_node(requirement("zone", "In", "a"))
    story = await tell(harness, node("n1").label(zone="a"))
    await story.place(wanting)
    assert await violations(story) == []
    await story.put(node("n1").label(zone="b"))
    (broken,) = await violations(story)
    assert (broken["name"], broken["plugin"], broken["execution"]) == (
        "p",
        "NodeAffinity",
        "Ignored",
    )
    assert broken["rule"].startswith("spec.affinity.nodeAffinity.")
    assert (await story.read(wanting))["spec"]["nodeName"] == "n1"


async def test_who_loses_its_company_stays_and_is_told(harness: Harness) -> None:
    """D08, M10: S1 required S2 for scheduling only; S2 never required S1."""
    s2 = pod("s2").label(app="S2")
    s1 = pod("s1").label(app="S1").require_affinity(HOST, matching(app="S2"))
    story = await tell(harness, node("n1").label({HOST: "n1"}))
    await story.place(s2)
    await story.place(s1)
    await story.delete(s1)
    assert await violations(story) == [], "S2 continues"
    await story.place(s1)
    await story.delete(s2)
    (broken,) = await violations(story)
    assert (broken["name"], broken["execution"]) == ("s1", "Ignored")
    assert "deletionTimestamp" not in (await story.read(s1))["metadata"]


async def test_service_a_starts_once_service_b_has(harness: Harness) -> None:
    """D09: the article's demonstration; nobody asks for A a second time."""
    zone = "kind.zone"
    workers = {"w1": "zone1", "w2": "zone1", "w3": "zone2"}
    service_a = [
        pod(f"a-{number}").label(app="a").require_affinity(zone, matching(app="b"))
        for number in range(3)
    ]
    story = await tell(
        harness, *(node(name).label({zone: value}) for name, value in workers.items())
    )
    assert await story.place(*service_a, onUnschedulable="Queue") == [None] * 3
    await story.put(pod("b-0").label(app="b").node_selector(**{zone: "zone1"}))
    assert set(await placed_by_itself(story, *service_a)) <= {"w1", "w2"}


async def test_the_skew_of_a_domain_is_told(harness: Harness) -> None:
    """H01: 3/2/1 is 2 above the least in the first zone, 1 in the second, 0 in the third."""
    zones = {"n1": 3, "n2": 2, "n3": 1}
    even = pod("foo").label(app="foo").spread(1, "zone")
    story = await tell(harness, *(node(name).label(zone=name) for name in zones))
    for name, count in zones.items():
        await story.put(*(even.named(f"{name}-{number}").on(name) for number in range(count)))
    told = {(each["nodeName"], each["skew"]) for each in await violations(story)}
    assert told == {("n1", 2)}
    answer = await harness.client.get(f"{CLUSTER}/topology?key=zone")
    assert [domain["pods"] for domain in answer.json()["domains"]] == [3, 2, 1]
    assert await story.feasible(even) == ["n3"]


async def test_pending_pods_go_by_priority(harness: Harness) -> None:
    """N06: the place that becomes free goes to the pod of the higher class."""
    full = node("n1").allocatable(pods="0")
    story = await tell(harness, full, priorityClasses={"high": 100, "low": 1})
    for name in ("low", "high"):
        waiting = pod(name)
        waiting["spec"]["priorityClassName"] = name
        await story.put(waiting)
    await story.put(full.allocatable(pods="1"))
    assert await placed_by_itself(story, pod("high")) == ["n1"]
    assert (await story.read(pod("high")))["spec"]["priority"] == 100
    assert "nodeName" not in (await story.read(pod("low")))["spec"]


async def test_without_a_database_nothing_is_half_placed(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O08: 503 and when to ask again; what runs goes on, what was not committed is not there."""
    story = await tell(harness, node("n1"))
    await story.place(pod("running"))

    async def gone(*_: object, **__: object) -> None:
        raise StorageUnavailable("The database cannot be reached.")

    with monkeypatch.context() as patched:
        for name in ("head", "commit"):
            patched.setattr(harness.store, name, gone)
        answer = await harness.client.post(
            f"{CLUSTER}/placements", json={"pods": [pod("a"), pod("b")]}
        )
    assert problem(answer, 503) == "StorageUnavailable"
    assert answer.headers["retry-after"]
    for name in ("a", "b"):
        absent = await harness.client.get(f"{CLUSTER}/{path_of(pod(name))}")
        assert problem(absent, 404) == "NotFound"
    assert (await story.read(pod("running")))["spec"]["nodeName"] == "n1"
    assert await story.place(pod("a"), pod("b")) == ["n1", "n1"]


async def test_what_if_honours_namespace_selectors(harness: Harness) -> None:
    """R07: simulations select namespaces by label as placements do."""
    team = matching(team="red")
    body = {
        "namespaces": [namespace("red-1").label(team="red")],
        "nodes": [node(name).label({HOST: name}) for name in ("n1", "n2")],
        "pods": [pod("q", "red-1").on("n1"), pod("q", "blue-1").on("n2")],
        "pod": pod("p").require_anti_affinity(HOST, matching(), namespaceSelector=team),
    }
    answer = await harness.client.post("/v1/simulations", json=body)
    assert answer.json()["results"][0]["explanation"]["feasible"] == ["n2"]


# Group M: required during execution


async def evicted(story: Story, one: PodBuilder) -> dict[str, Any]:
    """The condition that tells why a pod is evicted, as soon as it is."""

    async def condition() -> dict[str, Any] | None:
        read = await story.read(one)
        conditions = read.get("status", {}).get("conditions", [])
        found = next((each for each in conditions if each["type"] == "DisruptionTarget"), None)
        assert found is None or read["metadata"]["deletionTimestamp"]
        return found

    return await once(condition) or {}


@pytest.mark.parametrize("key", [HOST, "zone", "rack"])
async def test_a_rule_that_must_last_evicts_its_owner(harness: Harness, key: str) -> None:
    """M03, M09: for every topology key; who was relabelled into the conflict stays."""
    owner = pod("owner").require_anti_affinity(
        key, matching(app="q"), execution=REQUIRED_DURING_EXECUTION
    )
    story = await tell(
        harness,
        node("n1").label({HOST: "n1"}, zone="a", rack="r"),
        owner.on("n1"),
        pod("q").on("n1"),
    )
    await story.put(pod("q").label(app="q"))
    condition = await evicted(story, owner)
    assert condition["status"] == "True"
    assert "deletionTimestamp" not in (await story.read(pod("q")))["metadata"]


async def test_a_node_that_changed_evicts_whose_rule_must_last(harness: Harness) -> None:
    """M01, M02: node affinity required during execution is judged again with every label."""
    wanting = pod("p").require_node(
        requirement("zone", "In", "a"), execution=REQUIRED_DURING_EXECUTION
    )
    story = await tell(harness, node("n1").label(zone="a"))
    assert await story.place(wanting) == ["n1"]
    await story.put(node("n1").label(zone="b"))
    assert (await evicted(story, wanting))["message"]


async def test_who_loses_what_must_last_is_evicted(harness: Harness) -> None:
    """D08, M05: S1 needs S2 for as long as it runs; here without any forgiveness."""
    s2 = pod("s2").label(app="S2")
    s1 = pod("s1").require_affinity(HOST, matching(app="S2"), execution=REQUIRED_DURING_EXECUTION)
    bystander = pod("bystander")
    story = await tell(harness, node("n1").label({HOST: "n1"}), affinityViolationGraceSeconds=0)
    for each in (s2, s1, bystander):
        await story.place(each)
    await story.delete(s2)
    assert await evicted(story, s1)
    assert "deletionTimestamp" not in (await story.read(bystander))["metadata"]


async def test_daemons_are_no_reason_to_evict(harness: Harness) -> None:
    """L04: a daemon that is relabelled into a conflict evicts nobody; another pod does."""
    owner = pod("owner").require_anti_affinity(
        HOST, matching(app="q"), execution=REQUIRED_DURING_EXECUTION, namespaceSelector={}
    )
    daemon = pod("agent", "kube-system")
    story = await tell(
        harness,
        node("n1").label({HOST: "n1"}),
        namespace("kube-system"),
        namespace("shop"),
        owner.on("n1"),
        daemon.on("n1"),
    )
    await story.put(daemon.label(app="q"))
    assert await violations(story) == []
    await story.put(pod("q", "shop").label(app="q").on("n1"))
    assert await evicted(story, owner)


async def test_changes_of_all_kinds_are_noticed(harness: Harness) -> None:
    """M02: labels of pods, nodes and namespaces, pods that go and nodes that go."""
    lasting = {"execution": REQUIRED_DURING_EXECUTION}
    red = matching(team="red")
    owners = {
        "pod-label": pod("pod-label").require_anti_affinity(HOST, matching(app="q"), **lasting),
        "node-label": pod("node-label").require_node(requirement("disk", "In", "ssd"), **lasting),
        "namespace-label": pod("namespace-label").require_anti_affinity(
            HOST, matching(app="r"), namespaceSelector=red, **lasting
        ),
        "pod-gone": pod("pod-gone").require_affinity("zone", matching(app="b"), **lasting),
        "node-gone": pod("node-gone").require_affinity("zone", matching(app="c"), **lasting),
    }
    company = pod("b").label(app="b").on("n2")
    here = node("n1").label({HOST: "n1"}, zone="a", disk="ssd")
    there = node("n2").label({HOST: "n2"}, zone="a")
    story = await tell(
        harness,
        here,
        there,
        namespace("shop"),
        pod("q").on("n1"),
        pod("r", "shop").label(app="r").on("n1"),
        company,
        pod("c").label(app="c").on("n2"),
        *(owner.on("n1") for owner in owners.values()),
        affinityViolationGraceSeconds=0,
    )
    assert await violations(story) == []
    await story.put(pod("q").label(app="q"))
    assert await evicted(story, owners["pod-label"])
    await story.put(here.label(disk="hdd"))
    assert await evicted(story, owners["node-label"])
    await story.put(namespace("shop").label(team="red"))
    assert await evicted(story, owners["namespace-label"])
    await story.delete(company)
    assert await evicted(story, owners["pod-gone"])
    await story.delete(there)
    assert await evicted(story, owners["node-gone"])
