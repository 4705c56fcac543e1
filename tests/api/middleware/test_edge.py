"""What is refused before a handler sees it, and how every refusal looks."""

import asyncio

import pytest

from tests.api.harness import AS_JSON, Harness, HurriedClock, problem
from tests.waiting import WAIT_SECONDS

PODS = "/v1/clusters/default/pods"
POD = "/v1/clusters/default/namespaces/shop/pods/web-0"
PLACEMENTS = "/v1/clusters/default/placements"


async def test_unknown_paths_are_problem_documents(harness: Harness) -> None:
    answer = await harness.client.get("/v1/nothing", headers={"x-request-id": "mine"})
    assert problem(answer, 404) == "NoSuchPath"
    assert answer.json() == {
        "type": "/errors/NoSuchPath",
        "code": "NoSuchPath",
        "title": "Nothing is served at this path",
        "status": 404,
        "detail": "Nothing is served at this path.",
        "instance": "/v1/nothing",
        "requestId": "mine",
    }


async def test_wrong_methods_say_which_are_allowed(harness: Harness) -> None:
    answer = await harness.client.post(PODS)
    assert problem(answer, 405) == "MethodNotAllowed"
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "DELETE", "OPTIONS"}


@pytest.mark.parametrize("content_type", ["text/plain", "application/yaml", "a/b; charset=utf-8"])
async def test_other_content_types_are_refused(harness: Harness, content_type: str) -> None:
    answer = await harness.client.put(POD, content=b"{}", headers={"content-type": content_type})
    assert problem(answer, 415) == "UnsupportedMediaType"
    assert "application/json" in answer.json()["detail"]


@pytest.mark.parametrize("content_type", [b"", b" ", "\xa0".encode("latin-1")])
async def test_a_body_without_a_content_type_is_refused_where_it_is_optional(
    harness: Harness, content_type: bytes
) -> None:
    answer = await harness.client.request(
        "DELETE", POD, content=b"{}", headers={b"content-type": content_type}
    )
    assert problem(answer, 415) == "UnsupportedMediaType"


@pytest.mark.parametrize(
    "headers",
    [
        {"content-encoding": "br"},
        {"content-encoding": "gzip, gzip"},
        {"content-type": "application/json; charset=latin-1"},
    ],
    ids=["encoding", "two encodings", "charset"],
)
async def test_other_encodings_are_refused(harness: Harness, headers: dict[str, str]) -> None:
    answer = await harness.client.put(POD, content=b"{}", headers=headers)
    assert problem(answer, 415) == "UnsupportedMediaType"


async def test_a_long_url_is_refused(harness: Harness) -> None:
    answer = await harness.client.get(PODS + "?labelSelector=" + "a" * 9000)
    assert problem(answer, 414) == "URLTooLong"


async def test_large_headers_are_refused(harness: Harness) -> None:
    answer = await harness.client.get(PODS, headers={"x-large": "a" * 40_000})
    assert problem(answer, 431) == "HeadersTooLarge"


@pytest.mark.parametrize("second", [("transfer-encoding", "chunked"), ("content-length", "3")])
async def test_two_framings_of_one_body_are_refused(harness: Harness, second) -> None:
    headers = [("content-length", "2"), second]
    answer = await harness.client.put(POD, content=b"{}", headers=headers)
    assert problem(answer, 400) == "MalformedRequest"


@pytest.mark.parametrize("path", ["/v1/clusters/a%00b/pods", "/v1/clusters/%0A/nodes/x"])
async def test_control_characters_in_the_path_are_refused(harness: Harness, path: str) -> None:
    assert problem(await harness.client.get(path), 400) == "MalformedRequest"


@pytest.mark.parametrize(
    "query", ["?nodeName=%00", "?nodeName=%ff", "?labelselector=a", "?phase=Running&phase=Failed"]
)
async def test_bad_queries_are_refused(harness: Harness, query: str) -> None:
    assert problem(await harness.client.get(PODS + query), 400) == "MalformedRequest"


async def test_an_unknown_query_parameter_is_named(harness: Harness) -> None:
    answer = await harness.client.delete(POD + "?dryrun=All")
    assert [error["field"] for error in answer.json()["errors"]] == ["dryrun"]


