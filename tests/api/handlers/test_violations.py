"""Violations over HTTP, and what becomes of pods whose rules are required during execution."""

from functools import partial
from typing import Any

from tests.api.following import watched
from tests.api.harness import CLUSTER, Harness, pod, problem
from tests.waiting import once

VIOLATIONS = f"{CLUSTER}/violations"
IGNORED = "requiredDuringSchedulingIgnoredDuringExecution"
ENDURING = "requiredDuringSchedulingRequiredDuringExecution"


def apart(name: str, node_name: str) -> dict[str, Any]:
    """A pod on a node that it wants for itself."""
    term = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}}}
    affinity = {"podAntiAffinity": {IGNORED: [term]}}
    return pod(name, affinity=affinity, nodeName=node_name)


async def test_violations_name_pod_rule_and_opponents(over_each_store: Harness) -> None:
    await over_each_store.put_node("n1", host="n1")
    for name in ("b", "a"):
        await over_each_store.put(f"namespaces/shop/pods/{name}", apart(name, "n1"))
    answer = await over_each_store.client.get(VIOLATIONS)
    assert answer.status_code == 200
    assert answer.headers["moorage-revision"] == str(answer.json()["revision"])
    told = {
        "namespace": "shop",
        "nodeName": "n1",
        "plugin": "InterPodAffinity",
        "rule": f"spec.affinity.podAntiAffinity.{IGNORED}[0]",
        "execution": "Ignored",
        "reason": "node(s) didn't match pod anti-affinity rules",
        "skew": None,
        "since": None,
    }
    assert answer.json()["items"] == [
        told | {"name": "a", "conflictsWith": [{"namespace": "shop", "name": "b"}]},
        told | {"name": "b", "conflictsWith": [{"namespace": "shop", "name": "a"}]},
    ]


async def test_a_forced_binding_is_a_violation_until_the_node_fits(harness: Harness) -> None:
    await harness.configure(placePendingPods=False)
    await harness.put_node("n1")
    await harness.put_pod("web-0", nodeSelector={"disk": "ssd"})
    bind = f"{CLUSTER}/namespaces/shop/pods/web-0/binding"
    body = {"target": {"name": "n1"}}
    refused = await harness.client.post(bind, json=body)
    assert problem(refused, 409) == "BindingRefused"
    reason = "node(s) didn't match Pod's node affinity/selector"
    assert refused.json()["reasons"] == {"NodeAffinity": [reason]}
    forced = await harness.client.post(bind, json={**body, "force": True})
    assert forced.status_code == 200
    (item,) = (await harness.client.get(VIOLATIONS)).json()["items"]
    assert (item["plugin"], item["rule"], item["conflictsWith"]) == (
        "NodeAffinity",
        "spec.nodeSelector",
        [],
    )
    await harness.put_node("n1", disk="ssd")
    assert (await harness.client.get(VIOLATIONS)).json()["items"] == []


async def test_skew_is_a_number(harness: Harness) -> None:
    await harness.put_node("n1", zone="a")
    await harness.put_node("n2", zone="b")
    even = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    for name in ("a", "b"):
        await harness.put_pod(name, topologySpreadConstraints=[even], nodeName="n1")
    items = (await harness.client.get(VIOLATIONS)).json()["items"]
    assert [(each["name"], each["skew"]) for each in items] == [("a", 2), ("b", 2)]
    assert items[0]["rule"] == "spec.topologySpreadConstraints[0]"


async def test_violations_of_an_unknown_cluster_or_with_a_wrong_parameter(
    harness: Harness,
) -> None:
    unknown = await harness.client.get("/v1/clusters/none/violations")
    assert problem(unknown, 404) == "NotFound"
    assert problem(await harness.client.get(f"{VIOLATIONS}?limit=1"), 400)


async def evicted(harness: Harness, name: str) -> dict[str, Any]:
    """The pod's condition, once it is marked."""

    async def condition() -> dict[str, Any] | None:
        read = await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/{name}")
        if "deletionTimestamp" not in read.json()["metadata"]:
            return None
        conditions = read.json()["status"]["conditions"]
        return next(each for each in conditions if each["type"] == "DisruptionTarget")

    return await once(condition) or {}


async def is_forgiven(harness: Harness) -> bool:
    """Whether the time of anybody's grace is counted."""
    page = await harness.store.objects.list(1, "Evictions", limit=1)
    return bool(page.rows)


async def test_a_pod_is_evicted_when_its_node_loses_the_label(over_each_store: Harness) -> None:
    await over_each_store.put_node("n1", disk="ssd")
    wanted = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    affinity = {"nodeAffinity": {ENDURING: {"nodeSelectorTerms": [wanted]}}}
    await over_each_store.put_pod("web-0", affinity=affinity, nodeName="n1")
    await over_each_store.put_node("n1")
    condition = await evicted(over_each_store, "web-0")
    assert condition["reason"] == "NodeAffinityViolated"
    assert ENDURING in condition["message"]
    (item,) = (await over_each_store.client.get(VIOLATIONS)).json()["items"]
    assert (item["name"], item["execution"]) == ("web-0", "Required")
    deleted = await over_each_store.client.delete(f"{CLUSTER}/namespaces/shop/pods/web-0")
    assert deleted.status_code == 200
    assert (await over_each_store.client.get(VIOLATIONS)).json()["items"] == []


