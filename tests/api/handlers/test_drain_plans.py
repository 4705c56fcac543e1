"""Plans to drain nodes over HTTP: in which waves pods leave, where they go, and who stays for which reason."""

import json
import re
from typing import Any

import pytest

from tests.api.harness import CLUSTER, Harness, pod, problem
from tests.paths import ROOT

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
A_0 = {"type": "Drain", "nodes": {"names": ["a-0"]}}
ZONE_A = {"type": "Drain", "nodes": {"topology": {"key": ZONE, "values": ["a"]}}}
MIRROR = {"kubernetes.io/config.mirror": "0af1"}

Json = dict[str, Any]


async def drain(harness: Harness, goal: Json = A_0, **rest: Any) -> Json:
    answer = await harness.client.post(f"{CLUSTER}/plans", json={"goal": goal, **rest})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def nodes(harness: Harness, *names: str) -> None:
    await harness.configure(placePendingPods=False)
    for name in names or ("a-0", "a-1", "b-0", "b-1"):
        await harness.put_node(name, **{ZONE: name[0], HOST: name})


async def placed(harness: Harness, name: str, node: str = "a-0", **spec: Any) -> None:
    await harness.put("namespaces/shop/pods/" + name, pod(name, nodeName=node, **spec))


async def budget(harness: Harness, **spec: Any) -> None:
    manifest = {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }
    await harness.put("namespaces/shop/poddisruptionbudgets/web", manifest)


def waves(told: Json) -> list[set[str]]:
    """The pods of each wave; the cordons, wave 0, are left out."""
    evicted = [each for each in told["steps"] if each["action"] == "Evict"]
    last = max((each["wave"] for each in evicted), default=0)
    return [
        {each["name"] for each in evicted if each["wave"] == wave} for wave in range(1, last + 1)
    ]


def cordoned(told: Json) -> list[str]:
    return [each["name"] for each in told["steps"] if each["action"] == "Cordon"]


def reasons(told: Json) -> dict[str, str]:
    return {each["name"]: each["reason"] for each in told["unplaced"]}


async def test_pods_go_to_other_nodes_and_nothing_is_done(harness: Harness) -> None:
    await nodes(harness)
    for number in range(3):
        await placed(harness, f"web-{number}")
    head = (await harness.client.get(CLUSTER)).json()["revision"]
    told = await drain(harness)
    assert cordoned(told) == ["a-0"]
    assert waves(told) == [{"web-0", "web-1", "web-2"}]
    evicted = [each for each in told["steps"] if each["action"] == "Evict"]
    assert {each["from"] for each in evicted} == {"a-0"}
    assert "a-0" not in {each["to"] for each in evicted}
    assert (told["complete"], told["unplaced"]) == (True, [])
    assert (told["before"]["pods"], told["after"]["pods"]) == (3, 3)
    cordon = told["steps"][0]
    assert cordon == {"action": "Cordon", "name": "a-0", "wave": 0, "reason": "it is drained"}
    assert (await harness.client.get(CLUSTER)).json()["revision"] == head


async def test_a_whole_domain_is_drained_and_none_goes_within_it(harness: Harness) -> None:
    await nodes(harness)
    await placed(harness, "web-0", "a-0")
    await placed(harness, "web-1", "a-1")
    told = await drain(harness, ZONE_A)
    assert cordoned(told) == ["a-0", "a-1"]
    assert {each["to"][0] for each in told["steps"] if "to" in each} == {"b"}


async def test_no_wave_takes_more_than_a_budget_allows(harness: Harness) -> None:
    await nodes(harness)
    for number in range(5):
        await placed(harness, f"web-{number}", "a-0" if number < 3 else "b-0")
    await budget(harness, maxUnavailable=2)
    told = await drain(harness)
    assert sorted(map(len, waves(told))) == [1, 2]
    await budget(harness, minAvailable=4)
    assert list(map(len, waves(await drain(harness)))) == [1, 1, 1]


async def test_a_budget_that_allows_nothing_is_named(harness: Harness) -> None:
    await nodes(harness)
    await placed(harness, "web-0")
    await budget(harness, minAvailable=1)
    told = await drain(harness)
    assert told["complete"] is False
    assert cordoned(told) == ["a-0"]
    [kept] = told["unplaced"]
    assert (kept["name"], kept["from"], kept["reason"]) == ("web-0", "a-0", "DisruptionBudget")
    assert kept["message"] == "The disruption budget web does not allow that it leaves."


