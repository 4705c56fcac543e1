"""Nodes that are cordoned and drained, over HTTP: who leaves when, and what a plan's status tells."""

from typing import Any

import pytest

from service.scheduler.protocol.limits import Limits
from tests.api.conftest import MakeHarness
from tests.api.harness import CLUSTER, Harness, pod, problem
from tests.waiting import WAIT_SECONDS, once

HOST = "kubernetes.io/hostname"
QUICK = Limits(request_seconds_max=WAIT_SECONDS, plan_look_seconds=0.01, poll_seconds=0.01)
PLAN = "plans/drain-n1"

Json = dict[str, Any]


@pytest.fixture
async def quick(make_harness: MakeHarness) -> Harness:
    """The application over the store in memory; it looks at pods that wait without a pause."""
    return await make_harness(limits=QUICK)


async def stored(harness: Harness, path: str) -> Json:
    answer = await harness.client.get(f"{CLUSTER}/{path}")
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


async def act(harness: Harness, path: str, status: int = 200, body: Any = None) -> Json:
    answer = await harness.client.post(f"{CLUSTER}/{path}", json=body or {})
    assert answer.status_code == status, answer.text
    found: Json = answer.json()
    return found


async def reached(harness: Harness, plan: str = PLAN, **wanted: Any) -> Json:
    """The status of a plan, once it says all this."""

    async def says() -> Json | None:
        status: Json = (await stored(harness, plan)).get("status", {})
        return status if wanted.items() <= status.items() else None

    return await once(says)


async def leaving(harness: Harness) -> set[str]:
    items = (await stored(harness, "pods"))["items"]
    return {each["metadata"]["name"] for each in items if "deletionTimestamp" in each["metadata"]}


async def three_nodes(harness: Harness, *, pods: int = 3) -> None:
    await harness.configure(placePendingPods=False)
    for name in ("n1", "n2", "n3"):
        await harness.put_node(name, **{HOST: name})
    for number in range(pods):
        await harness.put_pod(f"web-{number}", nodeName="n1")


async def stop(harness: Harness, name: str) -> None:
    """Stop a pod that is to leave, and have another one placed, as its orchestrator does."""
    await harness.client.delete(f"{CLUSTER}/namespaces/shop/pods/{name}")
    (result,) = (await harness.place(pod(name)))["results"]
    assert result["outcome"] == "Placed"


async def budget(harness: Harness, **spec: Any) -> None:
    manifest = {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }
    await harness.put("namespaces/shop/poddisruptionbudgets/web", manifest)


async def test_a_node_is_cordoned_and_uncordoned(harness: Harness) -> None:
    await three_nodes(harness, pods=0)
    cordoned = await act(harness, "nodes/n1/cordon")
    assert cordoned["spec"] == {"unschedulable": True}
    assert cordoned["metadata"]["labels"] == {HOST: "n1"}
    again = await act(harness, "nodes/n1/cordon")
    assert again == cordoned
    placed = [(await harness.place(pod(f"p{number}")))["results"][0] for number in range(4)]
    assert {each["nodeName"] for each in placed} == {"n2", "n3"}
    assert "unschedulable" not in (await act(harness, "nodes/n1/uncordon"))["spec"]
    answer = await harness.client.post(f"{CLUSTER}/nodes/n9/cordon")
    assert problem(answer, 404) == "NotFound"


