"""The whole application in this process, over either store, and what tests say to it."""

import asyncio
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote

import httpx
import msgspec
from typing_extensions import override

from service.runtime.clock import SystemClock

CLUSTER = "/v1/clusters/default"
AS_JSON = {"content-type": "application/json"}


class HurriedClock(SystemClock):
    """The machine's clocks, put on by a test, so that time is up as soon as the test wants it to be."""

    def __init__(self) -> None:
        self._ahead_seconds = 0.0

    def advance(self, seconds: float) -> None:
        self._ahead_seconds += seconds

    @override
    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self._ahead_seconds)

    @override
    def monotonic(self) -> float:
        return super().monotonic() + self._ahead_seconds


class Harness(msgspec.Struct, frozen=True):
    """One application and a client of it."""

    app: Any
    client: httpx.AsyncClient
    store: Any
    scheduler: Any
    budget: Any

    async def configure(self, **settings: Any) -> None:
        answer = await self.client.put(CLUSTER, json={"config": settings})
        assert answer.status_code == 200, answer.text

    async def put(self, path: str, body: dict[str, Any]) -> httpx.Response:
        answer = await self.client.put(f"{CLUSTER}/{path}", json=body)
        assert answer.status_code in {200, 201}, answer.text
        return answer

    async def put_node(self, name: str, **labels: str) -> httpx.Response:
        return await self.put(f"nodes/{name}", node(name, **labels))

    async def put_pod(self, name: str, **spec: Any) -> httpx.Response:
        return await self.put(f"namespaces/shop/pods/{name}", pod(name, **spec))

    async def place(self, *pods: dict[str, Any], **options: Any) -> dict[str, Any]:
        answer = await self.client.post(
            f"{CLUSTER}/placements", json={"pods": list(pods), **options}
        )
        assert answer.status_code == 200, answer.text
        return answer.json()


def node(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    }


def pod(name: str, namespace: str = "shop", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "web"}},
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
            **spec,
        },
    }


def problem(answer: httpx.Response, status: int) -> str:
    """The code of a problem document, after checking that it is one."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status
    assert body["type"] == f"/errors/{body['code']}"
    assert body["title"]
    assert body["detail"]
    return str(body["code"])


async def asked(
    harness: Harness,
    method: str,
    path: str,
    authorization: list[str],
    *,
    body: Any = None,
    root_path: str = "",
) -> tuple[int, dict[str, Any]]:
    """Status and body of the answer to a request exactly as written, which no client would send."""
    incoming = [
        {"type": "http.request", "body": b"" if body is None else msgspec.json.encode(body)}
    ]
    answer: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return incoming.pop() if incoming else await asyncio.Event().wait()

    async def send(message: dict[str, Any]) -> None:
        answer.append(message)

    path, _, query = path.partition("?")
    headers = [(b"authorization", value.encode("latin-1")) for value in authorization]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": root_path,
        "query_string": query.encode(),
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json"), *headers],
        "client": ("127.0.0.1", 1),
        "server": ("moorage", 80),
    }
    await harness.app(scope, receive, send)
    text = b"".join(message["body"] for message in answer[1:])
    is_problem = (b"content-type", b"application/problem+json") in answer[0]["headers"]
    return answer[0]["status"], msgspec.json.decode(text) if is_problem else {}
