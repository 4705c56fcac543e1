"""A stand-in server: it records what the commands send, and answers what a test tells it to."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import msgspec
import pytest

from moorage.cli.main import run
from moorage.cli.session import options
from moorage.cli.session.client import Client

CLUSTER = "/v1/clusters/default"
PLACED = {"metadata": {"name": "web-0", "namespace": "shop"}, "spec": {"nodeName": "node-1"}}
WAITING = {
    "metadata": {"name": "web-1", "namespace": "shop"},
    "spec": {},
    "status": {
        "conditions": [
            {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available."}
        ]
    },
}


@dataclass
class StubServer:
    """Answers by method and path; a list of answers is given out one at a time, the last one for ever."""

    answers: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    requests: list[httpx.Request] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    def on(self, method: str, path: str, *answers: Any) -> None:
        self.answers[method, path] = list(answers)

    def client(self, url: str = "http://stub", **more: Any) -> Client:
        transport = httpx.MockTransport(self._answer)
        return Client(url, transport=transport, sleep=self.pauses.append, **more)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answers = self.answers.get((request.method, request.url.path))
        if answers is None:
            problem = {
                "code": "NotFound",
                "title": "Not found",
                "detail": f"No {request.url.path}.",
            }
            return httpx.Response(404, json=problem)
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)

    def sent(self, number: int = -1) -> Any:
        return msgspec.json.decode(self.requests[number].content)


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.out)


@pytest.fixture
def stub() -> StubServer:
    return StubServer()


@pytest.fixture
def moorage(
    stub: StubServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., Ended]:
    """Run the command as the shell would, against the stub."""

    def command(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["moorage", *arguments])
        with pytest.raises(SystemExit) as ended:
            run()
        printed = capsys.readouterr()
        return Ended(int(ended.value.code or 0), printed.out, printed.err)

    monkeypatch.setattr(options, "Client", stub.client)
    for name in ("URL", "CLUSTER", "CONTEXT", "TOKEN", "TOKEN_FILE"):
        monkeypatch.delenv(f"MOORAGE_{name}", raising=False)
    monkeypatch.setenv("MOORAGE_CONTEXTS", str(tmp_path_factory.mktemp("contexts") / "all.yaml"))
    return command


@pytest.fixture
def pod_file(tmp_path: Any) -> Callable[..., str]:
    """A file with these objects, as JSON Lines."""

    def write(*objects: dict[str, Any], name: str = "objects.jsonl") -> str:
        path = tmp_path / name
        path.write_bytes(b"\n".join(msgspec.json.encode(item) for item in objects))
        return str(path)

    return write
