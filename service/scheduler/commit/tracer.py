"""The port that records how long each part of a traced request took."""

from typing import Literal, Protocol

Part = Literal["decide", "commit"]
"""The parts of a request's waiting time: its decision, and the commit of its batch."""


class RequestSpan(Protocol):
    """A request's trace span, under which its parts are recorded."""

    def part(self, name: Part, begun: float, ended: float, outcome: str) -> None:
        """Record a finished part, with times in the clock's monotonic seconds. Never raises."""
        ...


class Tracer(Protocol):
    """Knows which requests are traced."""

    def current(self) -> RequestSpan | None:
        """Return the span of the request that the running task serves, or None if it is not traced."""
        ...
