"""What would otherwise be taken for something else is refused, and what holds a pod back is told."""

from typing import Any

import httpx
import pytest

from tests.api.harness import CLUSTER, Harness, node, pod, problem

POD = f"{CLUSTER}/namespaces/shop/pods/a"


def wrong_fields(answer: httpx.Response) -> dict[str, str]:
    assert problem(answer, 422) == "InvalidManifest"
    return {error["field"]: error["message"] for error in answer.json()["errors"]}


# Creating only


@pytest.mark.parametrize(
    ("path", "body"), [("nodes/n1", node("n1")), ("namespaces/shop/pods/a", pod("a", nodeName="n"))]
)
async def test_if_none_match_creates_and_never_replaces(harness: Harness, path: str, body: Any):
    path = f"{CLUSTER}/{path}"
    only_new = {"If-None-Match": "*"}
    first = await harness.client.put(path, json=body, headers=only_new)
    assert first.status_code == 201
    body["metadata"]["labels"] = {"app": "other"}
    second = await harness.client.put(path, json=body, headers=only_new)
    assert problem(second, 412) == "PreconditionFailed"
    assert (await harness.client.get(path)).json() == first.json()
    tag = {"If-None-Match": first.headers["etag"]}
    assert (await harness.client.put(path, json=body, headers=tag)).status_code == 412
    other = {"If-None-Match": '"1"'}
    assert (await harness.client.put(path, json=body, headers=other)).status_code == 200


# Bindings and evictions


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"forced": True}, "forced"),
        ({"force": "yes"}, "force"),
        ({"kind": "Pod"}, "kind"),
        ({"apiVersion": "v2"}, "apiVersion"),
        ({"metadata": {"name": "b"}}, "metadata.name"),
        ({"metadata": {"namespace": "other"}}, "metadata.namespace"),
        ({"target": {"kind": "Pod", "name": "n1"}}, "target.kind"),
        ({"target": {"nodeName": "n1", "name": "n1"}}, "target.nodeName"),
        ({"target": {}}, "target.name"),
        ({"target": {"name": "N 1"}}, "target.name"),
        ({"target": None}, "target"),
    ],
)
async def test_a_binding_that_says_something_else_is_refused(
    harness: Harness, change: Any, field: str
):
    await harness.put_pod("a")
    body = {"target": {"name": "n1"}} | change
    answer = await harness.client.post(f"{POD}/binding", json=body)
    assert list(wrong_fields(answer)) == [field]


async def test_a_kubernetes_binding_is_taken_and_null_is_absent(harness: Harness):
    await harness.put_node("n1")
    await harness.client.patch(CLUSTER, json={"config": {"placePendingPods": False}})
    await harness.put_pod("a")
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "a", "namespace": "shop", "creationTimestamp": None},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
        "force": None,
    }
    answer = await harness.client.post(f"{POD}/binding", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["spec"]["nodeName"] == "n1"


async def test_an_eviction_with_a_misspelt_field_or_of_an_older_pod_is_refused(harness: Harness):
    created = await harness.put_pod("a", nodeName="n1")
    misspelt = {"deleteOption": {}}
    assert list(wrong_fields(await harness.client.post(f"{POD}/eviction", json=misspelt))) == [
        "deleteOption"
    ]
    version = created.json()["metadata"]["resourceVersion"]
    await harness.client.patch(POD, json={"metadata": {"labels": {"x": "y"}}})
    options = {"deleteOptions": {"preconditions": {"resourceVersion": version}}}
    answer = await harness.client.post(f"{POD}/eviction", json=options)
    assert problem(answer, 409) == "RevisionConflict"


@pytest.mark.parametrize("field", ["name", "namespace"])
async def test_an_eviction_of_another_pod_than_the_address_names_is_refused(
    harness: Harness, field: str
):
    await harness.put_pod("a", nodeName="n1")
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {field: "other"}}
    answer = await harness.client.post(f"{POD}/eviction", json=body)
    assert list(wrong_fields(answer)) == [f"metadata.{field}"]
    same = {"metadata": {"name": "a", "namespace": "shop"}}
    assert (await harness.client.post(f"{POD}/eviction", json=same)).status_code == 201


# Explanations of pods that are not tried


async def explanation(harness: Harness) -> dict[str, Any]:
    answer = await harness.client.get(f"{POD}/explanation")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_the_explanation_of_a_gated_pod_says_so(harness: Harness):
    await harness.put_node("n1")
    await harness.put_pod("a", schedulingGates=[{"name": "example.com/wait"}])
    told = await explanation(harness)
    assert told["feasible"] == ["n1"]
    assert told["message"] == "Scheduling is blocked due to non-empty scheduling gates"
    gated = pod("b", schedulingGates=[{"name": "example.com/wait"}])
    (result,) = (await harness.place(gated, explain="Summary"))["results"]
    assert result["explanation"]["message"] == result["message"] == told["message"]


async def test_the_explanation_of_a_denied_pod_says_why(harness: Harness):
    """It came while it was allowed, and has waited since."""
    await harness.client.patch(CLUSTER, json={"config": {"placePendingPods": False}})
    await harness.put_node("n1", zone="a")
    config = {"restrictAllNamespacesAntiAffinity": False, "placePendingPods": False}
    await harness.client.patch(CLUSTER, json={"config": config})
    term = {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {}}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    await harness.put_pod("a", affinity={"podAntiAffinity": rules})
    assert (await explanation(harness))["message"] is None
    config["restrictAllNamespacesAntiAffinity"] = True
    await harness.client.patch(CLUSTER, json={"config": config})
    told = await explanation(harness)
    assert told["feasible"] == ["n1"]
    assert "topology key zone" in told["message"]


