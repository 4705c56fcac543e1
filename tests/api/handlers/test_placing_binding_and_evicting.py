"""Placements, bindings, explanations, topology and simulations over HTTP."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.harness import AS_JSON, CLUSTER, Harness, node, pod, problem
from tests.builders import IGNORED_DURING_EXECUTION
from tests.waiting import once

PLACEMENTS = f"{CLUSTER}/placements"
POD = f"{CLUSTER}/namespaces/shop/pods/web-0"
HOST = "kubernetes.io/hostname"
APART = {
    "affinity": {
        "podAntiAffinity": {
            IGNORED_DURING_EXECUTION: [
                {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
            ]
        }
    }
}


async def test_a_pod_is_placed_and_stored(over_each_store: Harness) -> None:
    await over_each_store.put_node("n1")
    answer = await over_each_store.place(pod("web-0"))
    (result,) = answer["results"]
    assert answer["committed"] is True
    assert answer["attempts"] == 1
    assert result["outcome"] == "Placed"
    assert result["nodeName"] == "n1"
    stored = (await over_each_store.client.get(POD)).json()
    assert stored["spec"]["nodeName"] == "n1"
    assert stored["metadata"]["uid"] == result["uid"]
    assert stored["metadata"]["resourceVersion"] == str(answer["revision"])


async def test_asking_again_finds_the_pod_placed(harness: Harness) -> None:
    await harness.put_node("n1")
    await harness.place(pod("web-0"))
    answer = await harness.place(pod("web-0"))
    assert answer["results"][0]["outcome"] == "AlreadyPlaced"
    assert answer["committed"] is False


async def test_a_different_pod_of_that_name_is_a_conflict(harness: Harness) -> None:
    await harness.put_node("n1")
    await harness.place(pod("web-0"))
    body = {"pods": [pod("web-1"), pod("web-0", nodeSelector={"zone": "a"})]}
    answer = await harness.client.post(PLACEMENTS, json=body)
    assert problem(answer, 409) == "PodDiffers"
    assert "pods[1]" in answer.json()["detail"]


async def test_what_finds_no_place_is_rejected_or_queued(over_each_store: Harness) -> None:
    await over_each_store.configure(placePendingPods=False)
    rejected = await over_each_store.place(pod("web-0"))
    assert rejected["results"][0]["outcome"] == "Unschedulable"
    assert rejected["results"][0]["message"] == "no nodes available to schedule pods"
    assert problem(await over_each_store.client.get(POD), 404) == "NotFound"
    queued = await over_each_store.place(pod("web-0"), onUnschedulable="Queue")
    assert queued["results"][0]["outcome"] == "Queued"
    assert (await over_each_store.client.get(POD)).status_code == 200


async def test_pod_refs_place_stored_pods(over_each_store: Harness) -> None:
    await over_each_store.configure(placePendingPods=False)
    await over_each_store.put_pod("web-0")
    await over_each_store.put_node("n1")
    body = {"podRefs": [{"namespace": "shop", "name": "web-0"}]}
    answer = await over_each_store.client.post(PLACEMENTS, json=body)
    assert answer.json()["results"][0]["nodeName"] == "n1"
    body = {"podRefs": [{"namespace": "shop", "name": "absent"}]}
    assert problem(await over_each_store.client.post(PLACEMENTS, json=body), 404) == "NotFound"


async def test_templates_make_replicas(harness: Harness) -> None:
    await harness.put_node("n1")
    template = {"metadata": {"name": "web", "namespace": "shop"}, "spec": pod("x")["spec"]}
    body = {"template": template, "replicas": 3}
    answer = (await harness.client.post(PLACEMENTS, json=body)).json()
    assert [r["name"] for r in answer["results"]] == ["web-0", "web-1", "web-2"]
    assert {r["outcome"] for r in answer["results"]} == {"Placed"}
    again = (await harness.client.post(PLACEMENTS, json=body)).json()
    assert {r["outcome"] for r in again["results"]} == {"AlreadyPlaced"}


async def test_a_dry_run_changes_nothing(over_each_store: Harness) -> None:
    await over_each_store.put_node("n1")
    tried = await over_each_store.place(pod("web-0"), dryRun=True)
    assert tried["committed"] is False
    assert tried["results"][0]["uid"] is None
    assert tried["results"][0]["nodeName"] == "n1"
    assert problem(await over_each_store.client.get(POD), 404) == "NotFound"


async def test_groups_are_placed_whole_or_not(harness: Harness) -> None:
    await harness.put_node("n1")
    big = pod("big", containers=[{"name": "c", "resources": {"requests": {"cpu": "64"}}}])
    answer = await harness.place(pod("web-0"), big, policy="AllOrNothing")
    assert answer["committed"] is False
    assert [r["outcome"] for r in answer["results"]] == ["GroupRefused", "Unschedulable"]
    assert answer["group"]["failed"] == [{"namespace": "shop", "name": "big"}]


async def test_explanations(harness: Harness) -> None:
    await harness.put_node("n1")
    full = await harness.place(pod("a"), explain="Full")
    explanation = full["results"][0]["explanation"]
    assert explanation["feasible"] == ["n1"]
    assert explanation["semantics"] == "Kubernetes"
    summary = await harness.place(pod("b", nodeSelector={"zone": "x"}), explain="Summary")
    explanation = summary["results"][0]["explanation"]
    assert (explanation["feasibleCount"], explanation["nodes"]) == (0, 1)
    assert explanation["reasons"].keys() == {"NodeAffinity"}
    read = await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/a/explanation")
    assert read.json()["best"] == ["n1"]
    assert read.headers["moorage-revision"]
    absent = await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/none/explanation")
    assert problem(absent, 404) == "NotFound"


async def test_an_explanation_of_one_node_names_what_stands_against_the_pod(
    harness: Harness,
) -> None:
    await harness.configure(placePendingPods=False)
    for name in ("n1", "n2"):
        await harness.put_node(name, **{HOST: name})
    rule = f"spec.affinity.podAntiAffinity.{IGNORED_DURING_EXECUTION}[0]"
    placed = await harness.place(pod("a", **APART))
    taken = placed["results"][0]["nodeName"]
    free = ({"n1", "n2"} - {taken}).pop()
    await harness.put("namespaces/shop/pods/b", pod("b"))
    path = f"{CLUSTER}/namespaces/shop/pods/b/explanation"

    told = (await harness.client.get(path, params={"node": taken})).json()
    owner = {"namespace": "shop", "name": "a", "rule": rule}
    domain = {"key": HOST, "value": taken, "count": 1}
    assert told["culprits"] == [
        {
            "plugin": "InterPodAffinity",
            "node": taken,
            "reason": "node(s) didn't satisfy existing pods anti-affinity rules",
            "rule": None,
            "pods": [owner],
            "otherPods": 0,
            "domain": domain,
        }
    ]
    assert told["filters"].keys() == {"InterPodAffinity"}
    assert (told["feasible"], told["best"], told["total"].keys()) == ([], [free], {free})

    fits = (await harness.client.get(path, params={"node": free})).json()
    assert (fits["culprits"], fits["feasible"], fits["filters"]) == ([], [free], {})
    assert "culprits" not in (await harness.client.get(path)).json()
    absent = await harness.client.get(path, params={"node": "n3"})
    assert problem(absent, 404) == "NotFound"
    assert "There is no Node n3." in absent.json()["detail"]


BAD: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing": ({}, [""]),
    "two subjects": ({"pods": [], "podRefs": []}, [""]),
    "replicas without template": ({"pods": [], "replicas": 2}, ["replicas"]),
    "template without replicas": ({"template": pod("web")}, ["replicas"]),
    "no replicas": ({"template": pod("web"), "replicas": 0}, ["replicas"]),
    "too many replicas": ({"template": pod("web"), "replicas": 10**9}, ["replicas"]),
    "fractional replicas": ({"template": pod("web"), "replicas": 1.5}, ["replicas"]),
    "options": (
        {"pods": [], "policy": "Any", "explain": 1, "dryRun": "no", "onUnschedulable": "x"},
        ["policy", "onUnschedulable", "dryRun", "explain"],
    ),
    "misspelt": ({"pods": [], "dryrun": True}, ["dryrun"]),
    "pods no list": ({"pods": {}}, ["pods"]),
    "pod no object": ({"pods": ["web"]}, ["pods[0]"]),
    "the same pod twice": ({"pods": [pod("a"), pod("a")]}, ["pods[1].metadata.name"]),
    "reference twice": ({"podRefs": [{"name": "a"}, {"name": "a"}]}, ["podRefs[1]"]),
    "reference without name": ({"podRefs": [{}]}, ["podRefs[0].name"]),
    "one uid for all replicas": (
        {"template": {**pod("web"), "metadata": {"name": "web", "uid": "u"}}, "replicas": 2},
        ["template.metadata.uid"],
    ),
    "bad template": (
        {"template": {"metadata": {"name": "web"}, "spec": {}}, "replicas": 1},
        ["template.spec.containers"],
    ),
    "no name": ({"pods": [{"spec": pod("a")["spec"]}]}, ["pods[0].metadata"]),
}


@pytest.mark.parametrize("case", BAD)
async def test_bad_requests_name_every_wrong_field(harness: Harness, case: str) -> None:
    body, fields = BAD[case]
    answer = await harness.client.post(PLACEMENTS, json=body)
    assert problem(answer, 422) == "InvalidManifest"
    assert [error["field"] for error in answer.json()["errors"]] == fields


async def test_all_invalid_pods_are_named(harness: Harness) -> None:
    pods = [pod(f"p{i}", tolerations=[{"operator": "No"}] if i % 2 else []) for i in range(4)]
    answer = await harness.client.post(PLACEMENTS, json={"pods": pods})
    assert {error["field"] for error in answer.json()["errors"]} == {
        "pods[1].spec.tolerations[0].operator",
        "pods[3].spec.tolerations[0].operator",
    }


async def test_placements_are_given_once_per_key(over_each_store: Harness) -> None:
    await over_each_store.put_node("n1")
    key = {"idempotency-key": "place-1"}
    body = {"pods": [pod("web-0")]}
    first = await over_each_store.client.post(PLACEMENTS, json=body, headers=key)
    again = await over_each_store.client.post(PLACEMENTS, json=body, headers=key)
    assert first.json()["results"][0]["outcome"] == "Placed"
    assert again.content == first.content
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"


async def test_binding_checks_all_filters(over_each_store: Harness) -> None:
    await over_each_store.configure(placePendingPods=False)
    await over_each_store.put_node("n1")
    await over_each_store.put_pod("web-0", nodeSelector={"zone": "x"})
    body = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "n1"}}
    refused = await over_each_store.client.post(f"{POD}/binding", json=body)
    assert problem(refused, 409) == "BindingRefused"
    assert refused.json()["reasons"].keys() == {"NodeAffinity"}
    bound = await over_each_store.client.post(f"{POD}/binding", json={**body, "force": True})
    assert bound.status_code == 200
    assert bound.json()["spec"]["nodeName"] == "n1"
    assert bound.headers["etag"] == f'"{bound.json()["metadata"]["resourceVersion"]}"'


async def test_a_pod_that_is_being_deleted_is_not_bound(over_each_store: Harness) -> None:
    await over_each_store.configure(placePendingPods=False)
    await over_each_store.put_node("n1")
    await over_each_store.put_pod("web-0")
    assert (await over_each_store.client.post(f"{POD}/eviction")).status_code == 201
    body = {"target": {"name": "n1"}, "force": True}
    assert problem(await over_each_store.client.post(f"{POD}/binding", json=body), 409)


@pytest.mark.parametrize("body", [{}, {"target": {}}, {"target": "n1"}, []])
async def test_bad_bindings_are_refused(harness: Harness, body: Any) -> None:
    answer = await harness.client.post(f"{POD}/binding", json=body)
    assert problem(answer, 422) == "InvalidManifest"


@pytest.mark.parametrize(
    "content",
    [b"", b'{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web-0"}}'],
)
async def test_an_evicted_pod_is_marked(over_each_store: Harness, content: bytes) -> None:
    await over_each_store.put_node("n1")
    await over_each_store.put_pod("web-0", nodeName="n1")
    answer = await over_each_store.client.post(f"{POD}/eviction", content=content, headers=AS_JSON)
    assert answer.status_code == 201, answer.text
    assert answer.json()["metadata"]["deletionTimestamp"].endswith("Z")
    read = await over_each_store.client.get(POD)
    assert read.json() == answer.json()


async def test_an_eviction_takes_a_uid_as_its_precondition(harness: Harness) -> None:
    await harness.put_node("n1")
    await harness.put_pod("web-0", nodeName="n1")
    body = {"deleteOptions": {"preconditions": {"uid": "another"}}}
    answer = await harness.client.post(f"{POD}/eviction", json=body)
    assert problem(answer, 409) == "RevisionConflict"


async def test_topology_shows_domains(over_each_store: Harness) -> None:
    for name, labels in (("n1", {"zone": "a"}), ("n2", {"zone": "b"}), ("n3", {})):
        await over_each_store.put_node(name, **labels)
    await over_each_store.put_pod("web-0", nodeName="n1")
    answer = await over_each_store.client.get(f"{CLUSTER}/topology?key=zone")
    body = answer.json()
    assert [(d["value"], d["nodes"], d["pods"]) for d in body["domains"]] == [
        ("a", ["n1"], 1),
        ("b", ["n2"], 0),
    ]
    assert body["nodesWithoutKey"] == ["n3"]
    assert str(body["revision"]) == answer.headers["moorage-revision"]
    assert problem(await over_each_store.client.get(f"{CLUSTER}/topology"), 400)
    each = (await over_each_store.client.get(f"{CLUSTER}/topology?key=metadata.name")).json()
    assert [(d["value"], d["nodes"], d["pods"]) for d in each["domains"]] == [
        ("n1", ["n1"], 1),
        ("n2", ["n2"], 0),
        ("n3", ["n3"], 0),
    ]


async def simulate(harness: Harness, body: dict[str, Any]) -> Any:
    answer = await harness.client.post("/v1/simulations", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["results"]


async def test_simulations_store_nothing(harness: Harness) -> None:
    body = {
        "config": {"daemonNamespaces": []},
        "namespaces": [{"metadata": {"name": "shop"}}],
        "nodes": [node("n1"), node("n2")],
        "pods": [pod("there", nodeName="n1"), pod("waits")],
        "pod": pod("web-0"),
    }
    (result,) = await simulate(harness, body)
    assert result["outcome"] == "Placed"
    assert result["nodeName"] == "n2"
    assert result["explanation"]["feasible"] == ["n1", "n2"]
    assert (await harness.client.get(f"{CLUSTER}/nodes")).json()["items"] == []


async def test_simulated_pods_see_those_before(harness: Harness) -> None:
    alone = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
            ]
        }
    }
    nodes = [node(n, **{"kubernetes.io/hostname": n}) for n in ("n1", "n2")]
    place = [pod(f"p{i}", affinity=alone) for i in range(3)]
    results = await simulate(harness, {"nodes": nodes, "place": place})
    assert [r["outcome"] for r in results] == ["Placed", "Placed", "Unschedulable"]
    assert {r["nodeName"] for r in results[:2]} == {"n1", "n2"}
    body = {"nodes": nodes, "place": place, "policy": "AllOrNothing"}
    assert {r["outcome"] for r in await simulate(harness, body)} == {
        "GroupRefused",
        "Unschedulable",
    }


BAD_SIMULATIONS: dict[str, tuple[Any, str]] = {
    "nothing": ({}, ""),
    "both": ({"pod": pod("a"), "place": []}, ""),
    "unknown field": ({"pod": pod("a"), "node": []}, "node"),
    "bad config": ({"config": {"semantics": "x"}, "pod": pod("a")}, "config.semantics"),
    "bad node": ({"nodes": [{"metadata": {}}], "pod": pod("a")}, "nodes[0].metadata.name"),
    "bad pod": ({"pods": [pod("a", containers=1)], "pod": pod("a")}, "pods[0].spec.containers"),
    "bad pod to place": ({"pod": pod("a", containers=1)}, "pod.spec.containers"),
    "bad policy": ({"place": [], "policy": "x"}, "policy"),
    "no list": ({"nodes": 1, "pod": pod("a")}, "nodes"),
    "bad object": (
        {"objects": [{"kind": "Service", "metadata": {"name": "s"}, "spec": 1}], "pod": pod("a")},
        "objects[0].spec",
    ),
    "object without a kind": ({"objects": [{}], "pod": pod("a")}, "objects[0].kind"),
    "a node among the objects": ({"objects": [node("n1")], "pod": pod("a")}, "objects[0].kind"),
}


@pytest.mark.parametrize("case", BAD_SIMULATIONS)
async def test_bad_simulations_name_the_field(harness: Harness, case: str) -> None:
    body, field = BAD_SIMULATIONS[case]
    answer = await harness.client.post("/v1/simulations", json=body)
    assert problem(answer, 422) == "InvalidManifest"
    assert field in [error["field"] for error in answer.json()["errors"]]


async def test_a_bad_simulation_names_all_wrong_fields_at_once(harness: Harness) -> None:
    body = {
        "config": {"semantics": "x"},
        "namespaces": [5],
        "nodes": [{"metadata": {}}],
        "pods": [pod("a", containers=1)],
        "place": [pod("b", containers=1)],
        "policy": "x",
    }
    answer = await harness.client.post("/v1/simulations", json=body)
    assert problem(answer, 422) == "InvalidManifest"
    assert [error["field"] for error in answer.json()["errors"]] == [
        "config.semantics",
        "namespaces[0]",
        "nodes[0].metadata.name",
        "pods[0].spec.containers",
        "place[0].spec.containers",
        "policy",
    ]


async def test_service_a_waits_for_b_and_follows_it_unasked(over_each_store: Harness):
    """The story of the documents: three pods of A wait, B comes, and all of A goes to its zone."""
    http = over_each_store
    for number in range(4):
        await http.put_node(f"worker-{number}", **{"kind.zone": f"zone{number % 2 + 1}"})
    required = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kind.zone", "labelSelector": {"matchLabels": {"app": "b"}}}
        ]
    }
    for number in range(3):
        await http.put_pod(f"a-{number}", affinity={"podAffinity": required})
    told = await eventually(http, "a-2", lambda each: "status" in each)
    assert told["status"]["conditions"][0]["message"] == (
        "0/4 nodes are available: 4 node(s) didn't match pod affinity rules."
    )
    b = pod("b", nodeSelector={"kind.zone": "zone1"})
    b["metadata"]["labels"] = {"app": "b"}
    await http.place(b)
    for number in range(3):
        placed = await eventually(http, f"a-{number}", lambda each: "nodeName" in each["spec"])
        assert placed["spec"]["nodeName"] in {"worker-0", "worker-2"}


async def eventually(
    http: Harness, name: str, holds: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """The pod, as soon as something holds of it."""

    async def found() -> dict[str, Any] | None:
        read = (await http.client.get(f"{CLUSTER}/namespaces/shop/pods/{name}")).json()
        return dict(read) if holds(read) else None

    return await once(found) or {}


async def test_a_pod_that_is_going_or_over_gets_no_node(harness: Harness) -> None:
    await harness.put_node("n1")
    going, over = pod("going"), pod("over")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    over["status"] = {"phase": "Succeeded"}
    answer = await harness.place(going, over, pod("fresh"))
    outcomes = [(each["outcome"], each["reason"]) for each in answer["results"]]
    assert outcomes == [("Denied", "PodNotActive")] * 2 + [("Placed", None)]
