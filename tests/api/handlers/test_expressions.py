"""Expressions of CEL over HTTP: what is refused, and decisions that wait for answers."""

import asyncio
from typing import Any

import pytest

from service.model.devices.cel_questions import ANSWERS
from service.sandbox import Evaluator
from service.scheduler.protocol.limits import Limits
from tests.api.harness import CLUSTER, Harness, node, pod, problem
from tests.model.objects.test_cel_costs import BOMBS
from tests.waiting import WAIT_SECONDS, once

SHOP = f"{CLUSTER}/namespaces/shop"
BOMB = BOMBS["text that doubles"]
TOLD = "too complex, exceeds cost limit"
DRIVER = "gpu.example.com"
API = {"apiVersion": "resource.k8s.io/v1"}


def selector(expression: str) -> dict[str, Any]:
    return {"cel": {"expression": expression}}


def device_class(*expressions: str) -> dict[str, Any]:
    spec = {"selectors": [selector(each) for each in expressions]}
    return API | {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec}


def devices(*expressions: str) -> dict[str, Any]:
    asked = {"deviceClassName": "gpu", "selectors": [selector(each) for each in expressions]}
    return {"devices": {"requests": [{"name": "r", "exactly": asked}]}}


def claim(name: str, *expressions: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop"}
    return API | {"kind": "ResourceClaim", "metadata": metadata, "spec": devices(*expressions)}


def resource_slice(node_name: str, count: int = 1) -> dict[str, Any]:
    named = [
        {"name": f"d{n}", "attributes": {"place": {"string": f"{node_name}-{n}"}}}
        for n in range(count)
    ]
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node_name, "devices": named}
    return API | {"kind": "ResourceSlice", "metadata": {"name": node_name}, "spec": spec}


def claiming(name: str, claim_name: str) -> dict[str, Any]:
    return pod(name, resourceClaims=[{"name": "c", "resourceClaimName": claim_name}])


async def set_up(harness: Harness, *, places_pending: bool = False) -> None:
    await harness.configure(placePendingPods=places_pending)
    for name in ("n1", "n2"):
        await harness.put_node(name)
        await harness.put(f"resourceslices/{name}", resource_slice(name, 4))
    await harness.put("deviceclasses/gpu", device_class(f'device.driver == "{DRIVER}"'))


def place_of(device: str) -> str:
    return f'device.attributes["{DRIVER}"].place == "{device}"'


class Held:
    """Answers questions, but those about a word only after it was released."""

    def __init__(self, word: str) -> None:
        self._word = word
        self.released = asyncio.Event()
        self.asked: list[int] = []

    async def answer(self, questions: Any) -> None:
        self.asked.append(len(questions))
        for each in questions:
            if self._word in str(each):
                await self.released.wait()
            ANSWERS.put(each.key, each.answer())


# What is refused


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("deviceclasses/gpu", device_class("true", BOMB), "spec.selectors[1].cel.expression"),
        (
            "namespaces/shop/resourceclaims/c",
            claim("c", BOMB),
            "spec.devices.requests[0].exactly.selectors[0].cel.expression",
        ),
        (
            "namespaces/shop/resourceclaimtemplates/t",
            API
            | {
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": "t", "namespace": "shop"},
                "spec": {"spec": devices(BOMB)},
            },
            "spec.spec.devices.requests[0].exactly.selectors[0].cel.expression",
        ),
    ],
)
async def test_an_expression_over_the_cost_limit_is_refused_by_its_field(
    harness: Harness, path: str, body: dict[str, Any], field: str
) -> None:
    refused = await harness.client.put(f"{CLUSTER}/{path}", json=body)
    assert problem(refused, 422) == "InvalidManifest"
    (error,) = refused.json()["errors"]
    assert (error["field"], error["message"]) == (field, TOLD)


async def test_a_simulation_with_such_an_expression_is_refused(harness: Harness) -> None:
    described = {
        "nodes": [node("n1")],
        "objects": [device_class("true"), resource_slice("n1"), claim("c", BOMB)],
        "place": [claiming("web", "c")],
    }
    refused = await harness.client.post("/v1/simulations", json=described)
    assert problem(refused, 422) == "InvalidManifest"
    assert refused.json()["errors"][0]["message"] == TOLD


async def test_expressions_of_one_claim_have_a_length_in_all(harness: Harness) -> None:
    long = f'device.driver == "{"a" * 9_000}"'
    refused = await harness.client.put(f"{SHOP}/resourceclaims/c", json=claim("c", *[long] * 4))
    assert problem(refused, 422) == "InvalidManifest"
    (error,) = refused.json()["errors"]
    assert error["field"] == "spec"
    assert error["message"].startswith("must have expressions of at most 32768 characters in all")
    await harness.put("namespaces/shop/resourceclaims/c", claim("c", *[long] * 3))