async def test_daemons_static_pods_and_those_that_leave_already_are_left_alone(
    harness: Harness,
) -> None:
    await nodes(harness)
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "1"}
    for name, metadata in (
        ("daemon", {"ownerReferences": [{**owner, "controller": True}]}),
        ("static", {"annotations": MIRROR}),
        ("mentions", {"annotations": {"about": "kubernetes.io/config.mirror"}}),
    ):
        body = pod(name, nodeName="a-0")
        body["metadata"] |= metadata
        await harness.put(f"namespaces/shop/pods/{name}", body)
    field = {"key": "metadata.name", "operator": "In", "values": ["a-0"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    own = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    await placed(harness, "bound-to-it", affinity=own)
    await harness.client.post(f"{CLUSTER}/namespaces/shop/pods/bound-to-it/eviction", json={})
    told = await drain(harness)
    assert waves(told) == [{"mentions"}]
    assert told["unplaced"] == []


async def test_a_pod_that_fits_nowhere_stays_and_is_told_with_its_explanation(
    harness: Harness,
) -> None:
    await nodes(harness, "a-0", "b-0")
    await placed(harness, "other", "b-0", containers=[container("3")])
    await placed(harness, "large", containers=[container("2")])
    await placed(harness, "small")
    told = await drain(harness, explain="Summary")
    assert waves(told) == [{"small"}]
    assert reasons(told) == {"large": "Unschedulable"}
    [kept] = told["unplaced"]
    assert kept["message"] == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
    )
    assert kept["explanation"]["reasons"]["NodeResourcesFit"] == {"Insufficient cpu": 1}
    assert (told["before"]["violations"], told["after"]["violations"]) == (0, 0)


def container(cpu: str) -> Json:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}}


def together(app: str) -> Json:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


async def test_pods_that_others_need_beside_them_leave_with_them(harness: Harness) -> None:
    """The dependent pod comes first by its name; it fits nowhere before the other has moved."""
    await nodes(harness)
    cache = pod("cache", nodeName="a-0")
    cache["metadata"]["labels"] = {"app": "cache"}
    await harness.put("namespaces/shop/pods/cache", cache)
    await placed(harness, "asks", affinity=together("cache"))
    told = await drain(harness, explain="Summary")
    assert waves(told) == [{"cache", "asks"}]
    assert len({each["to"] for each in told["steps"] if "to" in each}) == 1
    assert told["after"]["violations"] == 0


async def test_a_pod_stays_whose_leave_would_break_the_rule_of_another(harness: Harness) -> None:
    """The other pod is static, so it stays and needs the cache beside it; the third is free to go."""
    await nodes(harness)
    cache = pod("cache", nodeName="a-0")
    cache["metadata"]["labels"] = {"app": "cache"}
    await harness.put("namespaces/shop/pods/cache", cache)
    body = pod("asks", nodeName="a-0", affinity=together("cache"))
    body["metadata"]["annotations"] = MIRROR
    await harness.put("namespaces/shop/pods/asks", body)
    await placed(harness, "free")
    told = await drain(harness, explain="Summary")
    assert waves(told) == [{"free"}]
    [kept] = told["unplaced"]
    assert (kept["name"], kept["reason"]) == ("cache", "BreaksRule")
    rule = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
    assert kept["message"] == f"If it left, {rule} of shop/asks would not hold."
    assert told["after"]["violations"] == 0


async def test_what_is_true_of_a_pod_need_not_be_of_an_equal_one_on_another_node(
    harness: Harness,
) -> None:
    """Zone c takes one more if zone b has one less, but not if zone a has: its node would be empty."""
    await nodes(harness, "a-0", "b-0", "c-0")
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    for number, where in enumerate(("a-0", "b-0", "b-0", "c-0")):
        await placed(harness, f"web-{number}", where, topologySpreadConstraints=[spread])
    told = await drain(harness, {"type": "Drain", "nodes": {"names": ["a-0", "b-0"]}})
    assert waves(told) == [{"web-1"}]
    assert reasons(told) == {"web-0": "Unschedulable", "web-2": "Unschedulable"}


