"""Policies over HTTP: expressions that have to be true of every pod that comes in."""

from typing import Any

import pytest

from service.model.cel.evaluation import EXPRESSION_LENGTH_MAX, ITEMS_MAX, OBJECT_BYTES_MAX
from tests.api.harness import CLUSTER, Harness, pod, problem

POD = f"{CLUSTER}/namespaces/shop/pods/web"
OWN_REGISTRY = {
    "id": "own-registry",
    "expression": "object.spec.containers.all(c, c.image.startsWith('registry.example/'))",
    "message": "images come from our registry",
}
TOLD = "policy own-registry: images come from our registry"


def running(image: str, name: str = "web", **spec: Any) -> dict[str, Any]:
    return pod(name, containers=[{"name": "c", "image": image}], **spec)


OWN = running("registry.example/web:1")
FOREIGN = running("elsewhere.example/web:1")


async def set_policies(harness: Harness, *policies: dict[str, Any], **settings: Any) -> None:
    await harness.configure(policies=list(policies), placePendingPods=False, **settings)


async def test_a_pod_of_which_a_policy_is_not_true_is_not_created(
    over_each_store: Harness,
) -> None:
    """K12: by PUT, by apply and by a placement."""
    await set_policies(over_each_store, OWN_REGISTRY)
    await over_each_store.put_node("n1")
    refused = await over_each_store.client.put(POD, json=FOREIGN)
    assert problem(refused, 403) == "PolicyDenied"
    assert refused.json()["detail"] == TOLD
    listed = {"kind": "List", "items": [FOREIGN]}
    refused = await over_each_store.client.post(f"{CLUSTER}/apply", json=listed)
    assert problem(refused, 403) == "PolicyDenied"
    assert refused.json()["detail"] == f"items[0]: {TOLD}"
    (result,) = (await over_each_store.place(FOREIGN))["results"]
    assert (result["outcome"], result["reason"]) == ("Denied", "PolicyDenied")
    assert result["message"] == TOLD
    assert (await over_each_store.client.get(POD)).status_code == 404
    (result,) = (await over_each_store.place(OWN))["results"]
    assert result["outcome"] == "Placed"


async def test_a_change_is_judged_and_a_refused_one_changes_nothing(harness: Harness) -> None:
    """K12: PUT and PATCH."""
    await set_policies(harness, OWN_REGISTRY)
    await harness.put("namespaces/shop/pods/web", OWN)
    before = (await harness.client.get(POD)).json()
    assert problem(await harness.client.put(POD, json=FOREIGN), 403) == "PolicyDenied"
    patched = await harness.client.patch(POD, json={"spec": FOREIGN["spec"]})
    assert problem(patched, 403) == "PolicyDenied"
    assert (await harness.client.get(POD)).json() == before


async def test_facts_are_not_judged(harness: Harness) -> None:
    """A pod that runs, what it reports, and that it ends; a change of its labels is judged."""
    await set_policies(harness, OWN_REGISTRY)
    await harness.put("namespaces/shop/pods/web", running("elsewhere.example/web:1", nodeName="n1"))
    reported = await harness.client.patch(POD, json={"status": {"phase": "Running"}})
    assert reported.status_code == 200
    labelled = await harness.client.patch(POD, json={"metadata": {"labels": {"a": "b"}}})
    assert problem(labelled, 403) == "PolicyDenied"
    assert (await harness.client.post(f"{POD}/eviction")).status_code == 201
    assert (await harness.client.delete(POD)).status_code == 200


async def test_a_pod_that_was_let_in_is_placed_though_a_policy_came_later(
    harness: Harness,
) -> None:
    await set_policies(harness)
    await harness.put("namespaces/shop/pods/web", FOREIGN)
    await set_policies(harness, OWN_REGISTRY)
    await harness.put_node("n1")
    asked = {"podRefs": [{"namespace": "shop", "name": "web"}]}
    (result,) = (await harness.client.post(f"{CLUSTER}/placements", json=asked)).json()["results"]
    assert result["outcome"] == "Placed"


async def test_a_policy_is_asked_about_its_operations_and_namespaces_only(
    harness: Harness,
) -> None:
    for_red = OWN_REGISTRY | {"namespaceSelector": {"matchLabels": {"team": "red"}}}
    await set_policies(harness, for_red)
    await harness.put("namespaces/shop", {"metadata": {"name": "shop"}})
    await harness.put("namespaces/shop/pods/web", FOREIGN)
    red = {"metadata": {"name": "shop", "labels": {"team": "red"}}}
    await harness.put("namespaces/shop", red)
    new = running("elsewhere.example/web:1", "new")
    refused = await harness.client.put(f"{CLUSTER}/namespaces/shop/pods/new", json=new)
    assert problem(refused, 403) == "PolicyDenied"
    await set_policies(harness, for_red | {"operations": ["Update"]})
    await harness.put("namespaces/shop/pods/new", new)
    new["metadata"]["labels"]["a"] = "b"
    refused = await harness.client.put(f"{CLUSTER}/namespaces/shop/pods/new", json=new)
    assert problem(refused, 403) == "PolicyDenied"


