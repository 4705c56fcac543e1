"""What the runtime class that a pod names makes of it when it is created."""

from typing import Any

import pytest

from tests.api.harness import CLUSTER, Harness, pod, problem

Manifest = dict[str, Any]

SANDBOXED = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "sandboxed"},
    "handler": "kata",
    "overhead": {"podFixed": {"cpu": "250m"}},
    "scheduling": {
        "nodeSelector": {"runtime": "kata"},
        "tolerations": [{"key": "kata", "operator": "Exists"}],
    },
}
ADDED = {
    "overhead": {"cpu": "250m"},
    "nodeSelector": {"runtime": "kata"},
    "tolerations": [{"key": "kata", "operator": "Exists"}],
}
UID = "8c1a5e0e-1111-4222-8333-000000000001"


def sandboxed(name: str = "web", **spec: Any) -> Manifest:
    return pod(name, runtimeClassName="sandboxed", **spec)


async def keep_class(harness: Harness, **fields: Any) -> None:
    answer = await harness.put("runtimeclasses/sandboxed", SANDBOXED | fields)
    assert answer.is_success, answer.text


async def added(harness: Harness, name: str = "web") -> Manifest:
    answer = await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/{name}")
    spec = answer.json()["spec"]
    return {field: spec[field] for field in ADDED if field in spec}


async def put(harness: Harness, manifest: Manifest) -> Any:
    name = manifest["metadata"]["name"]
    path = f"{CLUSTER}/namespaces/shop/pods/{name}"
    return await harness.client.put(path, json=manifest)


async def test_a_pod_gets_overhead_node_selector_and_tolerations(over_each_store: Harness) -> None:
    harness = over_each_store
    await keep_class(harness)
    await harness.put_node("plain")
    await harness.put_node("kata", runtime="kata")
    result = (await harness.place(sandboxed()))["results"][0]
    assert (result["outcome"], result["nodeName"]) == ("Placed", "kata")
    assert await added(harness) == ADDED
    await put(harness, sandboxed("written"))
    assert await added(harness, "written") == ADDED


async def test_overhead_counts_on_the_node(harness: Harness) -> None:
    await keep_class(harness, overhead={"podFixed": {"cpu": "100k"}}, scheduling=None)
    await harness.put_node("n1")
    result = (await harness.place(sandboxed()))["results"][0]
    assert "Insufficient cpu" in result["message"]


async def test_all_members_of_a_group_get_it(harness: Harness) -> None:
    await keep_class(harness)
    await harness.put_node("plain")
    await harness.put_node("kata", runtime="kata")
    answer = await harness.place(sandboxed("a"), sandboxed("b"), policy="AllOrNothing")
    assert [each["nodeName"] for each in answer["results"]] == ["kata", "kata"]
    assert await added(harness, "b") == ADDED


async def test_a_pod_of_an_unknown_class_is_denied_where_there_are_classes(
    harness: Harness,
) -> None:
    await keep_class(harness)
    answer = await put(harness, pod("web", runtimeClassName="none-such"))
    assert problem(answer, 403) == "UnknownRuntimeClass"
    assert 'RuntimeClass "none-such" not found' in answer.json()["detail"]
    result = (await harness.place(pod("web", runtimeClassName="none-such")))["results"][0]
    assert (result["outcome"], result["reason"]) == ("Denied", "UnknownRuntimeClass")


async def test_where_no_class_is_kept_there_is_a_warning_and_else_none(harness: Harness) -> None:
    warned = (await put(harness, sandboxed(overhead={"cpu": "1"}))).json()
    assert [each["code"] for each in warned["warnings"]] == ["RuntimeClassIgnored"]
    assert await added(harness) == {"overhead": {"cpu": "1"}}
    await keep_class(harness)
    assert "warnings" not in (await put(harness, sandboxed("other"))).json()


@pytest.mark.parametrize(
    ("contradicting", "field"),
    [
        (sandboxed(overhead={"cpu": "1"}), "spec.overhead"),
        (sandboxed(nodeSelector={"runtime": "runc"}), "spec.nodeSelector[runtime]"),
        (pod("web", overhead={"cpu": "250m"}), "spec.overhead"),
    ],
)
async def test_a_pod_that_contradicts_its_class_is_denied(
    harness: Harness, contradicting: Manifest, field: str
) -> None:
    await keep_class(harness)
    await harness.put_node("kata", runtime="kata")
    answer = await put(harness, contradicting)
    assert problem(answer, 403) == "RuntimeClassConflict"
    assert answer.json()["detail"].startswith(f"{field}: ")
    result = (await harness.place(contradicting))["results"][0]
    assert (result["outcome"], result["reason"]) == ("Denied", "RuntimeClassConflict")


