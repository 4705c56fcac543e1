"""Leaves an extender alone for a while after it has failed several times in a row."""

from collections.abc import Callable


class Breaker:
    """Counts failures in a row. After too many it is open: no call is made until the pause is over.

    Then one call is let through: if that succeeds, all others follow; if not, there is another pause.
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
        """Whether a call may be made now; whoever makes it has to tell how it ended."""
        if self._failures < self._failures_max:
            return True
        if self._trying or self._monotonic() < self._open_until:
            return False
        self._trying = True
        return True

    def succeeded(self) -> None:
        """A call was answered."""
        self._failures, self._trying = 0, False

    def failed(self) -> None:
        """A call was not answered as it should be."""
        self._trying = False
        self._failures = min(self._failures + 1, self._failures_max)
        if self._failures >= self._failures_max:
            self._open_until = self._monotonic() + self._pause_seconds

    def ended(self) -> None:
        """A call was given up by whoever made it, which says nothing of the extender."""
        self._trying = False
