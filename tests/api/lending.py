"""A few Litestars for all tests of a process: to register the handlers takes longer than most tests."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from litestar import Litestar
from litestar.di import Provide
from litestar.types import ASGIApp, Receive, Scope, Send

from service.api.handler_services.decided_operations import FastPath
from service.api.handler_services.server_services import Services

Middleware = Callable[[ASGIApp], ASGIApp]


class LentLitestars:
    """`create_app` is given one that was made before, with services of its own each time.

    One application at a time has it; another one at the same time has another one.
    """

    def __init__(self) -> None:
        self._made: list[_Lent] = []

    def application(self, stack: ExitStack, create: Callable[[], ASGIApp]) -> ASGIApp:
        """An application, which has a Litestar until the stack is closed."""
        lent = next((each for each in self._made if each.services is None), None)
        if lent is None:
            lent = _Lent()
            self._made.append(lent)
        stack.callback(lent.take_back)
        with (
            patch("service.app.FastPath", lent.direct),
            patch("service.app.Litestar", lent.litestar),
        ):
            return create()


class _Lent:
    """A Litestar, and what the application that has it now brought along."""

    def __init__(self) -> None:
        self.services: Services | None = None
        self.middleware: Sequence[Middleware] = ()
        self._made: Litestar | None = None

    def take_back(self) -> None:
        self.services = None
        self.middleware = ()

    def direct(self, services: Services) -> FastPath:
        self.services = services
        return _PresentFastPath(self)

    def litestar(self, **options: Any) -> Litestar:
        *self.middleware, direct = options.pop("middleware")
        if self._made is None:
            present = Provide(lambda: self.services, sync_to_thread=False)
            dependencies = {**options.pop("dependencies"), "services": present}
            middleware = [_PresentMiddleware(self), direct]
            self._made = Litestar(dependencies=dependencies, middleware=middleware, **options)
        return self._made


class _PresentFastPath(FastPath):
    def __init__(self, lent: _Lent) -> None:
        self._lent = lent

    @property
    def _services(self) -> Services | None:
        return self._lent.services


class _PresentMiddleware:
    """The middleware of the application itself."""

    def __init__(self, lent: _Lent) -> None:
        self._lent = lent

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def through(scope: Scope, receive: Receive, send: Send) -> None:
            wrapped = app
            for each in reversed(self._lent.middleware):
                wrapped = each(wrapped)
            await wrapped(scope, receive, send)

        return through