async def test_a_pod_that_says_it_already_is_the_same_afterwards(harness: Harness) -> None:
    await keep_class(harness)
    assert (await put(harness, sandboxed(**ADDED | {"overhead": {"cpu": 0.25}}))).is_success
    assert await added(harness) == ADDED | {"overhead": {"cpu": 0.25}}


async def test_a_pod_that_is_sent_again_without_what_was_added_is_the_same(
    harness: Harness,
) -> None:
    await keep_class(harness)
    await harness.put_node("kata", runtime="kata")
    await harness.place(sandboxed())
    assert (await harness.place(sandboxed()))["results"][0]["outcome"] == "AlreadyPlaced"
    before = (await harness.client.get(CLUSTER)).json()["revision"]
    assert (await put(harness, sandboxed())).status_code == 200
    assert (await harness.client.get(CLUSTER)).json()["revision"] == before


async def test_a_class_that_changes_leaves_stored_pods_as_they_are(harness: Harness) -> None:
    await keep_class(harness)
    await harness.configure(placePendingPods=False)
    await put(harness, sandboxed())
    await keep_class(harness, overhead={"podFixed": {"cpu": "1"}})
    assert await added(harness) == ADDED
    await harness.put_node("kata", runtime="kata")
    answer = await harness.client.post(
        f"{CLUSTER}/placements", json={"podRefs": [{"namespace": "shop", "name": "web"}]}
    )
    assert answer.json()["results"][0]["outcome"] == "Placed"


async def test_an_imported_pod_is_neither_changed_nor_refused(harness: Harness) -> None:
    """It has been through admission where it was created, perhaps with another class."""
    await keep_class(harness)
    for number, spec in enumerate(
        ({"overhead": {"cpu": "1"}, "nodeName": "kata"}, {"overhead": {"cpu": "2"}}, {})
    ):
        sent = sandboxed(f"imported-{number}", **spec)
        sent["metadata"]["uid"] = f"{UID[:-1]}{number}"
        assert (await put(harness, sent)).is_success
        assert await added(harness, f"imported-{number}") == {
            name: value for name, value in spec.items() if name == "overhead"
        }


async def test_a_pod_that_was_created_on_a_node_gets_it_and_is_never_refused(
    harness: Harness,
) -> None:
    await keep_class(harness)
    await put(harness, sandboxed(nodeName="kata"))
    assert await added(harness) == ADDED
    contradicting = sandboxed("other", nodeName="kata", overhead={"cpu": "1"})
    assert (await put(harness, contradicting)).is_success
    assert await added(harness, "other") == {"overhead": {"cpu": "1"}}


async def test_a_simulation_merges_the_classes_among_its_objects(harness: Harness) -> None:
    nodes = [
        {
            "metadata": {"name": "kata", "labels": {"runtime": "kata"}},
            "status": {"allocatable": {"cpu": "4", "pods": "10"}},
        }
    ]
    there = sandboxed("there", nodeName="kata")
    request = {
        "nodes": nodes,
        "objects": [SANDBOXED],
        "pods": [there],
        "place": [sandboxed(f"web-{number}") for number in range(3)],
    }
    answer = (await harness.client.post("/v1/simulations", json=request)).json()
    outcomes = [each["outcome"] for each in answer["results"]]
    assert outcomes == ["Placed"] * 2 + ["Unschedulable"]


async def test_a_wrong_class_is_refused_with_its_fields(harness: Harness) -> None:
    wrong = SANDBOXED | {
        "handler": "Kata!",
        "overhead": {"podFixed": {"cpu": "-1"}},
        "scheduling": {"tolerations": [{"operator": "Equal"}]},
    }
    answer = await harness.client.put(f"{CLUSTER}/runtimeclasses/sandboxed", json=wrong)
    assert problem(answer, 422) == "InvalidManifest"
    assert [each["field"] for each in answer.json()["errors"]] == [
        "handler",
        "overhead.podFixed[cpu]",
        "scheduling.tolerations[0].operator",
    ]
