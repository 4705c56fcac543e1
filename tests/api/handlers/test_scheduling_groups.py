"""Kubernetes' own gangs over HTTP: Workloads and PodGroups of `scheduling.k8s.io`, and their pods."""

from typing import Any

import pytest

from tests.api.harness import CLUSTER, Harness, node, pod, problem
from tests.waiting import once

RACK = "example.com/rack"
ALPHA = "scheduling.k8s.io/v1alpha2"


def workload(*groups: dict[str, Any], name: str = "train") -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "train"},
            "podGroups": list(groups),
        },
    }


def gang(count: int, name: str = "workers") -> dict[str, Any]:
    return {"name": name, "policy": {"gang": {"minCount": count}}}


def pod_group(policy: dict[str, Any], version: str = ALPHA, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": version,
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "shop"},
        "spec": {"schedulingPolicy": policy, **spec},
    }


def in_one_rack(count: int) -> dict[str, Any]:
    return pod_group(
        {"gang": {"minCount": count}}, schedulingConstraints={"topology": [{"key": RACK}]}
    )


def referring(name: str, replica_key: str | None = None, **spec: Any) -> dict[str, Any]:
    """A pod of the group `workers` of the Workload `train`."""
    reference = {"name": "train", "podGroup": "workers"}
    if replica_key is not None:
        reference["podGroupReplicaKey"] = replica_key
    return pod(name, workloadRef=reference, **spec)


