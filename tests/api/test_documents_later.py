"""What becomes of pods after the first decision: groups B, D, H, L to O and R over HTTP.

The letters and numbers are rows of `docs/requirements.md`.
"""

from typing import Any

import pytest

from service.model.core.errors import StorageUnavailable
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


async def test_a_pod_that_waits_for_another_reason_is_placed_once_that_is_gone(
    harness: Harness,
) -> None:
    """H14: whoever fits nowhere is not told of a constraint that would not keep it out."""
    zoned = [node(name).label(zone=name) for name in ("n1", "n2")]
    story = await tell(harness, *(each.cordon() for each in zoned))
    waiting = (
        pod("waiting").label(app="foo").spread(1, "zone", whenUnsatisfiable="FallbackWhenFull")
    )
    told = await story.explain(waiting)
    assert "spread" not in told["message"]
    await story.put(waiting)
    await story.put(zoned[1])
    assert await placed_by_itself(story, waiting) == ["n2"]


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
            patched.setattr(harness.store.log, name, gone)
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


async def test_of_pods_that_only_need_each_other_one_stays(harness: Harness) -> None:
    """M11: four of one service, each alone in its zone, of which the oldest needs nobody."""
    wide = [node(f"n{number}").label(zone="a") for number in range(4)]
    pods = [
        pod(f"web-{number}")
        .label(app="web")
        .require_affinity("zone", matching(app="web"), execution=REQUIRED_DURING_EXECUTION)
        .priority(int(number == 2))
        .on(f"n{number}")
        for number in range(4)
    ]
    story = await tell(harness, *wide, *pods, affinityViolationGraceSeconds=0)
    assert await violations(story) == []
    apart = [
        {"apiVersion": "v1", "kind": "Node"} | each.label(zone=f"z{index}")
        for index, each in enumerate(wide)
    ]
    body = {"apiVersion": "v1", "kind": "List", "items": apart}
    assert (await harness.client.post(f"{CLUSTER}/apply", json=body)).status_code == 200
    for each in (pods[0], pods[1], pods[3]):
        assert (await evicted(story, each))["reason"] == "PodAffinityViolated"
    for each in (pods[0], pods[1], pods[3]):
        assert "deletionTimestamp" not in (await story.read(pods[2]))["metadata"]
        await story.delete(each)
    assert await violations(story) == []


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


RACK = [node(name).label({HOST: name}, rack=rack) for name, rack in (("n1", "r1"), ("n2", "r1"))]


def limited(name: str, most: int, **fields: Any) -> PodBuilder:
    """A pod that tolerates so many of its service in its rack, itself included."""
    made = pod(name).label(app="web")
    return made.require_anti_affinity("rack", matching(app="web"), maxPerDomain=most, **fields)


async def test_a_rule_allows_so_many_pods_in_a_domain(harness: Harness) -> None:
    """R03: three on the rack, whoever asks first; the fourth is told why not."""
    story = await tell(harness, *RACK)
    chosen = await story.place(*(limited(f"web-{number}", 3) for number in range(4)))
    assert [name is not None for name in chosen] == [True, True, True, False]
    late = limited("late", 3)
    reason = ["node(s) would exceed maxPerDomain of pod anti-affinity rules"]
    told = (await story.explain(late))["filters"]["InterPodAffinity"]
    assert told == {"n1": reason, "n2": reason}
    await story.put(node("n3").label({HOST: "n3"}, rack="r2"))
    assert await story.place(late) == ["n3"]


async def test_the_number_of_placed_pods_holds_for_newcomers_without_a_rule(
    harness: Harness,
) -> None:
    """R03: symmetric; whom the rule does not match may always come, and a room that is left, too."""
    web = pod("web").label(app="web")
    story = await tell(harness, *RACK, limited("owner", 2).on("n1"))
    assert await story.feasible(pod("other").label(app="db")) == ["n1", "n2"]
    assert await story.place(web) != [None]
    late = web.named("late")
    reason = ["node(s) would exceed maxPerDomain of existing pods anti-affinity rules"]
    told = (await story.explain(late))["filters"]["InterPodAffinity"]
    assert told == {"n1": reason, "n2": reason}
    await story.delete(web)
    assert await story.feasible(late) == ["n1", "n2"]


