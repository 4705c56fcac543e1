"""Webhooks over HTTP: records reach a receiver signed, in order and at least once, and status tells of failures."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from service.api.telemetry.metrics import Metrics
from service.api.webhooks.delivery import Deliveries, pause_seconds
from service.api.webhooks.sending import Sender
from service.model.webhooks import WebhookGone, delivered, released
from service.runtime.ids import RandomIds
from service.settings import Settings
from service.store.postgres import PostgresStore
from tests.api.harness import CLUSTER, Harness, HurriedClock, pod, problem
from tests.waiting import WAIT_SECONDS, once

HOOK = f"{CLUSTER}/webhooks/orchestrator"
OPEN: dict[str, Any] = {
    "webhook_http": True,
    "webhook_networks": "127.0.0.0/8",
    "webhook_poll_seconds": 0.01,
    "webhook_failures_max": 3,
    "webhook_records_max": 2,
    "webhook_interval_seconds": 0,
}


class Receiver:
    """Answers each message with the next status, and keeps what it was told."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.got: list[tuple[dict[str, str], str]] = []
        self.changed = asyncio.Condition()
        self.answering = asyncio.Event()
        """Cleared, no answer is sent."""
        self.answering.set()
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {k.lower(): v for k, _, v in (each.partition(": ") for each in head[1:] if each)}
        body = (await reader.readexactly(int(headers["content-length"]))).decode()
        status = self.answers.pop(0) if self.answers else 204
        async with self.changed:
            self.got.append((headers, body))
            self.changed.notify_all()
        await self.answering.wait()
        extra = "Location: http://127.0.0.1:9/\r\n" if status == 302 else ""
        writer.write(f"HTTP/1.1 {status} X\r\n{extra}Content-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async def messages(self, count: int) -> list[dict[str, Any]]:
        async with asyncio.timeout(WAIT_SECONDS), self.changed:
            await self.changed.wait_for(lambda: len(self.got) >= count)
        return [json.loads(body) for _, body in self.got]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    own = Receiver()
    server = await asyncio.start_server(own.serve, "127.0.0.1", 0)
    own.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/records?of=moorage"
    async with server:
        yield own


@asynccontextmanager
async def delivering(store: Any, clock: HurriedClock, **settings: Any) -> AsyncIterator[None]:
    """One process that delivers, for as long as this lasts."""
    chosen = Settings(**OPEN | settings)
    sender = Sender(chosen, clock.now)
    deliveries = Deliveries(
        store=store,
        sender=sender,
        settings=chosen,
        clock=clock,
        meter=Metrics(),
        holder=RandomIds().uid(),
    )
    task = asyncio.create_task(deliveries.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await sender.close()


async def made(harness: Harness, url: str, **settings: Any) -> dict[str, Any]:
    answer = await harness.client.put(HOOK, json={"url": url, "events": "Bindings", **settings})
    assert answer.status_code in {200, 201}, answer.text
    return answer.json()


async def until(harness: Harness, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The webhook's status as soon as something holds of it."""

    async def looked() -> dict[str, Any]:
        status: dict[str, Any] = (await harness.client.get(HOOK)).json()["status"]
        return status if holds(status) else {}

    return await once(looked)


def names(messages: list[dict[str, Any]]) -> list[str]:
    return [each["name"] for message in messages for each in message["data"]["records"]]


async def test_records_come_signed_and_in_order_and_failed_messages_again(
    database_url: str, make_harness: Any, receiver: Receiver
):
    store, clock = PostgresStore(database_url), HurriedClock()
    harness = await make_harness(store=store, **OPEN)
    for each in ("n1", "n2", "n3"):
        await harness.put_node(each)
    hook = await made(harness, receiver.url, namespace="shop")
    receiver.answers = [503, 204]
    quick = {"webhook_pause_seconds_max": 0.01}
    async with delivering(store, clock, **quick), delivering(store, clock, **quick):
        await harness.place(*(pod(f"p{each}") for each in range(5)), pod("x", "other"))
        status = await until(harness, lambda told: told["behind"] == 0)
    messages = await receiver.messages(4)
    assert status["failures"] == 0
    assert "lastError" not in status
    assert messages[0] == messages[1]
    assert receiver.got[0][0]["webhook-id"] == receiver.got[1][0]["webhook-id"]
    assert names(messages[1:]) == [f"p{each}" for each in range(5)]
    ends = [message["data"]["revision"] for message in messages[1:]]
    starts = [message["data"]["afterRevision"] for message in messages[1:]]
    assert starts[1:] == ends[:-1]
    for headers, body in receiver.got:
        Webhook(hook["secret"]).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(hook["secret"]).verify(receiver.got[0][1] + " ", receiver.got[0][0])
    await store.close()


async def test_what_happens_between_two_messages_is_told_by_the_next(
    make_harness: Any, receiver: Receiver
):
    harness = await make_harness(**OPEN)
    for each in ("n1", "n2"):
        await harness.put_node(each)
    await made(harness, receiver.url)
    async with delivering(harness.store, HurriedClock(), webhook_interval_seconds=60):
        await harness.place(pod("p0"))
        await until(harness, lambda told: told["behind"] == 0)
        await harness.place(pod("p1"))
        await harness.place(pod("p2"))
        await made(harness, receiver.url)  # It goes on at once when it is changed.
        messages = await receiver.messages(2)
    assert [names([each]) for each in messages] == [["p0"], ["p1", "p2"]]


async def test_a_webhook_stops_after_failures_until_it_is_replaced(
    make_harness: Any, receiver: Receiver
):
    harness = await make_harness(**OPEN)
    for each in ("n1", "n2", "n3"):
        await harness.put_node(each)
    await made(harness, receiver.url)
    receiver.answers = [500, 302, 500]
    async with delivering(harness.store, HurriedClock(), webhook_pause_seconds_max=0.01):
        await harness.place(pod("p0"))
        status = await until(harness, lambda told: told["stopped"])
        assert status["failures"] == 3
        assert status["lastError"] == "The receiver answered 500."
        assert len(receiver.got) == 3
        await made(harness, receiver.url)
        status = await until(harness, lambda told: told["behind"] == 0)
        assert not status["stopped"]
        assert names(await receiver.messages(4))[-1] == "p0"
        receiver.answers = [410]
        await harness.place(pod("p1"))
        status = await until(harness, lambda told: told["stopped"])
        assert status["failures"] == 1
        assert "nextAttemptAt" not in status or status["nextAttemptAt"] is None


async def test_a_receiver_is_told_that_the_log_was_compacted_and_gets_what_follows(
    database_url: str, make_harness: Any, receiver: Receiver
):
    store = PostgresStore(database_url)
    harness = await make_harness(store=store, **OPEN)
    await harness.put_node("n1")
    await made(harness, receiver.url)
    since = (await harness.store.log.head(1)).revision
    await harness.place(pod("p0"))
    lost = (await harness.store.log.head(1)).revision
    await harness.store.housekeeping.compact(1, keep_changes=0, keep_seconds=0)
    async with delivering(harness.store, HurriedClock()):
        await receiver.messages(1)
        await harness.place(pod("p1"))
        await until(harness, lambda told: told["behind"] == 0)
    compacted, changed = await receiver.messages(2)
    assert (compacted["type"], changed["type"]) == ("bindings.compacted", "bindings.changed")
    assert "records" not in compacted["data"]
    assert compacted["data"]["afterRevision"] == since
    assert compacted["data"]["revision"] == changed["data"]["afterRevision"] == lost
    assert names([changed]) == ["p1"]
    await store.close()


async def test_a_secret_is_told_once_and_the_earlier_one_signs_for_a_while(
    make_harness: Any, receiver: Receiver
):
    harness = await make_harness(**OPEN)
    first = await made(harness, receiver.url)
    assert "secret" not in (await harness.client.get(HOOK)).text
    second = (await harness.client.post(f"{HOOK}/secret")).json()
    assert second["secret"] != first["secret"]
    assert "previousSecretUntil" in second
    assert (await harness.client.post(f"{HOOK}/ping")).json() == {
        "acknowledged": True,
        "status": 204,
    }
    (headers, body), *_ = receiver.got
    assert json.loads(body)["type"] == "ping"
    for each in (first, second):
        Webhook(each["secret"]).verify(body, headers)
    receiver.answers = [302]
    refused = (await harness.client.post(f"{HOOK}/ping")).json()
    assert refused == {
        "acknowledged": False,
        "status": 302,
        "error": "The receiver answered 302. Redirects are not followed.",
    }


async def test_webhooks_are_made_read_replaced_and_deleted(over_each_store: Harness):
    harness, url = over_each_store, "https://orchestrator.example/"
    client, body = harness.client, {"url": url, "events": "Bindings"}
    dry = await client.put(HOOK, params={"dryRun": "true"}, json=body)
    assert dry.status_code == 201
    assert "etag" not in dry.headers
    assert problem(await client.get(HOOK), 404) == "NotFound"
    first = await client.put(HOOK, json=body, headers={"if-none-match": "*"})
    assert first.status_code == 201
    again = await client.put(HOOK, json=body, headers={"if-none-match": "*"})
    assert problem(again, 412) == "PreconditionFailed"
    tag = {"if-match": first.headers["etag"]}
    second = await client.put(HOOK, json=body | {"disabled": True}, headers=tag)
    assert second.status_code == 200
    assert "secret" not in second.json()
    assert problem(await client.delete(HOOK, headers=tag), 412) == "PreconditionFailed"
    listed = (await client.get(f"{CLUSTER}/webhooks")).json()
    assert [(each["name"], each["disabled"]) for each in listed["items"]] == [
        ("orchestrator", True)
    ]
    assert (await client.delete(HOOK)).status_code == 200
    assert problem(await client.post(f"{HOOK}/secret"), 404) == "NotFound"


JSON_PATCH = {"content-type": "application/json-patch+json"}
LATER: dict[str, Any] = {"namespace": "shop", "disabled": True}


@pytest.mark.parametrize(
    ("sent", "headers", "changed"),
    [
        (LATER, {"content-type": "application/merge-patch+json"}, LATER),
        ({"namespace": "shop"}, {}, {"namespace": "shop"}),
        ([{"op": "replace", "path": "/url", "value": "https://b.example/"}], JSON_PATCH, {"url": "https://b.example/"}),
    ],
)  # fmt: skip
async def test_a_patch_changes_what_it_names(
    over_each_store: Harness, sent: Any, headers: dict[str, str], changed: dict[str, Any]
):
    harness = over_each_store
    client = harness.client
    assert problem(await client.patch(HOOK, json=sent, headers=headers), 404) == "NotFound"
    await made(harness, "https://a.example/")
    before = await client.get(HOOK)
    tagged = headers | {"if-match": before.headers["etag"]}
    dry = await client.patch(f"{HOOK}?dryRun=true", json=sent, headers=headers)
    assert dry.json() == before.json() | changed
    assert (await client.get(HOOK)).json() == before.json()
    after = await client.patch(HOOK, json=sent, headers=tagged)
    assert after.json() == dry.json() == (await client.get(HOOK)).json()
    assert after.headers["etag"] != before.headers["etag"]
    again = await client.patch(HOOK, json=sent, headers=tagged)
    assert problem(again, 412) == "PreconditionFailed"
    back = await client.patch(
        HOOK, json={"namespace": None, "disabled": None, "url": "https://a.example/"}
    )
    assert back.json() == before.json()


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"url": "https://10.0.0.1/"}, "url"),
        ({"url": None}, "url"),
        ({"secret": "mine"}, "secret"),
        ({"disabled": 1}, "disabled"),
        ({"afterRevision": 1_000_000}, "afterRevision"),
        ([{"op": "remove", "path": "/namespace"}], "[0]"),
        ([{"op": "add", "path": "/name", "value": "other"}], "name"),
    ],
)
async def test_a_wrong_patch_is_named(harness: Harness, sent: Any, field: str):
    await made(harness, "https://a.example/")
    headers = JSON_PATCH if isinstance(sent, list) else {}
    answer = await harness.client.patch(HOOK, json=sent, headers=headers)
    assert problem(answer, 422) == "InvalidManifest"
    assert [each["field"] for each in answer.json()["errors"]] == [field]


