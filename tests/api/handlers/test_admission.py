"""Abuse of anti-affinity, daemons and priorities over HTTP, as the design documents have them."""

from typing import Any

import pytest

from tests.api.handlers.test_quota import configure, put_quota, try_pod, used
from tests.api.harness import CLUSTER, Harness, node, pod, problem

IGNORED = "requiredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingRequiredDuringExecution"
HOSTNAME = "kubernetes.io/hostname"
EVERYWHERE: dict[str, Any] = {"namespaceSelector": {}}


def apart(key: str, variant: str = IGNORED, **fields: Any) -> dict[str, Any]:
    """Required anti-affinity against every pod of the namespaces that `fields` name."""
    term = {"topologyKey": key, "labelSelector": {}, **fields}
    return {"affinity": {"podAntiAffinity": {variant: [term]}}}


def exclusive(name: str, key: str = HOSTNAME, **spec: Any) -> dict[str, Any]:
    """A pod of 100m that tolerates no other pod in its domain."""
    small = [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}]
    anti = apart(key, **EVERYWHERE)["affinity"]
    affinity = {**anti, **spec.pop("affinity", {})}
    return pod(name, containers=small, affinity=affinity, **spec)


def sized(name: str, cpu: str, memory: str, **labels: str) -> dict[str, Any]:
    made = node(name, **{HOSTNAME: name, **labels})
    made["status"]["allocatable"] |= {"cpu": cpu, "memory": memory}
    return made


