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
    page = await harness.store.list_objects(1, "Evictions", limit=1)
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
