"""Plans over HTTP: what would happen, what to do then, and that nothing of it is done."""

import json
import re
from typing import Any

import pytest

from tests.api.harness import CLUSTER, Harness, node, pod, problem
from tests.paths import ROOT

ZONE = "topology.kubernetes.io/zone"
ZONE_A = {"key": ZONE, "values": ["a"]}
LOST = {"op": "RemoveNodes", "topology": ZONE_A}
DISPLACED = {"type": "Place", "displaced": True}


async def plan(harness: Harness, *changes: dict[str, Any], **rest: Any) -> dict[str, Any]:
    answer = await harness.client.post(f"{CLUSTER}/plans", json={"changes": [*changes], **rest})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refusal(harness: Harness, body: dict[str, Any]) -> list[tuple[str, str]]:
    answer = await harness.client.post(f"{CLUSTER}/plans", json=body)
    assert problem(answer, 422) == "InvalidManifest"
    return [(each["field"], each["message"]) for each in answer.json()["errors"]]


async def two_zones(harness: Harness, pods: int = 6) -> None:
    """Two nodes in each of two zones, and pods that are spread over the zones."""
    await harness.configure(placePendingPods=False)
    for zone in "ab":
        for number in range(2):
            await harness.put_node(f"{zone}-{number}", **{ZONE: zone})
    await harness.place(*(spread(f"web-{number}") for number in range(pods)))


def spread(name: str) -> dict[str, Any]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    return pod(name, topologySpreadConstraints=[constraint])


async def pods_on(harness: Harness) -> dict[str, str | None]:
    items = (await harness.client.get(f"{CLUSTER}/pods")).json()["items"]
    return {each["metadata"]["name"]: each["spec"].get("nodeName") for each in items}


async def test_the_plan_for_a_lost_zone_is_what_really_placing_its_pods_gives(
    harness: Harness,
) -> None:
    await two_zones(harness)
    before = await pods_on(harness)
    lost = sorted(name for name, where in before.items() if (where or "").startswith("a-"))
    planned = await plan(harness, LOST, goal=DISPLACED)
    assert planned["complete"] is True
    assert planned["changed"] == [2]
    assert [each["name"] for each in planned["steps"]] == lost
    assert [each["from"] for each in planned["steps"]] == [before[name] for name in lost]
    assert await pods_on(harness) == before

    for name in ("a-0", "a-1"):
        await harness.client.delete(f"{CLUSTER}/nodes/{name}")
    for name in lost:
        await harness.client.delete(f"{CLUSTER}/namespaces/shop/pods/{name}")
    placed = await harness.place(*map(spread, lost))
    assert [each["to"] for each in planned["steps"]] == [
        each["nodeName"] for each in placed["results"]
    ]


async def test_nothing_is_stored_and_the_next_plan_sees_what_was_stored_since(
    harness: Harness,
) -> None:
    await two_zones(harness)
    head = (await harness.client.get(CLUSTER)).json()["revision"]
    first = await plan(harness, LOST, goal=DISPLACED, explain="Summary")
    assert first["revision"] == head
    assert (await harness.client.get(CLUSTER)).json()["revision"] == head
    assert await plan(harness, LOST, goal=DISPLACED, explain="Summary") == first
    await harness.put_node("b-2", **{ZONE: "b"})
    again = await plan(harness, LOST, goal=DISPLACED)
    assert again["revision"] == head + 1
    assert again["before"]["nodes"] == first["before"]["nodes"] + 1


async def test_the_figures_tell_what_is_left_and_how_it_is_spread(harness: Harness) -> None:
    await two_zones(harness)
    told = await plan(harness, LOST, goal=DISPLACED, explain="Summary")
    assert told["before"]["resources"]["cpu"] == {
        "allocatable": "16",
        "requested": "6",
        "utilization": 0.375,
        "largestFree": "3",
    }
    assert told["after"]["resources"]["cpu"]["allocatable"] == "8"
    assert told["after"]["resources"]["cpu"]["utilization"] == 0.75
    assert (told["before"]["nodes"], told["after"]["nodes"]) == (4, 2)
    assert (told["before"]["pods"], told["after"]["pods"]) == (6, 6)
    assert (told["before"]["violations"], told["after"]["violations"]) == (0, 0)
    [skew] = told["before"]["skew"]
    assert skew == {
        "namespace": "shop",
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "maxSkew": 1,
        "skew": 0,
        "counted": 6,
    }


