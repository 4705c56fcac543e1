"""Quotas, admission and priority over HTTP, as the design documents ask for them."""

import asyncio
import json
from typing import Any

import pytest

from tests.api.following import watched
from tests.api.harness import CLUSTER, Harness, pod, problem

QUOTA = "namespaces/{}/resourcequotas/{}"


def quota(name: str, hard: dict[str, str], namespace: str = "shop", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"hard": hard, **spec},
    }


async def put_quota(
    harness: Harness, name: str, hard: dict[str, str], namespace: str = "shop", **spec: Any
) -> dict[str, Any]:
    sent = quota(name, hard, namespace, **spec)
    return (await harness.put(QUOTA.format(namespace, name), sent)).json()


async def used(harness: Harness, name: str, namespace: str = "shop") -> dict[str, str]:
    answer = await harness.client.get(f"{CLUSTER}/{QUOTA.format(namespace, name)}")
    assert answer.status_code == 200, answer.text
    return answer.json()["status"]["used"]


async def try_pod(harness: Harness, manifest: dict[str, Any]) -> Any:
    metadata = manifest["metadata"]
    path = f"{CLUSTER}/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    return await harness.client.put(path, json=manifest)


async def configure(harness: Harness, **config: Any) -> None:
    answer = await harness.client.patch(CLUSTER, json={"config": config})
    assert answer.status_code == 200, answer.text


async def test_quotas_are_objects_like_any_other(over_each_store: Harness) -> None:
    harness = over_each_store
    created = await put_quota(harness, "compute", {"pods": "2", "requests.memory": "4Gi"})
    assert created["status"] == {
        "hard": {"pods": "2", "requests.memory": "4Gi"},
        "used": {"pods": "0", "requests.memory": "0"},
    }
    await put_quota(harness, "other", {"pods": "1"}, namespace="bakery")
    everywhere = (await harness.client.get(f"{CLUSTER}/resourcequotas")).json()
    assert [each["metadata"]["namespace"] for each in everywhere["items"]] == ["bakery", "shop"]
    assert everywhere["kind"] == "ResourceQuotaList"
    inside = (await harness.client.get(f"{CLUSTER}/namespaces/shop/resourcequotas")).json()
    assert [each["metadata"]["name"] for each in inside["items"]] == ["compute"]
    patched = await harness.client.patch(
        f"{CLUSTER}/{QUOTA.format('shop', 'compute')}", json={"spec": {"hard": {"pods": "3"}}}
    )
    assert patched.json()["spec"]["hard"] == {"pods": "3", "requests.memory": "4Gi"}
    deleted = await harness.client.delete(f"{CLUSTER}/{QUOTA.format('shop', 'compute')}")
    assert deleted.json()["status"]["used"]["pods"] == "0"
    gone = await harness.client.get(f"{CLUSTER}/{QUOTA.format('shop', 'compute')}")
    assert problem(gone, 404) == "NotFound"


async def test_lists_of_quotas_have_pages_and_filters(harness: Harness) -> None:
    for name in ("a", "b", "c"):
        await put_quota(harness, name, {"pods": "1"})
    first = (await harness.client.get(f"{CLUSTER}/resourcequotas?limit=2")).json()
    assert [each["metadata"]["name"] for each in first["items"]] == ["a", "b"]
    token = first["metadata"]["continue"]
    rest = (await harness.client.get(f"{CLUSTER}/resourcequotas?limit=2&continue={token}")).json()
    assert [each["metadata"]["name"] for each in rest["items"]] == ["c"]
    found = await harness.client.get(f"{CLUSTER}/resourcequotas?fieldSelector=metadata.name=b")
    assert [each["metadata"]["name"] for each in found.json()["items"]] == ["b"]


