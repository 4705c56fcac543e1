"""A stand-in server for both clients: it records what is sent, and answers what a test tells it to."""

from dataclasses import dataclass, field
from typing import Any

import httpx
import msgspec

from moorage import AsyncClient, Client, Retries

CLUSTER = "/v1/clusters/default"


@dataclass
class Stub:
    """Answers by method and path; a list of answers is given out one at a time, the last one for ever."""

    answers: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    requests: list[httpx.Request] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    def on(self, method: str, path: str, *answers: Any) -> None:
        self.answers[method, CLUSTER + path] = list(answers)

    def client(self, retries: Retries | None = None, **more: Any) -> Client:
        transport = httpx.MockTransport(self._answer)
        return Client(
            "http://stub", transport=transport, sleep=self.pauses.append, retries=retries, **more
        )

    def async_client(self, retries: Retries | None = None) -> AsyncClient:
        async def sleep(seconds: float) -> None:
            self.pauses.append(seconds)

        transport = httpx.MockTransport(self._answer)
        return AsyncClient("http://stub", transport=transport, sleep=sleep, retries=retries)

    def sent(self, number: int = -1) -> Any:
        return msgspec.json.decode(self.requests[number].content)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answers = self.answers[request.method, request.url.path]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if callable(answer):
            answer = answer()
        if isinstance(answer, Exception):
            raise answer
        if not isinstance(answer, httpx.Response):
            return httpx.Response(200, json=answer)
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


def pod(name: str, revision: int, namespace: str = "default", **more: Any) -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": name, "resourceVersion": str(revision)}
    return {"kind": "Pod", "metadata": metadata, **more}


def listed(*pods: dict[str, Any], revision: int, token: str | None = None) -> dict[str, Any]:
    metadata = {"resourceVersion": str(revision)} | ({"continue": token} if token else {})
    return {"kind": "PodList", "metadata": metadata, "items": list(pods)}


def streamed(*events: tuple[str, dict[str, Any] | int]) -> httpx.Response:
    """A stream of events: `("ADDED", pod)`, and `("BOOKMARK", revision)`."""
    return httpx.Response(200, content=b"".join(_written(*event) for event in events))


def _written(name: str, told: dict[str, Any] | int) -> bytes:
    if isinstance(told, int):
        told = {"kind": "Bookmark", "metadata": {"resourceVersion": str(told)}}
    data = {"kind": told["kind"], "object": told}
    revision = told["metadata"]["resourceVersion"]
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (
        revision.encode(),
        name.encode(),
        msgspec.json.encode(data),
    )


def expired(code: str = "Compacted") -> httpx.Response:
    return httpx.Response(410, json={"code": code, "status": 410, "detail": "Too old."})
