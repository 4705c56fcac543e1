"""Forward requests that need a cluster's replica to the worker that owns the cluster (P19)."""

from collections.abc import Iterable
from functools import partial
from http import HTTPStatus
from typing import Any

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send
from msgspec.structs import replace

from service.api.forwarding.retry import (
    AnswerLost,
    OtherOwner,
    Repeat,
    Unreachable,
    forward,
)
from service.api.forwarding.transport import (
    ForwardedAnswer,
    ForwardedRequest,
    SocketPeers,
    cluster_in,
)
from service.api.http.body import BodyReader
from service.api.http.context import ApiRequest, begin, context_from, context_of
from service.api.http.disconnect import Left, WaitingClient, never
from service.api.http.flow_control import may_be_refused
from service.api.http.idempotency import IDEMPOTENCY_KEY
from service.api.http.operation import NDJSON, Operation
from service.api.telemetry.metrics import Metrics
from service.api.telemetry.traces import Spans
from service.model.core.access import ADMIN, Principal
from service.scheduler.ownership.cluster_owners import ClusterOwners

HANDED_BYTES_MAX = 16 * 1024 * 1024
"""A request with a larger body is decided by the worker that received it."""
_SECRETS = frozenset({b"authorization", b"proxy-authorization", b"cookie"})
"""Headers that are not forwarded; the principal that they authenticated is sent instead."""
ITSELF = Principal("moorage", (ADMIN,))
"""The caller of requests that workers send to each other on their own behalf."""
_OF_PACKED = frozenset({b"content-encoding", b"content-length"})
"""Headers that describe the body as received, before decompression."""


class ForwardingMiddleware:
    """Litestar middleware that forwards requests, except streams and reads of tables."""

    def __init__(
        self,
        cluster_owners: ClusterOwners,
        peers: SocketPeers,
        bodies: BodyReader,
        metrics: Metrics,
    ) -> None:
        self._cluster_owners = cluster_owners
        self._peers = peers
        self._bodies = bodies
        self._metrics = metrics

    def __call__(self, app: ASGIApp) -> ASGIApp:
        """Wrap the application, so that each request is decided here or by another worker."""

        async def forwarding(scope: Scope, receive: Receive, send: Send) -> None:
            holder = None
            if scope["type"] == ScopeType.HTTP and _may_be_forwarded(scope):
                holder = await self._cluster_owners.elsewhere(scope["path_params"]["cluster"])
            if holder is None:
                await app(scope, receive, send)
                return
            assert scope["type"] == ScopeType.HTTP
            client = WaitingClient(receive)
            try:
                answer = await self._ask(app, scope, receive, holder, client)
            finally:
                client.end()
            context_of(scope).reservation.changes_nothing |= answer.changes_nothing
            await _send(send, answer)

        return forwarding

    async def _ask(
        self,
        app: ASGIApp,
        scope: HTTPScope,
        receive: Receive,
        holder: str,
        client: WaitingClient,
    ) -> ForwardedAnswer:
        body = await self._bodies.read(ApiRequest(scope, receive))
        if any(name == b"content-encoding" for name, _ in scope["headers"]):
            scope["headers"] = [pair for pair in scope["headers"] if pair[0] not in _OF_PACKED]
            if len(body) > HANDED_BYTES_MAX:
                return await _here(app, scope, body, client.left)
        context = context_of(scope)
        request = ForwardedRequest(
            method=scope["method"],
            path=scope["path"],
            raw_path=scope.get("raw_path") or b"",
            query=scope["query_string"],
            headers=[pair for pair in scope["headers"] if pair[0] not in _SECRETS],
            body=body,
            principal=context.principal,
            address=context.address,
            request_id=context.request_id,
            terms=context.terms,
        )
        repeat, cluster = _repeat(scope), cluster_in(request)
        here = partial(_here, app, scope, body, client.left)
        asking = _Asking(self, client)

        async def instead() -> ForwardedAnswer:
            """Let the holder's successor decide the request, if any, or else this worker."""
            successor = await self._cluster_owners.elsewhere(cluster)
            if successor is None or successor == holder:
                return await here()
            return await forward(asking, successor, request, repeat, here)

        return await forward(asking, holder, request, repeat, instead)

    async def ask(
        self,
        holder: str,
        request: ForwardedRequest,
        repeat: Repeat,
        client: WaitingClient | None = None,
    ) -> ForwardedAnswer:
        """Ask another worker as `SocketPeers.ask` does, and count the outcome.

        If that worker has passed the cluster on, ask the new holder, but no further worker.
        """
        try:
            return await self._ask_one(holder, request, repeat, client)
        except OtherOwner as passed:
            cluster = cluster_in(request)
            self._cluster_owners.learn(cluster, passed.holder)
            if passed.holder == self._cluster_owners.own:
                raise
            return await self._ask_one(passed.holder, request, repeat, client)

    async def prepare(self, worker: str, cluster: str) -> bool:
        """Make another worker load a cluster into memory; return whether it did."""
        request = ForwardedRequest(
            method="GET",
            path=(path := f"/v1/clusters/{cluster}/namespaces/default/resourcequotas"),
            raw_path=path.encode(),
            query=b"",
            headers=[],
            body=b"",
            principal=ITSELF,
        )
        try:
            answer = await self._peers.ask(worker, request, "Safe")
        except (Unreachable, AnswerLost):
            return False
        return answer.status in {HTTPStatus.OK, HTTPStatus.NOT_FOUND}

    async def _ask_one(
        self,
        holder: str,
        request: ForwardedRequest,
        repeat: Repeat,
        client: WaitingClient | None,
    ) -> ForwardedAnswer:
        try:
            answer = await self._peers.ask(holder, request, repeat, client)
        except OtherOwner:
            self._metrics.forwarded("passed")
            raise
        except Unreachable:
            self._metrics.forwarded("unreachable")
            self._cluster_owners.not_reached(holder)
            raise
        except AnswerLost:
            self._metrics.forwarded("lost")
            self._cluster_owners.not_reached(holder)
            raise
        self._metrics.forwarded("answered")
        return answer