async def test_a_wrong_quota_is_refused_with_every_field(harness: Harness) -> None:
    sent = quota("q", {"cows": "1", "pods": "1.5"}, scopes=["BestEffort", "NotBestEffort"])
    answer = await harness.client.put(f"{CLUSTER}/{QUOTA.format('shop', 'q')}", json=sent)
    assert problem(answer, 422) == "InvalidManifest"
    fields = {each["field"] for each in answer.json()["errors"]}
    assert {"spec.hard[cows]", "spec.hard[pods]", "spec.scopes"} <= fields


async def test_a_pod_beyond_the_quota_is_denied_in_kubernetes_words(harness: Harness) -> None:
    await put_quota(harness, "compute", {"requests.cpu": "1500m", "pods": "10"})
    assert (await try_pod(harness, pod("web-0"))).status_code == 201
    refused = await try_pod(harness, pod("web-1"))
    assert problem(refused, 403) == "QuotaExceeded"
    assert refused.json()["detail"] == (
        "exceeded quota: compute, requested: requests.cpu=1, used: requests.cpu=1, "
        "limited: requests.cpu=1500m"
    )
    assert await used(harness, "compute") == {"requests.cpu": "1", "pods": "1"}


async def test_a_container_says_how_much_it_needs_of_what_is_limited(harness: Harness) -> None:
    await put_quota(harness, "compute", {"limits.memory": "1Gi"})
    refused = await try_pod(harness, pod("web-0"))
    assert problem(refused, 403) == "QuotaExceeded"
    assert refused.json()["detail"] == "failed quota: compute: must specify limits.memory for: c"


async def test_used_follows_pods_as_they_come_finish_and_go(over_each_store: Harness) -> None:
    harness = over_each_store
    await put_quota(harness, "compute", {"pods": "2", "cpu": "8"})
    await harness.put_pod("a")
    await harness.put_pod("b")
    assert await used(harness, "compute") == {"pods": "2", "cpu": "2"}
    assert problem(await try_pod(harness, pod("c")), 403) == "QuotaExceeded"
    finished = pod("a") | {"status": {"phase": "Succeeded"}}
    await harness.put("namespaces/shop/pods/a", finished)
    assert await used(harness, "compute") == {"pods": "1", "cpu": "1"}
    await harness.client.delete(f"{CLUSTER}/namespaces/shop/pods/b")
    assert await used(harness, "compute") == {"pods": "0", "cpu": "0"}


async def test_a_quota_that_comes_later_counts_what_is_there(harness: Harness) -> None:
    await harness.put_pod("a")
    assert (await put_quota(harness, "late", {"pods": "1"}))["status"]["used"] == {"pods": "1"}
    assert problem(await try_pod(harness, pod("b")), 403) == "QuotaExceeded"


async def test_a_patch_that_raises_requests_is_charged(harness: Harness) -> None:
    await put_quota(harness, "compute", {"requests.cpu": "2"})
    await harness.put_node("n1")
    await harness.place(pod("web-0"))
    path = f"{CLUSTER}/namespaces/shop/pods/web-0"

    async def ask_for(cpu: str) -> Any:
        container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
        return await harness.client.patch(path, json={"spec": {"containers": [container]}})

    assert (await ask_for("2")).status_code == 200
    assert await used(harness, "compute") == {"requests.cpu": "2"}
    assert problem(await ask_for("3"), 403) == "QuotaExceeded"
    assert await used(harness, "compute") == {"requests.cpu": "2"}
    assert (await ask_for("500m")).status_code == 200
    assert await used(harness, "compute") == {"requests.cpu": "500m"}


async def test_a_pod_that_arrives_with_its_node_is_charged_but_never_refused(
    harness: Harness,
) -> None:
    await put_quota(harness, "compute", {"pods": "1"})
    await harness.put_pod("a", nodeName="n1")
    await harness.put_pod("b", nodeName="n1")
    assert await used(harness, "compute") == {"pods": "2"}
    assert problem(await try_pod(harness, pod("c")), 403) == "QuotaExceeded"