async def test_affinity_is_forgiven_for_a_while_and_what_counts_the_time_is_hidden(
    over_each_store: Harness,
) -> None:
    await over_each_store.configure(affinityViolationGraceSeconds=3600)
    await over_each_store.put_node("n1", host="n1")
    term = {"topologyKey": "host", "labelSelector": {"matchLabels": {"service": "S2"}}}
    await over_each_store.put_pod("s1", affinity={"podAffinity": {ENDURING: [term]}}, nodeName="n1")
    violated = (await over_each_store.client.get(VIOLATIONS)).json()["items"]
    assert [each["name"] for each in violated] == ["s1"]
    await once(partial(is_forgiven, over_each_store))
    await over_each_store.configure(affinityViolationGraceSeconds=0)
    condition = await evicted(over_each_store, "s1")
    assert condition["reason"] == "PodAffinityViolated"
    export = (await over_each_store.client.get(f"{CLUSTER}/export")).json()
    assert [each["kind"] for each in export["items"]] == ["Node", "Pod"]
    events = await watched(over_each_store, 1)
    assert {event.data["kind"] for event in events} == {"Cluster", "Node", "Pod", "Bookmark"}
    assert "DisruptionTarget" in str(events)


def beside(**tolerance: int) -> dict[str, Any]:
    """Affinity that is required during execution to a pod that is not there."""
    term = {"topologyKey": "host", "labelSelector": {"matchLabels": {"service": "S2"}}}
    return {"podAffinity": {ENDURING: [term | tolerance]}}


async def test_a_term_says_how_long_it_may_be_broken(over_each_store: Harness) -> None:
    """M07: less than the cluster tolerates, or more."""
    await over_each_store.configure(affinityViolationGraceSeconds=3600)
    await over_each_store.put_node("n1", host="n1")
    pods = {"impatient": beside(toleranceSeconds=0), "other": beside()}
    for name, affinity in pods.items():
        await over_each_store.put_pod(name, affinity=affinity, nodeName="n1")
    assert (await evicted(over_each_store, "impatient"))["reason"] == "PodAffinityViolated"
    pods = {"patient": beside(toleranceSeconds=3600)}
    await over_each_store.put_pod("patient", affinity=pods["patient"], nodeName="n1")
    await over_each_store.configure(affinityViolationGraceSeconds=0)
    assert await evicted(over_each_store, "other")
    path = f"{CLUSTER}/namespaces/shop/pods/patient"
    patient = (await over_each_store.client.get(path)).json()
    assert "deletionTimestamp" not in patient["metadata"]
    assert patient["spec"]["affinity"] == pods["patient"]
    violated = (await over_each_store.client.get(VIOLATIONS)).json()["items"]
    assert "patient" in [each["name"] for each in violated]


async def test_a_pod_tells_a_time_for_all_its_terms(harness: Harness) -> None:
    """R02: a term's own time goes before the pod's, and the pod's before the cluster's."""
    await harness.configure(affinityViolationGraceSeconds=0)
    await harness.put_node("n1", host="n1")
    patient, hasty = beside(), beside(toleranceSeconds=0)
    for affinity in (patient, hasty):
        affinity["podAffinity"]["toleranceSeconds"] = 3600
    await harness.put_pod("patient", affinity=patient, nodeName="n1")
    await harness.put_pod("hasty", affinity=hasty, nodeName="n1")
    assert await evicted(harness, "hasty")
    read = await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/patient")
    assert "deletionTimestamp" not in read.json()["metadata"]


async def test_only_affinity_that_must_last_can_be_tolerated(harness: Harness) -> None:
    term = {"topologyKey": "host", "labelSelector": {}, "toleranceSeconds": 5}
    refused = {
        f"podAntiAffinity.{ENDURING}[0].toleranceSeconds": {"podAntiAffinity": {ENDURING: [term]}},
        f"podAffinity.{IGNORED}[0].toleranceSeconds": {"podAffinity": {IGNORED: [term]}},
        "podAntiAffinity.toleranceSeconds": {"podAntiAffinity": {"toleranceSeconds": 5}},
        f"podAffinity.{ENDURING}[0].toleranceSeconds": {
            "podAffinity": {ENDURING: [term | {"toleranceSeconds": -1}]}
        },
    }
    for field, affinity in refused.items():
        answer = await harness.client.put(
            f"{CLUSTER}/namespaces/shop/pods/web", json=pod("web", affinity=affinity)
        )
        assert problem(answer, 422) == "InvalidManifest"
        assert [each["field"] for each in answer.json()["errors"]] == [f"spec.affinity.{field}"]


async def test_a_placed_pod_keeps_the_times_that_it_tells(harness: Harness) -> None:
    await harness.put_node("n1", host="n1")
    affinity = beside(toleranceSeconds=3600)
    await harness.put_pod("web", affinity=affinity, nodeName="n1")
    affinity["podAffinity"]["toleranceSeconds"] = 5
    path = f"{CLUSTER}/namespaces/shop/pods/web"
    changed = await harness.client.put(path, json=pod("web", affinity=affinity))
    assert problem(changed, 422) == "InvalidManifest"
    assert [each["field"] for each in changed.json()["errors"]] == ["spec.affinity"]
