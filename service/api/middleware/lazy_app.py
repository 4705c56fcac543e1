"""A wrapper that defers building an ASGI application to the event loop that serves it."""

from collections.abc import Callable

from litestar.types import ASGIApp, Receive, Scope, Send


class LazyApp:
    """An ASGI application that is built at its first event, in the event loop that serves it."""

    def __init__(self, build: Callable[[], ASGIApp]) -> None:
        self._build = build
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            self._app = self._build()
        await self._app(scope, receive, send)
