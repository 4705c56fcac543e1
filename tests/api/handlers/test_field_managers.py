"""Server-side apply over HTTP: several managers share an object, and none undoes what another wants."""

from typing import Any

import httpx
import pytest

from service.scheduler.protocol.limits import Limits
from tests.api.conftest import MakeHarness
from tests.api.harness import CLUSTER, Harness, pod, problem

NODE = f"{CLUSTER}/nodes/n1"
POD = f"{CLUSTER}/namespaces/shop/pods/web"
YAML = "application/apply-patch+yaml"


async def apply(
    harness: Harness, body: Any, manager: str, path: str = NODE, **parameters: str
) -> httpx.Response:
    content = {"content": body} if isinstance(body, str) else {"json": body}
    return await harness.client.patch(
        path,
        headers={"content-type": YAML},
        params={"fieldManager": manager, **parameters},
        **content,
    )


def labels(**given: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": given}}


def managed(answer: httpx.Response) -> dict[tuple[str, str], Any]:
    entries = answer.json()["metadata"].get("managedFields", [])
    assert all(each["fieldsType"] == "FieldsV1" and each["time"] for each in entries)
    return {(each["manager"], each["operation"]): each["fieldsV1"] for each in entries}


async def test_an_apply_creates_shares_and_removes(over_each_store: Harness) -> None:
    harness = over_each_store
    created = await apply(harness, "metadata:\n  labels: {zone: a, tier: x}\n", "one")
    assert created.status_code == 201, created.text
    assert managed(created) == {
        ("one", "Apply"): {"f:metadata": {"f:labels": {"f:zone": {}, "f:tier": {}}}}
    }
    shared = await apply(harness, labels(zone="a", disk="ssd"), "two")
    assert shared.status_code == 200, shared.text
    fewer = await apply(harness, labels(), "one")
    assert fewer.json()["metadata"]["labels"] == {"zone": "a", "disk": "ssd"}
    assert managed(fewer)["two", "Apply"] == {
        "f:metadata": {"f:labels": {"f:zone": {}, "f:disk": {}}}
    }
    again = await apply(harness, labels(zone="a", disk="ssd"), "two")
    assert again.headers["etag"] == fewer.headers["etag"]
    read = await harness.client.get(NODE)
    assert read.json() == again.json()
    assert (await apply(harness, labels(), "two")).json()["metadata"].get("labels", {}) == {}


async def test_conflicts_name_fields_and_managers_until_forced(harness: Harness) -> None:
    await apply(harness, labels(zone="a", tier="x"), "one")
    for parameters in ({}, {"dryRun": "true"}):
        refused = await apply(harness, labels(zone="b", tier="x"), "two", **parameters)
        assert problem(refused, 409) == "FieldManagerConflict"
        [error] = refused.json()["errors"]
        assert (error["field"], error["value"]) == ("metadata.labels.zone", "one")
    tried = await apply(harness, labels(zone="b"), "two", force="true", dryRun="true")
    assert tried.json()["metadata"]["labels"]["zone"] == "b"
    assert (await harness.client.get(NODE)).json()["metadata"]["labels"]["zone"] == "a"
    forced = await apply(harness, labels(zone="b"), "two", force="true")
    assert managed(forced) == {
        ("one", "Apply"): {"f:metadata": {"f:labels": {"f:tier": {}}}},
        ("two", "Apply"): {"f:metadata": {"f:labels": {"f:zone": {}}}},
    }


async def test_lists_are_merged_by_their_keys(harness: Harness) -> None:
    def wanted(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
        return {"spec": {"containers": list(containers), **spec}}

    port = {"containerPort": 80}
    one = wanted(
        {"name": "app", "image": "a", "ports": [port]},
        tolerations=[{"key": "x", "operator": "Exists"}],
    )
    assert (await apply(harness, one, "one", POD)).status_code == 201
    two = wanted({"name": "log", "image": "l"})
    both = await apply(harness, two, "two", POD)
    assert [each["name"] for each in both.json()["spec"]["containers"]] == ["app", "log"]
    fields = managed(both)["one", "Apply"]["f:spec"]
    assert fields["f:containers"]['k:{"name":"app"}']["f:ports"] == {
        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
    }
    assert fields["f:tolerations"] == {}
    atomic = await apply(
        harness, {"spec": {"tolerations": [{"key": "y", "operator": "Exists"}]}}, "three", POD
    )
    assert [each["field"] for each in atomic.json()["errors"]] == ["spec.tolerations"]
    other = await apply(harness, wanted({"name": "other", "image": "o"}), "two", POD)
    assert [each["name"] for each in other.json()["spec"]["containers"]] == ["app", "other"]
    twice = await apply(harness, wanted({"name": "a"}, {"name": "a"}), "two", POD)
    assert problem(twice, 422) == "InvalidManifest"
    assert twice.json()["errors"][0]["field"] == "spec.containers[1]"


async def test_other_writes_take_over_what_they_change(harness: Harness) -> None:
    await harness.put_node("n1", zone="a")
    assert managed(await harness.client.get(NODE)) == {}
    applied = await apply(harness, labels(tier="x", zone="a"), "one")
    assert ("before-first-apply", "Update") in managed(applied)
    patch = {"metadata": {"labels": {"tier": "y"}}}
    await harness.client.patch(NODE, json=patch, headers={"user-agent": "kubectl/1.36 (linux)"})
    body = (await harness.client.get(NODE)).json()
    body["metadata"]["labels"]["disk"] = "ssd"
    body["metadata"]["managedFields"] = []
    put = await harness.client.put(NODE, json=body, params={"fieldManager": "sizer"})
    found = managed(put)
    assert found["one", "Apply"] == {"f:metadata": {"f:labels": {"f:zone": {}}}}
    assert found["kubectl", "Update"] == {"f:metadata": {"f:labels": {"f:tier": {}}}}
    assert found["sizer", "Update"] == {"f:metadata": {"f:labels": {"f:disk": {}}}}
    refused = await apply(harness, labels(tier="x", zone="a"), "one")
    assert [each["value"] for each in refused.json()["errors"]] == ["kubectl"]
    bulk = {"kind": "List", "items": [labels(zone="c")]}
    assert (await harness.client.post(f"{CLUSTER}/apply", json=bulk)).status_code == 200
    assert managed(await harness.client.get(NODE))["unknown", "Update"] == {
        "f:metadata": {"f:labels": {"f:zone": {}}}
    }


async def test_a_placed_pod_keeps_its_managers(harness: Harness) -> None:
    await harness.put_node("n1")
    await harness.configure(placePendingPods=False)
    assert (await apply(harness, pod("web", "shop"), "one", POD)).status_code == 201
    refs = {"podRefs": [{"namespace": "shop", "name": "web"}]}
    placed = await harness.client.post(f"{CLUSTER}/placements", json=refs)
    assert placed.json()["results"][0]["outcome"] == "Placed", placed.text
    read = await harness.client.get(POD)
    assert ("one", "Apply") in managed(read)
    again = await apply(harness, pod("web", "shop"), "one", POD)
    assert again.json()["spec"]["nodeName"] == "n1"


@pytest.mark.parametrize(
    ("content", "parameters", "status", "code"),
    [
        ("{}", {}, 400, "MalformedRequest"),
        ("{}", {"fieldManager": ""}, 400, "MalformedRequest"),
        ("{}", {"fieldManager": "a" * 129}, 400, "MalformedRequest"),
        ("a: &x 1\nb: *x\n", {"fieldManager": "a"}, 400, "MalformedJSON"),
        ("a: 1\na: 2\n", {"fieldManager": "a"}, 400, "MalformedJSON"),
        ("[" * 50, {"fieldManager": "a"}, 400, "MalformedJSON"),
        ("- 1\n", {"fieldManager": "a"}, 422, "InvalidManifest"),
        ("metadata: {labels: 1}\n", {"fieldManager": "a"}, 422, "InvalidManifest"),
    ],
)
async def test_what_cannot_be_applied_is_refused(
    harness: Harness, content: str, parameters: dict[str, str], status: int, code: str
) -> None:
    headers = {"content-type": YAML}
    answer = await harness.client.patch(NODE, content=content, params=parameters, headers=headers)
    assert problem(answer, status) == code


async def test_managers_and_yaml_are_limited(make_harness: MakeHarness) -> None:
    harness = await make_harness(apply_yaml_bytes_max=1024)
    long = "metadata:\n  labels: {zone: a}\n" + "#" * 1024
    assert problem(await apply(harness, long, "one"), 413) == "BodyTooLarge"
    assert (await apply(harness, labels(), "one", force="perhaps")).status_code == 400


async def test_writes_that_would_give_managers_too_many_fields_are_refused(
    make_harness: MakeHarness,
) -> None:
    limits = Limits(field_managers_max=2, managed_fields_max=4)
    harness = await make_harness(limits=limits)

    def refused(answer: httpx.Response, words: str) -> None:
        assert problem(answer, 422) == "InvalidManifest"
        [error] = answer.json()["errors"]
        assert error["field"] == "metadata.managedFields"
        assert words in error["message"]

    async def patched(manager: str, **changed: str | None) -> httpx.Response:
        patch = {"metadata": {"labels": changed}}
        parameters = {"fieldManager": manager}
        return await harness.client.patch(NODE, json=patch, params=parameters)

    five = dict.fromkeys("abcde", "1")
    refused(await apply(harness, labels(**five), "one"), "at most 4 fields")
    assert (await apply(harness, labels(a="1", b="1"), "one")).status_code == 201
    refused(await patched("by-hand", c="1", d="1", e="1"), "at most 4 fields")
    body = (await harness.client.get(NODE)).json()
    body["metadata"]["labels"] |= five
    refused(await harness.client.put(NODE, json=body), "at most 4 fields")
    bulk = {"kind": "List", "items": [body]}
    sent = await harness.client.post(f"{CLUSTER}/apply", json=bulk)
    assert "at most 4 fields" in sent.text
    assert set(managed(await harness.client.get(NODE))) == {("one", "Apply")}
    assert (await patched("by-hand", c="1", d="1")).status_code == 200
    # Who manages fields already may change them, and give them up.
    assert (await patched("by-hand", c="2", d=None)).status_code == 200
    refused(await apply(harness, labels(a="1"), "two"), "at most 2 managers")
    # Managers of other writes are made one, and no write is refused for their number.
    assert (await patched("other", c="3")).status_code == 200
    assert (await apply(harness, labels(b="1"), "one")).status_code == 200
    assert len(managed(await harness.client.get(NODE))) == 2
