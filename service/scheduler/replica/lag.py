"""How far a replica is behind its log."""


class Lag:
    """Tracks a replica's lag behind the last known head of its log."""

    def __init__(self) -> None:
        self._head = self._missed = 0
        self._since = 0.0
        """When the head `_missed`, which the replica lacked then, became known."""

    def observe(self, head: int, replica: int, now: float) -> None:
        """Record that the log has reached revision `head`, and the replica revision `replica`."""
        self._head = head
        if replica >= self._missed or head < self._missed:
            self._missed, self._since = head, now

    def revisions(self, replica: int) -> int:
        """Return how many changes of the log the replica is known to lack."""
        return max(0, self._head - replica)

    def seconds(self, replica: int, now: float) -> float:
        """Return for how many seconds the log has had a change that the replica lacks."""
        return now - self._since if replica < self._missed else 0.0
