"""Every limit is met exactly: what just fits is taken, one byte more is refused."""

from collections.abc import AsyncIterator, Callable

import pytest

from tests.api.conftest import MakeHarness
from tests.api.harness import AS_JSON, CLUSTER, Harness, asked, node, pod, problem

NAMESPACE = f"{CLUSTER}/namespaces/shop"
BYTES_MAX = 1024
WHOLE, IN_PIECES = "whole", "in pieces"


def padded(size: int) -> bytes:
    body = b'{"metadata":{"name":"shop"}}'
    return body + b" " * (size - len(body))


async def pieces(body: bytes) -> AsyncIterator[bytes]:
    """Of no announced length."""
    for start in range(0, len(body), 100):
        yield body[start : start + 100]


SENT: dict[str, Callable[[bytes], bytes | AsyncIterator[bytes]]] = {
    WHOLE: lambda body: body,
    IN_PIECES: pieces,
}


@pytest.mark.parametrize("sent", SENT)
async def test_a_body_may_be_as_long_as_its_limit_and_no_longer(
    make_harness: MakeHarness, sent: str
) -> None:
    harness = await make_harness(body_bytes_max=BYTES_MAX)
    for size, status in ((BYTES_MAX + 1, 413), (BYTES_MAX, 201)):
        body = SENT[sent](padded(size))
        answer = await harness.client.put(NAMESPACE, content=body, headers=AS_JSON)
        assert answer.status_code == status, (size, answer.text)


async def test_a_url_may_be_as_long_as_its_limit_and_no_longer(make_harness: MakeHarness) -> None:
    """Path and query together, without the question mark between them."""
    harness = await make_harness(url_bytes_max=200)
    query = "labelSelector="
    for length, status in ((201, 414), (200, 200)):
        padding = "a" * (length - len(f"{CLUSTER}/nodes{query}"))
        path = f"{CLUSTER}/nodes?{query}{padding}"
        if status == 200:
            path = path.replace(padding, "app," * (len(padding) // 4) + "a" * (len(padding) % 4))
        assert (await asked(harness, "GET", path.removesuffix(","), []))[0] == status


async def test_headers_may_be_as_long_as_their_limit_and_no_longer(
    make_harness: MakeHarness,
) -> None:
    """Names and values together."""
    harness = await make_harness(header_bytes_max=200)
    others = len("host" + "localhost" + "content-type" + "application/json" + "authorization")
    for length, status in ((201, 431), (200, 200)):
        value = "x" * (length - others)
        assert (await asked(harness, "GET", "/v1/clusters", [value]))[0] == status


@pytest.mark.parametrize(("length", "status"), [(1, 200), (255, 200), (256, 400)])
async def test_a_key_may_have_255_characters(harness: Harness, length: int, status: int) -> None:
    answer = await harness.client.post(
        f"{CLUSTER}/placements",
        json={"pods": [pod("p", schedulerName="other")]},
        headers={"idempotency-key": "k" * length},
    )
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize("filters", ["", "&labelSelector=turn"])
async def test_a_page_is_never_longer_than_the_server_allows(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, filters: str
) -> None:
    monkeypatch.setattr("service.api.resources.objects.routes.LIST_LIMIT_MAX", 2)
    for index in range(5):
        await harness.put_node(f"n{index}", turn="1")
    sizes, token = [], ""
    while token is not None:
        more = f"&continue={token}" if token else ""
        answer = await harness.client.get(f"{CLUSTER}/nodes?limit=4{filters}{more}")
        sizes.append(len(answer.json()["items"]))
        token = answer.json()["metadata"].get("continue")
    assert sizes == [2, 2, 1]


async def test_a_watch_may_begin_at_the_head_and_not_beyond(harness: Harness) -> None:
    head = int((await harness.put_node("n")).headers["moorage-revision"])
    path = f"{CLUSTER}/watch?timeoutSeconds=1&sinceRevision="
    assert (await harness.client.head(f"{path}{head}")).status_code == 200
    beyond = await harness.client.get(f"{path}{head + 1}")
    assert problem(beyond, 503) == "RevisionNotReached"


# What a key stands for

APPLY = f"{CLUSTER}/apply"
EMPTY = b'{"kind":"List","items":[]}'
KEYED = {"content-type": "application/json", "idempotency-key": "k"}
OTHERS = {
    "body": (APPLY, EMPTY.replace(b"[]", b'[{"kind":"Namespace","metadata":{"name":"x"}}]'), {}),
    "white space": (APPLY, EMPTY + b" ", {}),
    "query": (f"{APPLY}?prune=PodGroup", EMPTY, {}),
    "content type": (APPLY, EMPTY, {"content-type": "application/json; charset=utf-8"}),
}


@pytest.mark.parametrize("other", OTHERS)
async def test_p11_a_key_stands_for_one_request_in_all_its_parts(
    harness: Harness, other: str
) -> None:
    """Whatever differs, the request is another one, and is neither done nor given that answer."""
    first = await harness.client.post(APPLY, content=EMPTY, headers=KEYED)
    again = await harness.client.post(APPLY, content=EMPTY, headers=KEYED)
    assert (first.status_code, again.content) == (200, first.content)
    path, body, headers = OTHERS[other]
    answer = await harness.client.post(path, content=body, headers=KEYED | headers)
    assert problem(answer, 422) == "IdempotencyKeyReused"
    assert answer.headers["moorage-revision"] == first.headers["moorage-revision"]


async def test_p11_a_key_stands_for_one_path(harness: Harness) -> None:
    for name in ("a", "b"):
        await harness.put_pod(name, schedulerName="other")
    pods = f"{CLUSTER}/namespaces/shop/pods"
    first = await harness.client.post(f"{pods}/a/eviction", headers=KEYED)
    assert first.is_success, first.text
    answer = await harness.client.post(f"{pods}/b/eviction", headers=KEYED)
    assert problem(answer, 422) == "IdempotencyKeyReused"
    assert (await harness.client.get(f"{pods}/b")).status_code == 200


async def test_p11_one_key_may_stand_for_different_operations(harness: Harness) -> None:
    key = {"idempotency-key": "k"}
    apply = await harness.client.post(
        f"{CLUSTER}/apply", json={"kind": "List", "items": [node("n")]}, headers=key
    )
    placed = await harness.client.post(
        f"{CLUSTER}/placements", json={"pods": [pod("p")]}, headers=key
    )
    assert (apply.status_code, placed.status_code) == (200, 200)
    assert placed.json()["results"][0]["outcome"] == "Placed"
