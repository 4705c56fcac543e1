"""Devices that a pod holds are given to nobody else, and admin access is had by no detour, whatever editors write."""

import json
from typing import Any

import pytest

from service.model.core.access import Grant, Principal
from tests.api.harness import CLUSTER, Harness, problem
from tests.builders import (
    Manifest,
    asking,
    claim_template,
    device,
    device_claim,
    device_class,
    node,
    pod,
    resource_slice,
)
from tests.security.callers import Callers, by

HERE = f"{CLUSTER}/namespaces/default"
EDITOR = Principal("editor", (Grant("scheduler", "default", "default"),))
OBSERVER = Principal("observer", (Grant("orchestrator", "default", "default"),))
ANOTHER = "11111111-1111-4111-8111-111111111111"
NDJSON = {"content-type": "application/x-ndjson"}
PLURALS = {"ResourceClaim": "resourceclaims", "ResourceClaimTemplate": "resourceclaimtemplates"}


@pytest.fixture
async def one_gpu(harness: Harness) -> Harness:
    """A node with one device, which nobody has yet."""
    Callers(EDITOR, OBSERVER).call(harness)
    await apply(
        harness,
        {"kind": "Node", **node("n1")},
        device_class(),
        resource_slice("n1", device("gpu-0")),
    )
    return harness


async def apply(harness: Harness, *objects: Manifest, name: str | None = None) -> Any:
    headers = by(name) if name else {}
    body = {"kind": "List", "items": [*objects]}
    answer = await harness.client.post(f"{CLUSTER}/apply", json=body, headers=headers)
    assert name or answer.status_code == 200, answer.text
    return answer


async def place(harness: Harness, made: Manifest) -> str:
    answer = await harness.client.post(f"{CLUSTER}/placements", json={"pods": [made]})
    (result,) = answer.json()["results"]
    return result["outcome"]


async def claims(harness: Harness) -> dict[str, Manifest]:
    listed = (await harness.client.get(f"{HERE}/resourceclaims")).json()["items"]
    return {each["metadata"]["name"]: each for each in listed}


async def nobody_else_gets_it(harness: Harness) -> None:
    await apply(harness, device_claim("other"))
    assert await place(harness, pod("other").devices("other")) == "Unschedulable"


def another(claim: Manifest) -> Manifest:
    """A claim of the same name with another uid."""
    return claim | {"metadata": claim["metadata"] | {"uid": ANOTHER}}


async def test_a_claim_in_use_is_not_replaced_by_editors(one_gpu: Harness) -> None:
    data = device_claim("data")
    await apply(one_gpu, data)
    assert await place(one_gpu, pod("holder").devices("data")) == "Placed"
    before = await claims(one_gpu)
    assert problem(await apply(one_gpu, another(data), name="editor"), 409) == "Conflict"
    line = await one_gpu.client.post(
        f"{CLUSTER}/apply", content=json.dumps(another(data)), headers=by("editor") | NDJSON
    )
    assert line.json()["result"] == "Conflict"
    assert await claims(one_gpu) == before
    await nobody_else_gets_it(one_gpu)


async def test_a_claim_that_editors_replace_has_no_devices(one_gpu: Harness) -> None:
    allocation = {
        "devices": {
            "results": [
                {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
            ]
        }
    }
    given = device_claim("data") | {"status": {"allocation": allocation}}
    await apply(one_gpu, given, name="observer")
    assert "status" in (await claims(one_gpu))["data"]
    replaced = await apply(one_gpu, another(given), name="editor")
    assert replaced.status_code == 200
    claim = (await claims(one_gpu))["data"]
    assert claim["metadata"]["uid"] == ANOTHER
    assert "status" not in claim


async def test_observers_tell_that_a_claim_is_another_one(one_gpu: Harness) -> None:
    data = device_claim("data")
    await apply(one_gpu, data)
    assert await place(one_gpu, pod("holder").devices("data")) == "Placed"
    assert (await apply(one_gpu, another(data), name="observer")).status_code == 200
    assert (await claims(one_gpu))["data"]["metadata"]["uid"] == ANOTHER


async def test_a_claim_that_was_made_for_a_pod_stays_while_another_uses_it(
    one_gpu: Harness,
) -> None:
    await apply(one_gpu, claim_template("t"))
    assert await place(one_gpu, pod("first").devices(template="t")) == "Placed"
    (name,) = await claims(one_gpu)
    assert await place(one_gpu, pod("second").devices(name)) == "Placed"
    assert (await one_gpu.client.delete(f"{HERE}/pods/first")).status_code == 200
    (user,) = (await claims(one_gpu))[name]["status"]["reservedFor"]
    assert user["name"] == "second"
    await nobody_else_gets_it(one_gpu)
    assert (await one_gpu.client.delete(f"{HERE}/pods/second")).status_code == 200
    assert await place(one_gpu, pod("third").devices("other")) == "Placed"


async def test_a_claim_that_is_said_to_be_made_for_a_pod_stays_while_another_uses_it(
    one_gpu: Harness,
) -> None:
    data = device_claim("data")
    await apply(one_gpu, data)
    for name in ("holder", "bait"):
        assert await place(one_gpu, pod(name).devices("data")) == "Placed"
    bait = (await one_gpu.client.get(f"{HERE}/pods/bait")).json()
    said = {"moorage.dev/made-for-pod": bait["metadata"]["uid"]}
    lie = data | {"metadata": data["metadata"] | {"annotations": said}}
    assert (await apply(one_gpu, lie, name="editor")).status_code == 200
    assert (await one_gpu.client.delete(f"{HERE}/pods/bait")).status_code == 200
    await nobody_else_gets_it(one_gpu)


@pytest.mark.parametrize("make", [device_claim, claim_template])
async def test_admin_access_is_not_had_by_an_update(one_gpu: Harness, make: Any) -> None:
    plain, spying = make("spy"), make("spy", asking(1, adminAccess=True))
    path = f"{HERE}/{PLURALS[plain['kind']]}/spy"
    await apply(one_gpu, plain, name="editor")
    before = (await one_gpu.client.get(path)).json()
    merge = by("editor") | {"content-type": "application/merge-patch+json"}
    spec = json.dumps({"spec": spying["spec"]})
    for answer in (
        await apply(one_gpu, spying, name="editor"),
        await apply(one_gpu, another(spying), name="editor"),
        await one_gpu.client.put(path, json=spying, headers=by("editor")),
        await one_gpu.client.patch(path, content=spec, headers=merge),
    ):
        assert problem(answer, 403) == "AdminAccessDenied"
        assert "exactly.adminAccess" in answer.json()["detail"]
    assert (await one_gpu.client.get(path)).json() == before


async def test_what_was_admitted_once_may_be_labelled(one_gpu: Harness) -> None:
    spying = device_claim("spy", asking(1, adminAccess=True))
    for label in ("true", "false"):
        labels = {"resource.kubernetes.io/admin-access": label}
        await apply(
            one_gpu, {"kind": "Namespace", "metadata": {"name": "default", "labels": labels}}
        )
        answer = await apply(one_gpu, spying.label(admitted=label), name="editor")
        assert answer.status_code == 200, answer.text