async def test_what_may_no_longer_be_sent_to_can_be_paused(make_harness: Any):
    harness = await make_harness(**OPEN)
    await made(harness, "http://127.0.0.1:9/")
    narrower = await make_harness(store=harness.store)
    paused = await narrower.client.patch(HOOK, json={"disabled": True})
    assert paused.json()["disabled"]


async def test_a_change_awaits_the_message_that_is_under_way(
    database_url: str, make_harness: Any, receiver: Receiver
):
    store = PostgresStore(database_url)
    harness = await make_harness(store=store, **OPEN)
    await harness.put_node("n1")
    await made(harness, receiver.url)
    receiver.answering.clear()
    async with delivering(store, HurriedClock()), delivering(store, HurriedClock()):
        await harness.place(pod("p0"))
        await receiver.messages(1)
        await harness.client.patch(HOOK, json={"namespace": None})
        assert await store.webhooks.claim("another", 60, 10) == []
        assert len(receiver.got) == 1
        receiver.answering.set()
        await until(harness, lambda told: told["behind"] == 0)
    first, again = await receiver.messages(2)
    assert first["data"]["records"] == again["data"]["records"]
    await store.close()


class SlowStore:
    """The store of a database that answers late; counts how often webhooks were taken."""

    def __init__(self, store: Any, clock: HurriedClock) -> None:
        self._store = store
        self._clock = clock
        self.taken = 0
        self.let_go = asyncio.Event()
        self.webhooks = self
        self.log = self
        self.clusters = store.clusters

    async def claim(self, *arguments: Any) -> Any:
        rows = await self._store.webhooks.claim(*arguments)
        self.taken += len(rows)
        return rows

    async def read(self, *arguments: Any) -> Any:
        self._clock.advance(60)
        return await self._store.log.read(*arguments)

    async def change(self, *arguments: Any) -> Any:
        row = await self._store.webhooks.change(*arguments)
        if row is not None and row.holder is None:
            self.let_go.set()
        return row


