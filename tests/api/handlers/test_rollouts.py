"""Rolling releases that are carried out, over HTTP: wave by wave, whatever happens in between."""

from typing import Any

import pytest
from msgspec.structs import replace

from service.scheduler.protocol.limits import Limits
from tests.api.conftest import MakeHarness
from tests.api.handlers.test_replacement_plans import (
    HOST,
    READY,
    ZONE,
    old_pods,
    planned,
    replaced,
    spread,
    version,
)
from tests.api.harness import CLUSTER, Harness, problem
from tests.concurrency.checker.releases import Bounds, counted, wrongs
from tests.waiting import PATIENCE_SECONDS, WAIT_SECONDS, once

QUICK = Limits(request_seconds_max=WAIT_SECONDS, plan_look_seconds=0.01, poll_seconds=0.01)
PLAN = "plans/to-v2"

Json = dict[str, Any]


@pytest.fixture
async def quick(make_harness: MakeHarness) -> Harness:
    """The application over the store in memory; it looks at pods that wait without a pause."""
    made = await make_harness(limits=QUICK)
    await made.configure(placePendingPods=False)
    for name in ("a-0", "a-1", "b-0", "b-1", "c-0", "c-1"):
        await made.put_node(name, **{ZONE: name[0], HOST: name})
    return made


async def stored(harness: Harness, path: str) -> Json:
    answer = await harness.client.get(f"{CLUSTER}/{path}")
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


async def pods(harness: Harness) -> dict[str, Json]:
    return {each["metadata"]["name"]: each for each in (await stored(harness, "pods"))["items"]}


async def begin(harness: Harness, goal: Json) -> None:
    body = {"metadata": {"name": "to-v2"}, "spec": {"goal": goal}}
    await harness.put(PLAN, body)


async def reached(harness: Harness, **wanted: Any) -> Json:
    """The status of the plan, once it says all this."""

    async def says() -> Json | None:
        status: Json = (await stored(harness, PLAN)).get("status", {})
        return status if wanted.items() <= status.items() else None

    return await once(says, PATIENCE_SECONDS)


async def stop_leaving(harness: Harness) -> None:
    """Stop the pods that are to leave, and forget those whose node is gone, as their orchestrator does."""
    nodes = {each["metadata"]["name"] for each in (await stored(harness, "nodes"))["items"]}
    for name, found in (await pods(harness)).items():
        lost = found["spec"].get("nodeName") not in nodes
        if lost or "deletionTimestamp" in found["metadata"]:
            await harness.client.delete(f"{CLUSTER}/namespaces/shop/pods/{name}")


async def report_ready(harness: Harness) -> None:
    for name, found in (await pods(harness)).items():
        conditions = found.get("status", {}).get("conditions", [])
        if not any(each["type"] == "Ready" for each in conditions):
            status = {"conditions": [*conditions, *READY["conditions"]]}
            answer = await harness.client.patch(
                f"{CLUSTER}/namespaces/shop/pods/{name}",
                json={"status": status},
                headers={"content-type": "application/merge-patch+json"},
            )
            assert answer.status_code == 200, answer.text


async def finish(harness: Harness) -> Json:
    """Be the pods' orchestrator until the plan has ended, and return its status."""

    async def ends() -> Json | None:
        await stop_leaving(harness)
        await report_ready(harness)
        status: Json = (await stored(harness, PLAN)).get("status", {})
        return status if "endedAt" in status else None

    return await once(ends, PATIENCE_SECONDS)


async def test_a_release_goes_on_although_a_zone_is_lost(quick: Harness) -> None:
    """All of its history is judged by the reference: budgets, bounds, and each placement."""
    rule = spread(matchLabelKeys=["version"])
    await old_pods(quick, topologySpreadConstraints=[rule])
    budget = {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 4},
    }
    await quick.put("namespaces/shop/poddisruptionbudgets/web", budget)
    template = version(2, topologySpreadConstraints=[rule])
    await begin(quick, replaced(template, maxSurge=1, maxUnavailable=1))
    first = await reached(quick, waves=1)
    assert (first["placed"], first["evicted"], first["ready"]) == (2, 1, 0)
    await report_ready(quick)
    await stop_leaving(quick)
    await reached(quick, waves=2)
    for name in ("a-0", "a-1"):
        assert (await quick.client.delete(f"{CLUSTER}/nodes/{name}")).status_code == 200
    status = await finish(quick)
    assert (status["phase"], status["updated"], status["ready"]) == ("Succeeded", 6, 6)
    left = await pods(quick)
    zones = [each["spec"]["nodeName"][0] for each in left.values()]
    assert sorted(zones) == ["b", "b", "b", "c", "c", "c"]
    assert {each["metadata"]["labels"]["version"] for each in left.values()} == {"v2"}
    log = list(quick.store.states[1].changes)
    assert list(wrongs(log, "web-v1", "web-v2", Bounds(most=7, least=5))) == []
    assert counted(log, "web-v2") == (status["evicted"], status["placed"])