def grouped(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    """A pod of the PodGroup `train`."""
    made = pod(name, schedulingGroup={"podGroupName": "train"}, **spec)
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return made


async def put_pods(harness: Harness, *pods: dict[str, Any]) -> None:
    for each in pods:
        await harness.put(f"namespaces/shop/pods/{each['metadata']['name']}", each)


async def put_racks(harness: Harness, **cpus: str) -> None:
    """Nodes named after their racks: `a_1` is in rack a."""
    for name, cpu in cpus.items():
        made = node(name.replace("_", "-"))
        made["metadata"]["labels"] = made["metadata"].get("labels", {}) | {RACK: name[0]}
        made["status"]["allocatable"] |= {"cpu": cpu}
        await harness.put(f"nodes/{made['metadata']['name']}", made)


async def shown(harness: Harness, path: str) -> dict[str, Any]:
    answer = await harness.client.get(f"{CLUSTER}/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def node_of(harness: Harness, name: str) -> str | None:
    return (await shown(harness, f"namespaces/shop/pods/{name}"))["spec"].get("nodeName")


async def nodes_of(harness: Harness, *names: str) -> list[str]:
    """The nodes of these pods, once all of them have one."""

    async def all_placed() -> list[str]:
        found = [await node_of(harness, name) for name in names]
        return [each for each in found if each] if all(found) else []

    return await once(all_placed)


async def message_of(harness: Harness, name: str, expected: str) -> str:
    """The message of the pod's condition, once it contains what is expected."""

    async def told() -> str:
        read = await shown(harness, f"namespaces/shop/pods/{name}")
        (condition,) = read.get("status", {}).get("conditions") or [{"message": ""}]
        return condition["message"] if expected in condition["message"] else ""

    return await once(told)


async def test_pods_of_a_workload_wait_until_there_are_enough(over_each_store: Harness) -> None:
    """E07, E08: the gang of a Workload, whose members come one by one."""
    harness = over_each_store
    await harness.put_node("n1")
    await harness.put("namespaces/shop/workloads/train", workload(gang(2)))
    await put_pods(harness, referring("w-0"))
    waits = "1 of 2 members of group workers of Workload train are here"
    assert await message_of(harness, "w-0", waits) == waits
    explained = await shown(harness, "namespaces/shop/pods/w-0/explanation")
    assert (explained["message"], explained["feasible"]) == (waits, ["n1"])
    await put_pods(harness, referring("w-1"))
    assert await nodes_of(harness, "w-0", "w-1") == ["n1", "n1"]


async def test_a_pod_waits_for_its_workload_and_for_the_group_in_it(harness: Harness) -> None:
    await harness.put_node("n1")
    await put_pods(harness, referring("w-0"))
    await message_of(harness, "w-0", "Workload train does not exist")
    path = "namespaces/shop/workloads/train"
    await harness.put(path, workload(gang(1, "drivers")))
    await message_of(harness, "w-0", "group workers of Workload train does not exist")
    await harness.put(path, workload(gang(1, "drivers"), gang(1)))
    assert await nodes_of(harness, "w-0") == ["n1"]


async def test_each_replica_of_a_pod_group_is_a_gang_of_its_own(harness: Harness) -> None:
    await harness.put_node("n1")
    await harness.put("namespaces/shop/workloads/train", workload(gang(2)))
    await put_pods(harness, referring("a-0", "a"), referring("b-0", "b"))
    told = "1 of 2 members of group workers of Workload train, replica a are here"
    await message_of(harness, "a-0", told)
    await put_pods(harness, referring("b-1", "b"))
    assert await nodes_of(harness, "b-0", "b-1") == ["n1", "n1"]
    assert await node_of(harness, "a-0") is None


@pytest.mark.parametrize("version", ["v1alpha2", "v1alpha3", "v1beta1"])
async def test_pods_of_a_pod_group_wait_until_there_are_enough(
    harness: Harness, version: str
) -> None:
    await harness.put_node("n1")
    await put_pods(harness, grouped("w-0"))
    await message_of(harness, "w-0", "group train does not exist")
    group = pod_group({"gang": {"minCount": 2}}, f"scheduling.k8s.io/{version}")
    await harness.put("namespaces/shop/podgroups/train", group)
    await message_of(harness, "w-0", "1 of 2 members of group train are here")
    await put_pods(harness, grouped("w-1"))
    assert await nodes_of(harness, "w-0", "w-1") == ["n1", "n1"]


async def test_a_basic_group_waits_for_nobody(harness: Harness) -> None:
    await harness.put_node("n1")
    await harness.put("namespaces/shop/podgroups/train", pod_group({"basic": {}}))
    await put_pods(harness, grouped("w-0"), grouped("w-1", cpu="1000"), grouped("w-2"))
    assert await nodes_of(harness, "w-0", "w-2") == ["n1", "n1"]
    await message_of(harness, "w-1", "1 Insufficient cpu")


async def test_workloads_and_groups_are_returned_as_they_were_sent(harness: Harness) -> None:
    sent = {
        "workloads": workload(gang(2), {"name": "drivers", "policy": {"basic": {}}}),
        "podgroups": in_one_rack(2)
        | {"status": {"conditions": [{"type": "PodGroupScheduled", "status": "True"}]}},
    }
    sent["podgroups"]["spec"]["podGroupTemplateRef"] = {
        "workload": {"workloadName": "train", "podGroupTemplateName": "workers"}
    }
    for plural, manifest in sent.items():
        path = f"{CLUSTER}/namespaces/shop/{plural}/train"
        answer = await harness.client.put(path, json=manifest)
        assert answer.status_code == 201, answer.text
        assert "warnings" not in answer.json()
        (listed,) = (await shown(harness, plural))["items"]
        for read in (answer.json(), (await harness.client.get(path)).json(), listed):
            metadata = {name: read["metadata"][name] for name in ("name", "namespace")}
            assert read | {"metadata": metadata} == manifest
        deleted = await harness.client.delete(path)
        assert deleted.json()["apiVersion"] == manifest["apiVersion"]


async def test_a_workload_of_templates_is_kept_in_its_version(harness: Harness) -> None:
    templates = [{"name": "workers", "schedulingPolicy": {"gang": {"minCount": 4}}}]
    sent = workload() | {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "spec": {"podGroupTemplates": templates},
    }
    await harness.put("namespaces/shop/workloads/train", sent)
    read = await shown(harness, "namespaces/shop/workloads/train")
    assert (read["apiVersion"], read["spec"]) == (sent["apiVersion"], sent["spec"])


BAD = {
    "two policies": (
        "podgroups",
        pod_group({"gang": {"minCount": 1}, "basic": {}}),
        "spec.schedulingPolicy",
    ),
    "no policy": ("podgroups", pod_group({}), "spec.schedulingPolicy"),
    "an empty gang": (
        "podgroups",
        pod_group({"gang": {"minCount": 0}}),
        "spec.schedulingPolicy.gang.minCount",
    ),
    "two constraints": (
        "podgroups",
        pod_group({"basic": {}}, schedulingConstraints={"topology": [{"key": "a"}, {"key": "b"}]}),
        "spec.schedulingConstraints.topology",
    ),
    "a version that is not known": (
        "podgroups",
        pod_group({"basic": {}}, "scheduling.k8s.io/v1alpha1"),
        "apiVersion",
    ),
    "a repeated name": ("workloads", workload(gang(1), gang(2)), "spec.podGroups[1].name"),
    "no groups": ("workloads", workload() | {"spec": {}}, "spec.podGroups"),
    "a group and a workload": (
        "pods",
        referring("train", schedulingGroup={"podGroupName": "train"}),
        "spec.workloadRef",
    ),
    "an unnamed group": (
        "pods",
        pod("train", schedulingGroup={}),
        "spec.schedulingGroup.podGroupName",
    ),
    "a reference without its group": (
        "pods",
        pod("train", workloadRef={"name": "train"}),
        "spec.workloadRef.podGroup",
    ),
}


@pytest.mark.parametrize("case", BAD)
async def test_an_invalid_group_or_reference_is_refused_with_its_field(
    harness: Harness, case: str
) -> None:
    plural, manifest, field = BAD[case]
    answer = await harness.client.put(f"{CLUSTER}/namespaces/shop/{plural}/train", json=manifest)
    assert problem(answer, 422) == "InvalidManifest"
    assert field in [each["field"] for each in answer.json()["errors"]]


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        (referring("w-0"), "spec.workloadRef"),
        (grouped("w-0"), "spec.schedulingGroup.podGroupName"),
    ],
)
async def test_a_label_may_not_name_another_group_than_the_spec(
    harness: Harness, manifest: dict[str, Any], field: str
) -> None:
    await put_pods(harness, manifest)  # So that the spec is known to be valid.
    label = "scheduling.x-k8s.io/pod-group"
    manifest = manifest | {"metadata": manifest["metadata"] | {"labels": {label: "other"}}}
    answer = await harness.client.put(f"{CLUSTER}/namespaces/shop/pods/w-0", json=manifest)
    assert problem(answer, 422) == "InvalidManifest"
    (error,) = answer.json()["errors"]
    assert error["field"] == field
    assert label in error["message"]