async def test_a_drain_ends_when_only_daemons_are_left(over_each_store: Harness) -> None:
    harness = over_each_store
    await three_nodes(harness)
    daemon = pod("daemon", nodeName="n1")
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "1"}
    daemon["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    await harness.put("namespaces/shop/pods/daemon", daemon)
    plan = await act(harness, "nodes/n1/drain", 201)
    assert plan["metadata"]["name"] == "drain-n1"
    assert plan["spec"] == {"goal": {"type": "Drain", "nodes": {"names": ["n1"]}}}
    assert (await stored(harness, "nodes/n1"))["spec"] == {"unschedulable": True}
    status = await reached(harness, phase="Running", evicted=3, leaving=3, waiting=0, staying=1)
    assert "endedAt" not in status
    assert await leaving(harness) == {"web-0", "web-1", "web-2"}
    told = (await stored(harness, "namespaces/shop/pods/web-0"))["status"]["conditions"]
    assert {
        "type": "DisruptionTarget",
        "reason": "EvictionByEvictionAPI",
        "message": "Drain: node n1 is drained",
    }.items() <= next(each for each in told if each["type"] == "DisruptionTarget").items()
    for number in range(3):
        await stop(harness, f"web-{number}")
    ended = await reached(harness, phase="Succeeded")
    assert (ended["evicted"], ended["leaving"], ended["staying"]) == (3, 0, 1)
    assert ended["startedAt"] <= ended["endedAt"]
    assert [each["metadata"]["name"] for each in (await stored(harness, "plans"))["items"]] == [
        "drain-n1"
    ]


async def test_no_more_pods_leave_than_a_budget_allows(quick: Harness) -> None:
    await three_nodes(quick)
    await budget(quick, maxUnavailable=1)
    await act(quick, "nodes/n1/drain", 201)
    gone: set[str] = set()
    for number in range(3):
        status = await reached(quick, evicted=number + 1, leaving=1)
        (name,) = await leaving(quick)
        waiting = {"web-0", "web-1", "web-2"} - gone - {name}
        assert {each["name"] for each in status.get("waitingPods", ())} == waiting
        assert {each["budget"] for each in status.get("waitingPods", ())} <= {"web"}
        await stop(quick, name)
        gone.add(name)
    assert (await reached(quick, phase="Succeeded"))["evicted"] == 3


async def test_a_pod_without_another_node_waits_until_there_is_one(quick: Harness) -> None:
    await quick.configure(placePendingPods=False)
    await quick.put_node("n1", **{HOST: "n1"})
    await quick.put_pod("web-0", nodeName="n1")
    await act(quick, "nodes/n1/drain", 201)
    status = await reached(quick, phase="Running", waiting=1)
    (kept,) = status["waitingPods"]
    assert (kept["namespace"], kept["name"], kept["reason"]) == ("shop", "web-0", "Unschedulable")
    assert kept["message"] == "0/1 nodes are available: 1 node(s) were unschedulable."
    assert await leaving(quick) == set()
    await quick.put_node("n2", **{HOST: "n2"})
    await reached(quick, evicted=1, waiting=0)
    assert await leaving(quick) == {"web-0"}


async def test_if_asked_for_it_leaves_without_another_node_but_not_against_a_budget(
    quick: Harness,
) -> None:
    await quick.configure(placePendingPods=False)
    await quick.put_node("n1", **{HOST: "n1"})
    for number in range(2):
        await quick.put_pod(f"web-{number}", nodeName="n1")
    await budget(quick, maxUnavailable=1)
    await act(quick, "nodes/n1/drain", 201, {"whenUnschedulable": "Evict"})
    status = await reached(quick, evicted=1, leaving=1, waiting=1)
    assert [each["reason"] for each in status["waitingPods"]] == ["DisruptionBudget"]
    assert len(await leaving(quick)) == 1


async def test_a_plan_is_paused_resumed_and_cancelled(quick: Harness) -> None:
    await three_nodes(quick)
    await budget(quick, maxUnavailable=1)
    await act(quick, "nodes/n1/drain", 201)
    await reached(quick, evicted=1)
    paused = await act(quick, f"{PLAN}/pause")
    assert paused["spec"]["state"] == "Paused"
    await reached(quick, phase="Paused")
    (name,) = await leaving(quick)
    await stop(quick, name)
    await reached(quick, phase="Paused", leaving=0, evicted=1)
    await act(quick, f"{PLAN}/resume")
    await reached(quick, phase="Running", evicted=2)
    await act(quick, f"{PLAN}/cancel")
    ended = await reached(quick, phase="Cancelled")
    assert ended["evicted"] == 2
    assert "waitingPods" not in ended
    answer = await quick.client.post(f"{CLUSTER}/{PLAN}/resume")
    assert problem(answer, 409) == "Conflict"
    assert (await stored(quick, "nodes/n1"))["spec"] == {"unschedulable": True}
    answer = await quick.client.post(f"{CLUSTER}/plans/other/pause")
    assert problem(answer, 404) == "NotFound"


async def test_a_second_drain_is_the_first_until_that_has_ended(quick: Harness) -> None:
    await three_nodes(quick, pods=1)
    first = await act(quick, "nodes/n1/drain", 201)
    again = await act(quick, "nodes/n1/drain")
    assert again["metadata"]["uid"] == first["metadata"]["uid"]
    answer = await quick.client.post(f"{CLUSTER}/nodes/n1/uncordon")
    assert problem(answer, 409) == "Conflict"
    assert "drain-n1" in answer.json()["detail"]
    await reached(quick, evicted=1)
    await stop(quick, "web-0")
    await reached(quick, phase="Succeeded")
    await act(quick, "nodes/n1/uncordon")
    other = await act(quick, "nodes/n1/drain", 201)
    assert other["metadata"]["uid"] != first["metadata"]["uid"]
    await reached(quick, phase="Succeeded", evicted=0)


async def test_who_uncordons_a_node_that_is_drained_finds_it_cordoned_again(
    quick: Harness,
) -> None:
    await three_nodes(quick, pods=1)
    await act(quick, "nodes/n1/drain", 201)
    await reached(quick, evicted=1)
    await quick.put_node("n1", **{HOST: "n1"})

    async def cordoned() -> bool:
        return (await stored(quick, "nodes/n1")).get("spec") == {"unschedulable": True}

    assert await once(cordoned)


async def test_plans_are_objects_that_are_put_and_deleted(quick: Harness) -> None:
    """The status is the server's: nobody else changes it."""
    await three_nodes(quick)
    await budget(quick, maxUnavailable=1)
    spec = {"goal": {"type": "Drain", "nodes": {"names": ["n1", "n2"]}}}
    await quick.put("plans/both", {"metadata": {"name": "both"}, "spec": spec})
    status = await reached(quick, "plans/both", evicted=1, waiting=2)
    assert (await stored(quick, "nodes/n2"))["spec"] == {"unschedulable": True}
    forged = {"phase": "Succeeded", "evicted": 77}
    await quick.put("plans/both", {"metadata": {"name": "both"}, "spec": spec, "status": forged})
    assert (await stored(quick, "plans/both"))["status"] == status
    assert (await quick.client.delete(f"{CLUSTER}/plans/both")).status_code == 200
    (name,) = await leaving(quick)
    await stop(quick, name)
    assert await leaving(quick) == set()


async def test_the_times_of_a_plan_that_is_restored_have_to_be_times(harness: Harness) -> None:
    spec = {"goal": {"type": "Drain", "nodes": {"names": ["n1"]}}}
    status = {"phase": "Succeeded", "startedAt": "2026-05-04T08:00:00Z", "endedAt": "noon"}
    body = {"metadata": {"name": "old"}, "spec": spec, "status": status}
    answer = await harness.client.put(f"{CLUSTER}/plans/old", json=body)
    assert problem(answer, 422) == "InvalidManifest"
    assert [each["field"] for each in answer.json()["errors"]] == ["status.endedAt"]
    await harness.put("plans/old", body | {"status": {**status, "endedAt": "2999-05-04T08:00:01Z"}})
    assert (await stored(harness, "plans/old"))["status"]["phase"] == "Succeeded"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("nodes/n1/drain", {"whenUnschedulable": "Force"}, "whenUnschedulable"),
        ("nodes/n1/drain", {"force": True}, "force"),
        ("nodes/n1/cordon", {"force": True}, "force"),
        ("plans/drain-n1/pause", {"for": "1h"}, "for"),
    ],
)
async def test_a_body_that_makes_no_sense_is_refused(
    harness: Harness, path: str, body: Json, field: str
) -> None:
    await three_nodes(harness, pods=0)
    answer = await harness.client.post(f"{CLUSTER}/{path}", json=body)
    assert problem(answer, 422) == "InvalidManifest"
    assert [each["field"] for each in answer.json()["errors"]] == [field]
