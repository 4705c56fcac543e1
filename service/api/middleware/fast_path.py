"""Requests that are decided reach their handlers directly, without Litestar's own call of a handler.

What Litestar does around a handler (injecting dependencies by name, exit stacks, converting what it
returns) is the same for each of these, and took a seventh of what a placement costs. Routing,
path parameters, the errors of routing and the OpenAPI document are Litestar's as for all others.
"""

from litestar import Request, Response
from litestar.enums import ScopeType
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from service.api.bodies.request_reading import AnyRequest
from service.api.handler_services.server_services import Services
from service.api.openapi.operation_declaration import Operation
from service.api.problems import answer_error

_BODILESS = frozenset({204, 304})


class FastPath:
    """The innermost Litestar middleware calls handlers that take a request and the services.

    Handlers of operations that are decided have these two arguments, and no hooks of Litestar's.
    """

    def __init__(self, services: Services) -> None:
        self._services = services

    def __call__(self, app: ASGIApp) -> ASGIApp:
        """Wrap the application, so that some of its handlers are called directly."""

        async def calling(scope: Scope, receive: Receive, send: Send) -> None:
            handler = scope["route_handler"]
            if (
                scope["type"] == ScopeType.HTTP
                and isinstance(handler, HTTPRouteHandler)
                and _is_decided(handler)
            ):
                await self._call(handler, scope, receive, send)
            else:
                await app(scope, receive, send)

        return calling

    async def _call(
        self, handler: HTTPRouteHandler, scope: HTTPScope, receive: Receive, send: Send
    ) -> None:
        request: AnyRequest = Request(scope, receive=receive)
        response: Response[bytes]
        try:
            response = await handler.fn(request, self._services)
        except Exception as error:  # noqa: BLE001 - every exception becomes a problem document
            response = answer_error(request, error)
        if _is_whole(response):
            await _send(response, send)
        else:
            await response.to_asgi_response(None, request)(scope, receive, send)


def _is_decided(handler: HTTPRouteHandler) -> bool:
    operation = handler.opt.get("operation")
    return isinstance(operation, Operation) and operation.decided


def _is_whole(response: Response[bytes]) -> bool:
    """Whether status and body of the response are known, so that it can be sent as it is."""
    return type(response) is Response and response.status_code not in _BODILESS


async def _send(response: Response[bytes], send: Send) -> None:
    body = response.content
    headers = [(name.encode(), value.encode()) for name, value in response.headers.items()]
    headers.append((b"content-type", str(response.media_type).encode()))
    headers.append((b"content-length", b"%d" % len(body)))
    await send(
        {
            "type": "http.response.start",
            "status": response.status_code or 200,
            "headers": headers,
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": False})
