"""Pod groups over HTTP: the object, and pods that wait for each other, as users see both."""

from typing import Any

import pytest

from tests.api.following import watched
from tests.api.harness import CLUSTER, Harness, node, pod, problem
from tests.waiting import once

LABEL = "scheduling.x-k8s.io/pod-group"
GROUP = "namespaces/shop/podgroups/train"


def pod_group(name: str = "train", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec,
    }


def member(name: str, **spec: Any) -> dict[str, Any]:
    made = pod(name, **spec)
    made["metadata"]["labels"][LABEL] = "train"
    return made


async def put_member(harness: Harness, name: str) -> None:
    await harness.put(f"namespaces/shop/pods/{name}", member(name))


async def shown(harness: Harness, path: str = GROUP) -> dict[str, Any]:
    answer = await harness.client.get(f"{CLUSTER}/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def placed(harness: Harness, names: list[str]) -> list[dict[str, Any]]:
    """The members, once all of them have a node."""

    async def all_placed() -> list[dict[str, Any]]:
        pods = [await shown(harness, f"namespaces/shop/pods/{name}") for name in names]
        return pods if all(each["spec"].get("nodeName") for each in pods) else []

    return await once(all_placed)


async def message_of(harness: Harness, name: str, expected: str) -> str:
    """The message of the pod's condition, once it is, or contains, what is expected."""

    async def told() -> str:
        read = await shown(harness, f"namespaces/shop/pods/{name}")
        (condition,) = read.get("status", {}).get("conditions") or [{"message": ""}]
        return condition["message"] if expected in condition["message"] else ""

    return await once(told)


async def test_members_wait_for_each_other_and_get_their_nodes_in_one_commit(
    over_each_store: Harness,
) -> None:
    """E07, E08: a pod group of three, whose members come one by one."""
    harness = over_each_store
    await harness.put_node("n1")
    await harness.put(GROUP, pod_group(minMember=3, scheduleTimeoutSeconds=60))
    for number in range(2):
        await put_member(harness, f"m-{number}")
    waits = "2 of 3 members of group train are here"
    assert await message_of(harness, "m-1", waits) == waits
    status = (await shown(harness))["status"]
    assert status.pop("scheduleStartTime")
    assert status == {
        "phase": "Pending",
        "members": 2,
        "scheduled": 0,
        "running": 0,
        "succeeded": 0,
        "failed": 0,
    }
    explained = await shown(harness, "namespaces/shop/pods/m-0/explanation")
    assert (explained["message"], explained["feasible"]) == (waits, ["n1"])
    counts = (await harness.client.get(CLUSTER)).json()["counts"]
    assert (counts["pods"], counts["pending"]) == (2, 2)
    before = await harness.client.get(f"{CLUSTER}/{GROUP}")
    await put_member(harness, "m-2")
    pods = await placed(harness, ["m-0", "m-1", "m-2"])
    revisions = sorted(int(each["metadata"]["resourceVersion"]) for each in pods)
    assert revisions == list(range(revisions[0], revisions[0] + 3))
    status = (await shown(harness))["status"]
    assert (status["phase"], status["members"], status["scheduled"]) == ("Scheduling", 3, 3)
    after = await harness.client.get(f"{CLUSTER}/{GROUP}")
    assert after.headers["etag"] == before.headers["etag"], "the group itself is what it was"


async def test_phases_follow_the_members(harness: Harness) -> None:
    await harness.put_node("n1")
    await harness.put(GROUP, pod_group(minMember=2))
    phases = []
    for phase in (None, "Running", "Succeeded", "Failed"):
        for number in range(2):
            manifest = member(f"m-{number}", nodeName="n1")
            if phase:
                manifest["status"] = {"phase": phase}
            await harness.put(f"namespaces/shop/pods/m-{number}", manifest)
        phases.append((await shown(harness))["status"]["phase"])
    assert phases == ["Scheduling", "Running", "Finished", "Failed"]


async def test_a_pod_group_is_an_object_like_others(harness: Harness) -> None:
    created = await harness.client.put(f"{CLUSTER}/{GROUP}", json=pod_group())
    assert created.status_code == 201
    assert created.json()["spec"] == {"minMember": 1}
    assert created.json()["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"
    changed = await harness.client.patch(
        f"{CLUSTER}/{GROUP}",
        json={"spec": {"minMember": 4, "minResources": {"cpu": "4"}}},
        headers={"if-match": created.headers["etag"]},
    )
    assert changed.json()["spec"] == {"minMember": 4, "minResources": {"cpu": "4"}}
    stale = await harness.client.put(
        f"{CLUSTER}/{GROUP}", json=pod_group(), headers={"if-match": created.headers["etag"]}
    )
    assert problem(stale, 412) == "PreconditionFailed"
    listed = await shown(harness, "podgroups?fieldSelector=metadata.namespace=shop")
    assert listed["kind"] == "PodGroupList"
    assert [each["metadata"]["name"] for each in listed["items"]] == ["train"]
    assert (await shown(harness, "namespaces/other/podgroups"))["items"] == []
    deleted = await harness.client.delete(f"{CLUSTER}/{GROUP}")
    assert deleted.json()["status"]["phase"] == "Pending"
    assert problem(await harness.client.get(f"{CLUSTER}/{GROUP}"), 404) == "NotFound"


async def test_what_was_read_can_be_applied_watched_and_exported(harness: Harness) -> None:
    await harness.put_node("n1")
    await harness.put(GROUP, pod_group(minMember=2))
    read = await shown(harness)
    body = {"apiVersion": "v1", "kind": "List", "items": [read]}
    again = (await harness.client.post(f"{CLUSTER}/apply", json=body)).json()
    assert (again["unchanged"], again["changed"]) == (1, 0)
    body["items"] = [pod_group("other", minMember=2), member("m-0"), member("m-1")]
    assert (await harness.client.post(f"{CLUSTER}/apply", json=body)).json()["created"] == 3
    await placed(harness, ["m-0", "m-1"])
    exported = (await harness.client.get(f"{CLUSTER}/export")).json()["items"]
    assert sorted(each["kind"] for each in exported) == ["Node", "Pod", "Pod", *["PodGroup"] * 2]
    pruned = await harness.client.post(
        f"{CLUSTER}/apply?prune=PodGroup", json={"kind": "List", "apiVersion": "v1", "items": []}
    )
    assert pruned.json()["deleted"] == 2
    *events, _ = await watched(harness, kind="PodGroup")
    assert len(events) == 4
    assert {event.data["kind"] for event in events} == {"PodGroup"}
    assert not any("status" in event.data["object"] for event in events)


async def test_a_namespace_takes_its_groups_with_it(harness: Harness) -> None:
    await harness.put("namespaces/shop", {"metadata": {"name": "shop"}})
    await harness.put(GROUP, pod_group(minMember=2))
    queued = await harness.place(
        pod("w-0"), pod("w-1"), policy="AllOrNothing", onUnschedulable="Queue"
    )
    assert all(each["uid"] for each in queued["results"])
    assert (await harness.client.delete(f"{CLUSTER}/namespaces/shop")).status_code == 200
    assert (await shown(harness, "podgroups"))["items"] == []
    left = await harness.store.objects.list(1, "WaitingGroup", limit=5)
    assert left.rows == []


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no members": ({"spec": {"minMember": 0}}, "spec.minMember"),
    "text": ({"spec": {"minMember": "3"}}, "spec.minMember"),
    "negative time": ({"spec": {"scheduleTimeoutSeconds": -1}}, "spec.scheduleTimeoutSeconds"),
    "unknown field": ({"spec": {"minMembers": 3}}, "spec.minMembers"),
    "a wrong amount": ({"spec": {"minResources": {"cpu": "x"}}}, "spec.minResources[cpu]"),
    "another version": ({"apiVersion": "v1", "spec": {}}, "apiVersion"),
    "spec of another type": ({"spec": []}, "spec"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_pod_group_is_refused_with_its_field(harness: Harness, name: str) -> None:
    change, field = WRONG[name]
    answer = await harness.client.put(f"{CLUSTER}/{GROUP}", json=pod_group() | change)
    assert problem(answer, 422) == "InvalidManifest"
    assert field in {each["field"] for each in answer.json()["errors"]}
    listed = {"kind": "List", "apiVersion": "v1", "items": [pod_group() | change]}
    answer = await harness.client.post(f"{CLUSTER}/apply", json=listed)
    assert problem(answer, 422) == "InvalidManifest"
    assert f"items[0].{field}" in {each["field"] for each in answer.json()["errors"]}


async def test_a_name_that_no_label_can_hold_is_refused(harness: Harness) -> None:
    path = f"{CLUSTER}/namespaces/shop/podgroups/{'a' * 64}"
    assert problem(await harness.client.put(path, json={"spec": {}}), 422) == "InvalidManifest"


async def test_a_queued_group_is_answered_member_by_member(over_each_store: Harness) -> None:
    """E08: what is refused as a whole and kept waits as a whole, and each member is told why."""
    harness = over_each_store
    gates = {"schedulingGates": [{"name": "hold"}]}
    await harness.put_node("n1")
    answer = await harness.place(
        pod("w-0"), pod("w-1", **gates), policy="AllOrNothing", onUnschedulable="Queue"
    )
    assert answer["committed"] is True
    assert [each["outcome"] for each in answer["results"]] == ["GroupRefused", "Unschedulable"]
    assert all(each["uid"] for each in answer["results"])
    assert "gates" in answer["results"][1]["message"]
    assert await message_of(harness, "w-1", "scheduling gates") != ""
    waits = "2 of 2 members of the group of shop/w-0 are here, 1 of them with scheduling gates"
    assert await message_of(harness, "w-0", waits) == waits
    assert (await shown(harness, "namespaces/shop/pods/w-0"))["spec"].get("nodeName") is None
    await harness.put("namespaces/shop/pods/w-1", pod("w-1"))
    pods = await placed(harness, ["w-0", "w-1"])
    first, second = sorted(int(each["metadata"]["resourceVersion"]) for each in pods)
    assert second == first + 1
    exported = (await harness.client.get(f"{CLUSTER}/export")).json()["items"]
    assert {each["kind"] for each in exported} == {"Node", "Pod"}


async def test_a_member_that_was_denied_is_waited_for(harness: Harness) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "compute", "namespace": "shop"},
        "spec": {"hard": {"pods": "1"}},
    }
    await harness.put("namespaces/shop/resourcequotas/compute", quota)
    await harness.put_node("n1")
    answer = await harness.place(
        pod("w-0"), pod("w-1"), policy="AllOrNothing", onUnschedulable="Queue"
    )
    assert [each["outcome"] for each in answer["results"]] == ["GroupRefused", "Denied"]
    waits = "1 of 2 members of the group of shop/w-0 are here"
    assert await message_of(harness, "w-0", waits) == waits
    quota["spec"]["hard"]["pods"] = "2"
    await harness.put("namespaces/shop/resourcequotas/compute", quota)
    await harness.put("namespaces/shop/pods/w-1", pod("w-1"))
    await placed(harness, ["w-0", "w-1"])


async def test_a_group_in_another_profile_or_namespace_is_another_group(harness: Harness) -> None:
    profiles = [
        {"schedulerName": "default-scheduler"},
        {"schedulerName": "packing"},
    ]
    answer = await harness.client.patch(CLUSTER, json={"config": {"profiles": profiles}})
    assert answer.status_code == 200, answer.text
    await harness.put("nodes/n1", node("n1"))
    await harness.put(GROUP, pod_group(minMember=2))
    elsewhere = member("m-0")
    elsewhere["metadata"]["namespace"] = "other"
    await harness.put("namespaces/other/pods/m-0", elsewhere)
    await harness.put("namespaces/shop/pods/m-1", member("m-1"))
    waits = "1 of 2 members of group train are here"
    assert await message_of(harness, "m-1", waits) == waits
    await harness.put("namespaces/shop/pods/m-2", member("m-2", schedulerName="packing"))
    await placed(harness, ["m-1", "m-2"])


async def test_simulations_know_nothing_of_pod_groups(harness: Harness) -> None:
    body = {"nodes": [node("n1")], "place": [member("m-0")]}
    answer = await harness.client.post("/v1/simulations", json=body)
    assert [each["outcome"] for each in answer.json()["results"]] == ["Placed"]
