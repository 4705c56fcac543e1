"""Ends in bulk give nobody more rights, and tell nobody more, than the same ends one by one."""

import json

from service.model.core.access import Grant, Principal
from tests.api.harness import CLUSTER, Harness, node, pod, problem
from tests.kept_kinds import kept
from tests.security.callers import Callers, by

PODS = f"{CLUSTER}/pods"
NDJSON = {"content-type": "application/x-ndjson"}
PLANNER = Principal("planner", (Grant("scheduler", "default", "shop"),))
READER = Principal("reader", (Grant("reader", "default", "shop"),))
HALF = Principal(
    "half", (Grant("orchestrator", "default", "shop"), Grant("reader", "default", "bank"))
)


async def prepare(harness: Harness) -> None:
    Callers(PLANNER, READER, HALF).call(harness)
    waiting = {"schedulerName": "nobody"}
    pods = [
        pod(f"{namespace}-{kind}", namespace, **spec)
        for namespace in ("bank", "shop", "team")
        for kind, spec in (("placed", {"nodeName": "n1"}), ("waiting", waiting))
    ]
    body = {"kind": "List", "items": [node("n1"), *pods]}
    assert (await harness.client.post(f"{CLUSTER}/apply", json=body)).status_code == 200


async def left(harness: Harness) -> set[str]:
    listed = (await harness.client.get(PODS)).json()["items"]
    return {each["metadata"]["name"] for each in listed}


async def delete_all(harness: Harness, name: str, path: str = PODS) -> dict[str, str]:
    answer = await harness.client.delete(f"{path}?all=true", headers=by(name))
    assert answer.status_code == 200, answer.text
    return {each["name"]: each["result"] for each in answer.json()["results"]}


async def test_each_caller_deletes_what_it_may(harness: Harness) -> None:
    await prepare(harness)
    assert await delete_all(harness, "half") == {
        "bank-placed": "Forbidden",
        "bank-waiting": "Forbidden",
        "shop-placed": "Deleted",
        "shop-waiting": "Deleted",
    }
    assert await left(harness) == {"bank-placed", "bank-waiting", "team-placed", "team-waiting"}


async def test_other_kinds_are_deleted_where_the_caller_may_change_them(harness: Harness) -> None:
    await prepare(harness)
    services = [kept("Service", each) for each in ("bank", "shop")]
    body = {"kind": "List", "items": services}
    assert (await harness.client.post(f"{CLUSTER}/apply", json=body)).status_code == 200
    path = f"{CLUSTER}/services?all=true"
    answer = await harness.client.delete(path, headers=by("half"))
    results = {each["namespace"]: each["result"] for each in answer.json()["results"]}
    assert results == {"bank": "Forbidden", "shop": "Deleted"}


async def test_the_fact_that_a_pod_is_gone_is_for_observers(harness: Harness) -> None:
    await prepare(harness)
    shop = f"{CLUSTER}/namespaces/shop/pods"
    assert await delete_all(harness, "planner", shop) == {
        "shop-placed": "Forbidden",
        "shop-waiting": "Deleted",
    }
    assert "shop-placed" in await left(harness)


async def test_who_may_only_read_deletes_and_reports_nothing(harness: Harness) -> None:
    await prepare(harness)
    before = await left(harness)
    for path in (PODS, f"{CLUSTER}/namespaces/shop/pods", f"{CLUSTER}/namespaces/bank/pods"):
        answer = await harness.client.delete(f"{path}?all=true", headers=by("reader"))
        assert problem(answer, 403) == "Forbidden"
    answer = await harness.client.post(f"{PODS}/statuses", json={"items": []}, headers=by("reader"))
    assert problem(answer, 403) == "Forbidden"
    elsewhere = f"{CLUSTER}/namespaces/bank/pods"
    answer = await harness.client.delete(f"{elsewhere}?all=true", headers=by("half"))
    assert problem(answer, 403) == "Forbidden"
    assert await left(harness) == before


async def test_lines_and_reports_tell_nothing_of_other_namespaces(harness: Harness) -> None:
    await prepare(harness)
    names = ("bank-placed", "absent")
    deletions = [
        {"delete": {"kind": "Pod", "metadata": {"namespace": "bank", "name": name}}}
        for name in names
    ]
    answer = await harness.client.post(
        f"{CLUSTER}/apply",
        content="\n".join(map(json.dumps, deletions)),
        headers=by("half") | NDJSON,
    )
    items = [{"namespace": "bank", "name": name, "status": {"phase": "Failed"}} for name in names]
    reports = await harness.client.post(
        f"{PODS}/statuses", json={"items": items}, headers=by("half")
    )
    results = [json.loads(line) for line in answer.text.splitlines()] + reports.json()["results"]
    assert [each["result"] for each in results] == ["Forbidden"] * 4
    assert len({each["errors"][0]["message"] for each in results}) == 1
    assert "bank-placed" in await left(harness)


async def test_reports_are_facts(harness: Harness) -> None:
    await prepare(harness)
    items = [
        {"namespace": "shop", "name": f"shop-{kind}", "status": {"phase": "Failed"}}
        for kind in ("placed", "waiting")
    ]
    for name, results in (("planner", ["Forbidden"] * 2), ("half", ["Changed"] * 2)):
        answer = await harness.client.post(
            f"{PODS}/statuses", json={"items": items}, headers=by(name)
        )
        assert [each["result"] for each in answer.json()["results"]] == results