async def test_a_label_may_name_the_same_group_as_the_spec(harness: Harness) -> None:
    await harness.put_node("n1")
    await harness.put("namespaces/shop/podgroups/train", pod_group({"gang": {"minCount": 1}}))
    made = grouped("w-0")
    made["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "train"}
    await put_pods(harness, made)
    assert await nodes_of(harness, "w-0") == ["n1"]


async def test_a_placed_pod_stays_in_its_group(harness: Harness) -> None:
    await harness.put_node("n1")
    await put_pods(harness, grouped("w-0", nodeName="n1"))
    moved = pod("w-0", schedulingGroup={"podGroupName": "other"}, nodeName="n1")
    answer = await harness.client.put(f"{CLUSTER}/namespaces/shop/pods/w-0", json=moved)
    assert problem(answer, 422) == "InvalidManifest"
    assert [each["field"] for each in answer.json()["errors"]] == [
        "spec.schedulingGroup.podGroupName"
    ]


async def test_a_gang_with_a_topology_constraint_is_placed_in_one_domain(harness: Harness) -> None:
    """E07: rack a has the most room, but no rack except b has room for all three."""
    await put_racks(harness, a_1="2", b_1="2", b_2="1", c_1="2")
    await harness.put("namespaces/shop/podgroups/train", in_one_rack(3))
    await put_pods(harness, *(grouped(f"w-{number}") for number in range(3)))
    found = await nodes_of(harness, "w-0", "w-1", "w-2")
    assert sorted(found) == ["b-1", "b-1", "b-2"]


async def test_a_gang_waits_while_no_domain_has_room_for_it(harness: Harness) -> None:
    await put_racks(harness, a_1="2", b_1="1", b_2="1")
    await harness.put("namespaces/shop/podgroups/train", in_one_rack(3))
    await put_pods(harness, *(grouped(f"w-{number}") for number in range(3)))
    told = await message_of(harness, "w-0", "fails at w-2")
    assert "None of the 2 domains that were tried takes the whole group" in told
    assert f"node(s) outside of {RACK}=" in told
    assert [await node_of(harness, f"w-{number}") for number in range(3)] == [None] * 3
    explained = await shown(harness, "namespaces/shop/pods/w-0/explanation")
    assert explained["message"] == f"all members of group train have to be in one domain of {RACK}"
    await put_racks(harness, a_2="1")
    found = await nodes_of(harness, "w-0", "w-1", "w-2")
    assert {name[0] for name in found} == {"a"}


async def test_later_members_follow_to_the_domain_of_the_group(harness: Harness) -> None:
    await put_racks(harness, a_1="1", b_1="2")
    await harness.put("namespaces/shop/podgroups/train", in_one_rack(1))
    await put_pods(harness, grouped("w-0"))
    assert await nodes_of(harness, "w-0") == ["a-1"]
    await put_pods(harness, grouped("w-1"))
    await message_of(
        harness, "w-1", f"1 node(s) outside of {RACK}=a, where the pod's group has to be"
    )
    placed = await harness.client.post(f"{CLUSTER}/placements", json={"pods": [grouped("w-2")]})
    assert placed.json()["results"][0]["outcome"] == "Unschedulable", placed.text
    explained = await shown(harness, "namespaces/shop/pods/w-1/explanation")
    assert explained["message"].endswith(f"in one domain of {RACK}: a, where some of them are")
    await put_racks(harness, a_2="1")
    assert await nodes_of(harness, "w-1") == ["a-2"]


async def test_a_basic_group_shares_a_domain_without_waiting_for_all(harness: Harness) -> None:
    await put_racks(harness, a_1="2", b_1="1")
    constraints = {"topology": [{"key": RACK}]}
    group = pod_group({"basic": {}}, schedulingConstraints=constraints)
    await harness.put("namespaces/shop/podgroups/train", group)
    pods = [grouped(f"w-{number}") for number in range(3)]
    answer = await harness.client.post(f"{CLUSTER}/placements", json={"pods": pods})
    nodes = [each["nodeName"] for each in answer.json()["results"]]
    assert len({name for name in nodes if name}) == 1
    assert None in nodes


async def test_members_in_two_domains_keep_others_from_being_placed(harness: Harness) -> None:
    await put_racks(harness, a_1="4", b_1="4")
    await harness.put("namespaces/shop/podgroups/train", in_one_rack(1))
    await put_pods(harness, grouped("w-0", nodeName="a-1"), grouped("w-1", nodeName="b-1"))
    await put_pods(harness, grouped("w-2"))
    told = f"members of group train are in more than one domain of {RACK}: a, b"
    assert await message_of(harness, "w-2", told) == told
    request = {"pods": [grouped("w-3")], "policy": "AllOrNothing"}
    answer = (await harness.client.post(f"{CLUSTER}/placements", json=request)).json()
    assert answer["group"]["message"] == told
    await harness.client.delete(f"{CLUSTER}/namespaces/shop/pods/w-1")
    assert await nodes_of(harness, "w-2") == ["a-1"]


async def test_all_or_nothing_keeps_each_group_in_a_domain_of_its_own(harness: Harness) -> None:
    await put_racks(harness, a_1="2", b_1="3")
    for name in ("train", "other"):
        group = in_one_rack(2)
        group["metadata"]["name"] = name
        await harness.put(f"namespaces/shop/podgroups/{name}", group)
    others = [grouped(f"o-{number}") for number in range(2)]
    for each in others:
        each["spec"]["schedulingGroup"]["podGroupName"] = "other"
    pods = [grouped("w-0"), others[0], grouped("w-1"), others[1]]
    request = {"pods": pods, "policy": "AllOrNothing"}
    answer = (await harness.client.post(f"{CLUSTER}/placements", json=request)).json()
    nodes = [each["nodeName"] for each in answer["results"]]
    assert (nodes[0], nodes[1]) == (nodes[2], nodes[3])
    assert nodes[0] != nodes[1]


@pytest.mark.parametrize("policy", ["BestEffort", "AllOrNothing"])
async def test_a_search_that_ended_by_its_budget_says_so_in_a_reason_of_its_own(
    harness: Harness, policy: str
) -> None:
    await harness.configure(groupSearchSteps=1)
    await put_racks(harness, a_1="1", b_1="1")
    await harness.put("namespaces/shop/podgroups/train", in_one_rack(2))
    pods = [grouped("w-0"), grouped("w-1")]
    request = {"pods": pods, "policy": policy}
    answer = (await harness.client.post(f"{CLUSTER}/placements", json=request)).json()
    assert [each["reason"] for each in answer["results"]] == ["GroupSearchEnded"] * 2
    assert "groupSearchSteps" in answer["results"][0]["message"]
    if policy == "AllOrNothing":
        assert answer["group"]["reason"] == "GroupSearchEnded"


async def test_a_group_that_may_only_be_evicted_whole_is_warned_about(harness: Harness) -> None:
    group = in_one_rack(2)
    group["spec"] |= {"disruptionMode": "PodGroup", "priorityClassName": "high"}
    answer = await harness.client.put(f"{CLUSTER}/namespaces/shop/podgroups/train", json=group)
    fields = {each["field"]: each["code"] for each in answer.json()["warnings"]}
    assert fields == dict.fromkeys(
        ("spec.priorityClassName", "spec.disruptionMode"), "GroupFieldIgnored"
    )


async def test_composite_groups_are_refused_in_every_way_in(harness: Harness) -> None:
    child = pod_group(
        {"basic": {}}, "scheduling.k8s.io/v1alpha3", parentCompositePodGroupName="all"
    )
    composite = {**child, "kind": "CompositePodGroup"}
    field = "spec.parentCompositePodGroupName"
    path = f"{CLUSTER}/namespaces/shop/podgroups"
    for answer in (
        await harness.client.put(f"{path}/train", json=child),
        await harness.client.post(path, json=child),
    ):
        assert problem(answer, 422) == "InvalidManifest"
        assert [error["field"] for error in answer.json()["errors"]] == [field]
    items = {"kind": "List", "items": [child, composite]}
    refused = await harness.client.post(f"{CLUSTER}/apply", json=items)
    assert problem(refused, 422) == "InvalidManifest"
    fields = [error["field"] for error in refused.json()["errors"]]
    assert fields == [f"items[0].{field}", "items[1].kind"]
