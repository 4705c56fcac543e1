"""What becomes of pods whose node is tainted, not ready, silent or deleted, as clients see it."""

from typing import Any

import msgspec
import pytest

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


NODE = f"{CLUSTER}/nodes/n1"
KEY = "node.kubernetes.io/"
MERGE, STEPS, APPLY = (
    {"content-type": f"application/{kind}"}
    for kind in ("merge-patch+json", "json-patch+json", "apply-patch+yaml")
)


def being(status: str, kind: str = "Ready", name: str = "n1", **spec: Any) -> dict[str, Any]:
    """A node that has a condition."""
    conditions = [{"type": kind, "status": status, "reason": "KubeletNotReady"}]
    return spoiled(name, spec=spec, status={"conditions": conditions})


def in_list(body: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": [body]}


async def send(harness: Harness, way: str, body: dict[str, Any]) -> None:
    """Write a node in one of the ways in which clients may; it is there before it is written again."""
    if way.endswith(("again", "patch")):
        await harness.put("nodes/n1", node("n1"))
    answer = await harness.client.request(**request(way, body))
    assert answer.status_code in {200, 201}, answer.text
    if way not in {"list", "lines"}:
        assert taints_in(answer.json()) == taints_in(await stored(harness, "nodes/n1"))


def request(way: str, body: dict[str, Any]) -> dict[str, Any]:
    conditions = body["status"]["conditions"]
    match way:
        case "create":
            return {"method": "POST", "url": f"{CLUSTER}/nodes", "json": body}
        case "merge patch":
            sent = {"status": {"conditions": conditions}}
            return {"method": "PATCH", "url": NODE, "json": sent, "headers": MERGE}
        case "json patch":
            steps = [{"op": "add", "path": "/status/conditions", "value": conditions}]
            return {"method": "PATCH", "url": NODE, "json": steps, "headers": STEPS}
        case "server-side apply":
            asked = {"params": {"fieldManager": "kubelet"}, "headers": APPLY}
            return {"method": "PATCH", "url": NODE, "json": body, **asked}
        case "list":
            return {"method": "POST", "url": f"{CLUSTER}/apply", "json": in_list(body)}
        case "lines":
            asked = {"headers": {"content-type": "application/x-ndjson"}}
            return {"method": "POST", "url": f"{CLUSTER}/apply", "content": encode(body), **asked}
        case _:
            return {"method": "PUT", "url": NODE, "json": body}


def encode(body: dict[str, Any]) -> bytes:
    return msgspec.json.encode(body)


def taints_in(manifest: dict[str, Any]) -> list[tuple[str, str]]:
    found = manifest.get("spec", {}).get("taints", [])
    return [(each["key"].removeprefix(KEY), each["effect"]) for each in found]


WAYS = (
    "put",
    "put again",
    "create",
    "merge patch",
    "json patch",
    "server-side apply",
    "list",
    "lines",
)


async def first_taints(harness: Harness) -> list[tuple[str, str]]:
    """The taints at the revision that brought the condition, whatever has been done since."""
    head = int((await stored(harness, "nodes"))["metadata"]["resourceVersion"])
    for revision in range(1, head + 1):
        items = (await stored(harness, f"nodes?revision={revision}"))["items"]
        told = [each for each in items if each["status"].get("conditions")]
        if told:
            return taints_in(told[0])
    raise AssertionError("No node has a condition.")


@pytest.mark.parametrize("way", WAYS)
async def test_a_node_that_is_not_ready_is_tainted_by_the_write_that_says_so(
    over_each_store: Harness, way: str
):
    harness = over_each_store
    await send(harness, way, being("False"))
    assert await first_taints(harness) == [("not-ready", "NoSchedule")]
    (result,) = (await harness.place(pod("web")))["results"]
    assert result["outcome"] == "Unschedulable"
    assert "untolerated taint" in result["message"]


@pytest.mark.parametrize(
    ("kind", "status", "key"),
    [
        ("Ready", "False", "not-ready"),
        ("Ready", "Unknown", "unreachable"),
        ("MemoryPressure", "True", "memory-pressure"),
        ("DiskPressure", "True", "disk-pressure"),
        ("PIDPressure", "True", "pid-pressure"),
        ("NetworkUnavailable", "True", "network-unavailable"),
        ("Ready", "True", ""),
        ("MemoryPressure", "Unknown", ""),
        ("DiskPressure", "False", ""),
        ("KernelDeadlock", "True", ""),
    ],
)
async def test_each_condition_has_its_taint(harness: Harness, kind: str, status: str, key: str):
    await harness.put("nodes/n1", being(status, kind))
    assert await first_taints(harness) == ([(key, "NoSchedule")] if key else [])
    (result,) = (await harness.place(pod("web")))["results"]
    assert result["outcome"] == ("Unschedulable" if key else "Placed")


@pytest.mark.parametrize(
    ("kind", "bad", "good"), [("Ready", "False", "True"), ("DiskPressure", "True", "False")]
)
async def test_the_write_that_says_that_all_is_well_takes_the_taints_away(
    over_each_store: Harness, kind: str, bad: str, good: str
):
    harness = over_each_store
    own = {"key": "gpu", "effect": "NoSchedule"}
    first = await harness.put("nodes/n1", being(bad, kind, taints=[own]))
    assert len(taints_in(first.json())) == 2
    same = await harness.put("nodes/n1", being(bad, kind, taints=[own]))
    assert set(taints_in(first.json())) <= set(taints_in(same.json()))
    conditions = being(good, kind)["status"]["conditions"]
    body = {"status": {"conditions": conditions}}
    well = await harness.client.patch(NODE, json=body, headers=MERGE)
    assert taints_in(well.json()) == [("gpu", "NoSchedule")]


async def test_a_write_keeps_the_taint_of_a_condition_as_long_as_it_is_bad(harness: Harness):
    first = (await harness.put("nodes/n1", being("True", "MemoryPressure"))).json()
    again = (await harness.put("nodes/n1", being("True", "MemoryPressure"))).json()
    assert again == first
    emptied = await harness.client.patch(NODE, json={"spec": {"taints": None}}, headers=MERGE)
    assert emptied.json() == first
    bare = (await harness.put("nodes/n1", node("n1"))).json()
    assert taints_in(bare) == []


async def test_a_taint_of_a_condition_keeps_its_time(harness: Harness):
    """A write that leaves it out does not add it anew, even if much time has passed."""
    pressed = being("True", "MemoryPressure")
    first = (await harness.put("nodes/n1", pressed)).json()
    (taint,) = first["spec"]["taints"]
    long_ago = [taint | {"timeAdded": "2026-01-01T00:00:00Z"}]
    await harness.put("nodes/n1", pressed | {"spec": {"taints": long_ago}})
    again = (await harness.put("nodes/n1", pressed)).json()
    assert again["spec"]["taints"] == long_ago


async def test_nobody_manages_the_taints_of_conditions(harness: Harness):
    """Who applies taints is in no conflict with whoever reports the conditions."""
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    body |= {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}
    body |= {"status": node("n1")["status"]}
    asked: dict[str, Any] = {"json": body, "headers": APPLY, "params": {"fieldManager": "infra"}}
    assert (await harness.client.patch(NODE, **asked)).status_code == 201
    report = {"status": {"conditions": being("False")["status"]["conditions"]}}
    kubelet = {"fieldManager": "kubelet"}
    told = await harness.client.patch(NODE, json=report, headers=MERGE, params=kubelet)
    assert set(taints_in(told.json())) >= {("gpu", "NoSchedule"), ("not-ready", "NoSchedule")}
    again = await harness.client.patch(NODE, **asked)
    assert again.status_code == 200, again.text
    assert ("not-ready", "NoSchedule") in taints_in(again.json())
    fields = {
        each["manager"]: each["fieldsV1"] for each in again.json()["metadata"]["managedFields"]
    }
    assert "f:spec" not in fields["kubelet"]


async def test_conditions_that_are_ignored_mean_no_taint_and_a_switch_takes_them_away(
    over_each_store: Harness,
):
    harness = over_each_store
    await harness.configure(nodeConditions="Ignore")
    assert taints_in((await harness.put("nodes/n1", being("False"))).json()) == []
    await harness.configure(nodeConditions="Taint")
    assert ("not-ready", "NoSchedule") in taints_in(await stored(harness, "nodes/n1"))
    gpu = {"key": "gpu", "effect": "NoSchedule"}
    await harness.put("nodes/n2", being("True", "DiskPressure", "n2", taints=[gpu]))
    await harness.configure(nodeConditions="Ignore")
    assert taints_in(await stored(harness, "nodes/n1")) == []
    assert taints_in(await stored(harness, "nodes/n2")) == [("gpu", "NoSchedule")]


@pytest.mark.parametrize(("setting", "outcome"), [(None, "Unschedulable"), ("Ignore", "Placed")])
async def test_a_simulated_node_that_is_not_ready_has_the_taint(
    harness: Harness, setting: str | None, outcome: str
):
    body = {"nodes": [being("False")], "pod": pod("web"), "config": {"nodeConditions": setting}}
    answer = await harness.client.post("/v1/simulations", json=body)
    (result,) = answer.json()["results"]
    assert result["outcome"] == outcome, answer.text


LARGE = {"name": "c", "resources": {"requests": {"cpu": "3"}}}


async def plan(harness: Harness, *changes: dict[str, Any]) -> str:
    """What becomes of a pod after some changes."""
    goal = {"type": "Place", "pods": [pod("web")]}
    body = {"changes": [*changes], "goal": goal}
    answer = await harness.client.post(f"{CLUSTER}/plans", json=body)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return "Unplaced" if told["unplaced"] else "Placed"


async def test_planned_nodes_have_the_taints_of_their_conditions(harness: Harness):
    added = {"op": "AddNodes", "count": 1, "template": being("Unknown", name="more")}
    assert await plan(harness, added) == "Unplaced"
    ignoring = {"op": "SetConfig", "config": {"nodeConditions": "Ignore"}}
    assert await plan(harness, ignoring, added) == "Placed"
    assert await plan(harness, added, ignoring) == "Placed"
    tainting = {"op": "SetConfig", "config": {"nodeConditions": "Taint"}}
    assert await plan(harness, ignoring, added, tainting) == "Unplaced"
    assert await plan(harness, added | {"template": being("True", name="more")}) == "Placed"


async def test_no_plan_and_no_repair_takes_the_taint_of_a_condition_away(harness: Harness):
    await harness.put("nodes/n1", being("False"))
    emptied = {"op": "SetTaints", "names": ["n1"], "taints": []}
    assert await plan(harness, emptied) == "Unplaced"
    await harness.put_pod("web")
    answer = await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/web/repairs")
    changes = [change for each in answer.json()["repairs"] for change in each["changes"]]
    assert {each["op"] for each in changes} == {"AddToleration"}
    await harness.configure(nodeConditions="Ignore")
    await harness.put(
        "nodes/n1", being("False", taints=[{"key": KEY + "not-ready", "effect": "NoSchedule"}])
    )
    assert await plan(harness, emptied) == "Placed"


async def test_a_repair_adds_no_node_with_the_taint_of_another_ones_condition(harness: Harness):
    gpu, tolerated = {"key": "gpu", "effect": "NoSchedule"}, [{"operator": "Exists"}]
    await harness.put("nodes/n1", being("False", taints=[gpu]))
    await harness.put_pod("web", containers=[LARGE], tolerations=tolerated, nodeName="n1")
    await harness.put_pod("more", containers=[LARGE], tolerations=tolerated)
    answer = await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/more/repairs")
    changes = [change for each in answer.json()["repairs"] for change in each["changes"]]
    (added,) = (each for each in changes if each["op"] == "AddNodes")
    assert added["template"]["spec"]["taints"] == [gpu]


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
