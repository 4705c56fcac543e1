"""What only a real server shows: sockets, framing, slow and leaving clients."""

import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from tests.api.harness import AS_JSON, CLUSTER, node, pod, problem
from tests.api.live import live_server
from tests.processes import PLAIN_HTTP
from tests.waiting import WAIT_SECONDS

POD = f"{CLUSTER}/namespaces/shop/pods/web-0"
PATIENT = {"body_timeout_seconds": str(WAIT_SECONDS)}
"""A client on a busy machine may take its time."""


@pytest.fixture(scope="module")
def url(databases) -> Iterator[str]:
    """One server for nearly all tests here: none is disturbed by what the others store."""
    name = databases.new_name()
    databases.copy_template(name)
    with live_server(databases.url(name), **PATIENT) as url:
        yield url
    databases.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def client(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, **PLAIN_HTTP) as client:
        yield client


def connect(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=WAIT_SECONDS)


def exchange(url: str, request: bytes) -> bytes:
    """What the server says to these bytes, until it closes or has said all."""
    with connect(url) as connection:
        connection.sendall(request)
        return received(connection)


def received(connection: socket.socket) -> bytes:
    answer = b""
    connection.settimeout(WAIT_SECONDS)
    try:
        while piece := connection.recv(65536):
            answer += piece
            if b"\r\n\r\n" in answer and answer.endswith((b"}", b"\r\n0\r\n\r\n")):
                break
    except ConnectionResetError:
        pass
    return answer


TYPED = "Content-Type: application/json"


def head(method: str, path: str, *headers: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def test_a_cluster_is_loaded_and_pods_are_placed(client: httpx.Client) -> None:
    assert client.put(f"{CLUSTER}/nodes/n1", json=node("n1")).status_code == 201
    placed = client.post(f"{CLUSTER}/placements", json={"pods": [pod("web-0")]})
    assert placed.json()["results"][0]["nodeName"] == "n1"
    assert client.get(POD).json()["spec"]["nodeName"] == "n1"
    assert client.head(POD).headers["etag"]


def test_a_large_body_is_refused_before_it_is_sent(url: str) -> None:
    answer = exchange(url, head("PUT", POD, TYPED, "Content-Length: 99999999") + b"{")
    assert answer.startswith(b"HTTP/1.1 413 ")  # who waits for more of it says 408


def test_a_large_chunked_body_is_refused(url: str) -> None:
    def body():
        for _ in range(40):
            yield b" " * 2**16

    try:
        answer = httpx.put(f"{url}{POD}", content=body(), headers=AS_JSON, **PLAIN_HTTP)
    except (httpx.WriteError, httpx.ReadError, httpx.RemoteProtocolError):
        return  # the server closed while the client was still sending
    assert problem(answer, 413) == "BodyTooLarge"


def test_a_slow_body_is_given_up(database_url: str) -> None:
    with live_server(database_url, body_timeout_seconds="0.2") as url:
        answer = exchange(url, head("PUT", POD, TYPED, "Content-Length: 100") + b"{")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"BodyTimeout"' in answer


def test_long_urls_and_headers_are_refused(url: str) -> None:
    assert exchange(url, head("GET", "/" + "a" * 10_000)).startswith(b"HTTP/1.1 414 ")
    large = exchange(url, head("GET", "/livez", "X-Large: " + "a" * 40_000))
    assert large.startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("path", ["/v1/clusters/%ff/nodes", "/v1/clusters/%00/nodes"])
def test_paths_that_are_no_text_are_refused(url: str, path: str) -> None:
    assert exchange(url, head("GET", path)).startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 404 "))


def test_a_client_that_leaves_does_no_harm(url: str, client: httpx.Client) -> None:
    for sent in (b"", b'{"metadata"'):
        with connect(url) as connection:
            connection.sendall(head("PUT", POD, TYPED, "Content-Length: 1000") + sent)
    assert client.get("/readyz").status_code == 200


def test_lines_are_answered_while_they_are_sent(url: str) -> None:
    request = head(
        "POST",
        f"{CLUSTER}/apply",
        "Content-Type: application/x-ndjson",
        "Transfer-Encoding: chunked",
    )
    with connect(url) as connection:
        connection.sendall(request + chunk(1000) + chunk(200))
        first = connection.recv(65536)
        assert first.startswith(b"HTTP/1.1 200 ")
        connection.sendall(chunk(5) + b"0\r\n\r\n")
        answer = first + received(connection)
    assert answer.count(b'"result":') == 1205


def chunk(lines: int) -> bytes:
    content = b"".join(
        json.dumps({"kind": "Namespace", "metadata": {"name": f"ns-{i}"}}).encode() + b"\n"
        for i in range(lines)
    )
    return b"%x\r\n%s\r\n" % (len(content), content)


def test_a_client_that_reads_only_after_sending_gets_its_answer(client: httpx.Client) -> None:
    line = b'{"kind":"Gizmo","metadata":{"name":"g"}}\n'
    answer = client.post(
        f"{CLUSTER}/apply",
        content=line * 100_000,
        headers={"content-type": "application/x-ndjson"},
    )
    assert answer.text.count("\n") == 100_000