class _Asking:
    """Asks other workers on behalf of one client, as `ForwardingMiddleware.ask` does."""

    def __init__(self, forwarding: ForwardingMiddleware, client: WaitingClient) -> None:
        self._forwarding = forwarding
        self._client = client

    async def ask(self, holder: str, request: ForwardedRequest, repeat: Repeat) -> ForwardedAnswer:
        return await self._forwarding.ask(holder, request, repeat, self._client)


async def decide_forwarded(
    app: ASGIApp, request: ForwardedRequest, left: Left = never, *, spans: Spans | None = None
) -> ForwardedAnswer:
    """Return this worker's answer to a request that another worker forwarded.

    `left` returns once the client of the other worker has disconnected.

    With `spans`, the request's parts are children of the other worker's span.
    """
    scope: Any = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": request.raw_path,
        "query_string": request.query,
        "root_path": "",
        "headers": request.headers,
        "client": (request.address, 0) if request.address else None,
        "server": None,
        "extensions": {},
        "state": {},
    }
    context = context_from(request.headers, str)
    context.request_id, context.is_forwarded = request.request_id, True
    context.principal, context.terms = request.principal, request.terms
    begin(scope, context)
    if spans is not None:
        spans.go_on(scope)
    answer = await answer_of(app, scope, request.body, left)
    return replace(answer, changes_nothing=may_be_refused(context))


async def _here(app: ASGIApp, scope: HTTPScope, body: bytes, left: Left) -> ForwardedAnswer:
    """Decide a request in this worker because no other did; the handler reads the body again."""
    context_of(scope).reservation.release(len(body))
    return await answer_of(app, scope, body, left)


async def answer_of(
    app: ASGIApp, scope: HTTPScope, body: bytes, left: Left = never
) -> ForwardedAnswer:
    """Return an application's complete answer to a request with a known body."""
    incoming: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]
    start: dict[str, Any] = {}
    pieces: list[bytes] = []

    async def receive() -> Any:
        if incoming:
            return incoming.pop()
        await left()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            start.update(message)
        elif message["type"] == "http.response.body":
            pieces.append(message["body"])

    await app(scope, receive, send)
    return ForwardedAnswer(start["status"], list(start["headers"]), b"".join(pieces))


async def _send(send: Send, answer: ForwardedAnswer) -> None:
    headers: Iterable[tuple[bytes, bytes]] = answer.headers
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body, "more_body": False})


def _may_be_forwarded(scope: HTTPScope) -> bool:
    context = context_of(scope)
    if context.operation is None or not _needs_replica(context.operation, scope):
        return False
    if context.is_head or context.is_forwarded:
        return False
    headers = dict(scope["headers"])
    if headers.get(b"content-type", b"").startswith(NDJSON.encode()):
        return False
    length = headers.get(b"content-length", b"" if b"transfer-encoding" in headers else b"0")
    return length.isdigit() and int(length[:18]) <= HANDED_BYTES_MAX


def _needs_replica(operation: Operation, scope: HTTPScope) -> bool:
    if operation.decided or not operation.decided_with:
        return operation.decided
    given = {
        parameter.partition(b"=")[0].decode("latin-1")
        for parameter in scope["query_string"].split(b"&")
    }
    return any(names <= given for names in operation.decided_with)


def _repeat(scope: HTTPScope) -> Repeat:
    if scope["method"] == "GET":
        return "Safe"
    context = context_of(scope)
    keyed = context.operation is not None and IDEMPOTENCY_KEY in context.operation.parameters
    return "Keyed" if keyed and context.idempotency_key is not None else "Never"