async def test_apply_is_charged_whole_or_line_by_line(harness: Harness) -> None:
    items = [quota("compute", {"pods": "1"}), pod("a"), pod("b")]
    answer = await harness.client.post(f"{CLUSTER}/apply", json={"kind": "List", "items": items})
    assert problem(answer, 403) == "QuotaExceeded"
    assert answer.json()["detail"].startswith("items[2]: exceeded quota: compute, ")
    lines = "\n".join(json.dumps(each) for each in items)
    answer = await harness.client.post(
        f"{CLUSTER}/apply", content=lines, headers={"content-type": "application/x-ndjson"}
    )
    results = [json.loads(line) for line in answer.text.splitlines()]
    assert [each["result"] for each in results] == ["Created", "Created", "Denied"]
    assert results[2]["errors"][0]["message"].startswith("QuotaExceeded: exceeded quota: compute")
    assert await used(harness, "compute") == {"pods": "1"}


async def test_placements_are_charged_one_by_one_and_dry_runs_leave_nothing(
    harness: Harness,
) -> None:
    await put_quota(harness, "compute", {"pods": "2"})
    await harness.put_node("n1")
    pods = [pod(f"web-{i}") for i in range(3)]
    for dry_run in (True, False):
        answer = await harness.place(*pods, dryRun=dry_run)
        outcomes = [(each["outcome"], each["reason"]) for each in answer["results"]]
        assert outcomes == [("Placed", None), ("Placed", None), ("Denied", "QuotaExceeded")]
        assert await used(harness, "compute") == {"pods": "0" if dry_run else "2"}
    again = await harness.place(*pods[:2])
    assert [each["outcome"] for each in again["results"]] == ["AlreadyPlaced"] * 2


async def test_a_group_is_charged_as_a_whole(harness: Harness) -> None:
    await configure(harness, placePendingPods=False)
    await put_quota(harness, "compute", {"pods": "2"})
    await harness.put_node("n1")
    pods = [pod(f"web-{i}") for i in range(3)]
    for queue, kept in (("Reject", "0"), ("Queue", "2")):
        answer = await harness.place(*pods, policy="AllOrNothing", onUnschedulable=queue)
        outcomes = [each["outcome"] for each in answer["results"]]
        assert outcomes == ["GroupRefused", "GroupRefused", "Denied"]
        assert answer["results"][2]["reason"] == "QuotaExceeded"
        assert answer["group"]["message"].startswith("exceeded quota: compute")
        assert await used(harness, "compute") == {"pods": kept}
    answer = await harness.place(*pods[:2], policy="AllOrNothing")
    assert {each["nodeName"] for each in answer["results"]} == {"n1"}
    assert await used(harness, "compute") == {"pods": "2"}


async def test_queued_pods_are_charged_while_they_wait(harness: Harness) -> None:
    await put_quota(harness, "compute", {"pods": "1"})
    answer = await harness.place(pod("a"), pod("b"), onUnschedulable="Queue")
    assert [each["outcome"] for each in answer["results"]] == ["Queued", "Denied"]
    assert await used(harness, "compute") == {"pods": "1"}


async def test_deleting_a_namespace_deletes_its_quotas(harness: Harness) -> None:
    await harness.put("namespaces/shop", {"metadata": {"name": "shop"}})
    await put_quota(harness, "compute", {"pods": "1"})
    await harness.put_pod("a")
    await harness.client.delete(f"{CLUSTER}/namespaces/shop")
    assert (await harness.client.get(f"{CLUSTER}/resourcequotas")).json()["items"] == []
    assert (await try_pod(harness, pod("b"))).status_code == 201