async def test_the_members_of_a_group_leave_in_one_wave_or_not_at_all(harness: Harness) -> None:
    await nodes(harness, "a-0", "b-0")
    group = {"metadata": {"name": "train", "namespace": "shop"}, "spec": {"minMember": 2}}
    await harness.put("namespaces/shop/podgroups/train", group)
    for number in range(2):
        body = pod(f"train-{number}", nodeName="a-0")
        body["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "train"
        await harness.put(f"namespaces/shop/pods/train-{number}", body)
    assert waves(await drain(harness)) == [{"train-0", "train-1"}]
    await budget(harness, maxUnavailable=1)
    told = await drain(harness)
    assert waves(told) == []
    assert reasons(told) == {"train-0": "DisruptionBudget", "train-1": "DisruptionBudget"}


async def test_who_tolerates_a_cordon_is_not_sent_back_to_its_node(harness: Harness) -> None:
    await nodes(harness, "a-0", "b-0")
    tolerated = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    selector = {"nodeSelector": {ZONE: "a"}, "tolerations": tolerated}
    await placed(harness, "back", **selector)
    told = await drain(harness)
    assert waves(told) == []
    assert reasons(told) == {"back": "Unschedulable"}


async def test_a_plan_keeps_to_its_bounds_and_changes_come_first(harness: Harness) -> None:
    await nodes(harness)
    for number in range(3):
        await placed(harness, f"web-{number}")
    told = await drain(harness, bounds={"movesMax": 2})
    assert waves(told) == [{"web-0", "web-1"}]
    assert reasons(told) == {"web-2": "MovesMax"}
    config = {"op": "SetConfig", "config": {"hardPodAffinityWeight": 7}}
    other = {"op": "CordonNodes", "names": ["a-0", "b-0", "b-1"]}
    told = await drain(harness, changes=[config, other])
    assert cordoned(told) == []
    assert {each["to"] for each in told["steps"]} == {"a-1"}
    again = {"op": "UncordonNodes", "names": ["b-0", "b-1"]}
    told = await drain(harness, changes=[other, {"op": "CordonNodes", "names": ["a-1"]}, again])
    assert {each["to"] for each in told["steps"]} <= {"b-0", "b-1"}


def guide() -> tuple[Json, Json]:
    """The request of the guide's section on drains that plans one, and its answer."""
    page = (ROOT / "docs" / "api-guide.md").read_text(encoding="utf-8")
    section = page.partition("\n## Drain nodes\n")[2].partition("\n## ")[0]
    request, answer = re.findall(r"```(?:http|json)\n(.*?)```", section, re.DOTALL)[:2]
    return json.loads(request.partition("\n\n")[2]), json.loads(answer)


async def test_the_guide_tells_what_a_drain_would_do(harness: Harness) -> None:
    await nodes(harness, "a-1", "b-1", "b-2")
    for number in range(2):
        await placed(harness, f"web-{number}", "a-1")
    await budget(harness, maxUnavailable=1)
    database = pod("db-0", nodeName="a-1")
    database["metadata"]["labels"] = {"app": "db"}
    await harness.put("namespaces/shop/pods/db-0", database)
    selector = {"matchLabels": {"app": "db"}}
    manifest = {
        "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"minAvailable": 1, "selector": selector},
    }
    await harness.put("namespaces/shop/poddisruptionbudgets/db", manifest)
    request, told = guide()
    answer = (await harness.client.post(f"{CLUSTER}/plans", json=request)).json()
    told |= {name: answer[name] for name in ("revision", "before", "after")}
    assert answer == told


@pytest.mark.parametrize(
    ("goal", "field", "message"),
    [
        ({"type": "Drain"}, "goal.nodes", "is required by Drain"),
        (
            {"type": "Drain", "nodes": {}},
            "goal.nodes",
            "must have at least one of names, selector, topology",
        ),
        ({**A_0, "displaced": True}, "goal.displaced", "is not a field of Drain"),
        (
            {"type": "Place", "displaced": True, "nodes": {"names": ["a-0"]}},
            "goal.nodes",
            "must be given with Drain only",
        ),
    ],
)
async def test_a_goal_that_makes_no_sense_is_refused(
    harness: Harness, goal: Json, field: str, message: str
) -> None:
    await nodes(harness)
    answer = await harness.client.post(f"{CLUSTER}/plans", json={"goal": goal})
    assert problem(answer, 422) == "InvalidManifest"
    told = [(each["field"], each["message"]) for each in answer.json()["errors"]]
    assert told == [(field, message)]


async def test_a_node_that_is_not_there_is_named(harness: Harness) -> None:
    await nodes(harness)
    goal = {"type": "Drain", "nodes": {"names": ["a-7"]}}
    answer = await harness.client.post(f"{CLUSTER}/plans", json={"goal": goal})
    assert problem(answer, 404) == "NotFound"
    assert "a-7" in answer.json()["detail"]