async def test_a_wave_waits_for_the_new_pods_of_the_one_before(over_each_store: Harness) -> None:
    harness = over_each_store
    await harness.configure(placePendingPods=False)
    await harness.put_node("a-0", **{ZONE: "a", HOST: "a-0"})
    await harness.put("namespaces/shop/pods/web-v1-0", _old("web-v1-0"))
    await begin(harness, replaced(version(2), 1, maxSurge=1, maxUnavailable=0))
    status = await reached(harness, waves=1)
    assert (status["placed"], status["evicted"], status["waiting"]) == (1, 0, 1)
    waits = (await reached_waiting(harness))["waitingPods"]
    assert [(each["name"], each["reason"]) for each in waits] == [("web-v2-0", "NotReady")]
    assert "deletionTimestamp" not in (await pods(harness))["web-v1-0"]["metadata"]
    await report_ready(harness)
    await reached(harness, waves=2, evicted=1, leaving=1)
    evicted = (await pods(harness))["web-v1-0"]
    told = {each["type"]: each for each in evicted["status"]["conditions"]}["DisruptionTarget"]
    assert told["message"] == "Replace: the plan to-v2 replaces it"
    await stop_leaving(harness)
    await reached(harness, phase="Succeeded", waves=2, updated=1, ready=1)


def _old(name: str) -> Json:
    made = version(1, nodeName="a-0")
    made["metadata"]["name"] = name
    return {**made, "status": READY}


async def reached_waiting(harness: Harness) -> Json:
    async def waits() -> Json | None:
        status: Json = (await stored(harness, PLAN)).get("status", {})
        return status if status.get("waitingPods") else None

    return await once(waits, PATIENCE_SECONDS)


async def test_a_release_is_paused_resumed_and_cancelled(quick: Harness) -> None:
    await old_pods(quick)
    await begin(quick, replaced(version(2), maxSurge=2, maxUnavailable=0))
    await reached(quick, waves=1)
    answer = await quick.client.post(f"{CLUSTER}/{PLAN}/pause", json={})
    assert answer.status_code == 200
    await report_ready(quick)
    await reached(quick, phase="Paused", ready=2, evicted=0, waves=1)
    await quick.client.post(f"{CLUSTER}/{PLAN}/resume", json={})
    await reached(quick, phase="Running", evicted=2, waves=2)
    await quick.client.post(f"{CLUSTER}/{PLAN}/cancel", json={})
    ended = await reached(quick, phase="Cancelled")
    assert (ended["evicted"], ended["placed"]) == (2, 4)
    assert len(await pods(quick)) == 10


@pytest.mark.parametrize(
    ("goal", "field"),
    [
        (replaced(version(2), maxSurge=0, maxUnavailable=0), "spec.goal.maxUnavailable"),
        (replaced(version(2), owner={"kind": "ReplicaSet"}), "spec.goal.owner.name"),
        (replaced({"metadata": {"name": "A"}}), "spec.goal.template.metadata.name"),
        (replaced(version(2), 100_001), "spec.goal.replicas"),
        (replaced(version(2), nodes={"names": ["a-0"]}), "spec.goal.nodes"),
        ({"type": "Drain"}, "spec.goal.nodes"),
    ],
)
async def test_a_plan_that_makes_no_sense_is_refused(
    harness: Harness, goal: Json, field: str
) -> None:
    body = {"metadata": {"name": "to-v2"}, "spec": {"goal": goal}}
    answer = await harness.client.put(f"{CLUSTER}/{PLAN}", json=body)
    assert problem(answer, 422) == "InvalidManifest"
    assert field in [each["field"] for each in answer.json()["errors"]]


