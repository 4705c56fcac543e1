"""Starvation: who was refused too often for lack of resources gets every chance first."""

from collections.abc import Callable

from service.scheduler.pending.equivalence_classes import EquivalenceClass, Order


class Starvation:
    """The equivalence classes of one queue that starve, and the one of them that does not wait for its back-off."""

    def __init__(self, failures_max: int) -> None:
        self._failures_max = failures_max
        self._starved: dict[EquivalenceClass, None] = {}
        self._chosen: EquivalenceClass | None = None

    def note(self, equivalence: EquivalenceClass) -> None:
        """Take in that an equivalence class was refused."""
        if self._starves(equivalence):
            self._starved[equivalence] = None

    def forget(self, equivalence: EquivalenceClass) -> None:
        """Drop what is remembered of an equivalence class."""
        self._starved.pop(equivalence, None)
        if self.is_chosen(equivalence):
            self._chosen = None

    def is_chosen(self, equivalence: EquivalenceClass) -> bool:
        """Whether this is the one that gets every chance first."""
        return equivalence is self._chosen

    def choose(self, head_of: Callable[[EquivalenceClass], Order | None]) -> Order | None:
        """Choose the one whose first pod comes before those of all others, and return this pod; None if nobody starves."""
        self._starved = dict.fromkeys(filter(self._starves, self._starved))
        heads = {head: each for each in self._starved if (head := head_of(each)) is not None}
        first = min(heads, default=None)
        self._chosen = None if first is None else heads[first]
        return first

    def _starves(self, equivalence: EquivalenceClass) -> bool:
        return equivalence.failures >= self._failures_max and equivalence.insufficient
