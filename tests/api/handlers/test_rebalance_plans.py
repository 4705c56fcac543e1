"""Plans to rebalance over HTTP: pods move while that makes the objectives better, and nothing is done."""

from typing import Any

from tests.api.handlers.test_drain_plans import ZONE, budget, drain, nodes, placed
from tests.api.harness import CLUSTER, Harness

SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
}
GOAL: dict[str, Any] = {"type": "Rebalance"}


async def crowded(harness: Harness) -> None:
    await nodes(harness)
    for number in range(4):
        await placed(harness, f"web-{number}", **SPREAD)


async def test_pods_move_until_the_skew_is_allowed(harness: Harness) -> None:
    await crowded(harness)
    head = (await harness.client.get(CLUSTER)).json()["revision"]
    told = await drain(harness, GOAL, explain="Summary")
    assert told["complete"]
    assert [(each["wave"], each["to"][0]) for each in told["steps"]] == [(1, "b"), (2, "b")]
    assert [told[when]["skew"][0]["skew"] for when in ("before", "after")] == [4, 0]
    assert (await harness.client.get(CLUSTER)).json()["revision"] == head


async def test_no_more_pods_move_than_may(harness: Harness) -> None:
    await crowded(harness)
    told = await drain(harness, {**GOAL, "movesMax": 1})
    assert (len(told["steps"]), told["complete"]) == (1, False)


async def test_a_budget_and_protection_keep_pods_where_they_are(harness: Harness) -> None:
    await crowded(harness)
    protect = {"protect": {"selector": {"matchLabels": {"app": "web"}}}}
    assert (await drain(harness, GOAL, bounds=protect))["steps"] == []
    await budget(harness, maxUnavailable=0)
    assert (await drain(harness, GOAL))["steps"] == []


async def test_fields_of_other_goals_are_refused(harness: Harness) -> None:
    sent = {"goal": {**GOAL, "count": 1}}
    answer = await harness.client.post(f"{CLUSTER}/plans", json=sent)
    assert answer.status_code == 422, answer.text


async def test_it_is_not_committed(harness: Harness) -> None:
    await crowded(harness)
    answer = await harness.client.post(f"{CLUSTER}/plan-commits", json={"goal": GOAL})
    assert answer.status_code == 422
    assert "only tells which moves would help" in answer.text


async def test_a_pod_whose_rule_is_broken_moves_to_where_it_holds(harness: Harness) -> None:
    await nodes(harness)
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": ZONE}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for number in range(2):
        await placed(harness, f"web-{number}", affinity=apart)
    told = await drain(harness, {**GOAL, "objectives": ["Violations"]}, explain="Summary")
    assert [each["to"][0] for each in told["steps"]] == ["b"]
    assert told["before"]["violations"] != told["after"]["violations"]
