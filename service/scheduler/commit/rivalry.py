"""How often commits have lost their races of late."""

_MEMORY = 8
"""Races that the share goes back over, more or less: it is an exponential mean."""


class Rivalry:
    """Counts races only: a commit under the lock (P6) has no rival, and tells nothing of them."""

    def __init__(self) -> None:
        self.lost_share = 0.0

    def count(self, *, lost: bool) -> None:
        """A commit raced to be the first to extend the log."""
        self.lost_share += (lost - self.lost_share) / _MEMORY
