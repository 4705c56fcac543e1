"""Objects over HTTP: what is put comes back, and every precondition holds."""

import pytest

from tests.api.harness import CLUSTER, Harness, node, pod, problem

NODE = f"{CLUSTER}/nodes/n1"
POD = f"{CLUSTER}/namespaces/shop/pods/web-0"


async def test_put_creates_then_replaces(over_each_store: Harness) -> None:
    client = over_each_store.client
    created = await client.put(NODE, json=node("n1", zone="a"))
    assert created.status_code == 201
    replaced = await client.put(NODE, json=node("n1", zone="b"))
    assert replaced.status_code == 200
    first, second = created.json()["metadata"], replaced.json()["metadata"]
    assert first["uid"] == second["uid"]
    assert int(first["resourceVersion"]) < int(second["resourceVersion"])
    read = await client.get(NODE)
    assert read.json() == replaced.json()
    assert read.headers["etag"] == f'"{second["resourceVersion"]}"'
    assert read.headers["moorage-revision"] == second["resourceVersion"]


async def test_get_returns_a_pod_as_sent_and_completed(over_each_store: Harness) -> None:
    sent = pod("web-0", hostNetwork=True, priorityClassName="", nodeSelector=None)
    sent["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "500m"}}
    sent["metadata"]["annotations"] = {"note": "kept"}
    answer = await over_each_store.client.put(POD, json=sent)
    assert answer.status_code == 201, answer.text
    read = (await over_each_store.client.get(POD)).json()
    assert list(read)[:3] == ["apiVersion", "kind", "metadata"]
    assert next(iter(read["metadata"])) == "resourceVersion"
    assert read["metadata"]["annotations"] == {"note": "kept"}
    assert read["metadata"]["creationTimestamp"].endswith("Z")
    assert read["spec"]["hostNetwork"] is True
    assert read["spec"]["nodeSelector"] is None
    assert read["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m"}


async def test_the_path_completes_a_manifest(harness: Harness) -> None:
    body = {"spec": {"containers": [{"name": "c"}]}}
    answer = await harness.client.put(POD, json=body)
    assert answer.status_code == 201, answer.text
    metadata = answer.json()["metadata"]
    assert (metadata["namespace"], metadata["name"]) == ("shop", "web-0")


async def test_a_manifest_must_not_contradict_its_path(harness: Harness) -> None:
    answer = await harness.client.put(POD, json=pod("other", namespace="elsewhere"))
    assert problem(answer, 422) == "InvalidManifest"
    fields = {error["field"] for error in answer.json()["errors"]}
    assert fields == {"metadata.name", "metadata.namespace"}


async def test_a_stale_resource_version_conflicts(over_each_store: Harness) -> None:
    created = (await over_each_store.put_node("n1")).json()
    stale = {**created, "spec": {"unschedulable": True}}
    assert (await over_each_store.client.put(NODE, json=stale)).status_code == 200
    answer = await over_each_store.client.put(NODE, json=stale)
    assert problem(answer, 409) == "RevisionConflict"


async def test_if_match_is_compared_with_the_stored_object(over_each_store: Harness) -> None:
    client = over_each_store.client
    etag = (await over_each_store.put_node("n1")).headers["etag"]
    body = node("n1", zone="b")
    for wrong in ('"999999"', 'W/"1"', f"W/{etag}"):
        answer = await client.put(NODE, json=body, headers={"if-match": wrong})
        assert problem(answer, 412) == "PreconditionFailed"
    answer = await client.put(NODE, json=body, headers={"if-match": f'"x", {etag}'})
    assert answer.status_code == 200
    gone = await client.delete(f"{CLUSTER}/nodes/absent", headers={"if-match": "*"})
    assert problem(gone, 404) == "NotFound"


@pytest.mark.parametrize("value", ["1", '"1', '"a" "b"', ""])
async def test_a_malformed_if_match_is_refused(harness: Harness, value: str) -> None:
    answer = await harness.client.delete(NODE, headers={"if-match": value})
    assert problem(answer, 400) == "MalformedRequest"


async def test_get_answers_304_to_who_has_it(harness: Harness) -> None:
    etag = (await harness.put_node("n1")).headers["etag"]
    answer = await harness.client.get(NODE, headers={"if-none-match": etag})
    assert (answer.status_code, answer.content) == (304, b"")
    assert answer.headers["etag"] == etag
    other = await harness.client.get(NODE, headers={"if-none-match": '"0"'})
    assert other.status_code == 200


async def test_delete_answers_with_the_object(over_each_store: Harness) -> None:
    put = await over_each_store.put_node("n1")
    answer = await over_each_store.client.delete(NODE)
    assert answer.status_code == 200
    assert answer.json()["metadata"]["uid"] == put.json()["metadata"]["uid"]
    assert problem(await over_each_store.client.get(NODE), 404) == "NotFound"
    assert problem(await over_each_store.client.delete(NODE), 404) == "NotFound"


async def test_delete_takes_a_uid_as_its_precondition(harness: Harness) -> None:
    """P17: who confirms that a pod is gone means that very pod."""
    uid = (await harness.put_node("n1")).json()["metadata"]["uid"]

    async def delete(expected: str):
        body = {"kind": "DeleteOptions", "preconditions": {"uid": expected}}
        return await harness.client.request("DELETE", NODE, json=body)

    assert problem(await delete("another"), 409) == "RevisionConflict"
    assert (await delete(uid)).status_code == 200


PATCHES = {
    "application/merge-patch+json": {"metadata": {"labels": {"zone": "b", "old": None}}},
    "application/json": {"metadata": {"labels": {"zone": "b", "old": None}}},
    "application/strategic-merge-patch+json": {"metadata": {"labels": {"zone": "b", "old": None}}},
    "application/json-patch+json": [
        {"op": "replace", "path": "/metadata/labels/zone", "value": "b"},
        {"op": "remove", "path": "/metadata/labels/old"},
    ],
}


@pytest.mark.parametrize("content_type", PATCHES)
async def test_each_kind_of_patch(over_each_store: Harness, content_type: str) -> None:
    await over_each_store.put_node("n1", zone="a", old="x")
    answer = await over_each_store.client.patch(
        NODE,
        json=PATCHES[content_type],
        headers={"content-type": content_type},
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["metadata"]["labels"] == {"zone": "b"}


async def test_a_patch_of_nothing_is_not_found(harness: Harness) -> None:
    answer = await harness.client.patch(NODE, json={"spec": {}})
    assert problem(answer, 404) == "NotFound"


async def test_an_unknown_cluster_is_not_found(over_each_store: Harness) -> None:
    client = over_each_store.client
    for path in ("nodes", "nodes/n1", "export", "topology?key=zone"):
        assert problem(await client.get(f"/v1/clusters/none/{path}"), 404) == "NotFound"
    put = await client.put("/v1/clusters/none/nodes/n1", json=node("n1"))
    assert problem(put, 404) == "NotFound"


async def test_deleting_a_namespace_deletes_its_pods(over_each_store: Harness) -> None:
    await over_each_store.put("namespaces/shop", {"metadata": {"name": "shop"}})
    await over_each_store.put_pod("web-0")
    answer = await over_each_store.client.delete(f"{CLUSTER}/namespaces/shop")
    assert answer.status_code == 200
    assert problem(await over_each_store.client.get(POD), 404) == "NotFound"


async def test_a_read_waits_for_min_revision(make_harness) -> None:
    harness = await make_harness(revision_wait_seconds=0.1)
    await harness.put_node("n1")
    assert (await harness.client.get(f"{NODE}?minRevision=1")).status_code == 200
    answer = await harness.client.get(f"{NODE}?minRevision=999")
    assert problem(answer, 503) == "RevisionNotReached"
    assert answer.headers["retry-after"]