async def test_two_releases_of_the_same_pods_do_not_run_at_once(quick: Harness) -> None:
    """Each would replace the new pods of the other, and neither would end."""
    await old_pods(quick, 2)
    await begin(quick, replaced(version(2), 2))
    later = {"metadata": {"name": "to-v3"}, "spec": {"goal": replaced(version(3), 2)}}
    answer = await quick.client.put(f"{CLUSTER}/plans/to-v3", json=later)
    assert problem(answer, 409) == "Conflict"
    assert "The plan to-v2 releases pods that this one is about" in answer.json()["detail"]
    other = replaced(version(3), 2, selector={"matchLabels": {"app": "other"}})
    other["template"] = {**other["template"], "metadata": {"name": "other", "labels": {"a": "b"}}}
    beside = {"metadata": {"name": "beside"}, "spec": {"goal": other}}
    await quick.put("plans/beside", beside)
    await begin(quick, replaced(version(2), 2, maxSurge=1))
    await quick.client.post(f"{CLUSTER}/{PLAN}/cancel", json={})
    await quick.put("plans/to-v3", later)


async def test_another_pod_with_the_name_of_a_new_one_is_left_alone(quick: Harness) -> None:
    await old_pods(quick, 1)
    await quick.put("namespaces/shop/pods/web-v2-0", _old("web-v2-0"))
    await begin(quick, replaced(version(2), 1))
    waits = (await reached_waiting(quick))["waitingPods"]
    assert [(each["name"], each["reason"]) for each in waits] == [("web-v2-0", "PodDiffers")]


async def test_a_cluster_that_is_full_of_objects_keeps_new_pods_away_and_no_other_plan(
    make_harness: MakeHarness,
) -> None:
    """Nodes, pods and both plans are as many as there may be; who drains makes room for the release."""
    harness = await make_harness(limits=replace(QUICK, objects_max=11))
    await harness.configure(placePendingPods=False)
    for name in ("a-0", "a-1", "b-0", "b-1", "c-0"):
        await harness.put_node(name, **{ZONE: name[0], HOST: name})
    await old_pods(harness, 3)
    drain = {"goal": {"type": "Drain", "nodes": {"names": ["b-0"]}}, "state": "Paused"}
    await harness.put("plans/b", {"metadata": {"name": "b"}, "spec": drain})
    await begin(harness, replaced(version(2), 2, maxSurge=2, maxUnavailable=0))
    waits = (await reached_waiting(harness))["waitingPods"]
    assert [(each["name"], each["reason"]) for each in waits] == [("web-v2-0", "TooManyObjects")]
    await harness.client.post(f"{CLUSTER}/plans/b/resume", json={})
    await once(lambda: is_leaving(harness, "web-v1-1"), PATIENCE_SECONDS)
    status = await finish(harness)
    assert (status["phase"], status["ready"], status["placed"]) == ("Succeeded", 2, 2)


async def is_leaving(harness: Harness, name: str) -> bool:
    return "deletionTimestamp" in (await pods(harness))[name]["metadata"]


async def test_members_of_a_group_come_together_or_it_is_said_that_they_never_can(
    quick: Harness,
) -> None:
    await old_pods(quick, 4)
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup"}
    named = {"metadata": {"name": "ring", "namespace": "shop"}, "spec": {"minMember": 3}}
    await quick.put("namespaces/shop/podgroups/ring", {**group, **named})
    template = version(2)
    template["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "ring"
    goal = replaced(template, 4, maxSurge=1, maxUnavailable=1)
    (told,) = {(each["reason"], each["message"]) for each in missing(await planned(quick, goal))}
    await begin(quick, goal)
    status = await reached_waiting(quick)
    (waits,) = status["waitingPods"]
    assert told == (waits["reason"], waits["message"])
    assert told[1].startswith("group ring needs 3 more members at once, and at most 2 new pods")
    assert (told[0], waits["name"], status["evicted"]) == ("GroupTooLarge", "web-v2-0", 0)
    await begin(quick, {**goal, "maxSurge": 2})
    first = await reached(quick, waves=1)
    assert (first["placed"], first["evicted"]) == (3, 1)
    assert (await finish(quick))["phase"] == "Succeeded"


def missing(plan: Json) -> list[Json]:
    return [each for each in plan["unplaced"] if each["name"].startswith("web-v2")]
