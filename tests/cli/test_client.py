import httpx
import pytest

from moorage.cli.exceptions import Refused, Unavailable
from moorage.cli.session.client import RETRY_SECONDS_MAX

PATH = "/v1/clusters/default/placements"


def test_a_refusal_carries_the_problem_document(stub):
    problem = {"code": "PodDiffers", "title": "Pod differs", "detail": "pods[3] differs."}
    stub.on("POST", PATH, httpx.Response(409, json=problem))

    with pytest.raises(Refused, match="differs") as refusal:
        stub.client().post_once(PATH, {})

    assert refusal.value.problem == {"status": 409, **problem}


def test_an_answer_that_is_no_problem_document_is_still_told(stub):
    stub.on("GET", "/x", httpx.Response(404, text="nothing here"))

    with pytest.raises(Refused, match="nothing here"):
        stub.client().get("/x")


def test_an_overloaded_server_is_asked_again_with_the_same_idempotency_key(stub):
    busy = httpx.Response(503, headers={"Retry-After": "2"}, json={"detail": "busy"})
    stub.on("POST", PATH, busy, httpx.ReadError("reset"), {"revision": 7})

    assert stub.client().post_once(PATH, {}) == {"revision": 7}

    keys = {request.headers["Idempotency-Key"] for request in stub.requests}
    assert len(stub.requests) == 3
    assert len(keys) == 1
    assert stub.pauses[0] == 2


def test_two_calls_have_two_idempotency_keys(stub):
    stub.on("POST", PATH, {})
    client = stub.client()

    client.post_once(PATH, {})
    client.post_once(PATH, {})

    first, second = (request.headers["Idempotency-Key"] for request in stub.requests)
    assert first != second


def test_patience_ends(stub):
    stub.on("GET", "/x", httpx.Response(503, json={"detail": "still starting"}))

    with pytest.raises(Unavailable, match="still starting"):
        stub.client().get("/x")

    assert 0 < sum(stub.pauses) <= RETRY_SECONDS_MAX


@pytest.mark.parametrize("call", ["patch", "delete"])
def test_what_may_not_be_repeated_is_asked_once(stub, call):
    stub.on(call.upper(), "/x", httpx.ReadError("reset"))
    client = stub.client()
    arguments = ("/x", {}) if call == "patch" else ("/x",)

    with pytest.raises(Unavailable, match="broke"):
        getattr(client, call)(*arguments)

    assert len(stub.requests) == 1


def test_no_server_is_told_at_once(stub):
    stub.on("GET", "/x", httpx.ConnectError("refused"))

    with pytest.raises(Unavailable, match="No server answers at http://stub"):
        stub.client().get("/x")

    assert not stub.pauses


def test_a_missing_token_is_told_with_how_to_give_it(stub):
    stub.on("GET", "/x", httpx.Response(401, json={"title": "Unauthorized"}))

    with pytest.raises(Unavailable, match="MOORAGE_TOKEN"):
        stub.client().get("/x")


def test_the_token_is_sent_as_a_bearer_token(stub):
    stub.on("GET", "/x", {})

    stub.client(token="s3cret").get("/x")

    assert stub.requests[0].headers["Authorization"] == "Bearer s3cret"


def test_the_token_may_be_in_a_file(stub, moorage, monkeypatch, tmp_path):
    (tmp_path / "token").write_text("s3cret\n")
    monkeypatch.setenv("MOORAGE_TOKEN_FILE", str(tmp_path / "token"))
    stub.on("GET", "/readyz", {"status": "Ready", "checks": []})

    moorage("status")
    moorage("status", "--token", "another")

    sent = [request.headers["Authorization"] for request in stub.requests]
    assert sent == ["Bearer s3cret", "Bearer another"]


def test_a_file_without_a_token_is_wrong_usage(moorage, monkeypatch, tmp_path):
    monkeypatch.setenv("MOORAGE_TOKEN_FILE", str(tmp_path / "none"))

    ended = moorage("status")

    assert ended.code == 2
    assert "MOORAGE_TOKEN_FILE" in ended.err


def test_names_are_escaped_in_paths(stub):
    path = stub.client(cluster="a/b").path("nodes", "n 1")

    assert path == "/v1/clusters/a%2Fb/nodes/n%201"


def test_lists_are_read_page_by_page(stub):
    first = {"items": [1, 2], "metadata": {"continue": "abc"}}
    stub.on("GET", "/list", first, {"items": [3], "metadata": {}})

    assert list(stub.client().pages("/list", {"labelSelector": "app=web"})) == [[1, 2], [3]]

    assert [request.url.params.get("continue") for request in stub.requests] == [None, "abc"]
    assert {request.url.params["labelSelector"] for request in stub.requests} == {"app=web"}
