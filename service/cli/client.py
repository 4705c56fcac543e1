"""A client of Moorage's HTTP API for the command line, made with httpx.

Answers are plain JSON values. Requests that can be sent twice without doing anything twice (reads,
PUT, and calls with an idempotency key) are sent again for a limited time if the server is
overloaded, is restarting, or does not know whether it did what was asked.
"""

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx
import msgspec

from service.cli.errors import CliError, Refused, Unavailable

RETRY_SECONDS_MAX = 30.0
RETRY_PAUSE_SECONDS = 0.25
RETRY_PAUSE_SECONDS_MAX = 5.0
PAGE_SIZE = 500
STREAM_SILENCE_SECONDS_MAX = 60.0
"""A stream that is silent for longer is given up: the server sends something every few seconds."""

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
NDJSON = "application/x-ndjson"

TOO_MANY_REQUESTS = 429
SERVICE_UNAVAILABLE = 503
NO_RIGHT_TO_ASK = 401
SERVER_FAULT = 500

Params = Mapping[str, str | int | None]

Warn = Callable[[Mapping[str, str]], None]
"""Takes note of a warning of the server: its `field`, `code` and `message`."""


def _ignore(_: Mapping[str, str]) -> None:
    """Take no note."""


class Client:
    """Sends requests to one server, and by default to one of its clusters.

    Raises (from every call):
        Refused: the server answered with a problem document.
        Unavailable: the server could not be reached, is in trouble, asks for another token, or did
            not answer in time.
    """

    def __init__(
        self,
        url: str,
        *,
        cluster: str = "default",
        token: str | None = None,
        timeout_seconds: float = 60.0,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        warn: Warn = _ignore,
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.url = url.rstrip("/")
        self.cluster = cluster
        self._sleep = sleep
        self._warn = warn
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=httpx.Timeout(timeout_seconds, connect=5.0),
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    def on_cluster(self, cluster: str) -> "Client":
        """Return a client of the same server, on the same connections, for another cluster."""
        other = copy(self)
        other.cluster = cluster
        return other

    def path(self, *parts: str) -> str:
        """Make a path in this client's cluster: `path("pods")` is `/v1/clusters/default/pods`."""
        return "/".join(
            ["/v1/clusters", *(quote(part, safe="") for part in (self.cluster, *parts))]
        )

    def get(self, path: str, params: Params | None = None) -> Any:
        """Send a GET, and return the decoded answer."""
        return self._decoded(self._ask("GET", path, params=params))

    def get_tagged(self, path: str) -> tuple[Any, str | None]:
        """Send a GET, and return the decoded answer with its entity tag (`ETag`)."""
        answer = self._ask("GET", path)
        return self._decoded(answer), answer.headers.get("ETag")

    def put(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> Any:
        """Send a PUT, and return the decoded answer."""
        content = msgspec.json.encode(body)
        return self._written(self._ask("PUT", path, content=content, headers=headers))

    def patch(self, path: str, body: object) -> Any:
        """Send a merge patch (RFC 7396), and return the decoded answer."""
        content = msgspec.json.encode(body)
        return self._written(self._ask("PATCH", path, content=content, content_type=MERGE_PATCH))

    def delete(self, path: str) -> Any:
        """Send a DELETE, and return the decoded answer: the object as it last was."""
        return self._decoded(self._ask("DELETE", path))

    def delete_once(self, path: str, params: Params) -> Any:
        """Delete what passes filters, once, however often the request is sent; return the answer."""
        headers = {"Idempotency-Key": secrets.token_urlsafe(18)}
        return self._decoded(self._ask("DELETE", path, params=params, headers=headers, again=True))

    def post(self, path: str, body: object, params: Params | None = None) -> Any:
        """Send a POST that is harmless to repeat; return the decoded answer, if it has one."""
        content = msgspec.json.encode(body)
        return self._written(self._ask("POST", path, content=content, params=params, again=True))

    def post_once(
        self, path: str, body: object, params: Params | None = None, *, key: str | None = None
    ) -> Any:
        """Send a POST that takes effect once, however often it is sent; return the decoded answer.

        The idempotency key is `key`, with which later calls get the same answer, or else a new one.
        """
        content = msgspec.json.encode(body)
        return self._written(self._keyed(path, content, JSON, params, key))

    def post_lines(self, path: str, lines: list[bytes]) -> list[Any]:
        """Send an NDJSON request that takes effect once; return the decoded lines of the answer."""
        answer = self._keyed(path, b"\n".join(lines) + b"\n", NDJSON)
        return [
            self._noted(msgspec.json.decode(line)) for line in answer.content.splitlines() if line
        ]

    def pages(self, path: str, params: Params | None = None) -> Iterator[list[Any]]:
        """Yield the items of a list, page by page, in the server's order."""
        return (page["items"] for page in self.whole_pages(path, params))

    def whole_pages(self, path: str, params: Params | None = None) -> Iterator[dict[str, Any]]:
        """Yield the pages of a list as they are, with the revision in each one's metadata."""
        token: str | None = None
        while True:
            page = self.get(path, {"limit": PAGE_SIZE, **(params or {}), "continue": token})
            yield page
            token = page.get("metadata", {}).get("continue")
            if not token:
                return

    @contextmanager
    def stream(
        self, path: str, params: Params, headers: Mapping[str, str]
    ) -> Iterator[Iterator[str]]:
        """Open an event stream, and yield an iterator over its lines.

        The iterator ends with the stream. It raises Unavailable if the stream is silent for too
        long.
        """
        with self._opened(path, params, headers) as answer:
            yield _lines(answer.iter_bytes())

    @contextmanager
    def download(self, path: str) -> Iterator[Iterator[bytes]]:
        """Open an answer of any size, and yield an iterator over its pieces.

        The iterator raises Unavailable if the answer ends too early, or its next piece does not come.
        """
        with self._opened(path, {}, {}) as answer:
            yield answer.iter_bytes()

    @contextmanager
    def _opened(
        self, path: str, params: Params, headers: Mapping[str, str]
    ) -> Iterator[httpx.Response]:
        timeout = httpx.Timeout(STREAM_SILENCE_SECONDS_MAX, connect=5.0)
        with (
            _transport_errors(self.url),
            self._http.stream(
                "GET", path, params=_given(params), headers=dict(headers), timeout=timeout
            ) as answer,
        ):
            if answer.is_error:
                answer.read()
                raise _failure(answer)
            yield answer

    def _keyed(
        self,
        path: str,
        content: bytes,
        content_type: str,
        params: Params | None = None,
        key: str | None = None,
    ) -> httpx.Response:
        headers = {"Idempotency-Key": key or secrets.token_urlsafe(18)}
        return self._ask(
            "POST",
            path,
            content=content,
            content_type=content_type,
            params=params,
            headers=headers,
            again=True,
        )

    def _ask(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        content: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
        again: bool = False,
    ) -> httpx.Response:
        typed = {"Content-Type": content_type} if content is not None else {}
        request = self._http.build_request(
            method,
            path,
            params=_given(params),
            content=content,
            headers={**typed, **(headers or {})},
        )
        return self._send(request, again=again or method in {"GET", "PUT"})

    def _send(self, request: httpx.Request, *, again: bool) -> httpx.Response:
        """Send a request; if `again`, repeat it after a broken connection or a request to wait."""
        waited = 0.0
        while True:
            try:
                return self._send_once(request)
            except _TryAgain as trouble:
                if not again or waited + trouble.pause_seconds > RETRY_SECONDS_MAX:
                    raise trouble.error from None
                self._sleep(trouble.pause_seconds)
                waited += trouble.pause_seconds

    def _send_once(self, request: httpx.Request) -> httpx.Response:
        try:
            with _transport_errors(self.url):
                answer = self._http.send(request)
        except _Dropped as dropped:
            raise _TryAgain(dropped, RETRY_PAUSE_SECONDS) from None
        if answer.status_code in {TOO_MANY_REQUESTS, SERVICE_UNAVAILABLE}:
            raise _TryAgain(_failure(answer), _pause_wanted(answer))
        if answer.is_error:
            raise _failure(answer)
        return answer

    def _written(self, answer: httpx.Response) -> Any:
        return self._noted(self._decoded(answer))

    def _noted(self, answer: Any) -> Any:
        """Take note of the warnings of an answer, and return it."""
        for each in answer.get("warnings") or () if isinstance(answer, dict) else ():
            self._warn(each)
        return answer

    @staticmethod
    def _decoded(answer: httpx.Response) -> Any:
        return msgspec.json.decode(answer.content) if answer.content else None


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the lines. They end at LF alone: Python would also split at other characters."""
    rest = b""
    for piece in pieces:
        *complete, rest = (rest + piece).split(b"\n")
        for line in complete:
            yield line.decode(errors="replace")


class _Dropped(Unavailable):
    """The connection broke after the server may have read the request."""


class _TryAgain(Exception):  # noqa: N818
    """Asking again after a pause may help; if that is not wanted, `error` is the error to raise."""

    def __init__(self, error: CliError, pause_seconds: float) -> None:
        super().__init__(str(error))
        self.error = error
        self.pause_seconds = pause_seconds


@contextmanager
def _transport_errors(url: str) -> Iterator[None]:
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol) as error:
        raise Unavailable(f"No server answers at {url}: {error}") from None
    except httpx.TimeoutException:
        raise Unavailable(f"{url} did not answer in time.") from None
    except httpx.TransportError as error:
        raise _Dropped(f"The connection to {url} broke: {error}") from None


def _failure(answer: httpx.Response) -> CliError:
    """Make the error that an answer other than 2xx stands for."""
    problem = _problem(answer)
    code = answer.status_code
    if code == NO_RIGHT_TO_ASK:
        return Unavailable(
            "The server wants a bearer token: MOORAGE_TOKEN, MOORAGE_TOKEN_FILE or --token."
        )
    if code >= SERVER_FAULT or code == TOO_MANY_REQUESTS:
        return Unavailable(
            f"The server answered {code}: {problem.get('detail') or problem['title']}"
        )
    return Refused(problem)


def _problem(answer: httpx.Response) -> dict[str, Any]:
    fallback = {
        "title": answer.reason_phrase,
        "status": answer.status_code,
        "detail": answer.text[:500],
    }
    try:
        problem = msgspec.json.decode(answer.content, type=dict[str, Any])
    except msgspec.DecodeError:
        return fallback
    return {"title": answer.reason_phrase, "status": answer.status_code, **problem}


def _pause_wanted(answer: httpx.Response) -> float:
    try:
        wanted = float(answer.headers.get("Retry-After", RETRY_PAUSE_SECONDS))
    except ValueError:
        return RETRY_PAUSE_SECONDS
    return min(max(wanted, RETRY_PAUSE_SECONDS), RETRY_PAUSE_SECONDS_MAX)


def _given(params: Params | None) -> dict[str, str]:
    return {name: str(value) for name, value in (params or {}).items() if value is not None}
