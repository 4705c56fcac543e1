"""Writes with `dryRun` are answered as usual, and change nothing."""

from typing import Any

import msgspec
import pytest

from service.api.resources.handlers import HANDLERS
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


REPORT = {"namespace": "shop", "name": "web-1", "status": {"phase": "Running"}}

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
    "cordon": ("POST", f"{CLUSTER}/nodes/n1/cordon", None, 200),
    "drain": ("POST", f"{CLUSTER}/nodes/n1/drain", None, 201),
    "report statuses": ("POST", f"{CLUSTER}/pods/statuses", {"items": [REPORT]}, 200),
    "configure": ("PATCH", CLUSTER, {"config": {"hardPodAffinityWeight": 7}}, 200),
    "replace the configuration": (
        "PUT",
        CLUSTER,
        {"config": {"placePendingPods": False, "hardPodAffinityWeight": 7}},
        200,
    ),
    "place": ("POST", f"{CLUSTER}/placements", {"pods": [pod("new")]}, 200),
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
    for anew in ("revision", "plannedRevision", "committed", "uid", "startedAt"):
        answer.pop(anew, None)
    for result in answer.get("results", []):
        told(result)
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


LINES = {
    "apply": b"\n".join(
        (
            b'{"kind":"Node","metadata":{"name":"n1","labels":{"a":"b"}}}',
            b'{"kind":"Node","metadata":{"name":"n2"}}',
            b'{"kind":"Node","metadata":{"name":"Bad Name"}}',
            b'{"delete":{"kind":"Pod","metadata":{"namespace":"shop","name":"web-0"}}}',
        )
    ),
    "pods/statuses": b'{"namespace":"shop","name":"web-1","status":{"phase":"Failed"}}\n'
    b'{"namespace":"shop","name":"none","status":{"phase":"Failed"}}',
}


@pytest.mark.parametrize("path", LINES)
async def test_lines_are_answered_and_change_nothing(over_each_store: Harness, path: str):
    before = await stocked(over_each_store)
    headers = {"content-type": "application/x-ndjson", "idempotency-key": "k"}
    url = f"{CLUSTER}/{path}"
    ask = over_each_store.client.post
    dry = await ask(f"{url}?dryRun=All", content=LINES[path], headers=headers)
    assert await state(over_each_store) == before
    real = await ask(url, content=LINES[path], headers=headers)
    lines = [[*map(msgspec.json.decode, each.content.splitlines())] for each in (dry, real)]
    assert [each["revision"] for each in lines[0]] == [None] * len(lines[0])
    assert any(each["revision"] for each in lines[1])
    assert [*map(told, lines[0])] == [*map(told, lines[1])]
    assert (await state(over_each_store))[0] > before[0]


async def test_clusters_are_made_and_deleted_in_a_dry_run(over_each_store: Harness):
    client, other = over_each_store.client, "/v1/clusters/other"
    made = await client.put(f"{other}?{DRY}", json={"config": {"hardPodAffinityWeight": 7}})
    assert (made.status_code, made.json()["counts"]["nodes"]) == (201, 0)
    assert made.json()["config"]["hardPodAffinityWeight"] == 7
    assert problem(await client.get(other), 404) == "NotFound"
    wrong = await client.put(f"{other}?{DRY}", json={"config": {"hardPodAffinityWeight": "x"}})
    assert wrong.json()["errors"][0]["field"] == "config.hardPodAffinityWeight"
    deleted = await client.delete(f"{CLUSTER}?{DRY}")
    assert deleted.json()["name"] == "default"
    assert (await client.get(CLUSTER)).json() == deleted.json()


async def test_access_is_changed_in_a_dry_run(over_each_store: Harness):
    client = over_each_store.client
    ci, ada = "/v1/principals/ci", "/v1/principals/ada"
    reader, admin = {"grants": [{"role": "reader"}]}, {"grants": [{"role": "admin"}]}
    made = await client.put(f"{ci}?{DRY}", json=reader)
    assert made.json()["grants"] == reader["grants"]
    assert "etag" not in made.headers
    assert problem(await client.get(ci), 404) == "NotFound"
    first = await client.post(f"{ci}/tokens?{DRY}", json={})
    assert problem(first, 404) == "NotFound"
    kept = (await client.put(ada, json=admin)).json()
    token = await client.post(f"{ada}/tokens?{DRY}", json={})
    assert token.status_code == 201
    assert problem(await client.delete(f"/v1/tokens/{token.json()['id']}"), 404) == "NotFound"
    lowered = await client.put(f"{ada}?{DRY}", json=reader)
    assert lowered.json() == {**kept, **reader}
    assert (await client.delete(f"{ada}?{DRY}")).json() == kept
    assert (await client.get(ada)).json() == kept


async def test_a_token_stays_that_is_revoked_in_a_dry_run(over_each_store: Harness):
    client, ada = over_each_store.client, "/v1/principals/ada"
    await client.put(ada, json={"grants": [{"role": "admin"}]})
    token = (await client.post(f"{ada}/tokens", json={})).json()
    told_again = {"headers": {"authorization": f"Bearer {token['token']}"}}
    path = f"/v1/tokens/{token['id']}?{DRY}"
    assert problem(await client.delete(path, **told_again), 409) == "NoAdminLeft"
    other = (await client.post(f"{ada}/tokens", json={}, **told_again)).json()
    assert (await client.delete(path, **told_again)).json()["id"] == token["id"]
    left = (await client.get(ada, **told_again)).json()["tokens"]
    assert [each["id"] for each in left] == [token["id"], other["id"]]


WITHOUT = {
    "commitPlan": "the same plan that is only made tells what would be done",
    "extenderBind": "kube-scheduler's protocol knows none",
    "pingWebhook": "a test message changes nothing here",
    "renewNodeLease": "a report is no change of the cluster",
    "reportNodes": "a report is no change of the cluster",
}
"""Operations that write, and for which a dry run makes no sense."""


def test_every_write_has_a_dry_run():
    operations = [each.opt["operation"] for each in HANDLERS if "operation" in each.opt]
    writes = {
        operation.id: operation.names("query")
        for handler in HANDLERS
        if (operation := handler.opt.get("operation")) is not None
        and not operation.reads
        and handler.http_methods & {"POST", "PUT", "PATCH", "DELETE"}
    }
    assert len(writes) > len(operations) / 3
    assert {name for name, parameters in writes.items() if "dryRun" not in parameters} == {*WITHOUT}