async def test_a_number_counts_the_matching_pods_and_not_who_has_the_rule(harness: Harness) -> None:
    """R03: a pod that does not match its own rule may be beside as many as the rule says."""
    story = await tell(harness, *RACK, pod("db-0").label(app="db").on("n1"))
    beside = pod("p").require_anti_affinity("rack", matching(app="db"), maxPerDomain=1)
    assert await story.feasible(beside) == ["n1", "n2"]
    await story.put(pod("db-1").label(app="db").on("n2"))
    assert await story.feasible(beside) == []


async def test_more_pods_than_a_rule_allows_are_a_violation(harness: Harness) -> None:
    """R03: of each that has the rule; as many as it allows are none."""
    story = await tell(harness, *RACK, limited("a", 2).on("n1"), limited("b", 2).on("n2"))
    assert await violations(story) == []
    await story.put(pod("c").label(app="web").on("n1"))
    broken = {each["name"]: each for each in await violations(story)}
    assert sorted(broken) == ["a", "b"]
    assert [each["name"] for each in broken["a"]["conflictsWith"]] == ["b", "c"]
    assert broken["a"]["reason"] == "node(s) would exceed maxPerDomain of pod anti-affinity rules"


async def test_one_too_many_is_evicted_and_no_more(harness: Harness) -> None:
    """R03: the lowest priority of those that have the rule; then it holds."""
    lasting = {"execution": REQUIRED_DURING_EXECUTION}
    pods = [
        limited(name, 2, **lasting).priority(priority).on("n1")
        for name, priority in (("a", 2), ("b", 1), ("c", 0))
    ]
    story = await tell(harness, *RACK, *pods)
    told = (await evicted(story, pods[2]))["message"]
    assert "does not hold on node n1" in told
    for each in pods[:2]:
        assert "deletionTimestamp" not in (await story.read(each))["metadata"]


@pytest.mark.parametrize("most", [0, -1, 1.5, "2"])
async def test_a_number_of_pods_is_a_whole_one_above_zero(harness: Harness, most: Any) -> None:
    """R03: as of all numbers of a manifest, the field is named."""
    story = await tell(harness)
    term = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
    assert list(await story.wrong_fields(limited("p", most))) == [f"{term}.maxPerDomain"]


async def test_only_required_anti_affinity_has_a_number_of_pods(harness: Harness) -> None:
    """R03: elsewhere the field would mean nothing, so it is refused."""
    story = await tell(harness)
    web = matching(app="web")
    told = "can only be used in required podAntiAffinity"
    for wrong in (
        pod("p").require_affinity(HOST, web, maxPerDomain=2),
        pod("p").prefer_affinity(1, HOST, web, maxPerDomain=2),
        pod("p").prefer_anti_affinity(1, HOST, web, maxPerDomain=2),
    ):
        ((field, message),) = (await story.wrong_fields(wrong)).items()
        assert field.endswith(".maxPerDomain")
        assert message == told


async def test_a_rule_tolerates_daemons_by_itself(harness: Harness) -> None:
    """L03: in either direction, as its own field says and no setting; only this rule."""
    ops = namespace("ops").label(role="daemons")
    alone = pod("alone").require_anti_affinity(
        HOST, {}, namespaceSelector={}, exceptNamespaceSelector=matching(role="daemons")
    )
    strict = pod("strict").require_anti_affinity(HOST, {}, namespaceSelector={})
    agent, late = pod("agent", "ops"), pod("late", "ops")
    story = await tell(
        harness, node("n1").label({HOST: "n1"}), ops, agent.on("n1"), daemonNamespaces=[]
    )
    assert await story.feasible(strict) == []
    told = await story.explain(alone)
    assert told["feasible"] == ["n1"]
    (left_out,) = told["exemptions"]
    assert left_out["reason"] == "exceptNamespaceSelector leaves out the namespaces of these pods."
    assert (left_out["pods"], left_out["nodes"]) == (1, 1)
    assert await story.place(alone) == ["n1"]
    assert await violations(story) == []
    assert await story.feasible(pod("other")) == []
    (left_out,) = (await story.explain(late))["exemptions"]
    assert left_out["ownerNamespace"] == "default"
    assert await story.place(late) == ["n1"]