NO_GPU = {"allocatable": "0", "requested": "0", "utilization": 0.0, "largestFree": "0"}
GPU = "example.com/gpu"


def gpu_node(name: str, zone: str) -> dict[str, Any]:
    made = node(name, **{ZONE: zone})
    made["status"]["allocatable"][GPU] = "8"
    return made


def asks_gpu(name: str, **spec: Any) -> dict[str, Any]:
    made = pod(name, **spec)
    made["spec"]["containers"][0]["resources"] = {"requests": {GPU: "8"}, "limits": {GPU: "8"}}
    return made


async def test_a_resource_that_goes_with_its_last_node_is_0_afterwards(harness: Harness) -> None:
    await two_zones(harness)
    await harness.put("nodes/a-0", gpu_node("a-0", "a"))
    await harness.place(asks_gpu("trainer"))
    told = await plan(harness, LOST, goal=DISPLACED)
    full = {"allocatable": "8", "requested": "8", "utilization": 1.0, "largestFree": "0"}
    assert told["before"]["resources"][GPU] == full
    assert told["after"]["resources"][GPU] == NO_GPU
    assert [each["name"] for each in told["unplaced"]] == ["trainer"]


async def test_a_resource_that_comes_with_the_first_node_was_0_before(harness: Harness) -> None:
    await two_zones(harness)
    added = {"op": "AddNodes", "template": gpu_node("new", "a"), "count": 2}
    told = await plan(harness, added)
    assert told["before"]["resources"][GPU] == NO_GPU
    assert told["after"]["resources"][GPU] == {**NO_GPU, "allocatable": "16", "largestFree": "8"}


async def test_what_is_requested_where_nothing_is_left_is_still_told(harness: Harness) -> None:
    """A pod that was put on a node without the resource requests it before and after."""
    await two_zones(harness, pods=0)
    await harness.put("nodes/a-0", gpu_node("a-0", "a"))
    await harness.put("namespaces/shop/pods/odd", asks_gpu("odd", nodeName="b-0"))
    told = await plan(harness, LOST, goal=DISPLACED)
    assert told["before"]["resources"][GPU]["utilization"] == 1.0
    assert told["after"]["resources"][GPU] == {**NO_GPU, "requested": "8"}
    without = await plan(harness, {"op": "RemoveNodes", "names": ["b-0", "b-1"]})
    assert without["after"]["resources"][GPU] == {**NO_GPU, "allocatable": "8", "largestFree": "8"}


async def test_of_no_nodes_each_resource_is_0(harness: Harness) -> None:
    await two_zones(harness)
    gone = {"op": "RemoveNodes", "names": ["a-0", "a-1", "b-0", "b-1"]}
    told = await plan(harness, gone)
    assert told["after"]["nodes"] == 0
    assert told["after"]["resources"] == dict.fromkeys(told["before"]["resources"], NO_GPU)
    assert set(told["before"]["resources"]) == {"cpu", "memory", "pods"}


async def test_a_resource_that_no_node_has_is_not_listed(harness: Harness) -> None:
    """Pods of others may request it, and its name is theirs."""
    await two_zones(harness)
    await harness.put("namespaces/shop/pods/odd", asks_gpu("odd", nodeName="b-0"))
    told = await plan(harness, LOST, goal=DISPLACED)
    assert GPU not in told["before"]["resources"] | told["after"]["resources"]