@pytest.mark.parametrize("scope", ["CrossNamespaceAffinity", "CrossNamespacePodAffinity"])
async def test_the_quota_scope_of_cross_namespace_terms(harness: Harness, scope: str) -> None:
    """K04, K05: the proposal's own example, under its proposed and its shipped name."""
    selector = {"matchExpressions": [{"scopeName": scope}]}
    shown = await put_quota(
        harness, "disable-cross-namespace-affinity", {"pods": "0"}, "foo-ns", scopeSelector=selector
    )
    assert shown["spec"]["scopeSelector"]["matchExpressions"] == [
        {"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}
    ]
    refused = await try_pod(harness, pod("a", "foo-ns", affinity=crossing(namespaces=["x"])))
    assert problem(refused, 403) == "QuotaExceeded"
    assert "exceeded quota: disable-cross-namespace-affinity" in refused.json()["detail"]
    assert (await try_pod(harness, pod("b", "foo-ns"))).status_code == 201
    elsewhere = pod("a", "bar-ns", affinity=crossing(namespaces=["x"]))
    assert (await try_pod(harness, elsewhere)).status_code == 201


def crossing(**fields: Any) -> dict[str, Any]:
    """Preferred affinity with one term."""
    term = {"topologyKey": "zone", "labelSelector": {}, **fields}
    weighted = {"weight": 1, "podAffinityTerm": term}
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}


async def test_limited_resources_are_denied_where_no_quota_covers_them(harness: Harness) -> None:
    """K06: by default a term is legal; limited, it needs a quota with the scope and room."""
    crossing_pod = [pod(name, affinity=crossing(namespaceSelector={})) for name in "abcd"]
    assert (await try_pod(harness, crossing_pod[3])).status_code == 201
    await harness.client.delete(f"{CLUSTER}/namespaces/shop/pods/d")
    scope = {"scopeName": "CrossNamespaceAffinity"}
    await configure(harness, limitedResources=[{"resource": "pods", "matchScopes": [scope]}])
    refused = await try_pod(harness, crossing_pod[0])
    assert problem(refused, 403) == "QuotaExceeded"
    assert refused.json()["detail"] == (
        "insufficient quota to match these scopes: [{CrossNamespacePodAffinity Exists []}]"
    )
    assert (await try_pod(harness, pod("plain"))).status_code == 201
    selector = {"matchExpressions": [scope]}
    await put_quota(harness, "crossing", {"pods": "2"}, scopeSelector=selector)
    assert (await try_pod(harness, crossing_pod[0])).status_code == 201
    assert (await try_pod(harness, crossing_pod[1])).status_code == 201
    assert problem(await try_pod(harness, crossing_pod[2]), 403) == "QuotaExceeded"
    assert await used(harness, "crossing") == {"pods": "2"}


async def test_limited_resources_without_scopes_need_a_quota_on_them(harness: Harness) -> None:
    await configure(harness, limitedResources=[{"resource": "requests.cpu"}])
    refused = await try_pod(harness, pod("a"))
    assert refused.json()["detail"] == "insufficient quota to consume: requests.cpu"
    await put_quota(harness, "compute", {"requests.cpu": "1"})
    assert (await try_pod(harness, pod("a"))).status_code == 201


@pytest.mark.parametrize(
    ("fields", "counts"),
    [
        ({}, False),
        ({"namespaces": []}, False),
        ({"namespaces": ["shop"]}, True),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"a": "b"}}}, True),
        ({"namespaces": [], "namespaceSelector": {}}, True),
    ],
)
async def test_what_counts_as_a_cross_namespace_term(
    harness: Harness, fields: dict[str, Any], *, counts: bool
) -> None:
    """K07: a list that is not empty, if only of the own namespace, or any selector."""
    await put_quota(harness, "none", {"pods": "0"}, scopes=["CrossNamespacePodAffinity"])
    answer = await try_pod(harness, pod("a", affinity=crossing(**fields)))
    assert answer.status_code == (403 if counts else 201)


async def test_an_empty_list_counts_where_it_means_all_namespaces(harness: Harness) -> None:
    """K07 under `emptyNamespaceList: AllNamespaces`."""
    await put_quota(harness, "none", {"pods": "0"}, scopes=["CrossNamespacePodAffinity"])
    await harness.put_pod("before", affinity=crossing(namespaces=[]))
    assert await used(harness, "none") == {"pods": "0"}
    await configure(harness, emptyNamespaceList="AllNamespaces")
    assert await used(harness, "none") == {"pods": "1"}
    refused = await try_pod(harness, pod("a", affinity=crossing(namespaces=[])))
    assert problem(refused, 403) == "QuotaExceeded"


