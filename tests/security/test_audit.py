"""Whoever writes is in the audit, once, with the write; who is refused is counted there."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

from service.api import refusals
from service.api.refusals import Refusals
from service.app import RandomIds, SystemClock, create_app
from service.model.audit import AuditRow, Verifier
from service.model.errors import StorageUnavailable
from service.scheduler.service import Scheduler
from service.settings import Settings
from service.store.memory import MemoryStore
from tests.api.conftest import MakeHarness
from tests.api.harness import CLUSTER, Harness, HurriedClock, node, pod, problem
from tests.waiting import once

TOKEN = "an-administrators-token-of-32-characters"
RIGHT = {"authorization": f"Bearer {TOKEN}"}
EVERYTHING = 1000

Recording = Callable[..., Awaitable[Harness]]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(SystemClock().now, RandomIds().commit_id, audit=True)


@pytest.fixture
async def audited(make_harness: MakeHarness, store: MemoryStore) -> Harness:
    harness = await make_harness(store=store, token=TOKEN)
    harness.client.headers.update(RIGHT)
    return harness


async def told(store: MemoryStore, **wanted: Any) -> list[AuditRow]:
    rows = await store.list_audit(limit=EVERYTHING, **wanted)
    verifier = Verifier()
    assert verifier.follow(rows) is None
    return rows


async def test_every_write_leaves_one_row_and_no_read_does(
    audited: Harness, store: MemoryStore
) -> None:
    client = audited.client
    placing = {"pods": [pod("a"), pod("b")]}
    writes = [
        ("PUT", "/v1/clusters/other", {"config": {}}, "putCluster"),
        ("PUT", f"{CLUSTER}/nodes/n", node("n"), "putNode"),
        ("PATCH", f"{CLUSTER}/nodes/n", {"spec": {"unschedulable": False}}, "patchNode"),
        ("PATCH", CLUSTER, {"config": {"placePendingPods": False}}, "patchCluster"),
        ("POST", f"{CLUSTER}/placements", placing, "placePods"),
        ("POST", f"{CLUSTER}/apply", {"kind": "List", "items": [pod("c")]}, "applyObjects"),
        ("POST", f"{CLUSTER}/namespaces/shop/pods/a/eviction", {}, "evictPod"),
        ("DELETE", f"{CLUSTER}/namespaces/shop/pods/b", None, "deletePod"),
        ("DELETE", "/v1/clusters/other", None, "deleteCluster"),
    ]
    for method, path, body, operation in writes:
        before = len(await told(store))
        answer = await client.request(method, path, json=body)
        assert answer.is_success, answer.text
        [*_, last] = await told(store, cluster="other" if "other" in path else "default")
        assert len(await told(store)) == before + 1, operation
        assert (last.operation, last.principal, last.status) == (operation, "bootstrap", 200)
        assert (last.address, last.request_id) == ("127.0.0.1", answer.headers["x-request-id"])
        assert str(last.revision) == answer.headers["moorage-revision"] or "other" in path
    before = await told(store)
    for path in ("/v1/clusters", f"{CLUSTER}/nodes", f"{CLUSTER}/violations", "/v1/audit"):
        assert (await client.get(path)).status_code == 200
    dry = {"pods": [pod("d")], "dryRun": True}
    assert (await client.post(f"{CLUSTER}/placements", json=dry)).status_code == 200
    assert await told(store) == before


async def test_a_hundred_pods_of_one_request_are_one_row(
    audited: Harness, store: MemoryStore
) -> None:
    pods = [pod(f"p{number}") for number in range(100)]
    await audited.place(*pods, onUnschedulable="Queue")
    [row] = await told(store)
    assert row.revision == (await store.head(1)).revision == 101


async def test_what_is_answered_again_leaves_no_second_row(
    audited: Harness, store: MemoryStore
) -> None:
    for _ in range(2):
        answer = await audited.client.post(
            f"{CLUSTER}/placements",
            json={"pods": [pod("a")], "onUnschedulable": "Queue"},
            headers={"idempotency-key": "k"},
        )
        assert answer.status_code == 200
    assert len(await told(store)) == 1
    for _ in range(2):
        await audited.client.put(f"{CLUSTER}/nodes/n", json=node("n"))
    assert [row.operation for row in await told(store)].count("putNode") == 1


async def test_requests_at_once_have_a_row_each(audited: Harness, store: MemoryStore) -> None:
    """Although one commit may carry the changes of all of them."""
    ids = {f"request-{number}" for number in range(20)}
    answers = await asyncio.gather(
        *(
            audited.client.put(
                f"{CLUSTER}/namespaces/{each}",
                json={"metadata": {"name": each}},
                headers={"x-request-id": each},
            )
            for each in sorted(ids)
        )
    )
    revisions = {a.headers["x-request-id"]: int(a.headers["moorage-revision"]) for a in answers}
    assert {row.request_id: row.revision for row in await told(store)} == revisions
    assert revisions.keys() == ids


async def test_what_the_server_does_by_itself_is_its_own(
    audited: Harness, store: MemoryStore
) -> None:
    await audited.place(pod("a"), onUnschedulable="Queue")
    await audited.put_node("n")

    async def placed() -> bool:
        return any(row.principal == "moorage" for row in await told(store))

    await once(placed)
    [own] = [row for row in await told(store) if row.principal == "moorage"]
    assert (own.operation, own.address, own.request_id) == ("PlacePending", "", "")


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"x-request-id": "a-1:b/c"}, "a-1:b/c"),
        ({"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}, "a" * 32),
        ({"x-request-id": "mine", "traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}, "mine"),
        ({"x-request-id": "x" * 129}, None),
        ({"x-request-id": 'a"b'}, None),
        ({"x-request-id": ""}, None),
        ({"traceparent": "00-zz"}, None),
        ({}, None),
    ],
)
async def test_a_request_has_an_id_which_its_answer_tells(
    harness: Harness, sent: dict[str, str], kept: str | None
) -> None:
    for path in ("/livez", "/nowhere", "//"):
        told = (await harness.client.get(path, headers=sent)).headers["x-request-id"]
        assert told == kept if kept else len(told) == 36


async def test_admins_read_the_audit_in_pages(audited: Harness, store: MemoryStore) -> None:
    for name in ("a", "b", "c"):
        await audited.put_node(name)
    await audited.client.put("/v1/clusters/other", json={"config": {}})
    found, token = [], None
    while True:
        params = {"limit": 2} | ({"continue": token} if token else {})
        page = (await audited.client.get("/v1/audit", params=params)).json()
        found += page["items"]
        token = page["metadata"].get("continue")
        if token is None:
            break
    assert [(row["chain"], row["number"]) for row in found] == [(0, 1), (1, 1), (1, 2), (1, 3)]
    other = await audited.client.get("/v1/audit", params={"cluster": "other"})
    assert other.json()["items"] == found[:1]
    late = {"since": found[-1]["at"]}
    assert found[1] not in (await audited.client.get("/v1/audit", params=late)).json()["items"]


@pytest.mark.parametrize(
    "query", ["continue=1", "continue=1.x", "since=yesterday", "until=2026-01-01T00:00:00", "of=a"]
)
async def test_what_cannot_be_asked_of_the_audit_is_refused(audited: Harness, query: str) -> None:
    answer = await audited.client.get(f"/v1/audit?{query}")
    assert problem(answer, 400) == "MalformedRequest"


async def test_who_has_no_token_does_not_read_the_audit(audited: Harness) -> None:
    audited.client.headers.pop("authorization")
    assert problem(await audited.client.get("/v1/audit"), 401) == "Unauthorized"


# Refusals


class SecondsAtWill(HurriedClock):
    """Sleeping takes until a test says that it is over."""

    def __init__(self) -> None:
        super().__init__()
        self.over = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        await (self.over.wait() if seconds else asyncio.sleep(0))


def scope(address: str = "192.0.2.1") -> Any:
    return {"type": "http", "client": (address, 1), "path_params": {"cluster": "default"}}


@pytest.fixture
async def noted(store: MemoryStore) -> AsyncIterator[Refusals]:
    made = Refusals(store, SecondsAtWill())
    yield made
    await made.close()


async def test_refusals_of_a_second_are_told_up_to_ten_and_counted_beyond(
    noted: Refusals, store: MemoryStore
) -> None:
    for _ in range(1000):
        noted.note(scope(), 401)
    for status in (200, 404, 422, 500, 403, 429, 429):
        noted.note(scope(), status)
    await noted.flush()
    rows = await told(store)
    assert len(rows) == refusals.TOLD_MAX + 3
    assert {(row.address, row.status, row.requests) for row in rows[: refusals.TOLD_MAX]} == {
        ("192.0.2.1", 401, 1)
    }
    others = [(row.address, row.status, row.requests) for row in rows[refusals.TOLD_MAX :]]
    assert others == [("", 401, 990), ("", 403, 1), ("", 429, 2)]


async def test_refusals_are_kept_by_themselves_after_a_second(store: MemoryStore) -> None:
    clock = SecondsAtWill()
    noted = Refusals(store, clock)
    noted.note(scope(), 403)
    assert await told(store) == []
    clock.over.set()

    async def kept() -> bool:
        return bool(await told(store))

    await once(kept)
    [row] = await told(store)
    assert (row.chain, row.cluster, row.status) == (0, "default", 403)


async def test_refusals_that_cannot_be_kept_are_dropped_and_said_so(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def unavailable(_: object) -> None:
        raise StorageUnavailable("No connection.")

    monkeypatch.setattr(store, "add_refusals", unavailable)
    noted = Refusals(store, SecondsAtWill())
    noted.note(scope(), 403)
    await noted.close()
    assert "1 refusals are not in the audit." in caplog.text


async def test_the_edge_notes_what_was_refused(store: MemoryStore) -> None:
    noted: list[tuple[str, int]] = []

    class Noting:
        def note(self, scope: Any, status: int) -> None:
            noted.append((scope["path"], status))

    app = create_app(
        Settings(token=TOKEN),
        store=store,
        scheduler=Scheduler(store, SystemClock(), RandomIds()),
        clock=SystemClock(),
        refusals=Noting(),  # type: ignore[arg-type]
    )
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://moorage") as client:
        await client.get("/v1/clusters")
        await client.get("/livez")
    assert noted == [("/v1/clusters", 401), ("/livez", 200)]