async def test_a_pod_that_fits_nowhere_is_told_with_its_explanation(harness: Harness) -> None:
    await two_zones(harness, pods=12)
    told = await plan(harness, LOST, goal=DISPLACED, explain="Summary")
    assert told["complete"] is False
    assert (told["stepsTotal"], told["unplacedTotal"]) == (2, 4)
    first, *others = told["unplaced"]
    assert first["reason"] == "Unschedulable"
    assert first["from"].startswith("a-")
    assert first["message"] == "0/2 nodes are available: 2 Insufficient cpu."
    assert first["explanation"]["reasons"] == {"NodeResourcesFit": {"Insufficient cpu": 2}}
    assert [each["message"] for each in others] == [first["message"]] * 3
    assert not any("explanation" in each for each in others)


async def test_daemons_go_with_their_node_and_pods_that_leave_are_not_placed(
    harness: Harness,
) -> None:
    await harness.put_node("a-0", **{ZONE: "a"})
    await harness.put_node("b-0", **{ZONE: "b"})
    field = {"key": "metadata.name", "operator": "In", "values": ["a-0"]}
    selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    own = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
    await harness.place(pod("daemon", affinity=own))
    await harness.put_pod("leaving", nodeName="a-0")
    await harness.client.post(f"{CLUSTER}/namespaces/shop/pods/leaving/eviction", json={})
    await harness.put_pod("stays", nodeName="a-0")
    told = await plan(harness, LOST, goal=DISPLACED)
    assert [each["name"] for each in told["steps"]] == ["stays"]
    assert told["unplaced"] == []


async def test_changes_are_made_in_their_order_to_what_was_changed_before(
    harness: Harness,
) -> None:
    await harness.put_node("old", disk="hdd")
    template = node("new", disk="ssd")
    wanted = pod("db", nodeSelector={"disk": "ssd"})
    goal = {"type": "Place", "pods": [wanted]}
    assert (await plan(harness, goal=goal))["complete"] is False
    add = {"op": "AddNodes", "template": template, "count": 3}
    grown = await plan(harness, {**add, "topology": {"key": ZONE, "values": ["x", "y"]}}, goal=goal)
    assert grown["changed"] == [3]
    assert grown["steps"][0]["to"].startswith("new-")
    assert "from" not in grown["steps"][0]
    cordon = {"op": "CordonNodes", "topology": {"key": ZONE, "values": ["x"]}}
    told = await plan(
        harness, {**add, "topology": {"key": ZONE, "values": ["x", "y"]}}, cordon, goal=goal
    )
    assert (told["changed"], told["steps"][0]["to"]) == ([3, 2], "new-1")
    relabel = {"op": "SetLabels", "names": ["old"], "labels": {"disk": "ssd", ZONE: None}}
    assert (await plan(harness, relabel, goal=goal))["steps"][0]["to"] == "old"
    taint = {"op": "SetTaints", "selector": {"matchLabels": {"disk": "ssd"}}}
    taint["taints"] = [{"key": "dedicated", "effect": "NoSchedule"}]
    told = await plan(harness, relabel, taint, goal=goal)
    assert told["changed"] == [1, 1]
    assert "untolerated taint" in told["unplaced"][0]["message"]


async def test_pods_are_put_and_removed_before_others_are_placed(harness: Harness) -> None:
    await harness.put_node("n1")
    await harness.put_pod("big", nodeName="n1")
    goal = {"type": "Place", "template": pod("web"), "replicas": 4}
    assert (await plan(harness, goal=goal))["unplacedTotal"] == 1
    without = {"op": "RemovePods", "namespace": "shop", "names": ["big"]}
    assert (await plan(harness, without, goal=goal))["complete"] is True
    for changed in ({"selector": {"matchLabels": {"app": "web"}}}, {"selector": {}}):
        told = await plan(harness, {"op": "RemovePods", **changed}, goal=goal)
        assert (told["changed"], told["complete"]) == ([1], True)
    more = {"op": "PutPods", "pods": [pod("other", nodeName="n1")]}
    told = await plan(harness, more, goal=goal)
    assert (told["stepsTotal"], told["unplacedTotal"]) == (2, 2)
    assert told["after"]["pods"] == 4


