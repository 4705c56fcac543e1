"""Nodes report that they are there, over HTTP: one or many with a request, and nothing is committed."""

from typing import Any

import pytest

from tests.api.harness import CLUSTER, Harness, problem

LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "n1", "namespace": "kube-node-lease"},
    "spec": {
        "holderIdentity": "n1",
        "leaseDurationSeconds": 40,
        "renewTime": "2020-01-01T00:00:00.000000Z",
    },
}


async def revision(harness: Harness) -> int:
    return int((await harness.client.get(CLUSTER)).json()["revision"])


async def test_a_node_reports_and_the_cluster_does_not_change(over_each_store: Harness):
    harness = over_each_store
    await harness.put_node("n1")
    before, lease = await revision(harness), f"{CLUSTER}/nodes/n1/lease"
    assert problem(await harness.client.get(lease), 404) == "NotFound"
    first = await harness.client.put(lease)
    assert first.status_code == 200, first.text
    assert first.headers["moorage-revision"] == str(before)
    told = first.json()
    assert (told["kind"], told["metadata"]["name"]) == ("Lease", "n1")
    again = await harness.client.put(lease, json=LEASE)
    assert again.json()["spec"]["renewTime"] > told["spec"]["renewTime"]
    read = (await harness.client.get(lease)).json()
    assert again.json()["spec"]["renewTime"] == read["spec"]["renewTime"] > "2026"
    assert read["spec"]["leaseDurationSeconds"] == 40
    assert await revision(harness) == before
    rows = await harness.client.get("/v1/audit")
    assert "renewNodeLease" not in rows.text


@pytest.mark.parametrize("form", ["nodes", "items"])
async def test_many_nodes_report_with_one_request(over_each_store: Harness, form: str):
    harness = over_each_store
    for name in ("n1", "n2"):
        await harness.put_node(name)
    named = ["n1", "n2", "n1", "n9"]
    leases = [LEASE | {"metadata": {"name": name}} for name in named]
    body = {"nodes": named} if form == "nodes" else {"kind": "LeaseList", "items": leases}
    answer = await harness.client.put(f"{CLUSTER}/node-leases", json=body)
    assert answer.json() == {"renewed": 2, "unknown": ["n9"]}
    for name in ("n1", "n2"):
        assert (await harness.client.get(f"{CLUSTER}/nodes/{name}/lease")).status_code == 200
    gone = await harness.client.get(f"{CLUSTER}/nodes/n9/lease")
    assert problem(gone, 404) == "NotFound"


async def test_who_is_not_there_cannot_report(over_each_store: Harness):
    harness = over_each_store
    answer = await harness.client.put(f"{CLUSTER}/nodes/n1/lease")
    assert problem(answer, 404) == "NotFound"
    assert answer.json()["detail"] == "There is no Node n1."
    elsewhere = await harness.client.put("/v1/clusters/other/nodes/n1/lease")
    assert problem(elsewhere, 404) == "NotFound"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"nodes": ["n1"], "items": []}, ""),
        ({}, ""),
        ({"nodes": ["N 1"]}, "nodes[0]"),
        ({"nodes": "n1"}, "nodes"),
        ({"node": ["n1"]}, "node"),
        ({"items": [{"kind": "Lease"}]}, "items[0].metadata"),
        ({"items": [{"metadata": {}}]}, "items[0].metadata.name"),
        ({"items": [LEASE | {"kind": "Node"}]}, "items[0].kind"),
        ({"nodes": [f"n{each}" for each in range(10_001)]}, "nodes"),
    ],
)
async def test_a_wrong_report_is_refused_with_the_field(
    harness: Harness, body: dict[str, Any], field: str
):
    answer = await harness.client.put(f"{CLUSTER}/node-leases", json=body)
    assert problem(answer, 422) == "InvalidManifest"
    assert field in [each["field"] for each in answer.json()["errors"]]


async def test_the_lease_of_another_node_is_refused(harness: Harness):
    await harness.put_node("n2")
    answer = await harness.client.put(f"{CLUSTER}/nodes/n2/lease", json=LEASE)
    assert problem(answer, 422) == "InvalidManifest"
    assert answer.json()["errors"][0]["field"] == "metadata.name"
