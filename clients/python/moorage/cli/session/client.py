"""The command line's client: the client package with the command's own errors and retries.

Answers are plain JSON values. Repeatable requests (reads, PUTs, and calls with an idempotency key)
are retried for a limited time if the server is overloaded or restarting, or reports an unknown
outcome.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import httpx
import msgspec

from moorage.cli.exceptions import CliError, Refused, Unavailable
from moorage.errors import NoAnswerError, ProblemError
from moorage.events import ServerSentEvent
from moorage.requests import (
    APPLY_PATCH,
    JSON,
    MERGE_PATCH,
    Params,
    Request,
    asking,
    deleting,
    deleting_once,
    dry,
    patching,
    path_of,
    posting,
    posting_lines,
    posting_once,
    putting,
    reading,
    streaming,
)
from moorage.retries import STANDING, Retries
from moorage.synchronous.connection import Connection
from moorage.synchronous.watching import events_in

RETRY_SECONDS_MAX = 30.0
PAGE_SIZE = 500

TOO_MANY_REQUESTS = 429
SERVICE_UNAVAILABLE = 503
NO_RIGHT_TO_ASK = 401
SERVER_FAULT = 500

PATIENCE = Retries(
    seconds_max=RETRY_SECONDS_MAX,
    retry_after_seconds_max=5.0,
    statuses=frozenset({TOO_MANY_REQUESTS, SERVICE_UNAVAILABLE}),
    unreachable=False,
    timed_out=False,
)
"""Short retries: people want to know soon that no server is running."""

Warn = Callable[[Mapping[str, str]], None]
"""Receives a warning of the server: its `field`, `code`, and `message`."""


def _ignore(_: Mapping[str, str]) -> None:
    """Ignore a warning."""


class Client:
    """Sends requests to one server, by default about one of its clusters.

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
        self.cluster = cluster
        self._warn = warn
        self.writing: Params = {}
        """Query parameters added to all writes."""
        self._connection = Connection(
            url,
            token=token,
            timeout_seconds=timeout_seconds,
            retries=PATIENCE,
            transport=transport,
            sleep=sleep,
        )
        self.url = self._connection.url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def on_cluster(self, cluster: str) -> "Client":
        """Return a client of the same server, on the same connections, for another cluster."""
        other = copy(self)
        other.cluster = cluster
        return other

    def trying(self) -> "Client":
        """Return a client whose writes are dry runs."""
        other = copy(self)
        other.writing = dry(dry_run=True)
        return other

    def heedless(self) -> "Client":
        """Return a client that ignores warnings, for callers that read them from answers."""
        other = copy(self)
        other._warn = _ignore  # noqa: SLF001 - a copy of this client
        return other

    def path(self, *parts: str) -> str:
        """Return a path in this client's cluster: `path("pods")` is `/v1/clusters/default/pods`."""
        return path_of(self.cluster, *parts)

    def get(self, path: str, params: Params | None = None) -> Any:
        """Send a GET, and return the decoded answer."""
        return _decoded(self._sent(reading(path, params)))

    def get_tagged(self, path: str) -> tuple[Any, str | None]:
        """Send a GET, and return the decoded answer with its entity tag (`ETag`)."""
        answer = self._sent(reading(path))
        return _decoded(answer), answer.headers.get("ETag")

    def put(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> Any:
        """Send a PUT, and return the decoded answer."""
        return self._written(replace(putting(path, body, headers, self.writing), repeatable=True))

    def patch(
        self,
        path: str,
        body: object,
        content_type: str = MERGE_PATCH,
        headers: Mapping[str, str | None] | None = None,
    ) -> Any:
        """Send a patch, by default a merge patch (RFC 7396), and return the decoded answer."""
        return self._written(patching(path, body, content_type, headers, self.writing))

    def apply(self, path: str, body: object, params: Params) -> Any:
        """Merge a manager's fields into an object, or create it; return the decoded answer."""
        return self._written(patching(path, body, APPLY_PATCH, params={**params, **self.writing}))

    def delete(self, path: str) -> Any:
        """Send a DELETE, and return the decoded answer: the object's last state."""
        return _decoded(self._sent(deleting(path, self.writing)))

    def delete_once(self, path: str, params: Params) -> Any:
        """Delete the objects that match filters, once even if sent again."""
        return _decoded(self._sent(deleting_once(path, {**params, **self.writing})))

    def post(self, path: str, body: object, params: Params | None = None) -> Any:
        """Send a POST that is safe to repeat; return the decoded answer, if any."""
        return self._written(asking(path, body, params))

    def post_again(self, path: str) -> Any:
        """Send a POST without a body that takes effect each time; return the decoded answer."""
        return self._written(posting(path, self.writing))

    def post_once(
        self, path: str, body: object, params: Params | None = None, *, key: str | None = None
    ) -> Any:
        """Send a POST that takes effect only once, even if sent again; return the decoded answer.

        The idempotency key is `key`, which gives later calls the same answer, or else a new key.
        """
        return self._written(posting_once(path, body, {**(params or {}), **self.writing}, key))

    def post_lines(self, path: str, lines: list[bytes]) -> list[Any]:
        """Send an NDJSON request that takes effect once; return the answer's decoded lines."""
        answer = self._sent(posting_lines(path, lines, self.writing))
        return [
            self._noted(msgspec.json.decode(line)) for line in answer.content.splitlines() if line
        ]

    def pages(self, path: str, params: Params | None = None) -> Iterator[list[Any]]:
        """Yield the items of a list, page by page, in the server's order."""
        return (page["items"] for page in self.whole_pages(path, params))

    def whole_pages(self, path: str, params: Params | None = None) -> Iterator[dict[str, Any]]:
        """Yield the raw pages of a list, each with the revision in its metadata."""
        token: str | None = None
        while True:
            page = self.get(path, {"limit": PAGE_SIZE, **(params or {}), "continue": token})
            yield page
            token = page.get("metadata", {}).get("continue")
            if not token:
                return

    @contextmanager
    def events(self, path: str, params: Params) -> Iterator[Iterator[ServerSentEvent]]:
        """Open an event stream, and yield an iterator over its events.

        The iterator ends with the stream. It raises Unavailable if the stream is silent for too
        long.
        """
        with _own_errors(), self._connection.stream(streaming(path, params)) as pieces:
            yield events_in(pieces)

    @contextmanager
    def download(self, path: str) -> Iterator[Iterator[bytes]]:
        """Open an answer of any size, and yield an iterator over its pieces.

        The iterator raises Unavailable if the answer ends too early or stalls.
        """
        with _own_errors(), self._connection.stream(streaming(path, {}, accept=JSON)) as pieces:
            yield pieces

    def _sent(self, request: Request) -> httpx.Response:
        with _own_errors():
            return self._connection.send(request)

    def _written(self, request: Request) -> Any:
        return self._noted(_decoded(self._sent(request)))

    def _noted(self, answer: Any) -> Any:
        """Report the warnings of an answer, and return the answer."""
        for warning in answer.get("warnings") or () if isinstance(answer, dict) else ():
            self._warn(warning)
        return answer


def _decoded(answer: httpx.Response) -> Any:
    return msgspec.json.decode(answer.content) if answer.content else None


@contextmanager
def _own_errors() -> Iterator[None]:
    """Convert the client package's errors to those that end a command."""
    try:
        yield
    except NoAnswerError as error:
        raise Unavailable(str(error)) from None
    except ProblemError as error:
        raise _own_error(error) from None


def _own_error(error: ProblemError) -> CliError:
    if error.status == NO_RIGHT_TO_ASK:
        return Unavailable(
            "The server wants a bearer token: MOORAGE_TOKEN, MOORAGE_TOKEN_FILE or --token."
        )
    passing = error.status == TOO_MANY_REQUESTS and error.code not in STANDING
    if error.status >= SERVER_FAULT or passing:
        return Unavailable(f"The server answered {error.status}: {error.detail or error.title}")
    return Refused(error.document)
