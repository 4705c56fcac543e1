"""A pod that asks for too much is refused by whatever way it comes."""

import json

import pytest

from tests.api.harness import AS_JSON, CLUSTER, Harness, node, pod

TERMS = [
    {"labelSelector": {"matchLabels": {"app": f"a{n}"}}, "topologyKey": "zone"} for n in range(3)
]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
GREEDY = pod("greedy", affinity={"podAntiAffinity": {REQUIRED: TERMS}})
TEMPLATE = {"metadata": {"namespace": "shop", "name": "web"}, "spec": GREEDY["spec"]}
TOLD = "has 3 affinity terms, over the limit (pod_terms_max) of 2"
PODS = {"pods": [GREEDY]}
WAYS = {
    "put": ("PUT", "namespaces/shop/pods/greedy", GREEDY, "spec.affinity"),
    "put dry run": ("PUT", "namespaces/shop/pods/greedy?dryRun=true", GREEDY, "spec.affinity"),
    "apply": (
        "POST",
        "apply",
        {"apiVersion": "v1", "kind": "List", "items": [GREEDY]},
        "items[0].spec.affinity",
    ),
    "placement": ("POST", "placements", PODS, "pods[0].spec.affinity"),
    "dry run": ("POST", "placements", PODS | {"dryRun": True}, "pods[0].spec.affinity"),
    "template": (
        "POST",
        "placements",
        {"template": TEMPLATE, "replicas": 2},
        "template.spec.affinity",
    ),
    "plan": (
        "POST",
        "plans",
        {"goal": {"type": "Place", "pods": [GREEDY]}},
        "goal.pods[0].spec.affinity",
    ),
    "simulation": (
        "POST",
        "/v1/simulations",
        {"nodes": [node("n1")], "place": [GREEDY]},
        "place[0].spec.affinity",
    ),
}


@pytest.fixture
async def limited(make_harness):
    return await make_harness(pod_terms_max=2)


@pytest.mark.parametrize("way", WAYS)
async def test_a_pod_that_asks_for_too_much_is_refused(limited: Harness, way):
    method, path, body, field = WAYS[way]
    url = path if path.startswith("/") else f"{CLUSTER}/{path}"
    answer = await limited.client.request(method, url, json=body)
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert problem["code"] == "InvalidManifest"
    assert {each["field"]: each["message"] for each in problem["errors"]} == {field: TOLD}


async def test_a_line_that_asks_for_too_much_is_refused(limited: Harness):
    answer = await limited.client.post(
        f"{CLUSTER}/apply",
        content=json.dumps(GREEDY).encode(),
        headers=AS_JSON | {"content-type": "application/x-ndjson"},
    )
    assert TOLD in answer.text


async def test_by_default_a_pod_may_have_a_hundred_terms(harness: Harness):
    answer = await harness.client.put(f"{CLUSTER}/namespaces/shop/pods/greedy", json=GREEDY)
    assert answer.status_code == 201, answer.text
