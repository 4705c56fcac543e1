"""Plans that remove pods, over HTTP: who goes, who has to stay, and what a commit of a plan does."""

from typing import Any

import httpx
import pytest

from tests.api.harness import CLUSTER, Harness, pod, problem

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
WEB = {"matchLabels": {"app": "web"}}
ONE = {"type": "Remove", "namespace": "shop", "selector": WEB, "count": 1}
COST = "controller.kubernetes.io/pod-deletion-cost"

Json = dict[str, Any]


async def asked(harness: Harness, path: str, body: Json, **headers: str) -> httpx.Response:
    return await harness.client.post(f"{CLUSTER}/{path}", json=body, headers=headers)


async def plan(harness: Harness, goal: Json = ONE, **rest: Any) -> Json:
    answer = await asked(harness, "plans", {"goal": goal, **rest})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def committed(harness: Harness, goal: Json = ONE, **rest: Any) -> Json:
    answer = await asked(harness, "plan-commits", {"goal": goal, **rest})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def nodes(harness: Harness, *names: str) -> None:
    await harness.configure(placePendingPods=False)
    for name in names or ("a-0", "a-1", "b-0"):
        await harness.put_node(name, **{ZONE: name[0], HOST: name})


def web(name: str, node: str | None, annotations: Json | None = None, **spec: Any) -> Json:
    placed = {} if node is None else {"nodeName": node}
    manifest = pod(name, **placed, **spec)
    if annotations is not None:
        manifest["metadata"]["annotations"] = annotations
    return manifest


async def put(harness: Harness, manifest: Json, **status: Any) -> None:
    if status:
        manifest = {**manifest, "status": status}
    await harness.put("namespaces/shop/pods/" + manifest["metadata"]["name"], manifest)


async def budget(harness: Harness, least: int) -> None:
    manifest = {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": WEB, "minAvailable": least},
    }
    await harness.put("namespaces/shop/poddisruptionbudgets/web", manifest)


def names(told: Json) -> list[str]:
    return [each["name"] for each in told["steps"]]


def ready(since: str, restarts: int = 0) -> Json:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": since}
    return {
        "phase": "Running",
        "conditions": [condition],
        "containerStatuses": [{"name": "main", "restartCount": restarts}],
    }


async def stored(harness: Harness, name: str) -> Json | None:
    answer = await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/{name}")
    return answer.json() if answer.status_code == 200 else None


async def test_the_fullest_domain_gives_first_and_nothing_is_done(harness: Harness) -> None:
    """R08: scaling down keeps pods spread."""
    await nodes(harness)
    spread = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": WEB,
    }
    for name, node in (("web-0", "a-0"), ("web-1", "a-1"), ("web-2", "b-0"), ("web-3", "a-0")):
        await put(harness, web(name, node, topologySpreadConstraints=[spread]))
    head = (await harness.client.get(CLUSTER)).json()["revision"]
    told = await plan(harness, {**ONE, "count": 2}, explain="Summary")
    assert {each["from"][0] for each in told["steps"]} == {"a"}
    assert (told["complete"], told["stepsTotal"], told["status"]) == (True, 2, "Planned")
    assert [each["action"] for each in told["steps"]] == ["Delete", "Delete"]
    assert (told["before"]["pods"], told["after"]["pods"]) == (4, 2)
    assert [each["skew"] for each in told["before"]["skew"]] == [2]
    assert [each["skew"] for each in told["after"]["skew"]] == [0]
    assert (await harness.client.get(CLUSTER)).json()["revision"] == head


