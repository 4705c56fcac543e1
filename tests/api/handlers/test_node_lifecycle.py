"""What becomes of pods whose node is tainted, not ready, silent or deleted, as clients see it."""

from typing import Any

from tests.api.harness import CLUSTER, Harness, node, pod, problem
from tests.waiting import once

UNREACHABLE = "node.kubernetes.io/unreachable"


async def stored(harness: Harness, path: str) -> dict[str, Any]:
    answer = await harness.client.get(f"{CLUSTER}/{path}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def condition_of(harness: Harness, path: str, kind: str) -> dict[str, Any] | None:
    conditions = (await stored(harness, path)).get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), None)


def spoiled(name: str, **fields: Any) -> dict[str, Any]:
    made = node(name)
    made["spec"] = fields.get("spec", {})
    made["status"] |= fields.get("status", {})
    return made


async def test_a_taint_evicts_a_pod_and_is_told_in_an_event(over_each_store: Harness):
    harness = over_each_store
    await harness.put_node("n1")
    await harness.place(pod("web"))
    taint = {"key": "maintenance", "effect": "NoExecute"}
    await harness.put("nodes/n1", spoiled("n1", spec={"taints": [taint]}))
    web = "namespaces/shop/pods/web"
    told = await once(lambda: condition_of(harness, web, "DisruptionTarget"))
    assert told["reason"] == "DeletionByTaintManager"
    assert "deletionTimestamp" in (await stored(harness, web))["metadata"]
    (kept,) = (await stored(harness, "nodes/n1"))["spec"]["taints"]
    assert taint.items() < kept.items()
    assert kept["timeAdded"].endswith("Z")
    events = (await stored(harness, "namespaces/shop/events"))["items"]
    assert "Evicted" in {each["reason"] for each in events}


async def test_a_node_that_is_not_ready_gets_no_new_pods(over_each_store: Harness):
    harness = over_each_store
    conditions = [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}]
    await harness.put("nodes/n1", spoiled("n1", status={"conditions": conditions}))

    async def taints() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await stored(harness, "nodes/n1"))["spec"].get("taints", [])
        return found

    assert {each["key"] for each in await once(taints)} == {"node.kubernetes.io/not-ready"}
    (result,) = (await harness.place(pod("web")))["results"]
    assert result["outcome"] == "Unschedulable"
    assert "untolerated taint" in result["message"]


async def test_a_node_that_stops_reporting_is_unreachable_until_it_reports(
    over_each_store: Harness,
):
    harness = over_each_store
    await harness.configure(nodeMonitorGraceSeconds=1)
    conditions = [{"type": "Ready", "status": "True"}]
    await harness.put("nodes/n1", spoiled("n1", status={"conditions": conditions}))
    assert (await harness.client.put(f"{CLUSTER}/nodes/n1/lease")).status_code == 200

    async def ready(status: str) -> bool:
        found = await condition_of(harness, "nodes/n1", "Ready")
        return found is not None and found["status"] == status

    await once(lambda: ready("Unknown"))
    (taint,) = (await stored(harness, "nodes/n1"))["spec"]["taints"]
    assert (taint["key"], taint["effect"]) == (UNREACHABLE, "NoSchedule")  # all zones are down

    async def returned() -> bool:
        await harness.client.put(f"{CLUSTER}/node-leases", json={"nodes": ["n1"]})
        return await ready("True")

    await once(returned)
    assert "taints" not in (await stored(harness, "nodes/n1"))["spec"]


async def test_pods_of_a_deleted_node_fail_and_are_not_called_placed(over_each_store: Harness):
    harness = over_each_store
    await harness.configure(orphanGraceSeconds=0)
    await harness.put_node("n1")
    await harness.place(pod("web"))
    assert (await harness.client.delete(f"{CLUSTER}/nodes/n1")).status_code == 200
    web = "namespaces/shop/pods/web"
    told = await once(lambda: condition_of(harness, web, "DisruptionTarget"))
    assert told["reason"] == "DeletionByPodGC"
    assert (await stored(harness, web))["status"]["phase"] == "Failed"
    await harness.put_node("n2")
    (result,) = (await harness.place(pod("web")))["results"]
    assert (result["outcome"], result["reason"]) == ("Denied", "NodeNotFound")
    bound = await harness.client.post(f"{CLUSTER}/{web}/binding", json={"target": {"name": "n2"}})
    assert problem(bound, 409) == "Conflict"
    assert (await harness.client.delete(f"{CLUSTER}/{web}")).status_code == 200
    (result,) = (await harness.place(pod("web")))["results"]
    assert result["nodeName"] == "n2"


async def test_a_condition_that_is_not_one_is_refused_with_its_path(harness: Harness):
    bad = spoiled("n1", status={"conditions": [{"type": "Ready", "status": 5}]})
    answer = await harness.client.put(f"{CLUSTER}/nodes/n1", json=bad)
    assert problem(answer, 422) == "InvalidManifest"
    assert [each["field"] for each in answer.json()["errors"]] == ["status.conditions[0].status"]
