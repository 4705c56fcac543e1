"""The circuit breaker, which pauses calls to an extender after several failures in a row."""

from collections.abc import Callable


class CircuitBreaker:
    """The state of one extender: closed, or open after too many failures in a row.

    While it is open, no call is made until a pause is over. Then one call is admitted: if it
    succeeds, the breaker closes; otherwise another pause begins.
    """

    def __init__(
        self, failures_max: int, pause_seconds: float, monotonic: Callable[[], float]
    ) -> None:
        self._failures_max = failures_max
        self._pause_seconds = pause_seconds
        self._monotonic = monotonic
        self._failures = 0
        self._open_until = 0.0
        self._trying = False

    def admits(self) -> bool:
        """Return whether a call may be made now; the caller has to report its outcome."""
        if self._failures < self._failures_max:
            return True
        if self._trying or self._monotonic() < self._open_until:
            return False
        self._trying = True
        return True

    def succeeded(self) -> None:
        """Record a successful call."""
        self._failures, self._trying = 0, False

    def failed(self) -> None:
        """Record a failed call."""
        self._trying = False
        self._failures = min(self._failures + 1, self._failures_max)
        if self._failures >= self._failures_max:
            self._open_until = self._monotonic() + self._pause_seconds

    def canceled(self) -> None:
        """Record a call that its caller canceled, which says nothing about the extender."""
        self._trying = False
