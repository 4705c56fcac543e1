"""Clients that wait for an answer, as decisions see them."""

from contextvars import ContextVar
from typing import Protocol


class Client(Protocol):
    """The client waiting for the answer to a request."""

    def has_left(self) -> bool:
        """Return whether the client has disconnected; the first call starts watching for it."""
        ...


CLIENT: ContextVar[Client | None] = ContextVar("client", default=None)
"""The client of the request that the running task serves, or None if it cannot disconnect."""
