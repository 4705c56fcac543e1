"""A row of the database that cannot be read harms what it is about, and nothing else."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import msgspec
import pytest

from service.model.core.access import Grant, Principal
from service.model.core.errors import ObjectUnreadable
from service.runtime.clock import SystemClock
from service.scheduler.protocol.limits import Limits
from service.store.db.connector import data_source_name
from service.store.postgres import PostgresStore
from tests.api.conftest import MakeHarness
from tests.api.harness import CLUSTER, Harness, HurriedClock, pod, problem
from tests.kept_kinds import kept, path_of
from tests.security.callers import Callers, by
from tests.waiting import WAIT_SECONDS

PODS = f"{CLUSTER}/namespaces/shop/pods"
BROKEN = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1"'
NEWER = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1"},"spec":{"containers":5}}'


@pytest.fixture
async def operator(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(data_source_name(database_url))
    yield connection
    await connection.close()


@pytest.fixture
async def clock() -> HurriedClock:
    return HurriedClock()


@pytest.fixture
async def harness(
    make_harness: MakeHarness, database_url: str, clock: HurriedClock
) -> AsyncIterator[Harness]:
    """A server on PostgreSQL that has no cluster in memory yet, with three pods and a second cluster."""
    async with AsyncExitStack() as stack:
        stores = [PostgresStore(database_url) for _ in range(2)]
        for store in stores:
            stack.push_async_callback(store.close)
        limits = Limits(request_seconds_max=WAIT_SECONDS)
        first = await make_harness(stores[0], SystemClock(), limits)
        await first.put_node("n1")
        await first.put("namespaces/shop", {"kind": "Namespace", "apiVersion": "v1"})
        for name in ("web-0", "web-1", "web-2"):
            await first.put_pod(name)
        for kind in ("PersistentVolume", "StorageClass"):
            await first.put(path_of(kind), kept(kind))
        answer = await first.client.put("/v1/clusters/other", json={"config": {}})
        assert answer.status_code == 201
        yield await make_harness(stores[1], clock, limits)


async def tamper(operator: asyncpg.Connection, body: bytes, kind: str = "Pod") -> None:
    name = "config" if kind == "Cluster" else "web-1"
    await operator.execute(
        "UPDATE object SET body = $1 WHERE cluster_id = 1 AND kind = $2 AND name = $3",
        *(body, kind, name),
    )


async def names(harness: Harness, path: str = PODS) -> tuple[list[str], list[str] | None]:
    answer = await harness.client.get(path)
    assert answer.status_code == 200, answer.text
    listed = answer.json()
    return [each["metadata"]["name"] for each in listed["items"]], listed.get("unreadable")


async def test_decisions_name_the_object_without_which_they_cannot_be_made(
    harness: Harness, operator: asyncpg.Connection
):
    await tamper(operator, NEWER)
    answer = await harness.client.post(f"{CLUSTER}/placements", json={"pods": [pod("new")]})
    assert problem(answer, 500) == "ObjectUnreadable"
    assert answer.json()["detail"] == "The stored Pod shop/web-1 cannot be read."
    other = {"pods": [pod("new", namespace="default")]}
    answer = await harness.client.post("/v1/clusters/other/placements", json=other)
    assert answer.status_code == 200, "another cluster goes on"


async def test_an_object_that_was_put_right_is_read_after_a_moment(
    harness: Harness, operator: asyncpg.Connection, clock: HurriedClock
):
    right = await operator.fetchval("SELECT body FROM object WHERE name = 'web-1'")
    await tamper(operator, BROKEN)
    place = {"pods": [pod("new")]}
    for _ in range(2):
        answer = await harness.client.post(f"{CLUSTER}/placements", json=place)
        assert problem(answer, 500) == "ObjectUnreadable"
    await tamper(operator, right)
    clock.advance(Limits().unreadable_seconds)
    answer = await harness.client.post(f"{CLUSTER}/placements", json=place)
    assert answer.status_code == 200, answer.text


async def test_a_cluster_with_an_unreadable_object_is_not_loaded_for_each_request(
    harness: Harness, operator: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    await tamper(operator, BROKEN)
    loads = 0
    read_objects = harness.store.objects.read

    async def counted(*arguments: object) -> object:
        nonlocal loads
        loads += 1
        return await read_objects(*arguments)

    monkeypatch.setattr(harness.store.objects, "read", counted)
    for _ in range(5):
        answer = await harness.client.post(f"{CLUSTER}/placements", json={"pods": [pod("new")]})
        assert problem(answer, 500) == "ObjectUnreadable"
    assert loads == 1


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?limit=2",
        "?labelSelector=app%21%3Dnone",
        "?fieldSelector=status.phase%3DPending",
        "?sort=metadata.name&limit=10",
        "?fields=metadata.name",
    ],
)
async def test_lists_leave_out_what_cannot_be_read_and_name_it(
    harness: Harness, operator: asyncpg.Connection, query: str
):
    await tamper(operator, BROKEN)
    for path in (PODS, f"{CLUSTER}/pods"):
        assert await names(harness, path + query) == (["web-0", "web-2"], ["shop/web-1"])


async def test_lists_of_an_earlier_revision_leave_out_what_cannot_be_read(
    harness: Harness, operator: asyncpg.Connection
):
    revision = (await harness.client.get(PODS)).json()["metadata"]["resourceVersion"]
    await tamper(operator, BROKEN)
    path = f"{PODS}?revision={revision}"
    assert await names(harness, path) == (["web-0", "web-2"], ["shop/web-1"])


async def test_one_object_that_cannot_be_read_is_named_and_the_others_are_read(
    harness: Harness, operator: asyncpg.Connection
):
    assert await names(harness) == (["web-0", "web-1", "web-2"], None)
    await tamper(operator, BROKEN)
    answer = await harness.client.get(f"{PODS}/web-1")
    assert problem(answer, 500) == "ObjectUnreadable"
    assert "shop/web-1" in answer.json()["detail"]
    assert (await harness.client.get(f"{PODS}/web-0")).status_code == 200
    assert problem(await harness.client.get(f"{CLUSTER}/export"), 500) == "ObjectUnreadable"


async def test_a_watch_ends_at_a_change_that_cannot_be_read_and_names_it(
    harness: Harness, operator: asyncpg.Connection
):
    await operator.execute("UPDATE change SET body = $1 WHERE name = 'web-1'", BROKEN)
    answer = await harness.client.get(
        f"{CLUSTER}/watch?kind=Pod&sinceRevision=1&labelSelector=app%21%3Dnone&timeoutSeconds=60"
    )
    assert '"code":"ObjectUnreadable"' in answer.text
    assert "shop/web-1" in answer.text
    good, _ = answer.text.split("event: ERROR")
    assert '"name":"web-0"' in good, "what came before it is delivered"


@pytest.mark.parametrize("body", [b"{", b'{"hardPodAffinityWeight":"much"}'])
async def test_an_unreadable_configuration_harms_its_own_cluster_alone(
    harness: Harness, operator: asyncpg.Connection, body: bytes
):
    await tamper(operator, body, "Cluster")
    listed = (await harness.client.get("/v1/clusters")).json()
    assert [each["name"] for each in listed["items"]] == ["other"]
    assert listed["unreadable"] == ["default"]
    for answer in (
        await harness.client.get(CLUSTER),
        await harness.client.put(CLUSTER, json={"config": {}}),
        await harness.client.post(f"{CLUSTER}/placements", json={"pods": [pod("new")]}),
    ):
        assert problem(answer, 500) == "ObjectUnreadable"
    assert (await names(harness))[0] == ["web-0", "web-1", "web-2"], "objects can be read"
    assert (await harness.client.get("/v1/clusters/other")).status_code == 200


@pytest.mark.parametrize("body", [b"{", b'{"hardPodAffinityWeight":"much"}'])
async def test_a_cluster_with_an_unreadable_configuration_can_be_deleted(
    harness: Harness, operator: asyncpg.Connection, body: bytes
):
    await tamper(operator, body, "Cluster")
    for query in ("?dryRun=true", ""):
        answer = await harness.client.delete(CLUSTER + query)
        assert answer.status_code == 200, answer.text
        assert answer.json().keys() == {"name", "revision", "counts"}
        assert answer.json()["counts"]["pods"] == 3
    assert problem(await harness.client.get(CLUSTER), 404) == "NotFound"


@pytest.mark.parametrize("size", [1, 2])
async def test_each_object_that_cannot_be_read_is_named_on_one_page(
    harness: Harness, operator: asyncpg.Connection, size: int
):
    await harness.put_pod("web-3")
    await tamper(operator, BROKEN)
    told, token = [], ""
    while token is not None:
        answer = await harness.client.get(f"{PODS}?limit={size}{token}")
        told += answer.json().get("unreadable", [])
        found = answer.json()["metadata"].get("continue")
        token = found and f"&continue={found}"
    assert told == ["shop/web-1"]


TENANT = Principal("tenant", (Grant("scheduler", "default", "mine"),))
OWNER = Principal("owner", (Grant("scheduler", "default", "shop"),))
UNNAMED = "An object of the cluster that you may not read cannot be read from the database."


@pytest.mark.parametrize(
    ("kind", "caller", "detail"),
    [
        ("Pod", TENANT, UNNAMED),
        ("Pod", OWNER, "The stored Pod shop/web-1 cannot be read."),
        ("PersistentVolume", TENANT, UNNAMED),
        ("StorageClass", TENANT, "The stored StorageClass kept cannot be read."),
        ("Node", TENANT, "The stored Node n1 cannot be read."),
        ("Namespace", TENANT, UNNAMED),
        ("Namespace", OWNER, "The stored Namespace shop cannot be read."),
    ],
)
async def test_an_object_is_named_only_to_callers_who_may_read_it(
    harness: Harness, operator: asyncpg.Connection, kind: str, caller: Principal, detail: str
):
    name = {"Pod": "web-1", "Node": "n1", "Namespace": "shop"}.get(kind, "kept")
    changed = await operator.execute(
        "UPDATE object SET body = $1 WHERE cluster_id = 1 AND kind = $2 AND name = $3",
        *(BROKEN, kind, name),
    )
    assert changed == "UPDATE 1"
    Callers(caller).call(harness)
    [namespace] = [each.namespace for each in caller.grants]
    answer = await harness.client.post(
        f"{CLUSTER}/placements",
        json={"pods": [pod("new", namespace=namespace)]},
        headers=by(caller.name),
    )
    assert problem(answer, 500) == "ObjectUnreadable"
    assert answer.json()["detail"] == detail


@pytest.mark.parametrize("what", ["apply", "deletion"])
async def test_a_later_commit_of_a_request_does_not_name_what_its_caller_may_not_read(
    make_harness: MakeHarness, monkeypatch: pytest.MonkeyPatch, what: str
):
    harness = await make_harness(apply_lines_per_commit=1)
    Callers(Principal("tenant", (Grant("orchestrator", "default", "mine"),))).call(harness)
    pods = [pod(name, namespace="mine") for name in ("a", "b", "c")]
    for each in pods:
        await harness.put(f"namespaces/mine/pods/{each['metadata']['name']}", each)
    submit, left = harness.scheduler.submit, 1

    async def failing(*arguments: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise ObjectUnreadable("Pod", "shop", "web-1")
        return await submit(*arguments, **options)

    monkeypatch.setattr(harness.scheduler, "submit", failing)
    if what == "deletion":
        path = f"{CLUSTER}/namespaces/mine/pods?all=true"
        answer = await harness.client.delete(path, headers=by("tenant"))
    else:
        lines = b"\n".join(map(msgspec.json.encode, pods))
        headers = by("tenant") | {"content-type": "application/x-ndjson"}
        answer = await harness.client.post(f"{CLUSTER}/apply", content=lines, headers=headers)
    assert answer.status_code == 200, answer.text
    assert UNNAMED in answer.text
    assert "web-1" not in answer.text


async def test_it_is_logged_once_which_object_cannot_be_read(
    harness: Harness,
    operator: asyncpg.Connection,
    clock: HurriedClock,
    caplog: pytest.LogCaptureFixture,
):
    await tamper(operator, BROKEN)
    with caplog.at_level(logging.ERROR, "service.scheduler"):
        for _ in range(3):
            await harness.client.post(f"{CLUSTER}/placements", json={"pods": [pod("new")]})
            clock.advance(Limits().unreadable_seconds)
    told = [each for each in caplog.records if each.message == "The cluster cannot be served."]
    assert len(told) == 1