async def test_an_announced_body_over_the_limit_is_not_read(harness: Harness) -> None:
    async def body():
        pytest.fail("The body was read.")
        yield b""

    headers = {**AS_JSON, "content-length": str(2**20 + 1)}
    answer = await harness.client.put(POD, content=body(), headers=headers)
    assert problem(answer, 413) == "BodyTooLarge"


async def test_a_chunked_body_over_the_limit_is_given_up_early(harness: Harness) -> None:
    sent = 0

    async def body():
        nonlocal sent
        for _ in range(100):
            sent += 2**18
            yield b" " * 2**18

    answer = await harness.client.put(POD, content=body(), headers=AS_JSON)
    assert problem(answer, 413) == "BodyTooLarge"
    assert sent <= 2**20 + 2 * 2**18


async def test_each_operation_has_its_own_limit(harness: Harness) -> None:
    space = b" " * 2**19  # no member may be longer than 1 MiB by itself
    body = space + b"{" + space + b'"podRefs": []}' + space + space
    answer = await harness.client.post(PLACEMENTS, content=body, headers=AS_JSON)
    assert answer.status_code == 200, answer.text


async def test_a_body_that_stops_is_given_up(make_harness) -> None:
    harness = await make_harness(body_timeout_seconds=0.01)

    async def body():
        yield b"{"
        await asyncio.Event().wait()

    answer = await harness.client.put(POD, content=body(), headers=AS_JSON)
    assert problem(answer, 408) == "BodyTimeout"


async def test_a_body_that_trickles_is_given_up(make_harness) -> None:
    """Each piece is here at once, but one follows the other a second later."""
    clock, pieces = HurriedClock(), 0
    harness = await make_harness(clock=clock, body_timeout_seconds=WAIT_SECONDS)

    async def body():
        nonlocal pieces
        for pieces in range(1000):  # noqa: B007 - told below
            yield b" "
            clock.advance(1)
            for _ in range(5):  # the reader may give up meanwhile
                await asyncio.sleep(0)

    answer = await harness.client.put(POD, content=body(), headers=AS_JSON)
    assert problem(answer, 408) == "BodyTimeout"
    assert pieces <= WAIT_SECONDS + 2  # the last piece in time, and the one that was on its way


async def test_who_is_refused_learns_the_scheme_and_nothing_of_the_cluster(make_harness) -> None:
    harness = await make_harness(token="secret")
    for path in (PODS, "/debug/replicas"):
        answer = await harness.client.get(path)
        assert problem(answer, 401) == "Unauthorized"
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "moorage-revision" not in answer.headers


async def test_what_leads_nowhere_says_so_to_everybody_and_nothing_of_the_cluster(
    make_harness,
) -> None:
    harness = await make_harness(token="secret")
    for path in ("/v1", "/v1/nothing", "/v1/clusters/default/nothing"):
        answer = await harness.client.get(path)
        assert problem(answer, 404) == "NoSuchPath"
        assert "moorage-revision" not in answer.headers
    answer = await harness.client.post("/v1/clusters/default")
    assert problem(answer, 405) == "MethodNotAllowed"
    assert "moorage-revision" not in answer.headers


async def test_errors_in_a_cluster_carry_its_revision(harness: Harness) -> None:
    await harness.put_node("n1")
    answer = await harness.client.get("/v1/clusters/default/nodes/absent")
    assert problem(answer, 404) == "NotFound"
    assert int(answer.headers["moorage-revision"]) >= 1
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_head_is_get_without_the_body(harness: Harness) -> None:
    await harness.put_node("n1")
    answer = await harness.client.head("/v1/clusters/default/nodes/n1")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["etag"]


async def test_a_client_that_leaves_does_no_harm(harness: Harness) -> None:
    sent: list[dict] = []
    messages = iter([{"type": "http.request", "body": b"{", "more_body": True}])

    async def receive():
        return next(messages, {"type": "http.disconnect"})

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "PUT",
        "path": POD,
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        "http_version": "1.1",
        "asgi": {"version": "3.0"},
    }
    await harness.app(scope, receive, send)
    assert sent[0]["status"] == 400


async def test_a_fault_is_a_problem_document_that_tells_nothing(
    harness: Harness, monkeypatch, caplog
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret of the house")

    monkeypatch.setattr(harness.store.objects, "get", broken)
    answer = await harness.client.get(POD)
    assert problem(answer, 500) == "Internal"
    assert "secret" not in answer.text
    assert "secret of the house" in caplog.text
