"""The outermost layer: what is checked of a request before it is routed, and said with each answer.

Pure ASGI, because it also has to see what Litestar answers by itself (404, 405).
"""

import hmac
from collections.abc import Awaitable, Callable, Iterable
from itertools import chain

from litestar.enums import HttpMethod, ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send
from litestar.utils.path import normalize_path

from service.api.metrics import Metrics
from service.api.problems import (
    PROBLEM_JSON,
    HeadersTooLarge,
    MalformedRequest,
    Unauthorized,
    URLTooLong,
    encode_problem,
)
from service.api.streams import HEAD_ONLY
from service.model.errors import MoorageError
from service.settings import Settings

_GUARDED = ("/v1", "/debug")
"""Where a token is asked for."""

REVISION_HEADER = b"moorage-revision"

HeadOf = Callable[[str], Awaitable[int | None]]
"""The revision of a cluster's head, None where it cannot be had."""

_SECURITY_HEADERS: list[tuple[bytes, bytes]] = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]


class Edge:
    """ASGI middleware around the whole application."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        *,
        head_of: HeadOf,
        metrics: Metrics,
        monotonic: Callable[[], float],
    ) -> None:
        self._app = app
        self._url_bytes_max = settings.url_bytes_max
        self._header_bytes_max = settings.header_bytes_max
        self._credentials = f"Bearer {settings.token}".encode() if settings.token else None
        self._head_of = head_of
        self._metrics = metrics
        self._monotonic = monotonic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the request, then hand it on."""
        if scope["type"] == ScopeType.HTTP:
            await self._answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _answer(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        started = self._monotonic()
        answering = _Answer(scope, send, self._head_of)
        try:
            self._check(scope)
        except MoorageError as error:
            await _refuse(answering, scope, error)
        else:
            await self._app(scope, receive, answering)
        self._metrics.request(scope, answering.status, self._monotonic() - started)

    def _check(self, scope: HTTPScope) -> None:
        headers = list(scope["headers"])
        path = scope.get("raw_path") or scope["path"].encode()
        if len(path) + len(scope["query_string"]) > self._url_bytes_max:
            raise URLTooLong(f"The URL is longer than {self._url_bytes_max} bytes.")
        if sum(map(len, chain.from_iterable(headers))) > self._header_bytes_max:
            raise HeadersTooLarge(f"The headers are longer than {self._header_bytes_max} bytes.")
        _check_framing(headers)
        _check_path(scope["path"])
        if _routed_path(scope).startswith(_GUARDED):
            self._authenticate(headers)

    def _authenticate(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        if self._credentials is None:
            return
        given = [value for name, value in headers if name == b"authorization"]
        # Of several, a proxy in front may have looked at another one.
        if len(given) != 1 or not hmac.compare_digest(
            _with_normal_scheme(given[0]), self._credentials
        ):
            raise Unauthorized("Send `Authorization: Bearer <token>` with the server's token.")


def _routed_path(scope: HTTPScope) -> str:
    """The path by which the router finds a handler: to it, `//v1` and `v1` are `/v1`."""
    path, root = scope["path"], scope.get("root_path", "")
    return normalize_path(path.split(root, maxsplit=1)[-1] if root else path)


def _with_normal_scheme(authorization: bytes) -> bytes:
    """The scheme's name is case-insensitive (RFC 9110); the token is not."""
    scheme, _, token = authorization.partition(b" ")
    return scheme.lower().capitalize() + b" " + token.strip()


def _check_framing(headers: list[tuple[bytes, bytes]]) -> None:
    """Two framings of one body are how requests are smuggled past proxies.

    Granian reads the chunks and drops the length, which is safe; other servers may hand on both.
    """
    names = [name for name, _ in headers]
    if b"transfer-encoding" in names and b"content-length" in names:
        raise MalformedRequest("Send Content-Length or Transfer-Encoding, not both.")
    if names.count(b"content-length") > 1:
        raise MalformedRequest("Content-Length is given more than once.")


def _check_path(path: str) -> None:
    if not path.isprintable() or "\ufffd" in path:
        raise MalformedRequest("The path has to be printable, percent-encoded UTF-8.")


async def _refuse(send: Send, scope: HTTPScope, error: MoorageError) -> None:
    status, body, headers = encode_problem(error, _printable(scope["path"]))
    fields = {"content-type": PROBLEM_JSON, "content-length": str(len(body)), **headers}
    encoded = [(name.encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _printable(path: str) -> str:
    return "".join(c if c.isprintable() else "\ufffd" for c in path)[:200]


class _Answer:
    """Wraps `send`: completes the headers of an answer, and remembers its status.

    An answer about a cluster carries the revision that it was made from. Where the handler did
    not get as far as knowing one, it is the head at the time of answering.
    """

    def __init__(self, scope: HTTPScope, send: Send, head_of: HeadOf) -> None:
        self._scope = scope
        self._send = send
        self._head_of = head_of
        self._bodiless = scope["method"] == "HEAD"
        if self._bodiless:
            scope["method"] = HttpMethod.GET
            scope.setdefault("state", {})[HEAD_ONLY] = True
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": await self._completed(message["headers"])}
        elif self._bodiless and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)

    async def _completed(self, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        given = list(headers)
        names = [name.lower() for name, _ in given]
        given += [header for header in _SECURITY_HEADERS if header[0] not in names]
        if REVISION_HEADER not in names and (cluster := _cluster_of(self._scope)):
            revision = await self._head_of(cluster)
            given += [] if revision is None else [(REVISION_HEADER, b"%d" % revision)]
        return given


def _cluster_of(scope: HTTPScope) -> str:
    """The cluster that a routed request is about; empty where there is none."""
    return str(scope.get("path_params", {}).get("cluster", ""))
