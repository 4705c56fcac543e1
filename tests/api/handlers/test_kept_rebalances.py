"""Plans that rebalance and are kept, over HTTP: what they may hold, and what becomes of them."""

from typing import Any

from tests.api.handlers.test_drain_plans import nodes
from tests.api.harness import CLUSTER, Harness

PATH = f"{CLUSTER}/plans/balance"


async def test_each_wrong_field_is_named(harness: Harness) -> None:
    goal: dict[str, Any] = {"type": "Rebalance", "nodes": {"names": ["a"]}, "objectives": ["Luck"]}
    bounds = {"evictionsMax": -1, "protect": {"priority": "high", "labels": {}}}
    spec = {"goal": {**goal, "movesMax": -1}, "bounds": bounds}
    answer = await harness.client.put(PATH, json={"spec": spec})
    assert answer.status_code == 422, answer.text
    named = {each["field"] for each in answer.json()["errors"]}
    assert named == {
        "spec.goal.nodes",
        "spec.goal.objectives[0]",
        "spec.goal.movesMax",
        "spec.bounds.evictionsMax",
        "spec.bounds.protect.priority",
        "spec.bounds.protect.labels",
    }


async def test_what_is_asked_for_is_stored_and_shown(harness: Harness) -> None:
    await nodes(harness)
    goal = {"type": "Rebalance", "namespace": "shop", "objectives": ["Skew"], "movesMax": 3}
    bounds = {
        "evictionsMax": 5,
        "protect": {"priority": 7, "selector": {"matchLabels": {"a": "b"}}},
    }
    spec = {"goal": goal, "bounds": bounds, "state": "Paused"}
    answer = await harness.client.put(PATH, json={"spec": spec})
    assert answer.is_success, answer.text
    assert (await harness.client.get(PATH)).json()["spec"] == spec
