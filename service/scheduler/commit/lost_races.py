"""How often commits have lost their races of late."""

_MEMORY = 8
"""About how many of the last races the share is taken over; it is an exponential mean."""


class LostRaces:
    """Knows the share of lost races. A commit under the lock (P6) is no race and does not count."""

    def __init__(self) -> None:
        self.lost_share = 0.0

    def count(self, *, lost: bool) -> None:
        """Count a commit that raced to extend the log, and whether another was first."""
        self.lost_share += (lost - self.lost_share) / _MEMORY
