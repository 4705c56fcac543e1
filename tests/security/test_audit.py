"""Whoever writes is in the audit, once, with the write; who is refused is counted there."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
from litestar.types import ASGIApp

from service.api.auth import refusal_log
from service.api.auth.authentication import STALE_AFTER_SECONDS, Authentication
from service.api.auth.refusal_log import Refusals
from service.api.http.context import RequestContext
from service.app import create_app
from service.model.core.access import ADMIN, EVERYBODY, Grant, Principal
from service.model.core.errors import StorageUnavailable
from service.model.log.audit_chain import COMMITTED, AuditEntry, AuditRow, Verifier
from service.runtime.clock import SystemClock
from service.runtime.ids import RandomIds
from service.scheduler.scheduler import Scheduler
from service.settings import Settings
from tests.api.conftest import MakeHarness
from tests.api.following import stream
from tests.api.harness import CLUSTER, Harness, HurriedClock, node, pod, problem
from tests.security.callers import Callers, by
from tests.support.memory_store.store import MemoryStore
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
    rows = await store.audit.list(limit=EVERYTHING, **wanted)
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
        ("POST", f"{CLUSTER}/nodes/n/cordon", {}, "cordonNode"),
        ("POST", f"{CLUSTER}/nodes/n/uncordon", {}, "uncordonNode"),
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
    assert row.revision == (await store.log.head(1)).revision == 101


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


def request(address: str = "192.0.2.1") -> RequestContext:
    return RequestContext(address=address, cluster="default")


@pytest.fixture
async def noted(store: MemoryStore) -> AsyncIterator[Refusals]:
    made = Refusals(store.audit, SecondsAtWill())
    yield made
    await made.close()


async def test_refusals_of_a_second_are_told_up_to_ten_and_counted_beyond(
    noted: Refusals, store: MemoryStore
) -> None:
    for _ in range(1000):
        noted.note(request(), 401)
    for status in (200, 404, 422, 500, 403, 429, 429):
        noted.note(request(), status)
    await noted.flush()
    rows = await told(store)
    assert len(rows) == refusal_log.TOLD_MAX + 3
    assert {(row.address, row.status, row.requests) for row in rows[: refusal_log.TOLD_MAX]} == {
        ("192.0.2.1", 401, 1)
    }
    others = [(row.address, row.status, row.requests) for row in rows[refusal_log.TOLD_MAX :]]
    assert others == [("", 401, 990), ("", 403, 1), ("", 429, 2)]


async def test_refusals_are_kept_by_themselves_after_a_second(store: MemoryStore) -> None:
    clock = SecondsAtWill()
    noted = Refusals(store.audit, clock)
    noted.note(request(), 403)
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

    monkeypatch.setattr(store.audit, "add_refusals", unavailable)
    noted = Refusals(store.audit, SecondsAtWill())
    noted.note(request(), 403)
    await noted.close()
    assert "1 refusals are not in the audit." in caplog.text


class SlowLog:
    """Keeps refusals once a test lets it."""

    enabled = True

    def __init__(self) -> None:
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()
        self.kept: list[int] = []

    async def add_refusals(self, entries: Sequence[AuditEntry]) -> None:
        self.begun.set()
        await self.may_end.wait()
        self.kept += [each.status for each in entries]


async def test_refusals_that_are_being_kept_are_waited_for_at_the_end() -> None:
    log, clock = SlowLog(), SecondsAtWill()
    noted = Refusals(log, clock)
    clock.over.set()
    noted.note(request(), 403)
    await log.begun.wait()
    closing = asyncio.create_task(noted.close())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not closing.done()
    log.may_end.set()
    await closing
    assert log.kept == [403]


async def test_refusals_go_on_being_kept_while_others_are() -> None:
    log, clock = SlowLog(), SecondsAtWill()
    noted = Refusals(log, clock)
    clock.over.set()
    noted.note(request(), 403)
    await log.begun.wait()
    noted.note(request(), 401)
    log.may_end.set()
    await noted.close()
    assert log.kept == [403, 401]


@pytest.fixture
async def refusing(
    make_harness: MakeHarness, store: MemoryStore
) -> AsyncIterator[tuple[Harness, Callers, Refusals]]:
    """An application with a tenant of the namespace `shop`, and its refusals."""
    noted = Refusals(store.audit, SecondsAtWill())
    harness = await make_harness(store=store, refusals=noted)
    callers = Callers(Principal("shop", (Grant("scheduler", "default", "shop"),)))
    callers.call(harness)
    yield harness, callers, noted
    await noted.close()


async def refused(noted: Refusals, store: MemoryStore) -> list[tuple[str, str, str, int, int]]:
    await noted.flush()
    return [
        (row.principal, row.operation, row.cluster, row.status, row.requests)
        for row in await told(store)
        if row.status != COMMITTED
    ]


async def test_lines_that_somebody_may_not_write_are_counted_as_refused(
    refusing: tuple[Harness, Callers, Refusals], store: MemoryStore
) -> None:
    harness, _, noted = refusing
    runs = pod("c", nodeName="n1")
    lines = [pod("a"), pod("b", namespace="bank"), node("n1"), runs]
    for times in (1, 2):  # the second time they are answered from the record
        answer = await harness.client.post(
            f"{CLUSTER}/apply",
            content=b"\n".join(map(msgspec.json.encode, lines)),
            headers={
                "content-type": "application/x-ndjson",
                "idempotency-key": "k",
                **by("shop"),
            },
        )
        results = [msgspec.json.decode(each)["result"] for each in answer.content.splitlines()]
        assert results == ["Created", "Forbidden", "Forbidden", "Forbidden"]
        found = await refused(noted, store)
        assert found == [("shop", "applyObjects", "default", 403, 3)] * times


async def test_a_watch_that_ends_because_its_caller_may_read_no_longer_is_counted_as_refused(
    refusing: tuple[Harness, Callers, Refusals], store: MemoryStore
) -> None:
    harness, callers, noted = refusing
    async with stream(harness, by("shop")) as watch:
        await watch.until(1)
        callers.revoke("shop")
        await harness.put_pod("new")
        await watch.task
    assert watch.events[-1].data["status"] == 403
    assert await refused(noted, store) == [("shop", "watchChanges", "default", 403, 1)]


# From when on it is kept


@pytest.fixture
def later() -> MemoryStore:
    return MemoryStore(SystemClock().now, RandomIds().commit_id, may_audit=True)


ROOT = '{"grants": [{"role": "admin"}]}'
AS_ROOT = {"content": ROOT, "headers": {"content-type": "application/json"}}


async def test_a_server_that_runs_keeps_the_audit_from_its_first_token_on(
    make_harness: MakeHarness, later: MemoryStore
) -> None:
    harness = await make_harness(store=later)
    await harness.client.put("/v1/principals/root", **AS_ROOT)
    await harness.put_node("before")
    assert await told(later) == []
    made = await harness.client.post("/v1/principals/root/tokens", json={})
    [first] = await told(later)
    assert (first.principal, first.operation) == ("everybody", "createToken")
    harness.client.headers["authorization"] = f"Bearer {made.json()['token']}"
    await harness.put_node("after")
    [_, last] = await told(later)
    assert (last.principal, last.operation) == ("root", "putNode")


async def make_token(store: MemoryStore) -> None:
    """Make a token as another process does, so that this one hears nothing of it."""
    await store.access.put_principal("User", "root", [ADMIN], keep_admin=True)
    await store.access.create_token(
        "t", "root", bytes(32), description="", expires_in=None, keep_admin=True
    )
    store.policy.enabled = False


async def test_another_process_keeps_it_as_soon_as_it_asks_who_calls(later: MemoryStore) -> None:
    clock = HurriedClock()
    authentication = Authentication(later, Settings(), clock)
    assert await authentication.principal([]) == EVERYBODY
    await make_token(later)
    clock.advance(STALE_AFTER_SECONDS)
    assert await authentication.principal([]) is None
    assert later.audit.enabled


@asynccontextmanager
async def started(app: ASGIApp) -> AsyncIterator[None]:
    """An application between its startup and its shutdown."""
    asked, said = asyncio.Queue[Any](), asyncio.Queue[Any]()
    scope: Any = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
    running = asyncio.ensure_future(app(scope, asked.get, said.put))
    await asked.put({"type": "lifespan.startup"})
    assert (await said.get())["type"] == "lifespan.startup.complete"
    yield
    await asked.put({"type": "lifespan.shutdown"})
    await running


async def test_a_process_that_nobody_asks_hears_of_the_first_token_by_itself(
    later: MemoryStore,
) -> None:
    clock = SecondsAtWill()
    scheduler = Scheduler(later, clock, RandomIds())
    app = create_app(Settings(), store=later, scheduler=scheduler, clock=clock)
    async with started(app):
        await make_token(later)
        clock.advance(STALE_AFTER_SECONDS)
        clock.over.set()

        async def is_kept() -> bool:
            return later.audit.enabled

        await once(is_kept)


async def test_nothing_is_noted_of_refusals_while_no_audit_is_kept(later: MemoryStore) -> None:
    noted = Refusals(later.audit, SecondsAtWill())
    noted.note(request(), 403)
    later.audit.begin()
    noted.note(request(), 401)
    await noted.close()
    assert [row.status for row in await told(later)] == [401]


async def test_a_server_that_is_to_keep_none_keeps_none(make_harness: MakeHarness) -> None:
    store = MemoryStore(SystemClock().now, RandomIds().commit_id)
    harness = await make_harness(store=store, token=TOKEN)
    harness.client.headers.update(RIGHT)
    await harness.put_node("n1")
    assert await told(store) == []


# At the edge


async def test_the_edge_notes_what_was_refused(store: MemoryStore) -> None:
    noted: list[tuple[str, int]] = []

    class Noting:
        def note(self, context: RequestContext, status: int, times: int = 1) -> None:
            noted.append((context.path, status))

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