async def test_an_expression_that_is_stored_already_fails_without_being_evaluated(
    make_harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stored by a version without limits."""
    evaluator = Evaluator()
    harness = await make_harness(expressions=evaluator)
    await set_up(harness)
    with monkeypatch.context() as before:
        before.setattr("service.model.devices.device_rules.selector_problem", lambda _: None)
        await harness.put("namespaces/shop/resourceclaims/c", claim("c", BOMB))
    (result,) = (await harness.place(claiming("web", "c")))["results"]
    assert result["outcome"] == "Unschedulable"
    assert f"selector #0: CEL runtime error: {TOLD}" in result["message"]
    again = await make_harness(store=harness.store, expressions=evaluator)
    (result,) = (await again.place(claiming("later", "c")))["results"]
    assert f"selector #0: CEL runtime error: {TOLD}" in result["message"]
    assert evaluator.deaths == 0
    await evaluator.close()


# Decisions that wait for answers


async def test_all_that_is_decided_gets_its_answers_from_children(make_harness: Any) -> None:
    evaluator = Evaluator()
    harness = await make_harness(expressions=evaluator)
    await set_up(harness)
    for name in ("a", "b"):
        await harness.put(f"namespaces/shop/resourceclaims/{name}", claim(name, place_of("n2-1")))
    (result,) = (await harness.place(claiming("a", "a"), dryRun=True))["results"]
    assert (result["outcome"], result["nodeName"]) == ("Placed", "n2")
    (result,) = (await harness.place(claiming("a", "a")))["results"]
    assert (result["outcome"], result["nodeName"]) == ("Placed", "n2")
    (result,) = (await harness.place(claiming("b", "b")))["results"]
    assert result["outcome"] == "Unschedulable"
    described = {
        "nodes": [node("n1"), node("n2")],
        "objects": [
            device_class("true"),
            *map(resource_slice, ("n1", "n2")),
            claim("c", place_of("n1-0")),
        ],
        "place": [claiming("web", "c")],
    }
    simulated = await harness.client.post("/v1/simulations", json=described)
    assert simulated.json()["results"][0]["nodeName"] == "n1"
    await harness.put("namespaces/shop/resourceclaims/d", claim("d", place_of("n1-3")))
    counted = await harness.client.post(
        f"{CLUSTER}/capacity", json={"template": claiming("d", "d")}
    )
    assert counted.status_code == 200, counted.text
    await evaluator.close()


async def test_policies_are_asked_once_about_all_pods_of_a_request(make_harness: Any) -> None:
    held = Held("nothing is held")
    harness = await make_harness(expressions=held)
    policy = {"id": "named", "expression": "object.metadata.name != 'p3'"}
    await harness.configure(policies=[policy], placePendingPods=False)
    await harness.put_node("n1")
    empty = [{"name": "c"}]
    sent = [pod(f"p{number}", containers=empty) for number in range(10)]
    results = (await harness.place(*sent))["results"]
    assert [each["outcome"] for each in results].count("Placed") == 9
    assert results[3]["reason"] == "PolicyDenied"
    assert held.asked == [10]
    listed = {"kind": "List", "items": [pod(f"q{number}") for number in range(10)]}
    assert (await harness.client.post(f"{CLUSTER}/apply", json=listed)).status_code == 200
    assert held.asked == [10, 10]


async def test_other_requests_of_the_cluster_do_not_wait(make_harness: Any) -> None:
    held = Held("slow")
    harness = await make_harness(expressions=held)
    await set_up(harness)
    await harness.put("namespaces/shop/resourceclaims/s", claim("s", "device.driver != 'slow'"))
    waiting = asyncio.create_task(harness.place(claiming("s", "s")))
    (result,) = (await harness.place(pod("other")))["results"]
    assert result["outcome"] == "Placed"
    assert not waiting.done()
    held.released.set()
    (result,) = (await waiting)["results"]
    assert result["outcome"] == "Placed"


async def test_a_request_whose_time_is_over_is_told_so(make_harness: Any) -> None:
    held = Held("never")
    harness = await make_harness(expressions=held, limits=Limits(request_seconds_max=0.2))
    await set_up(harness)
    await harness.put("namespaces/shop/resourceclaims/s", claim("s", "device.driver != 'never'"))
    answer = await harness.client.post(f"{CLUSTER}/placements", json={"pods": [claiming("s", "s")]})
    assert problem(answer, 503) == "Overloaded"
    assert "expressions" in answer.json()["detail"]


async def test_pending_pods_do_not_wait_for_one_whose_selectors_take_long(
    make_harness: Any,
) -> None:
    held = Held("long")
    limits = Limits(request_seconds_max=WAIT_SECONDS, pending_answers_seconds=0.02)
    harness = await make_harness(expressions=held, limits=limits)
    await set_up(harness, places_pending=True)
    await harness.put("namespaces/shop/resourceclaims/s", claim("s", "device.driver != 'long'"))
    await harness.put("namespaces/shop/pods/s", claiming("s", "s"))
    await harness.put("namespaces/shop/pods/other", pod("other"))
    await once(lambda: is_placed(harness, "other"))
    assert not await is_placed(harness, "s")
    held.released.set()
    await once(lambda: is_placed(harness, "s"))


async def is_placed(harness: Harness, name: str) -> bool:
    answer = await harness.client.get(f"{SHOP}/pods/{name}")
    return bool(answer.json()["spec"].get("nodeName"))
