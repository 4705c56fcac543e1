"""Repairs over HTTP: what would have to change so that a pod fits, as really changing it shows."""

from typing import Any

import pytest

from tests.api.harness import CLUSTER, Harness, node, pod, problem

WEB = f"{CLUSTER}/namespaces/shop/pods/web"


async def repairs(harness: Harness, **params: Any) -> dict[str, Any]:
    answer = await harness.client.get(f"{WEB}/repairs", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


REF = {"namespace": "shop", "name": "web"}
CONTAINERS = [{"name": "main", "image": "web", "resources": {"requests": {"cpu": "2"}}}]
TAINTS = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]


def sized(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    return {**node(name), "spec": spec, "status": {"allocatable": {"cpu": cpu, "pods": "9"}}}


async def waiting(harness: Harness, **spec: Any) -> None:
    """A pod that asks for two cores."""
    await harness.configure(placePendingPods=False)
    await harness.put_pod("web", containers=CONTAINERS, **spec)


async def test_after_the_changes_of_a_repair_the_pod_gets_the_node_that_was_told(
    harness: Harness,
) -> None:
    await waiting(harness)
    await harness.put("nodes/small", sized("small", "1"))
    await harness.put("nodes/large", sized("large", "8", taints=TAINTS))
    told = await repairs(harness)
    assert told["complete"]
    assert not told["fits"]
    assert "0/2 nodes are available" in told["message"]
    lower, tolerate, untaint = told["repairs"]
    assert lower["changes"] == [{"op": "LowerRequest", "resource": "cpu", "from": "2", "to": "1"}]
    assert lower["places"] == "small"
    assert tolerate["changes"][0]["toleration"]["key"] == "gpu"
    assert untaint["changes"] == [{"op": "SetTaints", "names": ["large"], "taints": []}]
    assert len((await repairs(harness, limit=1))["repairs"]) == 1

    await harness.put("nodes/large", sized("large", "8", taints=untaint["changes"][0]["taints"]))
    after = await repairs(harness)
    assert after["fits"]
    assert after["repairs"] == []
    assert after["message"] is None
    body = {"podRefs": [REF]}
    placed = (await harness.client.post(f"{CLUSTER}/placements", json=body)).json()
    assert placed["results"][0]["nodeName"] == untaint["places"]


async def test_a_pod_in_the_way_is_named_with_no_more_than_have_to_go(harness: Harness) -> None:
    await waiting(harness)
    await harness.put("nodes/only", sized("only", "3"))
    for name, cpu in (("big", "2"), ("little", "1")):
        resources = {"requests": {"cpu": cpu}}
        containers = [{"name": "main", "image": "web", "resources": resources}]
        await harness.put_pod(name, containers=containers, nodeName="only")
    told = await repairs(harness)
    assert {"op": "RemovePods", "namespace": "shop", "names": ["big"]} in [
        change for each in told["repairs"] for change in each["changes"]
    ]
    assert all(len(each["changes"]) == 1 for each in told["repairs"])


async def test_a_pod_that_would_not_be_tried_has_no_repairs(harness: Harness) -> None:
    await harness.put("nodes/small", sized("small", "1"))
    await waiting(harness, schedulingGates=[{"name": "example.com/wait"}])
    told = await repairs(harness)
    assert not told["fits"]
    assert told["repairs"] == []
    assert "gate" in told["message"].lower()


async def test_bounds_that_make_no_sense_are_refused(harness: Harness) -> None:
    await harness.configure()
    for params in ({"changesMax": 0}, {"changesMax": 5}, {"limit": 101}, {"limit": "all"}):
        answer = await harness.client.get(f"{WEB}/repairs", params=params)
        assert problem(answer, 400) == "MalformedRequest"
    assert problem(await harness.client.get(f"{WEB}/repairs"), 404) == "NotFound"


# The goal Fit of a plan


async def fit(harness: Harness, *changes: Any, goal: Any = None, **bounds: Any) -> dict[str, Any]:
    wanted = pod("new", containers=CONTAINERS)
    body = {"changes": [*changes], "goal": {"type": "Fit", **(goal or {"pod": wanted})}}
    answer = await harness.client.post(f"{CLUSTER}/plans", json={**body, "bounds": bounds})
    assert answer.status_code == 200, answer.text
    return answer.json()


def ops(told: dict[str, Any]) -> list[list[str]]:
    return [[change["op"] for change in each["changes"]] for each in told["repairs"]]


async def test_a_pod_that_is_not_stored_has_repairs_that_a_plan_can_make(harness: Harness) -> None:
    await waiting(harness)
    await harness.put("nodes/full", sized("full", "3"))
    await harness.put("nodes/away", sized("away", "8", unschedulable=True))
    await harness.put_pod("here", containers=CONTAINERS, nodeName="full")
    told = await fit(harness)
    assert told["complete"] is False
    assert told["steps"] == []
    [unplaced] = told["unplaced"]
    assert (unplaced["name"], unplaced["reason"]) == ("new", "Unschedulable")
    assert told["repairs"] == (await repairs(harness))["repairs"]
    assert ops(told) == [
        ["LowerRequest"],
        ["AddToleration"],
        ["UncordonNodes"],
        ["AddNodes"],
        ["AddNodes"],
        ["RemovePods"],
    ]
    [kept] = told["repairs"][-1]["moves"]
    assert kept == {"namespace": "shop", "name": "here", "to": None}
    tolerant = pod(
        "here", containers=CONTAINERS, nodeName="full", tolerations=[{"operator": "Exists"}]
    )
    moved = await fit(harness, {"op": "PutPods", "pods": [tolerant]})
    assert [move["to"] for move in moved["repairs"][-1]["moves"]] == ["away"]
    for each in told["repairs"][2:]:
        [change] = each["changes"]
        after = await fit(harness, change)
        assert (after["complete"], after["repairs"]) == (True, [])
        assert [step["to"] for step in after["steps"]] == [each["places"]]
    assert len((await fit(harness, goal={"podRef": REF, "limit": 2}))["repairs"]) == 2
    assert (await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/new")).status_code == 404


async def test_bounds_say_who_may_go_so_that_a_pod_fits(harness: Harness) -> None:
    await waiting(harness)
    await harness.put("nodes/full", sized("full", "3"))
    await harness.put_pod("here", containers=CONTAINERS, nodeName="full")
    budget = {"metadata": {"name": "web"}, "spec": {"selector": {}, "minAvailable": "100%"}}
    await harness.put("namespaces/shop/poddisruptionbudgets/web", budget)
    assert ["RemovePods"] in ops(await fit(harness))
    for bounds in (
        {"evictionsMax": 0},
        {"protect": {"priority": 0}},
        {"protect": {"selector": {"matchLabels": {"app": "web"}}}},
        {"respectBudgets": True},
    ):
        assert ["RemovePods"] not in ops(await fit(harness, **bounds)), bounds
    told = await fit(harness, seconds=1e-9)
    assert (told["repairs"], "time" in told["unfinished"]) == ([], True)


HOST = "kubernetes.io/hostname"
APART = {
    "topologyKey": HOST,
    "maxSkew": 1,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


@pytest.mark.parametrize("named", [False, True])
async def test_an_added_node_has_a_hostname_only_if_its_template_says_so(
    harness: Harness, named: Any
) -> None:
    """A repair that is followed literally helps; where no node has a hostname, none adds one."""
    await harness.configure(placePendingPods=False)
    cordoned = {**node("n1", **({HOST: "n1"} if named else {})), "spec": {"unschedulable": True}}
    await harness.put("nodes/n1", cordoned)
    await harness.put_node("n2")
    spread = [APART]
    await harness.put_pod("web", topologySpreadConstraints=spread)
    told = await repairs(harness)
    added = [c for each in told["repairs"] for c in each["changes"] if c["op"] == "AddNodes"]
    assert [each["template"]["metadata"]["labels"] for each in added] == (
        [{HOST: "added-0"}] if named else []
    )
    for change in added:
        template = change["template"]
        name = template["metadata"]["name"] + "-0"
        metadata = {**template["metadata"], "name": name}
        await harness.put(f"nodes/{name}", {**template, "metadata": metadata})
        [result] = (await harness.place(pod("new", topologySpreadConstraints=spread)))["results"]
        assert result["nodeName"] == name


async def test_a_goal_without_one_pod_is_refused(harness: Harness) -> None:
    await waiting(harness)
    wanted = pod("new")
    for goal, field in (
        ({}, "goal"),
        ({"pod": wanted, "podRef": REF}, "goal"),
        ({"pod": wanted, "changesMax": 5}, "goal.changesMax"),
        ({"pod": wanted, "count": 1}, "goal.count"),
        ({"pod": {"metadata": {}}}, "goal.pod.metadata.name"),
    ):
        body = {"goal": {"type": "Fit", **goal}}
        answer = await harness.client.post(f"{CLUSTER}/plans", json=body)
        assert problem(answer, 422) == "InvalidManifest"
        assert field in {each["field"] for each in answer.json()["errors"]}, answer.text
    body = {"goal": {"type": "Fit", "pod": wanted}}
    answer = await harness.client.post(f"{CLUSTER}/plan-commits", json=body)
    assert [each["field"] for each in answer.json()["errors"]] == ["goal.type"]
    unknown = {"pod": pod("new", schedulerName="nobody")}
    told = await fit(harness, goal=unknown)
    assert (told["complete"], told["repairs"]) == (False, [])