async def test_a_namespace_that_is_no_longer_left_out_counts(harness: Harness) -> None:
    """L03, M02: when its labels change; then the owner of the rule is evicted."""
    owner = pod("owner").require_anti_affinity(
        HOST,
        {},
        namespaceSelector={},
        exceptNamespaceSelector=matching(role="daemons"),
        execution=REQUIRED_DURING_EXECUTION,
    )
    ops = namespace("ops").label(role="daemons")
    story = await tell(harness, node("n1").label({HOST: "n1"}), ops, pod("agent", "ops").on("n1"))
    assert await story.place(owner) == ["n1"]
    assert await violations(story) == []
    await story.put(namespace("ops"))
    assert await evicted(story, owner)


async def test_every_kind_of_term_may_leave_out_namespaces(harness: Harness) -> None:
    """L03: affinity to pods of the other namespaces only; a preference of the same kind."""
    b = matching(app="b")
    left_out = {"namespaceSelector": {}, "exceptNamespaceSelector": matching(role="test")}
    story = await tell(
        harness,
        *(node(name).label({HOST: name}) for name in ("n1", "n2")),
        namespace("test").label(role="test"),
        pod("b", "test").label(app="b").on("n1"),
        pod("b").label(app="b").on("n2"),
    )
    assert await story.feasible(pod("p").require_affinity(HOST, b, **left_out)) == ["n2"]
    assert await story.place(pod("p").prefer_affinity(1, HOST, b, **left_out)) == ["n2"]
    assert await story.place(pod("q").prefer_anti_affinity(1, HOST, b, **left_out)) == ["n1"]


# Group R: what the documents left for later


def connected(name: str, weight: Any, app: str, /, **fields: Any) -> PodBuilder:
    """A pod that talks with the pods of an application."""
    wanted = pod(name)
    connection = {"topologyKey": "zone", "labelSelector": matching(app=app), "weight": weight}
    wanted["spec"]["connections"] = [connection | fields]
    return wanted


TWO_ZONES = [node(name).label({HOST: name}, zone=zone) for name, zone in (("n1", "a"), ("n2", "b"))]


async def test_a_pod_goes_where_it_talks_most(harness: Harness) -> None:
    """R04: the weights of the connected pods in a domain are added; no other preference may be so great."""
    web = connected("web", 3000, "db").prefer_affinity(100, "zone", matching(app="log"))
    logs = [pod(f"log-{number}").label(app="log").on("n2") for number in range(20)]
    story = await tell(harness, *TWO_ZONES, pod("db").label(app="db").on("n1"), *logs)
    told = await story.explain(web)
    assert told["scores"]["InterPodAffinity"] == {"n1": 100, "n2": 0}
    assert await story.place(web) == ["n1"]
    assert (await story.read(web))["spec"]["connections"] == web["spec"]["connections"]
    assert (await story.read(web))["spec"]["affinity"] == web["spec"]["affinity"]


async def test_a_connection_has_two_ends(harness: Harness) -> None:
    """R04: who comes later is drawn to those that are connected with it, in the namespaces named."""
    db = pod("db", "shop").label(app="db")
    web = connected("web", 7, "db", namespaces=["shop"])
    story = await tell(harness, *TWO_ZONES, web.on("n2"), pod("other").on("n1"))
    assert await story.place(db) == ["n2"]
    assert "InterPodAffinity" in (await story.explain(connected("late", 1, "db")))["scoreSkipped"]


async def test_connections_of_a_placed_pod_do_not_change(harness: Harness) -> None:
    """R04: like its other rules; the error names them and not what they mean."""
    story = await tell(harness, *TWO_ZONES, connected("web", 7, "db").on("n1"))
    told = await story.wrong_fields(connected("web", 8, "db").on("n1"))
    assert told == {"spec.connections": "may not change in a placed pod"}


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"weight": 0}, "weight"),
        ({"weight": 1_000_001}, "weight"),
        ({"topologyKey": ""}, "topologyKey"),
        ({"labelSelector": {"matchLabels": {"app": "-"}}}, "labelSelector.matchLabels[app]"),
        ({"namespaces": ["-"]}, "namespaces[0]"),
        ({"maxPerDomain": 1}, "maxPerDomain"),
    ],
)
async def test_what_is_wrong_with_a_connection_is_named(
    harness: Harness, fields: dict[str, Any], wrong: str
) -> None:
    """R04: as in every rule."""
    story = await tell(harness)
    told = await story.wrong_fields(connected("web", 1, "db", **fields))
    assert list(told) == [f"spec.connections[0].{wrong}"]
