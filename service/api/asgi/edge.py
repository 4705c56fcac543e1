"""The outermost layer checks a request before it is routed, and completes the headers of each answer.

It is pure ASGI, because it also has to see what Litestar answers by itself (404, 405).
"""

import re
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from itertools import chain

from litestar.enums import HttpMethod, ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from service.api.bodies.streams import HEAD_ONLY
from service.api.openapi.access import identify_by, principal_of
from service.api.problems import (
    PROBLEM_JSON,
    HeadersTooLarge,
    MalformedRequest,
    URLTooLong,
    encode_problem,
)
from service.api.security.anonymous_turns import Turns
from service.api.security.authentication import Authentication, Headers
from service.api.security.browsers import BrowserCheck
from service.api.security.callers import (
    REQUEST_ID_HEADER,
    name_request,
    request_id_in,
    request_id_of,
)
from service.api.security.proxies import Proxies
from service.api.security.rates import Rates
from service.api.security.refusals import Refusals
from service.api.telemetry.metrics import Metrics
from service.model.errors import MoorageError
from service.model.principals import EVERYBODY, Principal
from service.settings import Settings, proxy_networks

_NORMAL_PATH = re.compile(
    rb"/|(?:/"
    rb"(?!\.{1,2}(?:/|\Z))"  # `.` and `..` lead elsewhere
    rb"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]++"
    rb"|%(?!2D|2E|2F|3[0-9]|4[1-9A-F]|5[0-9A]|5F|6[1-9A-F]|7[0-9A]|7E)[0-9A-F]{2})++)++"
)
"""A path as RFC 3986 normalises it (6.2.2): only what must be percent-encoded is, in capitals.

Besides, no segment is empty, and none has an encoded slash. Matching takes time that is linear in
the path's length.
"""

REVISION_HEADER = b"moorage-revision"

HeadOf = Callable[[str], Awaitable[int | None]]
"""Returns the revision of a cluster's head, or None if it cannot be read."""

_SECURITY_HEADERS: list[tuple[bytes, bytes]] = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; base-uri 'none'; frame-ancestors 'none'"),
]


class Edge:
    """ASGI middleware around the whole application."""

    def __init__(  # noqa: PLR0913 - all that it needs of the world, by name
        self,
        app: ASGIApp,
        settings: Settings,
        *,
        authentication: Authentication,
        head_of: HeadOf,
        metrics: Metrics,
        rates: Rates,
        turns: Turns,
        refusals: Refusals | None,
        monotonic: Callable[[], float],
        new_id: Callable[[], str],
    ) -> None:
        self.app = app
        """The application that gets each request once it is checked."""
        self._url_bytes_max = settings.url_bytes_max
        self._header_bytes_max = settings.header_bytes_max
        self.authentication = authentication
        """It finds out who makes a request."""
        self._browsers = BrowserCheck(settings.allowed_hosts)
        self._proxies = Proxies(proxy_networks(settings))
        self._head_of = head_of
        self._metrics = metrics
        self._rates = rates
        self._turns = turns
        self._refusals = refusals
        self._monotonic = monotonic
        self._new_id = new_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the request, then pass it on; a request without credentials waits for its turn first."""
        if scope["type"] != ScopeType.HTTP:
            await self.app(scope, receive, send)
            return
        answer = partial(self._answer, self._monotonic())
        if self.authentication.seems_open() or _has_credentials(scope):
            self._turns.attend(scope)
            await answer(scope, receive, send)
        else:
            await self._turns.give(answer, scope, receive, send)

    async def _answer(self, started: float, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == ScopeType.HTTP
        self._proxies.find_caller(scope)
        name_request(scope, request_id_in(scope["headers"], self._new_id))
        if self._refusals is not None:
            self._refusals.attend(scope)
        answering = _Answer(scope, send, self._head_of)
        try:
            self._check(scope)
        except MoorageError as error:
            await _refuse(answering, scope, error)
        else:
            await self.app(scope, receive, answering)
        self._metrics.request(scope, answering.status, self._monotonic() - started)
        if self._refusals is not None:
            self._refusals.note(scope, answering.status)

    def _check(self, scope: HTTPScope) -> None:
        headers = list(scope["headers"])
        path = scope.get("raw_path") or scope["path"].encode()
        if len(path) + len(scope["query_string"]) > self._url_bytes_max:
            raise URLTooLong(f"The URL is longer than {self._url_bytes_max} bytes.")
        if sum(map(len, chain.from_iterable(headers))) > self._header_bytes_max:
            raise HeadersTooLarge(f"The headers are longer than {self._header_bytes_max} bytes.")
        _check_framing(headers)
        _check_path(scope["path"], path)
        if self.authentication.seems_open():
            self._browsers.check(scope)
        identify_by(scope, partial(self._principal, headers))
        self._rates.attend(scope)

    async def _principal(self, headers: Headers, scope: Scope) -> Principal | None:
        principal = await self.authentication.principal(headers)
        if principal is EVERYBODY:  # no token is asked for now, even if one was a moment ago
            assert scope["type"] == ScopeType.HTTP
            self._browsers.check(scope)
        return principal


def _has_credentials(scope: HTTPScope) -> bool:
    return any(name == b"authorization" for name, _ in scope["headers"])


def _check_framing(headers: list[tuple[bytes, bytes]]) -> None:
    """Refuse a body that is framed in two ways, for so requests are smuggled past proxies.

    Granian reads the chunks and drops the length, which is safe; other servers may pass on both.
    """
    names = [name for name, _ in headers]
    if b"transfer-encoding" in names and b"content-length" in names:
        raise MalformedRequest("Send Content-Length or Transfer-Encoding, not both.")
    if names.count(b"content-length") > 1:
        raise MalformedRequest("Content-Length is given more than once.")


def _check_path(path: str, raw_path: bytes) -> None:
    """Refuse a path that is not normalised: it may mean one thing here and another to a proxy."""
    if not path.isprintable() or "\ufffd" in path:
        raise MalformedRequest("The path has to be printable, percent-encoded UTF-8.")
    if _NORMAL_PATH.fullmatch(raw_path) is None:
        raise MalformedRequest(
            "The path is not in its normal form: it begins with one slash and ends without one, has no empty"
            " segments and none that is . or .., and only what has to be is percent-encoded, in capitals."
        )


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

    An answer about a cluster carries the revision that it was made from. If the
    handler failed before it knew one, it is the head at the time of answering.
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
        given.append((REQUEST_ID_HEADER, request_id_of(self._scope).encode()))
        given += [header for header in _SECURITY_HEADERS if header[0] not in names]
        if REVISION_HEADER not in names and (cluster := _cluster_of(self._scope)):
            revision = await self._head_of(cluster)
            given += [] if revision is None else [(REVISION_HEADER, b"%d" % revision)]
        return given


def _cluster_of(scope: HTTPScope) -> str:
    """The cluster that a routed request is about; empty if there is none or the caller may not read it."""
    cluster, principal = scope.get("path_params", {}).get("cluster"), principal_of(scope)
    if cluster is None or principal is None or not principal.may_somewhere("read", cluster):
        return ""
    return str(cluster)