async def test_a_webhook_for_which_the_store_is_too_slow_is_not_taken_again_at_once(
    make_harness: Any, receiver: Receiver
):
    harness = await make_harness(**OPEN)
    await harness.put_node("n1")
    await made(harness, receiver.url)
    await harness.place(pod("p0"))
    clock = HurriedClock()
    slow = SlowStore(harness.store, clock)
    async with delivering(slow, clock, webhook_poll_seconds=600):
        async with asyncio.timeout(WAIT_SECONDS):
            await slow.let_go.wait()
        await harness.place(pod("p1"))
        assert (slow.taken, receiver.got) == (1, [])
    assert len(await harness.store.webhooks.claim("another", 60, 10)) == 1


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"url": "http://orchestrator.example/"}, "url"),
        ({"url": "https://127.0.0.1/"}, "url"),
        ({"url": "https://[::ffff:10.0.0.1]/"}, "url"),
        ({"url": "https://169.254.169.254/latest"}, "url"),
        ({"url": "https://u:p@orchestrator.example/"}, "url"),
        ({"url": "https:///"}, "url"),
        ({"events": "Nodes"}, "events"),
        ({"afterRevision": 1_000_000}, "afterRevision"),
        ({"namespace": "No!"}, "namespace"),
    ],
)
async def test_wrong_settings_are_named(harness: Harness, settings: dict[str, Any], field: str):
    body = {"url": "https://orchestrator.example/", "events": "Bindings", **settings}
    answer = await harness.client.put(HOOK, json=body)
    assert problem(answer, 422) == "InvalidManifest"
    assert [each["field"] for each in answer.json()["errors"]] == [field]