async def test_expressions_speak_of_both_states_the_namespace_and_the_request(
    harness: Harness,
) -> None:
    policies = [
        {
            "id": "keeps-its-app",
            "expression": "oldObject == null || object.metadata.labels.app == oldObject.metadata.labels.app",
        },
        {
            "id": "owned",
            "expression": "request.operation != 'CREATE' || namespaceObject.metadata.labels.owner == 'us'",
        },
        {"id": "named", "expression": "request.namespace + '/' + request.name == 'shop/web'"},
    ]
    await set_policies(harness, *policies)
    owned = {"metadata": {"name": "shop", "labels": {"owner": "us"}}}
    await harness.put("namespaces/shop", owned)
    await harness.put("namespaces/shop/pods/web", OWN)
    changed = OWN | {"metadata": OWN["metadata"] | {"labels": {"app": "db"}}}
    refused = await harness.client.put(POD, json=changed)
    assert refused.json()["detail"] == (
        f"policy keeps-its-app: failed expression: {policies[0]['expression']}"
    )
    refused = await harness.client.put(f"{POD}-2", json=running("x", "web-2"))
    assert refused.json()["detail"].startswith("policy named: ")
    owned["metadata"]["labels"] = {"owner": "them"}
    await harness.put("namespaces/shop", owned)
    await harness.client.delete(POD)
    refused = await harness.client.put(POD, json=OWN)
    assert refused.json()["detail"].startswith("policy owned: ")


@pytest.mark.parametrize(
    "expression",
    [
        "object.spec.priority < 10",  # absent
        "dyn(object.metadata.name)",  # no boolean
    ],
)
async def test_a_policy_without_an_answer_denies(harness: Harness, expression: str) -> None:
    await set_policies(harness, {"id": "asks", "expression": expression})
    refused = await harness.client.put(POD, json=OWN)
    assert problem(refused, 403) == "PolicyDenied"
    assert refused.json()["detail"].startswith("policy asks: it cannot be evaluated: ")


LOOPED = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"


async def test_a_policy_that_costs_too_much_whatever_it_is_asked_is_refused(
    harness: Harness,
) -> None:
    loops = "".join(f"{LOOPED}.all({x}, " for x in "abcdef")
    policy = {"id": "asks", "expression": f"{loops}true{')' * 6}"}
    refused = await harness.client.put(CLUSTER, json={"config": {"policies": [policy]}})
    assert problem(refused, 422) == "InvalidManifest"
    (error,) = refused.json()["errors"]
    assert error["field"] == "config.policies[0].expression"
    assert error["message"].endswith("too complex, exceeds cost limit")


async def test_a_pod_for_which_a_policy_costs_too_much_is_denied(harness: Harness) -> None:
    """K12: what an expression costs depends on how long the lists are that it goes through."""
    args = "object.spec.containers[0].args"
    nested = f"{args}.all(a, {args}.all(b, {args}.all(c, a + b != c)))"
    await set_policies(harness, {"id": "asks", "expression": nested})
    few, many = (
        pod("web", containers=[{"name": "c", "args": ["x"] * count}]) for count in (10, 200)
    )
    refused = await harness.client.put(POD, json=many)
    assert problem(refused, 403) == "PolicyDenied"
    told = "policy asks: it cannot be evaluated: too complex, exceeds cost limit"
    assert refused.json()["detail"] == told
    assert (await harness.client.put(POD, json=few)).status_code == 201


async def test_a_pod_that_is_too_large_to_be_asked_about_is_denied(harness: Harness) -> None:
    await set_policies(harness, {"id": "any", "expression": "true"})
    many = {f"label-{number}": "" for number in range(ITEMS_MAX + 1)}
    large = [{"name": "c", "args": ["x" * OBJECT_BYTES_MAX]}]
    labelled = OWN | {"metadata": {"name": "web", "labels": many}}
    for sent in (labelled, pod("web", containers=large)):
        refused = await harness.client.put(POD, json=sent)
        assert problem(refused, 403) == "PolicyDenied"
        assert "policies are asked about objects of at most" in refused.json()["detail"]
    assert (await harness.client.put(POD, json=OWN)).status_code == 201


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({"expression": "true"}, "policies[0].id"),
        ({"id": "a"}, "policies[0].expression"),
        ({"id": "a", "expression": "object.spec.("}, "policies[0].expression"),
        ({"id": "a", "expression": "obj.spec == 1"}, "policies[0].expression"),
        ({"id": "a", "expression": "'yes'"}, "policies[0].expression"),
        ({"id": "a", "expression": " " * EXPRESSION_LENGTH_MAX + "true"}, "policies[0].expression"),
        ({"id": "a", "expression": "true", "operations": []}, "policies[0].operations"),
        ({"id": "a", "expression": "true", "operations": ["Delete"]}, "policies[0].operations[0]"),
        ({"id": "a", "expression": "true", "validation": 1}, "policies[0].validation"),
    ],
)
async def test_a_wrong_policy_is_refused_when_it_is_set(
    harness: Harness, policy: dict[str, Any], field: str
) -> None:
    refused = await harness.client.put(CLUSTER, json={"config": {"policies": [policy]}})
    assert problem(refused, 422) == "InvalidManifest"
    assert [each["field"] for each in refused.json()["errors"]] == [f"config.{field}"]


async def test_a_policy_has_a_name_of_its_own_and_there_are_few(harness: Harness) -> None:
    for policies, field in (
        ([OWN_REGISTRY, OWN_REGISTRY], "config.policies[1].id"),
        ([OWN_REGISTRY] * 33, "config.policies"),
    ):
        refused = await harness.client.put(CLUSTER, json={"config": {"policies": policies}})
        assert [each["field"] for each in refused.json()["errors"]] == [field]


async def test_a_simulation_asks_the_policies_that_it_brings(harness: Harness) -> None:
    cluster = {"config": {"policies": [OWN_REGISTRY]}, "nodes": [], "place": [FOREIGN]}
    answer = await harness.client.post("/v1/simulations", json=cluster)
    (result,) = answer.json()["results"]
    assert (result["outcome"], result["message"]) == ("Denied", TOLD)