async def test_namespaces_and_settings_are_changed_too(harness: Harness) -> None:
    await harness.put_node("n1")
    await harness.put("namespaces/shop", {"metadata": {"name": "shop", "labels": {"team": "red"}}})
    await harness.put_pod("first", nodeName="n1")
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "namespaceSelector": {"matchLabels": {"team": "red"}},
    }
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    await harness.put_node("n1", **{"kubernetes.io/hostname": "n1"})
    goal = {"type": "Place", "pods": [pod("second", affinity=apart)]}
    assert (await plan(harness, goal=goal))["complete"] is False
    labels = {"op": "SetNamespaceLabels", "names": ["shop"], "labels": {"team": "blue"}}
    assert (await plan(harness, labels, goal=goal))["complete"] is True
    named = {"type": "Place", "pods": [pod("second", schedulerName="packing")]}
    told = await plan(harness, goal=named)
    assert told["unplaced"][0]["reason"] == "UnknownScheduler"
    profile = {"op": "SetConfig", "config": {"profiles": [{"schedulerName": "packing"}]}}
    told = await plan(harness, profile, goal=named)
    assert (told["complete"], told["after"]["pods"]) == (True, 2)
    assert (await plan(harness, goal=named))["complete"] is False


async def test_a_plan_ends_at_its_bounds_and_tells_what_was_not_tried(harness: Harness) -> None:
    await two_zones(harness)
    told = await plan(harness, LOST, goal=DISPLACED, bounds={"movesMax": 1})
    assert (told["stepsTotal"], told["complete"]) == (1, False)
    assert {each["reason"] for each in told["unplaced"]} == {"MovesMax"}
    told = await plan(harness, LOST, goal=DISPLACED, bounds={"seconds": 1e-9})
    assert told["stepsTotal"] == 0
    assert {each["reason"] for each in told["unplaced"]} == {"SecondsOver"}
    told = await plan(harness, LOST, goal=DISPLACED, stepsMax=1)
    assert (len(told["steps"]), told["stepsTotal"]) == (1, 3)


async def test_stored_pods_are_placed_by_name_and_placed_ones_stay(harness: Harness) -> None:
    await two_zones(harness)
    refs = [{"namespace": "shop", "name": f"web-{number}"} for number in range(6)]
    told = await plan(harness, goal={"type": "Place", "podRefs": refs})
    assert (told["steps"], told["complete"]) == ([], True)
    told = await plan(harness, LOST, goal={"type": "Place", "podRefs": refs})
    assert all(each["from"].startswith("a-") for each in told["steps"])
    assert told["stepsTotal"] == 3


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"changes": [{"op": "RemoveNode"}]}, "changes[0].op", "did you mean RemoveNodes"),
        ({"changes": [{"op": "RemoveNodes"}]}, "changes[0]", "at least one of names"),
        (
            {"changes": [{"op": "PutPods", "names": ["a"], "pods": []}]},
            "changes[0].names",
            "PutPods",
        ),
        ({"changes": [{"op": "AddNodes", "count": 1}]}, "changes[0].template", "required"),
        ({"changes": [{"op": "AddNodes", "count": 0}]}, "changes[0].count", "between 1 and 10000"),
        (
            {"changes": [{"op": "AddNodes", "count": 1, "template": {"metadata": {"name": "A"}}}]},
            "changes[0].template.metadata.name",
            "lowercase",
        ),
        (
            {"changes": [{"op": "PutPods", "pods": [{"metadata": {}}]}]},
            "changes[0].pods[0].metadata.name",
            "required",
        ),
        (
            {"changes": [{"op": "SetConfig", "config": {"placePending": True}}]},
            "changes[0].config.placePending",
            "did you mean placePendingPods",
        ),
        ({"changes": [{"op": "CordonNodes", "names": ["A"]}]}, "changes[0].names[0]", "lowercase"),
        ({"changes": [{"op": "SetConfig", "config": {}}] * 101}, "changes", "limit of 100"),
        ({"goal": {"type": "Place"}}, "goal", "exactly one of"),
        ({"goal": {"type": "Swap", "displaced": True}}, "goal.type", "one of Place, Drain"),
        ({"goal": {"type": "Place", "template": pod("a")}}, "goal.replicas", "with a template"),
        ({"goal": {"type": "Place", "displaced": False}}, "goal.displaced", "must be true"),
        ({"bounds": {"seconds": 0}}, "bounds.seconds", "greater than 0"),
        ({"bounds": {"moves": 1}}, "bounds.moves", "did you mean movesMax"),
        ({"explain": "All"}, "explain", "one of None, Summary, Full"),
        ({"dryRun": True}, "dryRun", "unknown"),
    ],
)
async def test_a_wrong_plan_is_refused_with_the_field(
    harness: Harness, body: dict[str, Any], field: str, message: str
) -> None:
    errors = await refusal(harness, body)
    assert any(where == field and message in told for where, told in errors), errors