async def test_equal_pods_go_in_the_order_of_a_replica_set(harness: Harness) -> None:
    await nodes(harness, "a-0", "a-1", "a-2")
    early, late = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    await put(harness, web("waits", None))
    await put(harness, web("starts", "a-0"), phase="Pending")
    await put(harness, web("unready", "a-0"), phase="Running")
    await put(harness, web("cheap", "a-0", {COST: "-3"}), **ready(early))
    await put(harness, web("beside", "a-0"), **ready(early))
    await put(harness, web("late", "a-1"), **ready(late))
    await put(harness, web("restarted", "a-1"), **ready(early, restarts=2))
    await put(harness, web("dear", "a-0", {COST: "7"}), **ready(early))
    await put(harness, web("no-number", "a-1", {COST: "07"}), **ready(early, restarts=1))
    order = []
    for _ in range(9):
        [name] = names(await plan(harness))
        order.append(name)
        await harness.client.delete(f"{CLUSTER}/namespaces/shop/pods/{name}")
    # While they are more on a node than elsewhere, pods go from there.
    assert order[:4] == ["waits", "starts", "unready", "cheap"]
    assert order[4:] == ["late", "restarted", "beside", "no-number", "dear"]


async def test_a_pod_that_others_need_stays_and_is_told(harness: Harness) -> None:
    await nodes(harness)
    term = {"labelSelector": WEB, "topologyKey": HOST}
    needs = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    await put(harness, web("web-0", "a-0"))
    await put(harness, web("web-1", "b-0"))
    guard = web("guard", "a-0", affinity=needs)
    guard["metadata"]["labels"] = {"app": "guard"}
    await put(harness, guard)
    assert names(await plan(harness)) == ["web-1"]
    told = await plan(harness, {**ONE, "count": 2})
    assert (told["complete"], names(told)) == (False, ["web-1"])
    [kept] = told["unplaced"]
    assert (kept["name"], kept["reason"]) == ("web-0", "BreaksRule")
    assert "shop/guard would not hold" in kept["message"]


async def test_budgets_count_only_if_they_are_to(harness: Harness) -> None:
    await nodes(harness)
    for number in range(3):
        await put(harness, web(f"web-{number}", "a-0"))
    await budget(harness, 2)
    goal = {**ONE, "count": 2}
    assert (await plan(harness, goal))["complete"] is True
    told = await plan(harness, goal, bounds={"respectBudgets": True})
    assert (told["complete"], len(told["steps"])) == (False, 1)
    assert {each["reason"] for each in told["unplaced"]} == {"DisruptionBudget"}


async def test_pods_that_leave_or_have_ended_do_not_count(harness: Harness) -> None:
    await nodes(harness)
    await put(harness, web("web-0", "a-0"), phase="Succeeded")
    await put(harness, web("web-1", "a-0"))
    await put(harness, web("web-2", "a-0"))
    await harness.client.post(f"{CLUSTER}/namespaces/shop/pods/web-1/eviction")
    assert names(await plan(harness)) == ["web-2"]
    told = await plan(harness, {**ONE, "count": 3})
    assert (told["complete"], names(told), told["unplaced"]) == (False, ["web-2"], [])


@pytest.mark.parametrize(
    ("goal", "field", "message"),
    [
        (
            {"type": "Remove", "selector": WEB, "count": 1},
            "goal.namespace",
            "is required by Remove",
        ),
        (
            {**ONE, "count": -1},
            "goal.count",
            "must be between 0 and 9223372036854775807, inclusive",
        ),
        ({**ONE, "displaced": True}, "goal.displaced", "is not a field of Remove"),
        (
            {"type": "Place", "displaced": True, "count": 1},
            "goal.count",
            "must be given with Remove only",
        ),
    ],
)
async def test_a_goal_that_makes_no_sense_is_refused(
    harness: Harness, goal: Json, field: str, message: str
) -> None:
    answer = await asked(harness, "plans", {"goal": goal})
    assert problem(answer, 422) == "InvalidManifest"
    told = [(each["field"], each["message"]) for each in answer.json()["errors"]]
    assert told == [(field, message)]


# Commits


