"""What is sent, how often, and what errors become; the synchronous client is made of the other one."""

import math

import httpx
import pytest

from moorage import (
    ConflictError,
    ConnectionLostError,
    ExpiredError,
    InvalidRequestError,
    NotFoundError,
    ProblemError,
    Retries,
    TimedOutError,
    UnauthenticatedError,
    UnavailableError,
    UnreachableError,
)
from tests.client.stub import Stub, listed, pod

ANSWER = {"revision": 7, "committed": True, "attempts": 1, "results": []}
BUSY = httpx.Response(503, headers={"Retry-After": "2"}, json={"status": 503, "detail": "busy"})


@pytest.fixture
def stub() -> Stub:
    return Stub()


def test_a_placement_is_repeated_under_the_same_key_until_it_is_answered(stub: Stub):
    refused, broken, late = (
        httpx.ConnectError("refused"),
        httpx.ReadError("reset"),
        httpx.ReadTimeout("late"),
    )
    stub.on("POST", "/placements", refused, broken, late, BUSY, ANSWER)

    assert stub.client().place([pod("a", 1)], on_unschedulable="Queue") == ANSWER

    keys = {request.headers["Idempotency-Key"] for request in stub.requests}
    assert (len(stub.requests), len(keys), len(stub.pauses)) == (5, 1, 4)
    assert stub.pauses[3] == 2
    assert stub.sent() == {"pods": [pod("a", 1)], "onUnschedulable": "Queue"}


async def test_the_asynchronous_client_repeats_too(stub: Stub):
    stub.on("POST", "/placements", BUSY, httpx.ReadError("reset"), ANSWER)

    async with stub.async_client() as moorage:
        assert await moorage.place_stored([("shop", "a")], dry_run=False) == ANSWER

    assert len({request.headers["Idempotency-Key"] for request in stub.requests}) == 1
    assert (len(stub.pauses), stub.pauses[0]) == (2, 2)
    assert stub.sent()["podRefs"] == [{"namespace": "shop", "name": "a"}]


def test_a_key_of_the_callers_own_is_used(stub: Stub):
    stub.on("POST", "/placements", ANSWER)
    stub.client().place([], idempotency_key="mine")
    assert stub.requests[0].headers["Idempotency-Key"] == "mine"


def test_a_dry_run_has_no_key(stub: Stub):
    stub.on("POST", "/placements", ANSWER)
    stub.client().place_copies({"metadata": {"name": "web"}}, 3, dry_run=True)
    assert "Idempotency-Key" not in stub.requests[0].headers
    assert (stub.sent()["replicas"], stub.sent()["dryRun"]) == (3, True)


def test_a_request_that_is_still_running_is_asked_for_again(stub: Stub):
    running = httpx.Response(409, headers={"Retry-After": "1"}, json={"status": 409})
    stub.on("POST", "/placements", running, ANSWER)
    assert stub.client().place([]) == ANSWER
    assert stub.pauses == [1]


@pytest.mark.parametrize(
    ("trouble", "error"),
    [
        (httpx.ReadError("reset"), ConnectionLostError),
        (httpx.ReadTimeout("late"), TimedOutError),
        (BUSY, UnavailableError),
    ],
)
@pytest.mark.parametrize("call", ["patch", "delete", "put"])
def test_what_cannot_be_said_twice_is_said_once(stub: Stub, trouble, error, call: str):
    stub.on(call.upper(), "/namespaces/default/pods/a", trouble)
    pods = stub.client().pods
    calls = {
        "patch": lambda: pods.patch("a", {"metadata": {}}),
        "delete": lambda: pods.delete("a"),
        "put": lambda: pods.put(pod("a", 5)),
    }
    with pytest.raises(error):
        calls[call]()
    assert len(stub.requests) == 1


def test_what_was_surely_not_heard_is_said_again(stub: Stub):
    limited = httpx.Response(429, headers={"Retry-After": "1"}, json={"status": 429})
    stub.on("DELETE", "/nodes/n", httpx.ConnectError("refused"), limited, {"metadata": {}})
    assert stub.client().nodes.delete("n") == {"metadata": {}}


def test_an_eviction_that_a_budget_blocks_is_not_asked_for_again(stub: Stub):
    """With endless patience too: the budget may stand in the way for ever."""
    document = {"status": 429, "code": "EvictionBlocked", "detail": "Cannot evict pod."}
    blocked = httpx.Response(429, headers={"Retry-After": "5"}, json=document)
    stub.on("POST", "/namespaces/default/pods/a/eviction", blocked)
    with pytest.raises(UnavailableError) as caught:
        stub.client(Retries(seconds_max=math.inf)).evict("a")
    assert (caught.value.code, caught.value.retry_after_seconds) == ("EvictionBlocked", 5)
    assert not stub.pauses


def test_a_put_without_preconditions_is_said_again(stub: Stub):
    stub.on("PUT", "/nodes/n", httpx.ReadError("reset"), {"metadata": {}})
    assert stub.client().nodes.put({"metadata": {"name": "n"}}) == {"metadata": {}}


def test_preconditions_are_headers(stub: Stub):
    stub.on("PUT", "/nodes/n", {})
    stub.client().nodes.put({"metadata": {"name": "n"}}, if_match='"7"', create_only=True)
    headers = stub.requests[0].headers
    assert (headers["If-Match"], headers["If-None-Match"]) == ('"7"', "*")


def test_patience_ends(stub: Stub):
    stub.on("GET", "/nodes/n", httpx.Response(503, json={"detail": "still starting"}))
    with pytest.raises(UnavailableError, match="still starting"):
        stub.client(Retries(seconds_max=20)).nodes.get("n")
    assert 10 < sum(stub.pauses) <= 20
    assert max(stub.pauses) <= Retries().pause_seconds_max


