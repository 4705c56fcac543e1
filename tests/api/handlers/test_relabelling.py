"""Label keys are merged into the terms of a pod when it is created, and never again."""

from typing import Any

import pytest

from tests.api.harness import CLUSTER, Harness, node, pod, problem

RDI = "requiredDuringSchedulingIgnoredDuringExecution"
PATH = f"{CLUSTER}/namespaces/shop/pods/a"
KEYED = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}


def keyed(rev: str = "1", node_name: str | None = "n1", **term: Any) -> dict[str, Any]:
    """A pod of a revision with one term of anti-affinity."""
    spec: dict[str, Any] = {"affinity": {"podAntiAffinity": {RDI: [KEYED | term]}}}
    made = pod("a", **spec, **({"nodeName": node_name} if node_name else {}))
    made["metadata"]["labels"] = {"app": "web", "rev": rev}
    return made


def merged(answer: dict[str, Any]) -> Any:
    (term,) = answer["spec"]["affinity"]["podAntiAffinity"][RDI]
    return term["labelSelector"].get("matchExpressions", [])


MATCH = {"key": "rev", "operator": "In", "values": ["1"]}
MISMATCH = {"key": "rev", "operator": "NotIn", "values": ["1"]}
BOTH_WAYS = pytest.mark.parametrize(
    ("field", "requirement"), [("matchLabelKeys", MATCH), ("mismatchLabelKeys", MISMATCH)]
)


@BOTH_WAYS
@pytest.mark.parametrize("node_name", [None, "n1"])
async def test_a_relabelled_pod_keeps_what_it_was_created_with(
    harness: Harness, field: str, requirement: Any, node_name: str | None
):
    created = await harness.put("namespaces/shop/pods/a", keyed("1", node_name, **{field: ["rev"]}))
    assert merged(created.json()) == [requirement]
    relabel = {"metadata": {"labels": {"rev": "2"}}}
    patched = await harness.client.patch(PATH, json=relabel)
    assert patched.status_code == 200, patched.text
    assert patched.json()["metadata"]["labels"]["rev"] == "2"
    assert merged(patched.json()) == [requirement]
    sent_back = await harness.client.put(PATH, json=patched.json())
    assert sent_back.json() == patched.json()
    again = await harness.put("namespaces/shop/pods/a", keyed("3", node_name, **{field: ["rev"]}))
    assert merged(again.json()) == [requirement]


@BOTH_WAYS
async def test_applying_the_first_manifest_again_changes_nothing(
    harness: Harness, field: str, requirement: Any
):
    await harness.put("namespaces/shop/pods/a", keyed(**{field: ["rev"]}))
    await harness.client.patch(PATH, json={"metadata": {"labels": {"rev": "2"}}})
    body = {"apiVersion": "v1", "kind": "List", "items": [keyed("2", **{field: ["rev"]})]}
    answer = (await harness.client.post(f"{CLUSTER}/apply", json=body)).json()
    assert (answer["changed"], answer["unchanged"]) == (0, 1)


async def test_a_pending_pod_that_was_relabelled_is_still_the_same_pod(harness: Harness):
    sent = keyed("1", None, matchLabelKeys=["rev"])
    await harness.put("namespaces/shop/pods/a", sent)
    await harness.client.patch(PATH, json={"metadata": {"labels": {"rev": "2"}}})
    body = {"pods": [keyed("2", None, matchLabelKeys=["rev"])]}
    answer = await harness.client.post(f"{CLUSTER}/placements", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["results"][0]["outcome"] == "Unschedulable"


async def test_a_new_term_of_a_waiting_pod_is_merged_with_the_labels_of_now(harness: Harness):
    await harness.put("namespaces/shop/pods/a", keyed("1", None, matchLabelKeys=["rev"]))
    other = keyed("2", None, matchLabelKeys=["rev"], topologyKey="rack")
    answer = await harness.put("namespaces/shop/pods/a", other)
    assert merged(answer.json()) == [MATCH | {"values": ["2"]}]


async def test_the_rule_of_a_relabelled_pod_is_the_one_it_was_created_with(harness: Harness):
    """It keeps away pods of the revision that it had, and not of the one that it has."""
    await harness.put("nodes/n1", node("n1", zone="z"))
    await harness.put("namespaces/shop/pods/a", keyed("1", matchLabelKeys=["rev"]))
    await harness.client.patch(PATH, json={"metadata": {"labels": {"rev": "2"}}})
    old, new = pod("old"), pod("new")
    old["metadata"]["labels"]["rev"], new["metadata"]["labels"]["rev"] = "1", "2"
    answer = await harness.place(old, new, dryRun=True)
    assert [each["outcome"] for each in answer["results"]] == ["Unschedulable", "Placed"]


async def test_a_pod_that_an_api_server_created_may_have_been_relabelled_there(harness: Harness):
    """Its selector says of the key what it was created with, and its label says otherwise."""
    spread = {
        "topologyKey": "zone",
        "labelSelector": {"matchExpressions": [MATCH]},
        "matchLabelKeys": ["rev"],
    }
    sent = keyed("2", matchLabelKeys=["rev"], labelSelector={"matchExpressions": [MATCH]})
    sent["spec"]["topologySpreadConstraints"] = [spread]
    assert problem(await harness.client.put(PATH, json=sent), 422) == "InvalidManifest"
    sent["metadata"]["uid"] = "9e107d9d-372b-4b27-a5e1-b0a1f1a5c9d4"
    for _ in range(2):
        body = {"apiVersion": "v1", "kind": "List", "items": [sent]}
        answer = await harness.client.post(f"{CLUSTER}/apply", json=body)
        assert answer.status_code == 200, answer.text
    assert answer.json()["unchanged"] == 1
    assert merged((await harness.client.get(PATH)).json()) == [MATCH]


async def test_a_selector_that_contradicts_its_own_keys_is_named_wherever_a_pod_is_created(
    harness: Harness,
):
    wrong = keyed("2", None, matchLabelKeys=["rev"], labelSelector={"matchExpressions": [MATCH]})
    field = f"spec.affinity.podAntiAffinity.{RDI}[0].matchLabelKeys[0]"
    requests = {
        "": harness.client.put(PATH, json=wrong),
        "items[0].": harness.client.post(
            f"{CLUSTER}/apply", json={"kind": "List", "items": [wrong]}
        ),
        "pods[0].": harness.client.post(f"{CLUSTER}/placements", json={"pods": [wrong]}),
        "template.": harness.client.post(
            f"{CLUSTER}/placements", json={"template": wrong, "replicas": 2}
        ),
        "pod.": harness.client.post("/v1/simulations", json={"pod": wrong}),
        "place[0].": harness.client.post("/v1/simulations", json={"place": [wrong]}),
    }
    for prefix, request in requests.items():
        answer = await request
        assert problem(answer, 422) == "InvalidManifest"
        assert [each["field"] for each in answer.json()["errors"]] == [prefix + field]
    there = wrong | {"spec": wrong["spec"] | {"nodeName": "n1"}}
    answer = await harness.client.post("/v1/simulations", json={"pods": [there], "pod": pod("b")})
    assert [each["field"] for each in answer.json()["errors"]] == ["pods[0]." + field]
