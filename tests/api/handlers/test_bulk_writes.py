"""Many objects at once: a `List` whole or not at all, NDJSON line by line."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from typing_extensions import override

from service.model.core.errors import StorageUnavailable
from service.model.log.commit import CommitRequest
from service.model.log.results import CommitResult
from service.runtime.clock import SystemClock
from service.runtime.ids import RandomIds
from tests.api.harness import CLUSTER, Harness, HurriedClock, node, pod, problem
from tests.support.memory_store.log import MemoryLog
from tests.support.memory_store.store import MemoryStore
from tests.waiting import WAIT_SECONDS

APPLY = f"{CLUSTER}/apply"
NDJSON = {"content-type": "application/x-ndjson"}


def list_of(*items: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def lines(*items: object) -> bytes:
    return b"\n".join(json.dumps(item).encode() for item in items)


async def apply(harness: Harness, *items: object, query: str = "") -> dict:
    answer = await harness.client.post(f"{APPLY}{query}", json=list_of(*items))
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert str(body.pop("revision")) == answer.headers["moorage-revision"]
    return body


async def stream(harness: Harness, content: bytes) -> list[dict]:
    answer = await harness.client.post(APPLY, content=content, headers=NDJSON)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


async def test_a_list_is_counted(over_each_store: Harness) -> None:
    items = [node("n1"), node("n2"), pod("a", nodeName="n1")]
    first = await apply(over_each_store, *items)
    assert first == {"created": 3, "changed": 0, "unchanged": 0, "deleted": 0}
    second = await apply(over_each_store, node("n1", zone="b"), *items[1:])
    assert second == {"created": 0, "changed": 1, "unchanged": 2, "deleted": 0}


async def test_what_kubectl_prints_is_accepted(harness: Harness) -> None:
    printed = pod("a", nodeName="n1")
    printed["metadata"] |= {
        "resourceVersion": "123456",
        "uid": "0f7c2f7e-7a6f-4f5e-8f55-1f3f0f3c9a11",
        "generation": 3,
        "managedFields": [{"manager": "kubelet"}],
        "creationTimestamp": "2026-01-02T03:04:05Z",
    }
    body = {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [printed]}
    answer = await harness.client.post(APPLY, json=body)
    assert answer.status_code == 200, answer.text
    read = (await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/a")).json()["metadata"]
    assert read["uid"] == "0f7c2f7e-7a6f-4f5e-8f55-1f3f0f3c9a11"
    assert not read.keys() & {"generation", "managedFields"}


async def test_one_invalid_object_refuses_the_list(over_each_store: Harness) -> None:
    bad = pod("b", containers=[], tolerations=[{"operator": "Maybe"}])
    body = list_of(node("n1"), bad, {"kind": "Gizmo", "metadata": {"name": "g"}}, {})
    answer = await over_each_store.client.post(APPLY, json=body)
    assert problem(answer, 422) == "InvalidManifest"
    fields = [error["field"] for error in answer.json()["errors"]]
    assert "items[1].spec.tolerations[0].operator" in fields
    assert fields[-2:] == ["items[2].kind", "items[3].kind"]
    listed = await over_each_store.client.get(f"{CLUSTER}/nodes")
    assert listed.json()["items"] == []


async def test_prune_removes_what_the_list_lacks(over_each_store: Harness) -> None:
    await apply(over_each_store, node("old"), node("kept"), pod("a", nodeName="kept"))
    head = (await over_each_store.client.get(CLUSTER)).json()["revision"]
    await over_each_store.put_node("new")
    query = f"?prune=Node&pruneBefore={head}"
    pruned = await apply(over_each_store, node("kept"), query=query)
    assert pruned == {"created": 0, "changed": 0, "unchanged": 1, "deleted": 1}
    listed = (await over_each_store.client.get(f"{CLUSTER}/nodes")).json()["items"]
    assert [item["metadata"]["name"] for item in listed] == ["kept", "new"]


@pytest.mark.parametrize("query", ["?prune=Gizmo", "?prune=Node&pruneBefore=x", "?prun=Node"])
async def test_bad_prunes_are_refused(harness: Harness, query: str) -> None:
    answer = await harness.client.post(APPLY + query, json=list_of())
    assert problem(answer, 400) == "MalformedRequest"


async def test_a_list_has_a_limit(make_harness) -> None:
    harness = await make_harness(apply_objects_max=2)
    answer = await harness.client.post(APPLY, json=list_of({}, {}, {}))
    assert problem(answer, 422) == "InvalidManifest"
    assert [error["field"] for error in answer.json()["errors"]] == ["items"]


async def test_lines_are_answered_one_by_one(over_each_store: Harness) -> None:
    content = b"\n".join(
        [
            lines(node("n1")),
            b"",
            b'{"kind": "Pod"',
            lines(pod("a", nodeName="n1")),
            lines(pod("b", tolerations=[{"operator": "Maybe"}])),
            lines({"kind": "Gizmo", "metadata": {"name": "g"}}),
            b'"text"',
            lines(node("n1")),
        ]
    )
    results = await stream(over_each_store, content)
    assert [(r["line"], r["result"]) for r in results] == [
        (1, "Created"),
        (3, "Invalid"),
        (4, "Created"),
        (5, "Invalid"),
        (6, "Invalid"),
        (7, "Invalid"),
        (8, "Unchanged"),
    ]
    assert (results[3]["kind"], results[3]["namespace"], results[3]["name"]) == ("Pod", "shop", "b")
    assert results[3]["errors"][0]["field"] == "spec.tolerations[0].operator"
    assert results[2]["revision"] > results[0]["revision"]


async def test_lines_are_committed_in_chunks(make_harness) -> None:
    harness = await make_harness(apply_lines_per_commit=2)
    results = await stream(harness, lines(*(node(f"n{i}") for i in range(5))) + b"\n")
    assert [r["result"] for r in results] == ["Created"] * 5
    assert [r["line"] for r in results] == [1, 2, 3, 4, 5]


async def test_lines_broken_over_pieces_are_put_together(harness: Harness) -> None:
    content = lines(node("n1"), node("n2"))

    async def pieces():
        for at in range(0, len(content), 7):
            yield content[at : at + 7]

    answer = await harness.client.post(APPLY, content=pieces(), headers=NDJSON)
    assert len(answer.text.splitlines()) == 2


async def test_no_lines_are_no_results(harness: Harness) -> None:
    assert await stream(harness, b"\n\n") == []
    assert await stream(harness, b"") == []


async def test_a_stream_that_breaks_ends_with_a_problem(make_harness) -> None:
    harness = await make_harness(apply_lines_per_commit=1, apply_line_bytes_max=1024)
    content = lines(node("n1")) + b"\n" + b"x" * 2000

    async def pieces():
        yield content[:-2000]
        yield content[-2000:]

    answer = await harness.client.post(APPLY, content=pieces(), headers=NDJSON)
    first, last = [json.loads(line) for line in answer.text.splitlines()]
    assert first["result"] == "Created"
    assert (last["code"], last["status"]) == ("BodyTooLarge", 413)


async def conversed(
    harness: Harness, *pieces: bytes, begun: Callable[[], None] = lambda: None
) -> list[dict[str, Any]]:
    """The answers to pieces of a stream, each sent once the one before it is answered.

    `begun` is called as the first one is sent.
    """
    answered, sent = asyncio.Event(), list(pieces)
    answers: list[bytes] = []

    async def receive() -> dict[str, Any]:
        if len(sent) == len(pieces):
            begun()
        else:
            await answered.wait()
            answered.clear()
        return {"type": "http.request", "body": sent.pop(0), "more_body": bool(sent)}

    async def send(message: dict[str, Any]) -> None:
        if message.get("body"):
            answers.append(message["body"])
            answered.set()

    scope = {
        "type": "http",
        "method": "POST",
        "path": APPLY,
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/x-ndjson")],
    }
    await asyncio.wait_for(harness.app(scope, receive, send), WAIT_SECONDS)
    return [json.loads(line) for each in answers for line in each.splitlines()]


async def test_answers_do_not_wait_for_lines_that_are_still_to_come(make_harness) -> None:
    harness = await make_harness(apply_lines_per_commit=1)
    answers = await conversed(harness, lines(node("n1")) + b"\n", lines(node("n2")))
    assert [each["name"] for each in answers] == ["n1", "n2"]


class _SlowLog(MemoryLog):
    """Takes so long for a commit that others have seen meanwhile whose time is up."""

    @override
    async def commit(self, cluster_id: int, request: CommitRequest) -> CommitResult:
        for _ in range(100):
            await asyncio.sleep(0)
        return await super().commit(cluster_id, request)


async def test_who_waits_for_an_answer_before_sending_on_is_not_too_slow(make_harness) -> None:
    """The time of the second piece is up before it can have been sent."""
    clock = HurriedClock()
    store = MemoryStore(SystemClock().now, RandomIds().commit_id)
    store.log = _SlowLog(store.state)
    harness = await make_harness(
        store, clock, apply_lines_per_commit=1, body_timeout_seconds=WAIT_SECONDS
    )

    def pass_time() -> None:
        clock.advance(2 * WAIT_SECONDS)

    pieces = (lines(node("n1")) + b"\n", lines(node("n2")))
    answers = await conversed(harness, *pieces, begun=pass_time)
    assert [each.get("name") for each in answers] == ["n1", "n2"]


class _FailingLog(MemoryLog):
    """Refuses the second commit, before it has done anything."""

    commits = 0

    @override
    async def commit(self, cluster_id: int, request: CommitRequest) -> CommitResult:
        self.commits += 1
        if self.commits == 2:
            raise StorageUnavailable("The database is away.")
        return await super().commit(cluster_id, request)


async def test_nothing_is_applied_after_a_chunk_that_failed(make_harness) -> None:
    store = MemoryStore(SystemClock().now, RandomIds().commit_id)
    store.log = _FailingLog(store.state)
    harness = await make_harness(store, apply_lines_per_commit=1)
    content = lines(*(node(f"n{i}") for i in range(5)))
    answer = await harness.client.post(APPLY, content=content, headers=NDJSON)
    *answered, last = [json.loads(line) for line in answer.text.splitlines()]
    assert last["code"] == "StorageUnavailable"
    assert answered
    listed = (await harness.client.get(f"{CLUSTER}/nodes")).json()["items"]
    assert [node["metadata"]["name"] for node in listed] == [line["name"] for line in answered]


async def test_lines_to_an_unknown_cluster_are_refused_at_once(harness: Harness) -> None:
    answer = await harness.client.post(
        "/v1/clusters/none/apply", content=lines(node("n1")), headers=NDJSON
    )
    assert problem(answer, 404) == "NotFound"


async def test_lines_are_not_pruned(harness: Harness) -> None:
    answer = await harness.client.post(APPLY + "?prune=Node", content=b"", headers=NDJSON)
    assert problem(answer, 400) == "MalformedRequest"


async def test_the_first_answer_is_given_again(over_each_store: Harness) -> None:
    key = {"idempotency-key": "load-1"}
    client = over_each_store.client
    first = await client.post(APPLY, json=list_of(node("n1")), headers=key)
    again = await client.post(APPLY, json=list_of(node("n1")), headers=key)
    assert first.json()["created"] == 1
    assert again.json() == first.json()
    for query, sent in (("", node("n2")), ("?prune=Pod", node("n1"))):
        other = await client.post(APPLY + query, json=list_of(sent), headers=key)
        assert problem(other, 422) == "IdempotencyKeyReused"


async def test_each_chunk_of_lines_is_recorded(make_harness) -> None:
    harness = await make_harness(apply_lines_per_commit=2)
    content = lines(*(node(f"n{i}") for i in range(5)))
    headers = {**NDJSON, "idempotency-key": "load-2"}
    first = await harness.client.post(APPLY, content=content, headers=headers)
    again = await harness.client.post(APPLY, content=content, headers=headers)
    assert again.text == first.text
    assert "Created" in again.text


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 256, "é"])
async def test_bad_idempotency_keys_are_refused(harness: Harness, key: str) -> None:
    answer = await harness.client.post(
        APPLY, json=list_of(), headers={"idempotency-key": key.encode()}
    )
    assert problem(answer, 400) == "MalformedRequest"