async def test_a_name_with_a_private_address_is_refused_when_it_is_sent_to(harness: Harness):
    await made(harness, "https://localhost:1/")
    answer = (await harness.client.post(f"{HOOK}/ping")).json()
    assert not answer["acknowledged"]
    assert "MOORAGE_WEBHOOK_NETWORKS" in answer["error"]


async def test_a_redirect_is_not_followed(make_harness: Any, receiver: Receiver):
    harness = await make_harness(**OPEN)
    await made(harness, receiver.url)
    receiver.answers = [302]
    answer = (await harness.client.post(f"{HOOK}/ping")).json()
    assert answer["error"] == "The receiver answered 302. Redirects are not followed."


async def test_what_a_process_notes_counts_only_until_another_takes_the_webhook(
    over_each_store: Harness,
):
    """Even if it is the same process that takes it again."""
    store = over_each_store.store
    await made(over_each_store, "https://a.example/")
    await over_each_store.put_node("n1")
    (late,) = await store.webhooks.claim("a", 0.001, 10)
    (present,) = await once(lambda: store.webhooks.claim("a", 60, 10))
    with pytest.raises(WebhookGone):
        await store.webhooks.change(1, late.name, delivered(late, 1, is_sent=True))
    with pytest.raises(WebhookGone):
        await store.webhooks.change(1, late.name, released(late))
    assert await store.webhooks.claim("b", 60, 10) == []
    noted = await store.webhooks.change(1, late.name, delivered(present, 1, is_sent=True))
    assert (noted.revision, noted.holder) == (1, None)


def test_pauses_grow_up_to_their_bound():
    assert all(1 <= pause_seconds(failures, 900) <= 900 for failures in range(1, 200))
    assert pause_seconds(1, 900) <= 2
    assert max(pause_seconds(20, 900) for _ in range(100)) > 60
