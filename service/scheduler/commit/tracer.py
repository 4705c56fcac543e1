"""Where the scheduler tells how long each part of a request took, if anybody traces it."""

from typing import Literal, Protocol

Part = Literal["decide", "commit"]
"""What a request waits for: its decision, and the commit of the batch that it is in."""


class RequestSpan(Protocol):
    """The span of a request, below which its parts are told."""

    def part(self, name: Part, begun: float, ended: float, outcome: str) -> None:
        """A part is over; its times are the clock's monotonic seconds. This raises nothing."""
        ...


class Tracer(Protocol):
    """Knows which requests are traced."""

    def current(self) -> RequestSpan | None:
        """The span of the request that the running task serves; None if it is not traced."""
        ...
