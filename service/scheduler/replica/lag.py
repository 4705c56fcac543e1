"""How far a replica is behind its log."""


class Lag:
    """Compares what was heard of a log's head with what a replica holds."""

    def __init__(self) -> None:
        self._head = self._missed = 0
        self._since = 0.0
        """When the head `_missed` was heard of, which the replica did not have then."""

    def hear(self, head: int, replica: int, now: float) -> None:
        """The log has reached the revision `head`, the replica `replica`."""
        self._head = head
        if replica >= self._missed or head < self._missed:
            self._missed, self._since = head, now

    def revisions(self, replica: int) -> int:
        """Changes that the log is known to have and the replica has not."""
        return max(0, self._head - replica)

    def seconds(self, replica: int, now: float) -> float:
        """For how long the log has had something that the replica has not."""
        return now - self._since if replica < self._missed else 0.0
