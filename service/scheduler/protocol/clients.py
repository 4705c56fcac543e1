"""Clients that wait for an answer, as decisions see them."""

from contextvars import ContextVar
from typing import Protocol


class Client(Protocol):
    """The client that waits for a request's answer."""

    def has_left(self) -> bool:
        """Return whether the client has disconnected; the first call starts watching for that."""
        ...


CLIENT: ContextVar[Client | None] = ContextVar("client", default=None)
"""The client of the running task's request, or None if it cannot disconnect."""