async def test_the_other_scopes(harness: Harness) -> None:
    await configure(harness, priorityClasses={"high": 10, "low": 1})
    names = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "PriorityClass")
    for name in names:
        await put_quota(harness, name.lower(), {"pods": "9"}, scopes=[name])
    for operator in ("In", "NotIn"):
        scope = {"scopeName": "PriorityClass", "operator": operator, "values": ["high"]}
        selector = {"matchExpressions": [scope]}
        await put_quota(harness, f"high-{operator.lower()}", {"pods": "9"}, scopeSelector=selector)
    await harness.put_pod("burst", containers=[{"name": "c"}])
    await harness.put_pod("job", activeDeadlineSeconds=60, priorityClassName="high")
    counts = {
        name: (await used(harness, name))["pods"]
        for name in (*map(str.lower, names), "high-in", "high-notin")
    }
    assert counts == {
        "besteffort": "1",
        "notbesteffort": "1",
        "terminating": "1",
        "notterminating": "1",
        "priorityclass": "1",
        "high-in": "1",
        "high-notin": "1",
    }


async def test_parallel_creators_never_overrun_a_quota(over_each_store: Harness) -> None:
    await put_quota(over_each_store, "compute", {"pods": "5"})
    answers = await asyncio.gather(*(try_pod(over_each_store, pod(f"p{i}")) for i in range(16)))
    assert sorted(each.status_code for each in answers) == [201] * 5 + [403] * 11
    assert await used(over_each_store, "compute") == {"pods": "5"}


async def test_used_is_exact_for_the_revision_of_the_answer(harness: Harness) -> None:
    await configure(harness, placePendingPods=False)
    await put_quota(harness, "compute", {"pods": "9"})
    written = await try_pod(harness, pod("a"))
    read = await harness.client.get(f"{CLUSTER}/{QUOTA.format('shop', 'compute')}")
    assert read.headers["moorage-revision"] == written.headers["moorage-revision"]
    assert read.json()["metadata"]["resourceVersion"] == "3"
    conditional = await harness.client.get(
        f"{CLUSTER}/{QUOTA.format('shop', 'compute')}",
        headers={"if-none-match": read.headers["etag"]},
    )
    assert conditional.status_code == 200, "the tag is the quota's; what is used is newer"


async def test_watches_and_exports_show_quotas_without_what_is_used(harness: Harness) -> None:
    await put_quota(harness, "compute", {"pods": "9"})
    exported = (await harness.client.get(f"{CLUSTER}/export")).json()
    (found,) = [each for each in exported["items"] if each["kind"] == "ResourceQuota"]
    assert "status" not in found
    again = await harness.client.post(f"{CLUSTER}/apply", json=exported)
    assert again.json()["unchanged"] == 1
    (event, _) = await watched(harness, kind="ResourceQuota")
    assert event.data["kind"] == "ResourceQuota"
    assert "status" not in event.data["object"]


async def test_a_pod_that_is_bound_or_asked_about_again_is_not_charged_twice(
    harness: Harness,
) -> None:
    await configure(harness, placePendingPods=False)
    await put_quota(harness, "compute", {"pods": "1"})
    await harness.put_node("n1")
    await harness.put_pod("a")
    answer = await harness.client.post(
        f"{CLUSTER}/placements", json={"podRefs": [{"namespace": "shop", "name": "a"}]}
    )
    assert answer.json()["results"][0]["outcome"] == "Placed"
    assert (await try_pod(harness, pod("a"))).status_code == 200
    await put_quota(harness, "compute", {"pods": "0"})
    path = f"{CLUSTER}/namespaces/shop/pods/a"
    labelled = await harness.client.patch(path, json={"metadata": {"labels": {"a": "b"}}})
    assert labelled.status_code == 200, "what is over the limit already may still change"
    assert await used(harness, "compute") == {"pods": "1"}
