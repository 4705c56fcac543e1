"""Writes with `dryRun` are answered as usual, and change nothing."""

from typing import Any

import pytest

from tests.api.harness import CLUSTER, Harness, node, pod, problem

POD = f"{CLUSTER}/namespaces/shop/pods/web-0"
PODS = f"{CLUSTER}/namespaces/shop/pods"
DRY = "dryRun=true"


async def state(harness: Harness) -> tuple[int, list[Any]]:
    """The revision, and all that is stored."""
    cluster = (await harness.client.get(CLUSTER)).json()
    return cluster["revision"], (await harness.client.get(f"{CLUSTER}/export")).json()["items"]


async def stocked(harness: Harness) -> tuple[int, list[Any]]:
    """One node, a pod on it, and one that waits for somebody to place it."""
    await harness.configure(placePendingPods=False)
    await harness.put("namespaces/shop", {"metadata": {"name": "shop"}})
    await harness.put_node("n1")
    await harness.put_pod("web-0")
    await harness.place(pod("web-1"))
    return await state(harness)


WRITES = {
    "create": ("PUT", f"{PODS}/new", pod("new"), 201),
    "replace": ("PUT", POD, pod("web-0", nodeName="n1"), 200),
    "patch": ("PATCH", POD, {"metadata": {"labels": {"a": "b"}}}, 200),
    "delete": ("DELETE", POD, None, 200),
    "delete a namespace": ("DELETE", f"{CLUSTER}/namespaces/shop", None, 200),
    "put a node": ("PUT", f"{CLUSTER}/nodes/n2", node("n2"), 201),
    "delete a node": ("DELETE", f"{CLUSTER}/nodes/n1", None, 200),
    "apply": ("POST", f"{CLUSTER}/apply", {"kind": "List", "items": [node("n3")]}, 200),
    "bind": ("POST", f"{POD}/binding", {"target": {"name": "n1"}}, 200),
    "evict": ("POST", f"{PODS}/web-1/eviction", {}, 201),
}


@pytest.mark.parametrize("kind", WRITES)
async def test_a_dry_run_is_answered_and_changes_nothing(over_each_store: Harness, kind: str):
    method, path, body, status = WRITES[kind]
    before = await stocked(over_each_store)
    dry = await over_each_store.client.request(
        method, f"{path}?{DRY}", json=body, headers={"idempotency-key": "k"}
    )
    assert dry.status_code == status, dry.text
    assert dry.headers["moorage-revision"] == str(before[0])
    assert await state(over_each_store) == before
    real = await over_each_store.client.request(
        method, path, json=body, headers={"idempotency-key": "k"}
    )
    assert real.status_code == status, real.text
    assert real.headers["moorage-revision"] != dry.headers["moorage-revision"]
    assert told(dry.json()) == told(real.json())
    if "metadata" in dry.json():
        assert "resourceVersion" not in dry.json()["metadata"]
        assert "etag" not in dry.headers


def told(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what is drawn or counted anew for each request."""
    metadata = answer.get("metadata", {})
    for anew in ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"):
        metadata.pop(anew, None)
    for condition in answer.get("status", {}).get("conditions", []):
        condition.pop("lastTransitionTime", None)
    answer.pop("revision", None)
    return answer


async def test_a_dry_run_is_refused_as_the_write_would_be(over_each_store: Harness):
    before = await stocked(over_each_store)
    client = over_each_store.client
    changed = pod("web-1", nodeSelector={"zone": "x"})
    differs = await client.put(f"{PODS}/web-1?{DRY}", json=changed)
    assert problem(differs, 422) == "InvalidManifest"
    gone = await client.delete(f"{PODS}/none?{DRY}")
    assert problem(gone, 404) == "NotFound"
    stale = await client.delete(f"{POD}?{DRY}", headers={"if-match": '"1"'})
    assert problem(stale, 412) == "PreconditionFailed"
    assert await state(over_each_store) == before


async def test_a_deletion_of_many_tells_what_it_would_delete(over_each_store: Harness):
    before = await stocked(over_each_store)
    dry = (await over_each_store.client.delete(f"{PODS}?all=true&{DRY}")).json()
    assert [each["name"] for each in dry["results"]] == ["web-0", "web-1"]
    assert (dry["deleted"], dry["commits"], dry["revision"]) == (2, [], before[0])
    assert await state(over_each_store) == before


@pytest.mark.parametrize("path", [POD, f"{CLUSTER}/apply"])
async def test_a_word_that_is_neither_true_nor_false_writes_nothing(harness: Harness, path: str):
    method = "PUT" if path == POD else "POST"
    body = pod("web-0") if path == POD else {"kind": "List", "items": []}
    answer = await harness.client.request(method, f"{path}?dryRun=yes", json=body)
    assert problem(answer, 400) == "MalformedRequest"
    assert (await harness.client.get(POD)).status_code == 404


async def test_lines_have_no_dry_run(harness: Harness):
    headers = {"content-type": "application/x-ndjson"}
    answer = await harness.client.post(
        f"{CLUSTER}/apply?{DRY}", content=b'{"kind":"Node"}\n', headers=headers
    )
    assert problem(answer, 400) == "MalformedRequest"
    assert answer.json()["errors"][0]["field"] == "dryRun"