async def test_what_a_change_names_has_to_be_there(harness: Harness) -> None:
    await harness.put_node("n1")
    for change in (
        {"op": "RemoveNodes", "names": ["n1", "n2"]},
        {"op": "RemovePods", "namespace": "shop", "names": ["web"]},
        {"op": "SetNamespaceLabels", "names": ["shop"], "labels": {}},
    ):
        answer = await harness.client.post(f"{CLUSTER}/plans", json={"changes": [change]})
        assert problem(answer, 404) == "NotFound"
    again = {"op": "AddNodes", "template": node("n"), "count": 2}
    assert await refusal(harness, {"changes": [again, again]}) == [
        ("changes[1].template.metadata.name", "would name a node that is there: n-0")
    ]
    told = await plan(harness)
    assert (told["before"], told["before"]["nodes"]) == (told["after"], 1)


REST = "…"
"""In the guide it stands for what is left out."""


def guide() -> tuple[dict[str, Any], dict[str, Any]]:
    """The request and the answer in the guide's section on plans."""
    page = (ROOT / "docs" / "api-guide.md").read_text(encoding="utf-8")
    section = page.partition("\n## Plan for a change\n")[2].partition("\n## ")[0]
    request, answer = re.findall(r"```(?:http|json)\n(.*?)```", section, re.DOTALL)
    return json.loads(request.partition("\n\n")[2]), json.loads(answer)


def as_told(found: Any, told: Any) -> Any:
    """What was found, with everything left out that the guide leaves out."""
    if isinstance(told, dict) and isinstance(found, dict):
        kept = told.keys() - {REST} if REST in told else found.keys()
        return {key: as_told(found[key], told.get(key)) for key in kept}
    if isinstance(told, list) and isinstance(found, list):
        return [as_told(*both) for both in zip(found, told, strict=True)]
    return found


async def test_the_guide_tells_what_is_answered(harness: Harness) -> None:
    await harness.configure(placePendingPods=False)
    for name in ("a-1", "b-1"):
        await harness.put_node(name, **{ZONE: name[0]})
    two = [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]
    for number, where in enumerate(("a-1", "a-1", "b-1")):
        await harness.put_pod(f"web-{number}", nodeName=where, containers=two)
    request, told = guide()
    answer = await harness.client.post(f"{CLUSTER}/plans", json=request)
    assert as_told(answer.json() | {"revision": told["revision"]}, told) == without_rest(told)


def without_rest(told: Any) -> Any:
    if isinstance(told, dict):
        return {key: without_rest(each) for key, each in told.items() if key != REST}
    return [without_rest(each) for each in told] if isinstance(told, list) else told


async def test_a_pod_is_tried_though_an_equal_one_was_refused_before_another_was_placed(
    harness: Harness,
) -> None:
    await harness.configure(placePendingPods=False)
    await harness.put_node("n1", **{"kubernetes.io/hostname": "n1"})
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "db"}},
    }
    beside = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for name in ("first", "second", "third"):
        await harness.put_pod(name, affinity=beside)
    db = pod("db")
    db["metadata"]["labels"] = {"app": "db"}
    await harness.put("namespaces/shop/pods/db", db)
    refs = [{"namespace": "shop", "name": name} for name in ("first", "second", "db", "third")]
    told = await plan(harness, goal={"type": "Place", "podRefs": refs})
    assert [each["name"] for each in told["steps"]] == ["db", "third"]
    assert [each["name"] for each in told["unplaced"]] == ["first", "second"]