def test_without_patience_nothing_is_repeated(stub: Stub):
    stub.on("GET", "/nodes/n", httpx.ConnectError("refused"))
    with pytest.raises(UnreachableError, match="http://stub"):
        stub.client(Retries(seconds_max=0)).nodes.get("n")
    assert not stub.pauses


def test_some_patience_never_ends(stub: Stub):
    trouble = [httpx.ConnectError("refused")] * 500
    stub.on("GET", "/nodes/n", *trouble, {"metadata": {}})
    assert stub.client(Retries(seconds_max=math.inf)).nodes.get("n")
    assert sum(stub.pauses) > 60


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, UnauthenticatedError),
        (404, NotFoundError),
        (409, ConflictError),
        (410, ExpiredError),
        (418, ProblemError),
        (422, InvalidRequestError),
        (500, UnavailableError),
    ],
)
def test_a_problem_is_an_exception_of_its_class(stub: Stub, status: int, error: type[ProblemError]):
    fields = [{"field": "spec.x", "message": "is unknown"}]
    document = {"status": status, "code": "Code", "title": "T", "detail": "D.", "errors": fields}
    stub.on("GET", "/nodes/n", httpx.Response(status, json=document))
    with pytest.raises(error) as raised:
        stub.client().nodes.get("n")
    assert type(raised.value) is error
    assert raised.value.document == document
    assert (raised.value.status, raised.value.code, raised.value.errors) == (status, "Code", fields)
    assert str(raised.value) == "D. (spec.x: is unknown)"


def test_a_field_that_the_detail_names_is_told_once(stub: Stub):
    document = {
        "status": 422,
        "detail": "x: is bad",
        "errors": [{"field": "x", "message": "is bad"}],
    }
    stub.on("GET", "/nodes/n", httpx.Response(422, json=document))
    with pytest.raises(InvalidRequestError) as raised:
        stub.client().nodes.get("n")
    assert str(raised.value) == "x: is bad"


def test_reports_of_very_many_nodes_are_several_requests(stub: Stub):
    answers = [{"renewed": 999, "unknown": ["node-7"]}, {"renewed": 500, "unknown": []}]
    stub.on("PUT", "/node-leases", *answers)
    reported = stub.client().report_nodes(f"node-{number}" for number in range(1_500))
    assert reported == {"renewed": 1_499, "unknown": ["node-7"]}
    assert len(stub.sent()["nodes"]) == 500


def test_an_answer_of_a_proxy_is_told_as_well(stub: Stub):
    stub.on("GET", "/nodes/n", httpx.Response(404, text="<h1>nothing here</h1>"))
    with pytest.raises(NotFoundError, match="nothing here") as raised:
        stub.client().nodes.get("n")
    assert (raised.value.status, raised.value.code) == (404, "")


def test_lists_are_read_page_by_page_as_they_are_needed(stub: Stub):
    pages = [
        listed(pod("a", 1), pod("b", 2), revision=9, token="next"),
        listed(pod("c", 3), revision=9),
    ]
    stub.on("GET", "/namespaces/shop/pods", *pages)
    found = stub.client().pods.list(
        namespace="shop", label_selector="app=web", node_name="", page_size=2
    )
    assert next(found)["metadata"]["name"] == "a"
    assert len(stub.requests) == 1
    assert [each["metadata"]["name"] for each in found] == ["b", "c"]
    sent = [dict(request.url.params) for request in stub.requests]
    first = {"labelSelector": "app=web", "nodeName": "", "limit": "2"}
    assert sent == [first, {**first, "continue": "next"}]


def test_lines_are_sent_in_batches_and_counted_over_all(stub: Stub):
    answers = [httpx.Response(200, text='{"line":1}\n{"line":2}\n')] * 2
    stub.on("POST", "/apply", *answers)
    lines = [pod(str(number), 1) for number in range(1_001)]
    told = [each["line"] for each in stub.client().apply_lines(lines)]
    assert told == [1, 2, 1_001, 1_002]
    sizes = [request.content.count(b"\n") for request in stub.requests]
    assert sizes == [1_000, 1]


def test_clients_of_other_clusters_share_the_connections(stub: Stub):
    stub.answers["GET", "/v1/clusters/a%2Fb/nodes/n"] = [{"metadata": {}}]
    stub.answers["GET", "/v1/clusters/a/b/nodes/n"] = [{"metadata": {}}]
    with stub.client(token="s3cret") as moorage:
        assert moorage.on_cluster("a/b").nodes.get("n")
    assert stub.requests[0].url.raw_path == b"/v1/clusters/a%2Fb/nodes/n"
    assert stub.requests[0].headers["Authorization"] == "Bearer s3cret"


def test_what_has_no_method_can_be_asked_all_the_same(stub: Stub):
    stub.on("POST", "/things", ANSWER)
    stub.client().request("POST", "/v1/clusters/default/things", body={"a": 1}, params={"b": 2})
    assert stub.sent() == {"a": 1}
    assert dict(stub.requests[0].url.params) == {"b": "2"}


def test_nodes_that_die_while_they_are_reported_stop_no_report(stub: Stub):
    names = {f"node-{number}" for number in range(1_500)}

    def forget() -> dict:
        names.clear()
        return {"renewed": 1_000, "unknown": []}

    stub.on("PUT", "/node-leases", forget, {"renewed": 500, "unknown": []})
    assert stub.client().report_nodes(names)["renewed"] == 1_500