async def test_a_commit_has_all_pods_leave_at_once(harness: Harness) -> None:
    await nodes(harness)
    await put(harness, web("web-0", "a-0"))
    await put(harness, web("web-1", None))
    seen = await plan(harness, {**ONE, "count": 2})
    head = (await harness.client.get(CLUSTER)).json()["revision"]
    told = await committed(harness, {**ONE, "count": 2}, steps=seen["steps"])
    assert (told["status"], told["steps"], told["revision"]) == (
        "Committed",
        seen["steps"],
        head + 2,
    )
    marked = await stored(harness, "web-0")
    assert marked is not None
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["spec"]["nodeName"] == "a-0"
    assert await stored(harness, "web-1") is None


async def test_a_plan_that_is_another_one_by_now_is_a_conflict(harness: Harness) -> None:
    await nodes(harness)
    await put(harness, web("web-0", "a-0"))
    seen = await plan(harness)
    await put(harness, web("web-1", None))
    answer = await asked(harness, "plan-commits", {"goal": ONE, "steps": seen["steps"]})
    assert problem(answer, 409) == "Conflict"
    assert answer.json()["detail"] == (
        "The plan is another one now, and nothing was done. "
        "no more: Delete shop/web-0; now: Delete shop/web-1."
    )
    assert await stored(harness, "web-1") is not None


async def test_nothing_is_done_of_a_plan_whose_goal_is_not_reached(harness: Harness) -> None:
    await nodes(harness)
    await put(harness, web("web-0", "a-0"))
    told = await committed(harness, {**ONE, "count": 2})
    assert (told["status"], told["complete"], names(told)) == ("Planned", False, ["web-0"])
    left = await stored(harness, "web-0")
    assert left is not None
    assert "deletionTimestamp" not in left["metadata"]


async def test_a_pod_takes_the_place_of_another_in_one_commit(harness: Harness) -> None:
    """Anti-affinity to its own kind would refuse it while the old one is there."""
    await nodes(harness, "a-0")
    term = {"labelSelector": WEB, "topologyKey": HOST}
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    await put(harness, web("web-0", "a-0", affinity=alone))
    goal = {"type": "Place", "pods": [web("web-1", None, affinity=alone)]}
    told = await committed(harness, goal)
    assert (told["status"], told["unplaced"][0]["reason"]) == ("Planned", "Unschedulable")
    old = {"op": "RemovePods", "namespace": "shop", "names": ["web-0"]}
    told = await committed(harness, goal, changes=[old])
    assert (told["status"], told["changed"], told["steps"][0]["to"]) == ("Committed", [1], "a-0")
    new = await stored(harness, "web-1")
    assert new is not None
    assert new["spec"]["nodeName"] == "a-0"
    assert await stored(harness, "web-0") is None


async def test_a_commit_is_made_once_under_its_key(harness: Harness) -> None:
    await nodes(harness)
    for number in range(3):
        await put(harness, web(f"web-{number}", "a-0"))
    first = await asked(harness, "plan-commits", {"goal": ONE}, **{"idempotency-key": "one"})
    again = await asked(harness, "plan-commits", {"goal": ONE}, **{"idempotency-key": "one"})
    assert first.json() == again.json()
    assert again.headers["idempotent-replayed"] == "true"
    marked = [await stored(harness, f"web-{number}") for number in range(3)]
    assert sum("deletionTimestamp" in (each or {})["metadata"] for each in marked) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"goal": {"type": "Drain", "nodes": {"names": ["a-0"]}}}, "goal.type"),
        ({"goal": {"type": "Place", "displaced": True}}, "goal.displaced"),
        ({"goal": {**ONE, "count": 1001}}, "goal"),
        ({"changes": [{"op": "CordonNodes", "names": ["a-0"]}]}, "changes[0].op"),
    ],
)
async def test_what_moorage_cannot_do_in_one_commit_is_refused(
    harness: Harness, body: Json, field: str
) -> None:
    await nodes(harness)
    answer = await asked(harness, "plan-commits", body)
    assert problem(answer, 422) == "InvalidManifest"
    assert [each["field"] for each in answer.json()["errors"]] == [field]