def require(key: str, *values: str) -> dict[str, Any]:
    expression = {"key": key, "operator": "In", "values": list(values)}
    terms = [{"matchExpressions": [expression]}]
    return {"nodeAffinity": {IGNORED: {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize("variant", [IGNORED, REQUIRED])
@pytest.mark.parametrize(
    "fields",
    [
        {"namespaceSelector": {}},
        {"namespaceSelector": {"matchLabels": {}, "matchExpressions": []}},
        {"namespaceSelector": {}, "namespaces": ["shop"]},
        {
            "namespaceSelector": {
                "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}]
            }
        },
        {"namespaceSelector": {"matchExpressions": [{"key": "none", "operator": "DoesNotExist"}]}},
        {
            "namespaceSelector": {
                "matchExpressions": [{"key": "none", "operator": "NotIn", "values": ["such"]}]
            }
        },
    ],
)
async def test_a_wide_key_against_all_namespaces_is_denied(
    harness: Harness, variant: str, fields: dict[str, Any]
) -> None:
    """K01, K02: both variants, created or placed, however "all namespaces" is spelled."""
    await harness.put("namespaces/shop", {"metadata": {"name": "shop", "labels": {"team": "x"}}})
    await harness.put("nodes/n1", node("n1", zone="a"))
    wide = pod("wide", **apart("zone", variant, **fields))
    refused = await try_pod(harness, wide)
    assert problem(refused, 403) == "AntiAffinityTooBroad"
    path = f"spec.affinity.podAntiAffinity.{variant}[0]: "
    assert refused.json()["detail"].startswith(path)
    result = (await harness.place(wide))["results"][0]
    assert (result["outcome"], result["reason"]) == ("Denied", "AntiAffinityTooBroad")
    assert result["message"].startswith(path)
    narrow = [
        pod("hostname", **apart(HOSTNAME, variant, **fields)),
        pod("own", **apart("zone", variant)),
        pod("team", **apart("zone", variant, namespaceSelector={"matchLabels": {"team": "x"}})),
    ]
    for each in narrow:
        assert (await try_pod(harness, each)).status_code == 201


async def test_a_negative_selector_is_narrow_where_some_namespace_escapes_it(
    harness: Harness,
) -> None:
    """K01: the same words as before, but now they leave a namespace out."""
    selector = {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]}
    wide = pod("wide", **apart("zone", namespaceSelector=selector))
    assert problem(await try_pod(harness, wide), 403) == "AntiAffinityTooBroad"
    await harness.put("namespaces/live", {"metadata": {"name": "live", "labels": {"env": "prod"}}})
    assert (await try_pod(harness, wide)).status_code == 201


@pytest.mark.parametrize(
    "rest",
    [
        {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}},
        {"namespaces": ["shop"]},
        {},
    ],
)
async def test_all_namespaces_are_not_to_be_had_in_parts(
    harness: Harness, rest: dict[str, Any]
) -> None:
    """K01: of two terms the one has what the other leaves out, be it the pod's own namespace."""
    for name, labels in (("shop", {"team": "x"}), ("infra", {})):
        await harness.put(f"namespaces/{name}", {"metadata": {"name": name, "labels": labels}})
    without = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
    wide = pod("wide", **apart("zone", namespaceSelector=without))
    terms = wide["spec"]["affinity"]["podAntiAffinity"][IGNORED]
    assert (await try_pod(harness, wide)).status_code == 201
    terms.append({"topologyKey": "zone", "labelSelector": {}, **rest})
    both = {**wide, "metadata": {"name": "both", "namespace": "shop"}}
    refused = await try_pod(harness, both)
    assert problem(refused, 403) == "AntiAffinityTooBroad"
    terms[1] |= {"maxPerDomain": 2, "exceptNamespaceSelector": {"matchLabels": {"team": "y"}}}
    refused = await try_pod(harness, both)
    assert problem(refused, 403) == "AntiAffinityTooBroad", "as if they left out nothing"
    terms[1]["labelSelector"] = {"matchLabels": {"app": "web"}}
    assert (await try_pod(harness, both)).status_code == 201, "each is about other pods"


async def test_a_patch_into_the_forbidden_is_denied_and_changes_nothing(harness: Harness) -> None:
    """K02: create and update."""
    await configure(harness, placePendingPods=False)
    await harness.put_pod("web-0")
    path = f"{CLUSTER}/namespaces/shop/pods/web-0"
    before = (await harness.client.get(path)).json()
    refused = await harness.client.patch(path, json={"spec": apart("zone", **EVERYWHERE)})
    assert problem(refused, 403) == "AntiAffinityTooBroad"
    assert (await harness.client.get(path)).json() == before


async def test_the_capability_is_given_to_namespaces(harness: Harness) -> None:
    """K03: an allow-list, and the switch for the whole rule."""
    wide = apart("zone", **EVERYWHERE)
    await configure(harness, trustedNamespaces=["infra"])
    assert (await try_pod(harness, pod("a", "infra", **wide))).status_code == 201
    assert problem(await try_pod(harness, pod("a", **wide)), 403) == "AntiAffinityTooBroad"
    await configure(harness, nodeTopologyKeys=["zone"])
    assert (await try_pod(harness, pod("b", **wide))).status_code == 201
    by_host = pod("c", **apart(HOSTNAME, **EVERYWHERE))
    assert problem(await try_pod(harness, by_host), 403) == "AntiAffinityTooBroad"
    await configure(harness, restrictAllNamespacesAntiAffinity=False)
    assert (await try_pod(harness, by_host)).status_code == 201


async def test_an_empty_list_is_wide_where_it_means_all_namespaces(harness: Harness) -> None:
    """K01 under `emptyNamespaceList: AllNamespaces`, alone and by the preset."""
    assert (await try_pod(harness, pod("a", **apart("zone", namespaces=[])))).status_code == 201
    for settings in ({"emptyNamespaceList": "AllNamespaces"}, {"semantics": "DesignDocuments"}):
        await configure(harness, emptyNamespaceList=None)
        await configure(harness, **settings)
        refused = await try_pod(harness, pod("b", **apart("zone", namespaces=[])))
        assert problem(refused, 403) == "AntiAffinityTooBroad"


async def test_there_is_no_wildcard_for_namespaces(harness: Harness) -> None:
    """K13."""
    refused = await try_pod(harness, pod("a", **apart("zone", namespaces=["*"])))
    assert problem(refused, 422) == "InvalidManifest"
    assert "namespaceSelector: {}" in refused.json()["errors"][0]["message"]


async def test_daemons_are_neither_seen_nor_hit(harness: Harness) -> None:
    """L01, L02: kube-system by default; an operator adds the namespaces of daemons."""
    await configure(harness, placePendingPods=False)
    await harness.put("nodes/n1", sized("n1", "8", "8Gi"))
    agents = [pod("agent", "kube-system"), pod("exporter", "monitoring")]
    await harness.place(*agents)
    alone = exclusive("alone")
    assert (await harness.place(alone))["results"][0]["outcome"] == "Unschedulable"
    await configure(harness, daemonNamespaces=["kube-system", "monitoring"])
    assert (await harness.place(alone))["results"][0]["nodeName"] == "n1"
    late = [pod("agent-2", "kube-system"), pod("exporter-2", "monitoring"), pod("other")]
    outcomes = [each["outcome"] for each in (await harness.place(*late))["results"]]
    assert outcomes == ["Placed", "Placed", "Unschedulable"]
    await configure(harness, daemonNamespaces=[])
    again = await harness.place(pod("agent-3", "kube-system"))
    assert again["results"][0]["outcome"] == "Unschedulable"


async def test_replicas_of_a_daemon_keep_apart_by_default(harness: Harness) -> None:
    """L01, L02: three replicas of a kube-system service on two nodes; the third one fits nowhere."""
    await configure(harness, placePendingPods=False)
    for name in ("n1", "n2"):
        await harness.put(f"nodes/{name}", sized(name, "8", "8Gi"))
    replicas = [pod(f"dns-{number}", "kube-system", **apart(HOSTNAME)) for number in range(3)]
    results = (await harness.place(*replicas))["results"]
    assert [each["outcome"] for each in results] == ["Placed", "Placed", "Unschedulable"]
    assert {each["nodeName"] for each in results[:2]} == {"n1", "n2"}
    assert results[2]["message"] == (
        "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."
    )
    replicas[2]["spec"]["nodeName"] = "n1"
    await harness.put("namespaces/kube-system/pods/dns-2", replicas[2])
    told = (await harness.client.get(f"{CLUSTER}/violations")).json()["items"]
    assert len({each["name"] for each in told}) == 2
    assert {each["nodeName"] for each in told} == {"n1"}


async def test_an_explanation_lists_the_rules_that_were_left_out(harness: Harness) -> None:
    """L01, L02: between daemons and others, on either side; none between pods of one kind."""
    await configure(harness, placePendingPods=False)
    for name in ("n1", "n2", "n3"):
        await harness.put(f"nodes/{name}", sized(name, "8", "8Gi"))
    agents = [pod(name, "kube-system", nodeName=name) for name in ("n1", "n2")]
    for agent in agents:
        await harness.put(f"namespaces/kube-system/pods/{agent['metadata']['name']}", agent)
    alone = exclusive("alone")
    path = f"spec.affinity.podAntiAffinity.{IGNORED}[0]"
    for explain in ("Summary", "Full"):
        tried = await harness.place(alone, dryRun=True, explain=explain)
        assert tried["results"][0]["explanation"]["exemptions"] == [
            {
                "rule": path,
                "ownerNamespace": None,
                "topologyKey": HOSTNAME,
                "reason": "Pods in daemonNamespaces do not count for required anti-affinity of "
                "other pods.",
                "pods": 2,
                "nodes": 2,
            }
        ]
    await harness.place(alone)
    late = await harness.place(pod("agent", "kube-system"), dryRun=True, explain="Full")
    assert late["results"][0]["explanation"]["exemptions"] == [
        {
            "rule": path,
            "ownerNamespace": "shop",
            "topologyKey": HOSTNAME,
            "reason": "Required anti-affinity of other pods does not keep out a pod in "
            "daemonNamespaces.",
            "pods": 1,
            "nodes": 1,
        }
    ]
    other = await harness.place(pod("other"), dryRun=True, explain="Full")
    assert "exemptions" not in other["results"][0]["explanation"]


async def test_daemons_are_not_charged_for_what_they_shut_others_out_of(harness: Harness) -> None:
    """L04: the exemption holds for quota."""
    await harness.put("nodes/n1", sized("n1", "4", "8Gi"))
    await put_quota(harness, "cost", {"opportunity.nodes": "0"}, namespace="kube-system")
    daemon = exclusive("agent")
    daemon["metadata"]["namespace"] = "kube-system"
    assert (await try_pod(harness, daemon)).status_code == 201
    assert await used(harness, "cost", "kube-system") == {"opportunity.nodes": "0"}


async def test_an_exclusive_pod_is_charged_the_largest_node(harness: Harness) -> None:
    """K08: 100m of cpu, but nodes of 4 cpu, under a quota of 3."""
    await harness.put("nodes/small", sized("small", "2", "16Gi"))
    await harness.put("nodes/large", sized("large", "4", "8Gi"))
    await put_quota(harness, "cost", {"opportunity.cpu": "3", "requests.cpu": "3"})
    refused = await try_pod(harness, exclusive("alone"))
    assert problem(refused, 403) == "QuotaExceeded"
    assert refused.json()["detail"] == (
        "exceeded quota: cost, requested: opportunity.cpu=4, used: opportunity.cpu=0, "
        "limited: opportunity.cpu=3"
    )
    assert (await try_pod(harness, pod("shares"))).status_code == 201
    assert await used(harness, "cost") == {"opportunity.cpu": "0", "requests.cpu": "1"}


@pytest.mark.parametrize(
    "selector",
    [
        {"matchExpressions": [{"key": "nobody-has", "operator": "DoesNotExist"}]},
        {"matchExpressions": [{"key": "nobody-has", "operator": "NotIn", "values": ["this"]}]},
    ],
)
@pytest.mark.parametrize("field", ["labelSelector", "namespaceSelector"])
async def test_the_charge_is_the_same_however_everybody_is_spelt(
    harness: Harness, field: str, selector: dict[str, Any]
) -> None:
    """K08: a label that nobody has is none that sets anybody apart."""
    await harness.put("nodes/n1", sized("n1", "4", "8Gi"))
    await put_quota(harness, "cost", {"opportunity.cpu": "3"})
    spelt = pod("alone", **apart(HOSTNAME, **{**EVERYWHERE, field: selector}))
    assert problem(await try_pod(harness, spelt), 403) == "QuotaExceeded"
    placed = (await harness.place(spelt))["results"][0]
    assert (placed["outcome"], placed["reason"]) == ("Denied", "QuotaExceeded")


async def test_or_the_average_node(harness: Harness) -> None:
    """K08: `opportunityCostBasis: Average`."""
    await configure(harness, placePendingPods=False, opportunityCostBasis="Average")
    await harness.put("nodes/small", sized("small", "2", "16Gi"))
    await harness.put("nodes/large", sized("large", "4", "8Gi"))
    limits = {"opportunity.cpu": "3", "opportunity.memory": "1Ti", "opportunity.nodes": "5"}
    await put_quota(harness, "cost", limits)
    assert (await try_pod(harness, exclusive("alone"))).status_code == 201
    average = {"opportunity.cpu": "3", "opportunity.memory": "12Gi", "opportunity.nodes": "1"}
    assert await used(harness, "cost") == average
    await configure(harness, opportunityCostBasis="Largest")
    largest = {"opportunity.cpu": "4", "opportunity.memory": "16Gi", "opportunity.nodes": "1"}
    assert await used(harness, "cost") == largest


@pytest.mark.parametrize("key", ["cluster", "nobody-has-this"])
async def test_a_key_of_the_whole_cluster_is_charged_the_whole_cluster(
    harness: Harness, key: str
) -> None:
    """K08: a domain that holds all nodes, or a key that no node carries."""
    await configure(harness, restrictAllNamespacesAntiAffinity=False)
    await harness.put("nodes/n1", sized("n1", "2", "1Gi", cluster="c"))
    await harness.put("nodes/n2", sized("n2", "4", "1Gi", cluster="c"))
    await put_quota(harness, "cost", {"opportunity.cpu": "5", "opportunity.nodes": "9"})
    refused = await try_pod(harness, exclusive("alone", key))
    assert problem(refused, 403) == "QuotaExceeded"
    assert "requested: opportunity.cpu=6," in refused.json()["detail"]
    await put_quota(harness, "cost", {"opportunity.cpu": "6", "opportunity.nodes": "9"})
    assert (await harness.place(exclusive("alone", key)))["results"][0]["outcome"] == "Placed"
    assert await used(harness, "cost") == {"opportunity.cpu": "6", "opportunity.nodes": "2"}


async def test_a_wider_key_is_charged_the_whole_domain(harness: Harness) -> None:
    """K08, K09: the larger zone before placement, the pod's own zone after it."""
    await configure(harness, restrictAllNamespacesAntiAffinity=False, placePendingPods=False)
    zones = {"n1": "a", "n2": "a", "n3": "b"}
    for name, zone in zones.items():
        await harness.put(f"nodes/{name}", sized(name, "2", "1Gi", zone=zone))
    await put_quota(harness, "cost", {"opportunity.cpu": "100", "opportunity.nodes": "100"})
    await harness.put_pod("alone", **spec_of(exclusive("alone", "zone")))
    assert await used(harness, "cost") == {"opportunity.cpu": "4", "opportunity.nodes": "2"}
    await bind(harness, "alone", "n3")
    assert await used(harness, "cost") == {"opportunity.cpu": "2", "opportunity.nodes": "1"}
    await harness.put("nodes/n4", sized("n4", "8", "1Gi", zone="b"))
    assert await used(harness, "cost") == {"opportunity.cpu": "10", "opportunity.nodes": "2"}


async def test_node_affinity_narrows_the_charge_and_placement_settles_it(harness: Harness) -> None:
    """K09: a pod for one machine is charged that machine; a placed one its own."""
    await configure(harness, placePendingPods=False)
    await harness.put("nodes/n-small", sized("n-small", "2", "1Gi"))
    await harness.put("nodes/n-large", sized("n-large", "16", "1Gi"))
    await put_quota(harness, "cost", {"opportunity.cpu": "18"})
    pinned = exclusive("pinned", affinity=require(HOSTNAME, "n-small"))
    await harness.put_pod("pinned", **spec_of(pinned))
    assert await used(harness, "cost") == {"opportunity.cpu": "2"}
    await harness.put_pod("free", **spec_of(exclusive("free")))
    assert await used(harness, "cost") == {"opportunity.cpu": "18"}
    await bind(harness, "free", "n-small")
    assert await used(harness, "cost") == {"opportunity.cpu": "4"}
    await harness.client.delete(f"{CLUSTER}/namespaces/shop/pods/free")
    assert await used(harness, "cost") == {"opportunity.cpu": "2"}


async def test_a_placement_is_judged_by_what_it_may_cost_and_charged_what_it_does(
    harness: Harness,
) -> None:
    """K09: two small nodes are less than twice the largest one."""
    for name, cpu in (("n1", "2"), ("n2", "2"), ("n3", "4")):
        await harness.put(f"nodes/{name}", sized(name, cpu, "1Gi"))
    await harness.place(pod("blocks-n3", affinity=require(HOSTNAME, "n3")))
    await put_quota(harness, "cost", {"opportunity.cpu": "6"})
    answer = await harness.place(*(exclusive(f"alone-{i}") for i in range(3)))
    outcomes = [(each["outcome"], each["reason"]) for each in answer["results"]]
    assert outcomes == [("Placed", None), ("Placed", None), ("Denied", "QuotaExceeded")]
    assert await used(harness, "cost") == {"opportunity.cpu": "4"}


async def bind(harness: Harness, name: str, node_name: str) -> None:
    answer = await harness.client.post(
        f"{CLUSTER}/namespaces/shop/pods/{name}/binding", json={"target": {"name": node_name}}
    )
    assert answer.status_code == 200, answer.text


def spec_of(manifest: dict[str, Any]) -> dict[str, Any]:
    return manifest["spec"]


def priority_class(name: str, value: int, **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **fields,
    }


async def test_priority_classes_come_by_apply_and_resolve_priorities(
    over_each_store: Harness,
) -> None:
    harness = over_each_store
    items = [
        priority_class("high", 1000, description="first", preemptionPolicy="Never"),
        priority_class("system-node-critical", 2_000_001_000),
        pod("a", priorityClassName="high"),
        pod("b", priorityClassName="system-cluster-critical"),
    ]
    answer = await harness.client.post(f"{CLUSTER}/apply", json={"kind": "List", "items": items})
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert [each["field"] for each in told.pop("warnings")] == ["items[0].description"]
    assert told | {"revision": 0} == {
        "revision": 0,
        "created": 3,
        "changed": 0,
        "unchanged": 1,
        "deleted": 0,
    }
    cluster = (await harness.client.get(CLUSTER)).json()
    assert cluster["config"]["priorityClasses"] == {
        "high": {"value": 1000, "preemptionPolicy": "Never"}
    }
    assert await priority(harness, "a") == 1000
    assert await priority(harness, "b") == 2_000_000_000


async def priority(harness: Harness, name: str) -> int | None:
    answer = await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/{name}")
    return answer.json()["spec"].get("priority")


async def test_a_pod_keeps_the_priority_that_it_came_with(harness: Harness) -> None:
    await configure(harness, priorityClasses={"high": 10, "low": 1}, placePendingPods=False)
    await harness.put_pod("a", priorityClassName="high")
    await configure(harness, priorityClasses={"high": 20})
    await harness.put_pod("a", priorityClassName="high", nodeSelector={"a": "b"})
    assert await priority(harness, "a") == 10
    path = f"{CLUSTER}/namespaces/shop/pods/a"
    patched = await harness.client.patch(path, json={"spec": {"priorityClassName": "low"}})
    assert patched.json()["spec"]["priority"] == 1


async def test_a_placed_pod_is_the_same_when_it_is_sent_again_without_its_priority(
    harness: Harness,
) -> None:
    await configure(harness, priorityClasses={"high": 10})
    await harness.put_node("n1")
    sent = pod("a", priorityClassName="high")
    assert (await harness.place(sent))["results"][0]["outcome"] == "Placed"
    assert await priority(harness, "a") == 10
    await configure(harness, priorityClasses={"high": 20})
    assert (await harness.place(sent))["results"][0]["outcome"] == "AlreadyPlaced"
    assert (await try_pod(harness, sent)).status_code == 200


async def test_unknown_classes_and_priorities_of_ones_own_are_denied(harness: Harness) -> None:
    await configure(harness, priorityClasses={"high": 10})
    unknown = await try_pod(harness, pod("a", priorityClassName="none-such"))
    assert problem(unknown, 403) == "UnknownPriorityClass"
    other = await try_pod(harness, pod("a", priorityClassName="high", priority=11))
    assert problem(other, 403) == "PriorityDiffers"
    assert (await try_pod(harness, pod("a", priorityClassName="high", priority=10))).is_success
    fact = pod("b", priorityClassName="none-such", nodeName="n1")
    assert (await try_pod(harness, fact)).status_code == 201


async def spec_stored(harness: Harness, name: str) -> dict[str, Any]:
    answer = await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/{name}")
    fields = ("priorityClassName", "priority", "preemptionPolicy")
    return {name: value for name, value in spec_of(answer.json()).items() if name in fields}


DEFAULTS = {"common": {"value": 7, "globalDefault": True, "preemptionPolicy": "Never"}, "high": 10}
COMMON = {"priorityClassName": "common", "priority": 7, "preemptionPolicy": "Never"}


async def test_a_pod_that_names_no_class_gets_the_global_default(harness: Harness) -> None:
    await configure(harness, priorityClasses=DEFAULTS)
    await harness.put_node("n1")
    await harness.put_pod("written")
    await harness.place(pod("placed"))
    await harness.put_pod("high", priorityClassName="high")
    assert await spec_stored(harness, "written") == COMMON
    assert await spec_stored(harness, "placed") == COMMON
    assert await spec_stored(harness, "high") == {"priorityClassName": "high", "priority": 10}


async def test_the_global_default_is_for_new_pods_only(harness: Harness) -> None:
    await configure(harness, placePendingPods=False)
    await harness.put_node("n1")
    await harness.put_pod("a")
    observed = pod("observed", nodeName="n1")
    observed["metadata"]["uid"] = "8c1a5e0e-1111-4222-8333-000000000001"
    await configure(harness, priorityClasses=DEFAULTS)
    await harness.put_pod("a", nodeSelector={"a": "b"})
    await try_pod(harness, observed)
    assert await spec_stored(harness, "a") == {}
    assert await spec_stored(harness, "observed") == {}


async def test_a_pod_with_the_global_default_is_the_same_when_it_is_sent_again(
    harness: Harness,
) -> None:
    await configure(harness, priorityClasses=DEFAULTS)
    await harness.put_node("n1")
    sent = pod("a")
    assert (await harness.place(sent))["results"][0]["outcome"] == "Placed"
    assert (await harness.place(sent))["results"][0]["outcome"] == "AlreadyPlaced"
    written = await try_pod(harness, sent)
    assert written.status_code == 200
    assert await spec_stored(harness, "a") == COMMON


async def test_a_preemption_policy_that_contradicts_the_class_is_denied(harness: Harness) -> None:
    await configure(harness, priorityClasses=DEFAULTS)
    for stated in (
        {"priorityClassName": "high", "preemptionPolicy": "Never"},
        {"priorityClassName": "common", "preemptionPolicy": "PreemptLowerPriority"},
        {"preemptionPolicy": "PreemptLowerPriority"},
    ):
        answer = await try_pod(harness, pod("a", **stated))
        assert problem(answer, 403) == "PreemptionPolicyDiffers"
    assert problem(await try_pod(harness, pod("a", priority=8)), 403) == "PriorityDiffers"
    assert (await try_pod(harness, pod("a", **COMMON))).is_success


async def test_a_pod_that_changes_its_class_gets_the_policy_of_the_new_one(
    harness: Harness,
) -> None:
    await configure(harness, priorityClasses=DEFAULTS, placePendingPods=False)
    await harness.put_pod("a")
    path = f"{CLUSTER}/namespaces/shop/pods/a"
    await harness.client.patch(path, json={"spec": {"priorityClassName": "high"}})
    assert await spec_stored(harness, "a") == {
        "priorityClassName": "high",
        "priority": 10,
        "preemptionPolicy": "PreemptLowerPriority",
    }


async def test_only_one_class_is_the_global_default(harness: Harness) -> None:
    items = [
        priority_class("common", 7, globalDefault=True),
        priority_class("other", 8, globalDefault=True),
    ]
    answer = await harness.client.post(f"{CLUSTER}/apply", json={"kind": "List", "items": items})
    assert problem(answer, 422) == "InvalidManifest"
    (error,) = answer.json()["errors"]
    assert error["field"] == "items[1].globalDefault"
    assert "common is already marked as default" in error["message"]


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("high", 1_000_000_001, "items[0].value"),
        ("system-node-critical", 5, "items[0].value"),
        ("system-mine", 5, "items[0].metadata.name"),
        ("high", "5", "items[0].value"),
    ],
)
async def test_wrong_priority_classes_are_refused(
    harness: Harness, name: str, value: Any, field: str
) -> None:
    items = [priority_class(name, value)]
    answer = await harness.client.post(f"{CLUSTER}/apply", json={"kind": "List", "items": items})
    assert problem(answer, 422) == "InvalidManifest"
    assert [each["field"] for each in answer.json()["errors"]] == [field]
