"""The outermost ASGI layer: checks requests before routing, and completes response headers.

It is plain ASGI middleware, because it must also see the answers that Litestar produces by itself
(404, 405).
"""

import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from itertools import chain

from litestar.enums import HttpMethod, ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from service.api.auth.csrf import BROWSERS_OWN
from service.api.auth.forwarded_for import Proxies
from service.api.auth.guard import RequestGuard
from service.api.auth.refusal_log import Refusals
from service.api.http.context import (
    REQUEST_ID_HEADER,
    Arrival,
    RequestContext,
    begin,
    context_from,
)
from service.api.http.exception_handler import known_error, send_problem
from service.api.http.problems import HeadersTooLarge, MalformedRequest, URLTooLong
from service.api.middleware.response_compression import ResponseCompression
from service.api.telemetry.metrics import Metrics
from service.api.telemetry.traces import Spans
from service.model.core.errors import MoorageError
from service.settings import Settings, proxy_networks

_NORMAL_PATH = re.compile(
    rb"/|(?:/"
    rb"(?!\.{1,2}(?:/|\Z))"  # `.` and `..` point elsewhere
    rb"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]++"
    rb"|%(?!2D|2E|2F|3[0-9]|4[1-9A-F]|5[0-9A]|5F|6[1-9A-F]|7[0-9A]|7E)[0-9A-F]{2})++)++"
)
"""A path in the normal form of RFC 3986, 6.2.2.

Only characters that must be percent-encoded are, with upper-case digits. In addition, no segment is
empty, and none contains an encoded slash. Matching takes time linear in the path's length.
"""

REVISION_HEADER = b"moorage-revision"
LOGGED_PATH_MAX = 500
"""The maximum number of bytes of a path shown in the access log."""

_access_log = logging.getLogger("service.access")

HeadOf = Callable[[str], Awaitable[int | None]]
"""Returns the revision of a cluster's head, or None if it cannot be read."""

_SECURITY_HEADERS: list[tuple[bytes, bytes]] = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; base-uri 'none'; frame-ancestors 'none'"),
]