# Lists, simulations, apply, and the rest


async def test_a_token_of_another_list_is_refused(harness: Harness):
    for name in ("a", "b", "c"):
        await harness.put_node(name)
        await harness.put_pod(name, nodeName="a")
    nodes = await harness.client.get(f"{CLUSTER}/nodes?limit=1")
    token = nodes.json()["metadata"]["continue"]
    assert (await harness.client.get(f"{CLUSTER}/nodes?continue={token}")).status_code == 200
    for other in ("pods", "namespaces/shop/pods", "namespaces"):
        answer = await harness.client.get(f"{CLUSTER}/{other}?continue={token}")
        assert problem(answer, 400) == "MalformedRequest"
        assert [each["field"] for each in answer.json()["errors"]] == ["continue"]
    pods = await harness.client.get(f"{CLUSTER}/namespaces/shop/pods?limit=1")
    token = pods.json()["metadata"]["continue"]
    for other in ("pods", "namespaces/default/pods"):
        answer = await harness.client.get(f"{CLUSTER}/{other}?continue={token}")
        assert problem(answer, 400) == "MalformedRequest"


@pytest.mark.parametrize(
    ("field", "objects"),
    [
        ("nodes", [node("n"), node("m"), node("n")]),
        ("pods", [pod("p", nodeName="n"), pod("q"), pod("p")]),
        ("namespaces", [{"metadata": {"name": each}} for each in ("x", "y", "x")]),
        ("place", [pod("p"), pod("q"), pod("p")]),
    ],
)
async def test_a_simulation_names_what_is_there_twice(harness: Harness, field: str, objects: Any):
    body = {"pod": pod("new"), field: objects}
    if field == "place":
        del body["pod"]
    answer = await harness.client.post("/v1/simulations", json=body)
    assert list(wrong_fields(answer)) == [f"{field}[2].metadata.name"]


async def test_a_pod_that_is_replaced_counts_as_deleted_and_created(harness: Harness):
    old, new = pod("a", nodeName="n1"), pod("a", nodeName="n2")
    old["metadata"]["uid"] = "9e107d9d-372b-4b27-a5e1-b0a1f1a5c9d4"
    new["metadata"]["uid"] = "9e107d9d-372b-4b27-a5e1-b0a1f1a5c9d5"
    for sent, counts in ((old, (1, 0)), (new, (1, 1)), (new, (0, 0))):
        body = {"kind": "List", "items": [sent]}
        answer = (await harness.client.post(f"{CLUSTER}/apply", json=body)).json()
        assert (answer["created"], answer["deleted"]) == counts


async def test_a_dry_run_names_no_uid_also_of_a_pod_that_is_placed(harness: Harness):
    await harness.put_node("n1")
    await harness.place(pod("a"))
    (result,) = (await harness.place(pod("a"), dryRun=True))["results"]
    assert (result["outcome"], result["uid"]) == ("AlreadyPlaced", None)


async def test_a_topology_key_that_no_label_can_have_is_refused(harness: Harness):
    answer = await harness.client.get(f"{CLUSTER}/topology", params={"key": "a b"})
    assert list(wrong_fields(answer)) == ["key"]


async def test_a_number_that_is_too_high_is_not_called_too_low(harness: Harness):
    constraint = {"topologyKey": "zone", "labelSelector": {}, "maxSkew": 2**31}
    answer = await harness.client.put(POD, json=pod("a", topologySpreadConstraints=[constraint]))
    (message,) = wrong_fields(answer).values()
    assert message == "must be between 1 and 2147483647, inclusive"


async def test_the_name_of_a_profile_is_a_name(harness: Harness):
    config = {"profiles": [{"schedulerName": "two words"}]}
    answer = await harness.client.patch(CLUSTER, json={"config": config})
    assert list(wrong_fields(answer)) == ["config.profiles[0].schedulerName"]


async def test_metrics_name_their_charset_once(harness: Harness):
    answer = await harness.client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


async def test_the_default_cluster_can_be_deleted_and_made_again(harness: Harness):
    await harness.put_node("n1")
    assert (await harness.client.delete(CLUSTER)).status_code == 200
    assert problem(await harness.client.get(CLUSTER), 404) == "NotFound"
    assert (await harness.client.put(CLUSTER, json={"config": {}})).status_code == 201
    assert (await harness.client.get(f"{CLUSTER}/nodes")).json()["items"] == []


async def test_options_are_complained_of_in_plain_words(harness: Harness):
    options = {"pods": [pod("a")], "dryRun": "yes", "explain": 5}
    answer = await harness.client.post(f"{CLUSTER}/placements", json=options)
    assert wrong_fields(answer) == {
        "dryRun": "must be true or false",
        "explain": "must be a string",
    }
    template = {"template": pod("a"), "replicas": 0}
    answer = await harness.client.post(f"{CLUSTER}/placements", json=template)
    assert wrong_fields(answer) == {"replicas": "must be an integer of at least 1"}
    answer = await harness.client.post(f"{CLUSTER}/placements", json={"podRefs": [{"nam": "x"}]})
    assert wrong_fields(answer).popitem()[0].startswith("podRefs[0].na")


async def test_a_setting_outside_of_config_is_told_where_it_belongs(harness: Harness):
    answer = await harness.client.patch(CLUSTER, json={"hardPodAffinityWeight": 5})
    told = wrong_fields(answer)["hardPodAffinityWeight"]
    assert told == "is unknown; did you mean config.hardPodAffinityWeight?"
