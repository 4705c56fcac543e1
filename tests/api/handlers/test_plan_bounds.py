"""The bounds of plans over HTTP: how many pods leave their nodes, and who never does."""

from typing import Any

import pytest

from tests.api.harness import CLUSTER, Harness, pod, problem

WEB = {"matchLabels": {"app": "web"}}
DRAIN = {"type": "Drain", "nodes": {"names": ["a-0"]}}
REMOVE = {"type": "Remove", "namespace": "shop", "selector": WEB, "count": 3}
REPLACE = {
    "type": "Replace",
    "namespace": "shop",
    "selector": WEB,
    "template": pod("web-v2"),
    "replicas": 3,
    "maxUnavailable": 1,
}
GOALS = pytest.mark.parametrize("goal", [DRAIN, REMOVE, REPLACE], ids=lambda goal: goal["type"])

Json = dict[str, Any]


async def plan(harness: Harness, goal: Json, **bounds: Any) -> Json:
    answer = await harness.client.post(f"{CLUSTER}/plans", json={"goal": goal, "bounds": bounds})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def three_pods(harness: Harness) -> None:
    """Three pods on one of two nodes: web-0 has a label of its own, and web-1 a higher priority."""
    await harness.configure(placePendingPods=False)
    await harness.put_node("a-0")
    await harness.put_node("a-1")
    for number, priority in enumerate((0, 100, 0)):
        made = pod(f"web-{number}", nodeName="a-0", priority=priority)
        made["metadata"]["labels"]["number"] = str(number)
        await harness.put(f"namespaces/shop/pods/web-{number}", made)


def leaving(told: Json) -> set[str]:
    return {each["name"] for each in told["steps"] if each["action"] in ("Evict", "Delete")}


def kept(told: Json) -> dict[str, str]:
    return {each["name"]: each["reason"] for each in told["unplaced"] if each.get("from")}


@GOALS
async def test_protected_pods_stay_and_no_more_than_so_many_others_leave(
    harness: Harness, goal: Json
) -> None:
    await three_pods(harness)
    assert leaving(await plan(harness, goal)) == {"web-0", "web-1", "web-2"}
    protect = {"priority": 100, "selector": {"matchLabels": {"number": "0"}}}
    told = await plan(harness, goal, protect=protect)
    assert (told["complete"], leaving(told)) == (False, {"web-2"})
    assert kept(told) == {"web-0": "Protected", "web-1": "Protected"}

    told = await plan(harness, goal, evictionsMax=1)
    assert (told["complete"], len(leaving(told))) == (False, 1)
    assert list(kept(told).values()) == ["EvictionsMax"] * 2
    told = await plan(harness, goal, evictionsMax=0)
    assert leaving(told) == set()


async def test_pods_without_a_node_are_neither_protected_nor_evicted(harness: Harness) -> None:
    await three_pods(harness)
    await harness.put("namespaces/shop/pods/web-3", pod("web-3", priority=100))
    one = {**REMOVE, "count": 1}
    told = await plan(harness, one, evictionsMax=0, protect={"priority": 0})
    assert (told["complete"], leaving(told)) == (True, {"web-3"})


async def test_wrong_bounds_are_named(harness: Harness) -> None:
    await harness.put_node("a-0")
    bounds = {"evictionsMax": -1, "protect": {"prio": 1, "selector": {"matchLabels": {"a b": ""}}}}
    answer = await harness.client.post(f"{CLUSTER}/plans", json={"bounds": bounds})
    assert problem(answer, 422) == "InvalidManifest"
    assert {each["field"] for each in answer.json()["errors"]} == {
        "bounds.evictionsMax",
        "bounds.protect.prio",
        "bounds.protect.selector.matchLabels[a b]",
    }
