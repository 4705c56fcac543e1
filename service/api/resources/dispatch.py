"""Call handlers of operations that the scheduler decides, submit intents, and send answers.

These handlers are called directly instead of through Litestar. What Litestar does around a handler
(injecting dependencies by name, exit stacks, converting the result) is the same for all of them,
and took a seventh of the cost of a placement. Routing, path parameters, routing errors, and the
OpenAPI document are still Litestar's, as for all other operations.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import msgspec
from litestar import Response
from litestar.enums import ScopeType
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from service.api.http.context import ApiRequest
from service.api.http.disconnect import WaitingClient
from service.api.http.exception_handler import answer_error
from service.api.http.idempotency import REPLAYED, Rendered, idempotency_of
from service.api.http.operation import JSON, Operation
from service.api.http.prefer import APPLIED, PREFERENCE
from service.api.resources.services import Services
from service.api.telemetry.metrics import Metrics
from service.scheduler.protocol.answers import Answer, LinesAnswer, RecordedAnswer, WriteAnswer
from service.scheduler.protocol.clients import CLIENT
from service.scheduler.protocol.intents import Intent

_BODILESS = frozenset({204, 304})
_OF_JSON = (b"content-type", JSON.encode())
_MINIMAL = (APPLIED.encode(), PREFERENCE.encode())
_REPLAYED = (REPLAYED.encode(), b"true")

A = TypeVar("A", bound=Answer)


class DecidedAnswer(NamedTuple):
    """The answer to a decided intent, encoded as JSON and ready to be sent."""

    revision: int
    rendered: Rendered
    is_replayed: bool
    """Whether it replays the answer to an earlier request with the same idempotency key."""

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers to send."""
        rendered = self.rendered
        length = b"%d" % len(rendered.body)
        headers = [
            (b"moorage-revision", b"%d" % self.revision),
            _OF_JSON,
            (b"content-length", length),
        ]
        if rendered.etag is not None:
            headers.append((b"etag", rendered.etag.encode()))
        if rendered.warning is not None:
            headers.append((b"warning", rendered.warning.encode()))
        if rendered.minimal:
            headers.append(_MINIMAL)
        if self.is_replayed:
            headers.append(_REPLAYED)
        return headers


async def submit_once(
    request: ApiRequest,
    services: Services,
    intent: Intent[A],
    body: bytes,
    render: Callable[[A], Rendered],
    *,
    chunk: int = 0,
) -> DecidedAnswer:
    """Submit an intent, under the request's idempotency key if it has one.

    `chunk` numbers the commits of a request that makes several.

    Raises:
        MalformedRequest: the key is empty, too long, or not printable ASCII.
    """
    context = request.context
    key = context.idempotency_key
    idempotency = None if key is None else idempotency_of(request, key, body, render, chunk)
    answer = await services.scheduler.submit(
        context.cluster, intent, idempotency, caller=request.audited_caller
    )
    if isinstance(answer, RecordedAnswer):
        rendered = msgspec.msgpack.decode(answer.answer, type=Rendered)
        return DecidedAnswer(answer.revision, rendered, is_replayed=True)
    _count_warnings(services.metrics, answer)
    return DecidedAnswer(answer.revision, render(answer), is_replayed=False)


def _count_warnings(metrics: Metrics, answer: Answer) -> None:
    match answer:
        case WriteAnswer() if answer.warnings:
            metrics.warned(answer.warnings)
        case LinesAnswer():
            for result in answer.results:
                metrics.warned(result.warnings)
        case _:
            pass


class FastPath:
    """The innermost Litestar middleware, which calls handlers of decided operations directly.

    These handlers take the request and the services, and use no Litestar hooks. While any handler
    runs, decisions can ask whether its client has disconnected.
    """

    def __init__(self, services: Services) -> None:
        self._services = services

    def __call__(self, app: ASGIApp) -> ASGIApp:
        """Wrap the application, so that handlers of decided operations are called directly."""

        async def calling(scope: Scope, receive: Receive, send: Send) -> None:
            handler, client = scope["route_handler"], WaitingClient(receive)
            token = CLIENT.set(client)
            try:
                if (
                    scope["type"] == ScopeType.HTTP
                    and isinstance(handler, HTTPRouteHandler)
                    and _is_decided(handler)
                ):
                    await self._call(handler, scope, receive, send)
                else:
                    await app(scope, receive, send)
            finally:
                CLIENT.reset(token)
                if client.leaving is not None:
                    client.end()

        return calling

    async def _call(
        self, handler: HTTPRouteHandler, scope: HTTPScope, receive: Receive, send: Send
    ) -> None:
        request = ApiRequest(scope, receive)
        answer: DecidedAnswer | Response[bytes]
        try:
            answer = await handler.fn(request, self._services)
        except Exception as error:  # noqa: BLE001 - every exception becomes a problem document
            answer = answer_error(request, error)
        if isinstance(answer, DecidedAnswer):
            rendered = answer.rendered
            await _send(send, rendered.status, answer.headers(), rendered.body)
        elif _is_whole(answer):
            await _send(send, answer.status_code or 200, _headers(answer), answer.content)
        else:
            await answer.to_asgi_response(None, request)(scope, receive, send)


def _is_decided(handler: HTTPRouteHandler) -> bool:
    operation = handler.opt.get("operation")
    return isinstance(operation, Operation) and operation.decided


def _is_whole(response: Response[bytes]) -> bool:
    """Return whether a response has a known status and body, so that it can be sent directly."""
    return type(response) is Response and response.status_code not in _BODILESS


def _headers(response: Response[bytes]) -> list[tuple[bytes, bytes]]:
    headers = [(name.encode(), value.encode()) for name, value in response.headers.items()]
    headers.append((b"content-type", str(response.media_type).encode()))
    headers.append((b"content-length", b"%d" % len(response.content)))
    return headers


async def _send(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
