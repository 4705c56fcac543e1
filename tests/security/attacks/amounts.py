"""Requests that are small for who sends them and large for who reads them, and more of anything than there should be."""

import http.client
import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from time import sleep

from tests.builders import node, pod
from tests.security.attacks.base import CALL_SECONDS_MAX, CLUSTER, Target, attack

ATTACKERS = 4
PLACE = f"/v1/clusters/{CLUSTER}/placements"
MIB = 1024 * 1024


def asked(target: Target, method: str, path: str, body: bytes | None = None) -> int:
    """The status of an answer that is read to its end; 0 where there was none."""
    connection = http.client.HTTPConnection(target.host, target.port, timeout=CALL_SECONDS_MAX)
    headers = {"Authorization": f"Bearer {target.token}"}
    headers |= {"Content-Type": "application/json"} if body is not None else {}
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        while answer.read(MIB):
            pass
    except (OSError, http.client.HTTPException):
        return 0
    else:
        return answer.status
    finally:
        connection.close()


def again_and_again(act: Callable[[], object]) -> None:
    """By several at the same time, until this process is killed."""

    def repeat() -> None:
        while True:
            act()

    threads = [threading.Thread(target=repeat, daemon=True) for _ in range(ATTACKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@attack("escapes", "4 clients send 15 MB of escapes, again and again")
def escapes(target: Target) -> None:
    body = b"[" * 40 + b'1e999,"' + b'\\"[' * 5_000_000 + b'"'
    again_and_again(lambda: asked(target, "POST", PLACE, body))


@attack("million-pods", "4 clients send a list of a million empty pods, again and again")
def million_pods(target: Target) -> None:
    body = b'{"pods":[%b]}' % b",".join([b"{}"] * 1_000_000)
    again_and_again(lambda: asked(target, "POST", PLACE, body))


@attack("explanations", "4 clients have 10,000 replicas explained in full, again and again")
def explanations(target: Target) -> None:
    for number in range(480):
        body = json.dumps({"kind": "Node", **node(f"more-{number}")}).encode()
        asked(target, "PUT", f"/v1/clusters/{CLUSTER}/nodes/more-{number}", body)
    asking = {"template": pod("web"), "replicas": 10_000, "explain": "Full", "dryRun": True}
    body = json.dumps(asking).encode()
    again_and_again(lambda: asked(target, "POST", PLACE, body))


@attack("unfinished", "8 bodies of 100 MiB that never end")
def unfinished(target: Target) -> None:
    head = (
        f"POST /v1/clusters/{CLUSTER}/apply HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {target.token}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    ).encode()
    piece = b"%x\r\n%b\r\n" % (MIB, b" " * MIB)

    def send() -> None:
        with (
            suppress(OSError),
            socket.create_connection((target.host, target.port), CALL_SECONDS_MAX) as made,
        ):
            made.sendall(head)
            for _ in range(100):
                made.sendall(piece)
            sleep(CALL_SECONDS_MAX)

    while True:
        threads = [threading.Thread(target=send, daemon=True) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sleep(0.1)


@attack("watchers", "1,500 watches are opened at once", seconds=20.0)
def watchers(target: Target) -> None:
    request = (
        f"GET /v1/clusters/{CLUSTER}/watch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {target.token}\r\n\r\n"
    ).encode()
    held = []
    for _ in range(1_500):
        with suppress(OSError):
            made = socket.create_connection((target.host, target.port), CALL_SECONDS_MAX)
            made.sendall(request)
            held.append(made)
    sleep(3_600)


@attack("clusters", "a client creates empty clusters, and asks each for a dry run", seconds=60.0)
def clusters(target: Target) -> None:
    """4,000 of them if the server lets it."""
    body = json.dumps({"pods": [pod("p")], "dryRun": True}).encode()
    for number in range(4_000):
        asked(target, "PUT", f"/v1/clusters/more-{number}", b"{}")
        asked(target, "POST", f"/v1/clusters/more-{number}/placements", body)
