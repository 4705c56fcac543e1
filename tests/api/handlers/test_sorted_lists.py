"""Lists in other orders: the same order from memory and tables, and pages that fit together."""

from collections.abc import Callable
from typing import Any

import pytest

from service.api.http.pagination import Continue
from tests.api.harness import CLUSTER, Harness, node, pod, problem

PODS = f"{CLUSTER}/pods"
VALUES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "metadata.name": lambda each: each["metadata"]["name"],
    "metadata.creationTimestamp": lambda each: each["metadata"]["creationTimestamp"],
    "spec.nodeName": lambda each: each["spec"].get("nodeName", ""),
    "spec.priority": lambda each: each["spec"].get("priority", 0),
    "status.phase": lambda each: each.get("status", {}).get("phase", "Pending"),
}


@pytest.fixture
async def filled(over_each_store: Harness) -> Harness:
    """Pods in two namespaces whose names, nodes, priorities, phases and ages are in different orders."""
    await over_each_store.configure(placePendingPods=False)
    items: list[Any] = [node("n1"), node("n2")]
    for number in range(9):
        spec: dict[str, Any] = {"nodeName": f"n{1 + number % 2}"} if number % 3 else {}
        each = pod(f"p{number * 5 % 9}", ("shop", "bank")[number % 2], **spec)
        each["spec"]["priority"] = (number * 7 % 4) - 1
        each["metadata"]["creationTimestamp"] = f"2026-05-04T08:00:0{number * 2 % 5}Z"
        if number % 4 == 1:
            each["status"] = {"phase": "Running"}
        items.append(each)
    body = {"kind": "List", "items": items}
    answer = await over_each_store.client.post(f"{CLUSTER}/apply", json=body)
    assert answer.status_code == 200, answer.text
    return over_each_store


async def paged(harness: Harness, path: str) -> list[Any]:
    found, token = list[Any](), ""
    while True:
        answer = await harness.client.get(f"{path}{token}")
        assert answer.status_code == 200, answer.text
        page = answer.json()
        found += page["items"]
        if "continue" not in page["metadata"]:
            return found
        token = f"&continue={page['metadata']['continue']}"


@pytest.fixture(params=["memory", "tables"])
def source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: object) -> None: ...

    if request.param == "tables":
        monkeypatch.setattr("service.scheduler.scheduler.Scheduler.loop_here", nothing)


def key_by(field: str) -> Callable[[dict[str, Any]], Any]:
    value = VALUES[field]
    return lambda each: (value(each), each["metadata"]["namespace"], each["metadata"]["name"])


@pytest.mark.usefixtures("source")
async def test_pages_are_in_the_order_asked_for(filled: Harness):
    everything = (await filled.client.get(PODS)).json()["items"]
    for field in VALUES:
        for hyphen in ("", "-"):
            expected = sorted(everything, key=key_by(field), reverse=bool(hyphen))
            assert expected != everything
            found = await paged(filled, f"{PODS}?sort={hyphen}{field}&limit=2")
            assert found == expected, (field, hyphen)


@pytest.mark.usefixtures("source")
async def test_filters_and_namespaces_hold_in_any_order(filled: Harness):
    everything = (await filled.client.get(PODS)).json()["items"]
    expected = [each for each in everything if each["metadata"]["namespace"] == "shop"]
    expected = [each for each in expected if each["spec"].get("nodeName") == "n1"]
    expected.sort(key=key_by("spec.priority"), reverse=True)
    path = f"{CLUSTER}/namespaces/shop/pods?nodeName=n1&sort=-spec.priority&limit=1"
    assert await paged(filled, path) == expected
    assert len(expected) > 1


async def test_earlier_revisions_are_sorted_too(filled: Harness):
    before = await filled.client.get(PODS)
    expected = sorted(before.json()["items"], key=key_by("spec.nodeName"), reverse=True)
    path = f"{PODS}?sort=-spec.nodeName&limit=4&revision={before.headers['moorage-revision']}"
    for each in expected[:3]:
        metadata = each["metadata"]
        gone = f"{CLUSTER}/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        assert (await filled.client.delete(gone)).status_code == 200
    assert await paged(filled, path) == expected


async def test_what_comes_and_goes_between_pages_moves_nothing_else(filled: Harness):
    first = (await filled.client.get(f"{PODS}?sort=spec.priority&limit=4")).json()
    low, high = pod("low", priority=-9), pod("high", priority=9)
    for each in (low, high):
        await filled.put(f"namespaces/shop/pods/{each['metadata']['name']}", each)
    token = first["metadata"]["continue"]
    answer = await filled.client.get(f"{PODS}?sort=spec.priority&limit=99&continue={token}")
    rest = answer.json()["items"]
    names = [each["metadata"]["name"] for each in rest]
    assert names[-1] == "high"
    assert "low" not in names
    keys = [key_by("spec.priority")(each) for each in first["items"] + rest]
    assert keys == sorted(set(keys))
    assert len(keys) == 10


@pytest.mark.parametrize(
    "path",
    [
        f"{PODS}?sort=metadata.uid&limit=1",
        f"{PODS}?sort=spec.priority",
        f"{PODS}?sort=spec.priority&limit=0",
        f"{CLUSTER}/nodes?sort=spec.priority&limit=1",
    ],
)
async def test_orders_that_are_not_known_are_refused(over_each_store: Harness, path: str):
    answer = await over_each_store.client.get(path)
    assert problem(answer, 400) == "MalformedRequest"
    assert answer.json()["errors"][0]["field"] == "sort"


async def test_a_token_belongs_to_one_order(filled: Harness):
    first = (await filled.client.get(f"{PODS}?sort=spec.priority&limit=4")).json()
    token = first["metadata"]["continue"]
    for other in ("sort=-spec.priority&", "sort=metadata.name&", ""):
        answer = await filled.client.get(f"{PODS}?{other}limit=4&continue={token}")
        assert problem(answer, 400) == "MalformedRequest"
        assert answer.json()["errors"][0]["field"] == "continue"


async def test_a_token_with_a_value_of_another_type_is_refused(filled: Harness):
    for field, value in (("spec.priority", "high"), ("metadata.name", 7), ("metadata.name", None)):
        place = Continue(f"default/Pod/?sort={field}", 1, "shop", "a", value=value)
        answer = await filled.client.get(f"{PODS}?sort={field}&limit=4&continue={place.token()}")
        assert problem(answer, 400) == "MalformedRequest"
        assert answer.json()["errors"][0]["field"] == "continue"