class Edge:
    """The outermost ASGI middleware of the application."""

    def __init__(  # noqa: PLR0913 - its dependencies, by name
        self,
        app: ASGIApp,
        settings: Settings,
        *,
        guard: RequestGuard,
        head_of: HeadOf,
        metrics: Metrics,
        refusals: Refusals | None,
        spans: Spans | None = None,
        monotonic: Callable[[], float],
        new_id: Callable[[], str],
    ) -> None:
        self.app = app
        """The application that receives each request after the checks."""
        self._compressing = ResponseCompression(app, settings.compressed_bytes_min)
        self._url_bytes_max = settings.url_bytes_max
        self._header_bytes_max = settings.header_bytes_max
        self.authentication = guard.authentication
        self._guard = guard
        networks = proxy_networks(settings)
        self._proxies = Proxies(networks) if networks else None
        self._head_of = head_of
        self._metrics = metrics
        self._refusals = refusals
        self._spans = spans
        self._logs_access = settings.access_log
        self._monotonic = monotonic
        self._new_id = new_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the request and pass it on; requests without credentials wait for a slot first."""
        if scope["type"] != ScopeType.HTTP:
            await self.app(scope, receive, send)
            return
        started, seems_open = self._monotonic(), self.authentication.seems_open()
        if seems_open or _has_credentials(scope):
            arrival = Arrival(has_turn=False, seemed_open=seems_open)
            await self._answer(started, arrival, scope, receive, send)
        else:
            answer = partial(self._answer, started, Arrival(has_turn=True, seemed_open=False))
            await self._guard.turns.give(answer, scope, receive, send)

    async def _answer(
        self, started: float, arrival: Arrival, scope: Scope, receive: Receive, send: Send
    ) -> None:
        assert scope["type"] == ScopeType.HTTP
        if self._proxies is not None:
            self._proxies.find_caller(scope)
        context = context_from(scope["headers"], self._new_id)
        context.arrival, context.refusals = arrival, self._refusals
        span = None
        if self._spans is not None:
            span = self._spans.begin(scope)
            context.trace_id = span.trace_id
        if scope["method"] == "HEAD":
            scope["method"], context.is_head = HttpMethod.GET, True
        begin(scope, context)
        answering = _Answer(context, send, self._head_of)
        try:
            self._check(scope, arrival)
        except MoorageError as error:
            await _refuse(answering, context, error)
        else:
            await self._serve(scope, context, receive, answering)
        seconds = self._monotonic() - started
        operation = context.operation.id if context.operation else "other"
        self._metrics.request(operation, answering.status, seconds)
        if span is not None:
            span.end(operation, answering.status, context.request_id)
        if self._logs_access:
            _log_access(scope, context, answering.status, seconds)
        if self._refusals is not None:
            self._refusals.note(context, answering.status)

    async def _serve(
        self, scope: HTTPScope, context: RequestContext, receive: Receive, answering: "_Answer"
    ) -> None:
        """Call the application; if it fails before the answer has begun, answer with a problem."""
        names_codings = b"accept-encoding" in dict(scope["headers"])
        try:
            await (self._compressing if names_codings else self.app)(scope, receive, answering)
        except Exception as error:
            if answering.has_begun:
                raise
            await _refuse(answering, context, known_error(error))

    def _check(self, scope: HTTPScope, arrival: Arrival) -> None:
        headers = list(scope["headers"])
        path = scope.get("raw_path") or scope["path"].encode()
        if len(path) + len(scope["query_string"]) > self._url_bytes_max:
            raise URLTooLong(f"The URL is longer than {self._url_bytes_max} bytes.")
        if sum(map(len, chain.from_iterable(headers))) > self._header_bytes_max:
            raise HeadersTooLarge(f"The headers are longer than {self._header_bytes_max} bytes.")
        names = [name for name, _ in headers]
        _check_framing(names)
        _check_path(scope["path"], path)
        if arrival.seemed_open and not self._is_no_browser(headers, names):
            self._guard.browsers.check(scope)

    def _is_no_browser(self, headers: list[tuple[bytes, bytes]], names: list[bytes]) -> bool:
        """Return whether a request has a single `Host` of this server and no browser headers."""
        return (
            names.count(b"host") == 1
            and headers[names.index(b"host")][1] in self._guard.browsers.own_hosts
            and not any(name in names for name in BROWSERS_OWN)
        )


def _has_credentials(scope: HTTPScope) -> bool:
    return any(name == b"authorization" for name, _ in scope["headers"])


def _check_framing(names: list[bytes]) -> None:
    """Refuse a body with ambiguous framing, which can smuggle requests past proxies.

    Granian reads the chunks and ignores the length, which is safe; other servers may pass on both.
    """
    if b"transfer-encoding" in names and b"content-length" in names:
        raise MalformedRequest("Send Content-Length or Transfer-Encoding, not both.")
    if names.count(b"content-length") > 1:
        raise MalformedRequest("Content-Length is given more than once.")


def _check_path(path: str, raw_path: bytes) -> None:
    """Refuse a path that is not normalized, since a proxy might interpret it differently."""
    if not path.isprintable() or "\ufffd" in path:
        raise MalformedRequest("The path has to be printable, percent-encoded UTF-8.")
    if _NORMAL_PATH.fullmatch(raw_path) is None:
        raise MalformedRequest(
            "The path is not in its normal form: it begins with one slash and ends without one, has no empty"
            " segments and none that is . or .., and only what has to be is percent-encoded, in capitals."
        )


def _log_access(scope: HTTPScope, context: RequestContext, status: int, seconds: float) -> None:
    caller = context.audited_caller()
    path = scope.get("raw_path") or scope["path"].encode()
    fields = {
        "method": scope["method"],
        "path": path[:LOGGED_PATH_MAX].decode("ascii", "backslashreplace"),
        "status": status,
        "seconds": round(seconds, 6),
        "operation": caller.operation,
        "principal": caller.principal,
        "address": caller.address,
    }
    _access_log.info("Answered.", extra=fields)


async def _refuse(send: Send, context: RequestContext, error: MoorageError) -> None:
    await send_problem(send, error, _printable(context.path), context)


def _printable(path: str) -> str:
    return "".join(c if c.isprintable() else "\ufffd" for c in path)[:200]


class _Answer:
    """Wraps `send` to complete the headers of an answer and record its status.

    An answer about a cluster carries the revision that it was made from. If the handler failed
    before it knew the revision, the answer carries that of the current head.
    """

    def __init__(self, context: RequestContext, send: Send, head_of: HeadOf) -> None:
        self._context = context
        self._send = send
        self._head_of = head_of
        self.status = 0
        self.has_begun = False
        """Whether the client may have received the start of the answer."""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": await self._completed(message["headers"])}
            self.has_begun = True
        elif self._context.is_head and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)

    async def _completed(self, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        given = list(headers)
        names = [name.lower() for name, _ in given]
        given.append((REQUEST_ID_HEADER, self._context.request_id.encode()))
        given += [header for header in _SECURITY_HEADERS if header[0] not in names]
        if REVISION_HEADER not in names and (cluster := _cluster_of(self._context)):
            revision = await self._head_of(cluster)
            given += [] if revision is None else [(REVISION_HEADER, b"%d" % revision)]
        return given


def _cluster_of(context: RequestContext) -> str:
    """Return the cluster of a routed request, or "" if there is none that the caller may read."""
    cluster, principal = context.cluster, context.principal
    if not cluster or principal is None or not principal.may_somewhere("read", cluster):
        return ""
    return cluster
