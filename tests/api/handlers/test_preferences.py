"""Writes whose answers are as short as the client prefers: `Prefer: return=minimal` (RFC 7240)."""

from typing import Any

import msgspec
import pytest

from service.api.resources.handlers import HANDLERS
from tests.api.harness import CLUSTER, Harness, node, pod

MINIMAL = {"prefer": "return=minimal"}
PODS = f"{CLUSTER}/namespaces/shop/pods"
POD = f"{PODS}/web-0"
REPORTS = [
    {"namespace": "shop", "name": name, "status": {"phase": "Failed"}} for name in ("web-1", "none")
]
LINES = {"content-type": "application/x-ndjson"}


async def stocked(harness: Harness) -> None:
    await harness.configure(placePendingPods=False)
    await harness.put_node("n1")
    await harness.put_pod("web-0")
    await harness.place(pod("web-1"))


WRITES = {
    "putPod": ("PUT", POD, pod("web-0", nodeSelector={"a": "b"})),
    "patchPod": ("PATCH", POD, {"metadata": {"labels": {"a": "b"}}}),
    "createPod": ("POST", PODS, pod("new")),
    "deletePod": ("DELETE", POD, None),
    "bindPod": ("POST", f"{POD}/binding", {"target": {"name": "n1"}}),
    "evictPod": ("POST", f"{PODS}/web-1/eviction", {}),
    "cordonNode": ("POST", f"{CLUSTER}/nodes/n1/cordon", None),
    "drainNode": ("POST", f"{CLUSTER}/nodes/n1/drain", None),
}


@pytest.mark.parametrize("operation", WRITES)
async def test_of_an_object_only_its_metadata_is_answered(harness: Harness, operation: str):
    await stocked(harness)
    method, path, body = WRITES[operation]
    before = await harness.client.request(method, f"{path}?dryRun=All", json=body)
    assert "preference-applied" not in before.headers
    answer = await harness.client.request(method, path, json=body, headers=MINIMAL)
    assert answer.headers["preference-applied"] == "return=minimal"
    assert answer.status_code == before.status_code
    told, whole = answer.json(), before.json()
    assert told.keys() == {"apiVersion", "kind", "metadata"}
    assert (told["kind"], told["metadata"]["name"]) == (whole["kind"], whole["metadata"]["name"])
    assert told["metadata"].keys() <= {*whole["metadata"], "resourceVersion"} - {"labels"}
    assert told["metadata"]["uid"]
    assert answer.headers["etag"] == f'"{told["metadata"]["resourceVersion"]}"'


async def test_a_made_name_and_warnings_are_told_all_the_same(harness: Harness):
    sent: dict[str, Any] = pod("any", volumes=[{"name": "v", "azureFile": {"shareName": "s"}}])
    sent["metadata"] = {"generateName": "web-"}
    key = {**MINIMAL, "idempotency-key": "k"}
    answers = [await harness.client.post(PODS, json=sent, headers=key) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert answers[1].headers["preference-applied"] == "return=minimal"
    assert answers[0].json()["metadata"]["name"].startswith("web-")
    assert answers[0].json()["warnings"]
    sent["spec"].pop("volumes")
    line = await harness.client.post(
        f"{CLUSTER}/apply",
        content=msgspec.json.encode(sent | {"kind": "Pod"}),
        headers={**MINIMAL, **LINES},
    )
    assert line.json()["generated"] is True


async def test_of_many_only_what_went_wrong_is_answered(over_each_store: Harness):
    await stocked(over_each_store)
    ask = over_each_store.client.request
    reported = await ask(
        "POST", f"{CLUSTER}/pods/statuses", json={"items": REPORTS}, headers=MINIMAL
    )
    assert [each["name"] for each in reported.json()["results"]] == ["none"]
    lines = [node("n1"), node("Bad Name"), node("n2")]
    applied = await ask(
        "POST",
        f"{CLUSTER}/apply",
        content=msgspec.json.Encoder().encode_lines(lines),
        headers={**MINIMAL, **LINES},
    )
    assert [msgspec.json.decode(each)["line"] for each in applied.content.splitlines()] == [2]
    deleted = await ask("DELETE", f"{PODS}?all=true", headers=MINIMAL)
    assert (deleted.json()["deleted"], deleted.json()["results"]) == (2, [])
    for answer in (reported, applied, deleted):
        assert answer.headers["preference-applied"] == "return=minimal"


@pytest.mark.parametrize(
    ("prefer", "applied"),
    [
        (["return=minimal"], True),
        (['respond-async, Return = "minimal"; x=1'], True),
        (["wait=1", "return=minimal"], True),
        (["return=representation"], False),
        (["return-minimal, minimal"], False),
        ([], False),
    ],
)
async def test_preferences_are_read_as_the_rfc_says(harness: Harness, prefer, applied):
    headers = [("prefer", each) for each in prefer]
    answer = await harness.client.put(POD, json=pod("web-0"), headers=headers)
    assert ("preference-applied" in answer.headers, "spec" not in answer.json()) == (applied,) * 2


def test_what_answers_an_object_that_was_written_honours_it():
    operations = [each.opt["operation"] for each in HANDLERS if "operation" in each.opt]
    written = {
        each.id
        for each in operations
        if each.minimal or each.id.startswith(("put", "create", "patch", "delete"))
    }
    without = {each.id for each in operations if each.id in written and not each.minimal}
    of_no_object = {"putCluster", "patchCluster", "deleteCluster", "createToken", "deleteToken"}
    of_access = {f"{verb}{noun}" for verb in ("put", "delete") for noun in ("Principal", "Group")}
    of_webhooks = {"putWebhook", "patchWebhook", "deleteWebhook"}
    assert without == of_no_object | of_access | of_webhooks
    assert WRITES.keys() <= written
