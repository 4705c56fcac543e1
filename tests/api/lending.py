"""One Litestar for all tests of a process: to register the handlers takes longer than most tests."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from litestar import Litestar
from litestar.di import Provide
from litestar.types import ASGIApp

from service.api.asgi.fast_path import Direct
from service.api.services import Services


class LentLitestar:
    """`create_app` is given the one that was made first, with services of its own each time.

    Only one application at a time has it; another one of the same test gets a Litestar of its own.
    """

    def __init__(self) -> None:
        self.services: Services | None = None
        """Of the application that has it now."""
        self._made: Litestar | None = None

    def application(self, stack: ExitStack, create: Callable[[], ASGIApp]) -> ASGIApp:
        """An application, which has the Litestar, if that is free, until the stack is closed."""
        if self.services is not None:
            return create()
        stack.callback(self._take_back)
        with (
            patch("service.app.Direct", self._direct),
            patch("service.app.Litestar", self._litestar),
        ):
            return create()

    def _take_back(self) -> None:
        self.services = None

    def _direct(self, services: Services) -> Direct:
        self.services = services
        return _PresentDirect(self)

    def _litestar(self, **options: Any) -> Litestar:
        if self._made is None:
            present = Provide(lambda: self.services, sync_to_thread=False)
            dependencies = {**options.pop("dependencies"), "services": present}
            self._made = Litestar(dependencies=dependencies, **options)
        return self._made


class _PresentDirect(Direct):
    def __init__(self, lent: LentLitestar) -> None:
        self._lent = lent

    @property
    def _services(self) -> Services | None:
        return self._lent.services
