"""Starvation: keeps room free for a pod that was refused too often for lack of resources."""

from collections.abc import Callable

from service.scheduler.pending.equivalence_classes import EquivalenceClass, Order


class Starvation:
    """The starving equivalence classes of one queue, and the one that skips its back-off."""

    def __init__(self, failures_max: int) -> None:
        self._failures_max = failures_max
        self._starved: dict[EquivalenceClass, None] = {}
        self._chosen: EquivalenceClass | None = None
        self._first: Order | None = None
        """The starving pod, the first one of the chosen class."""

    def note(self, equivalence: EquivalenceClass) -> None:
        """Record that an equivalence class was refused."""
        if self._starves(equivalence):
            self._starved[equivalence] = None

    def forget(self, equivalence: EquivalenceClass) -> None:
        """Drop everything recorded about an equivalence class."""
        self._starved.pop(equivalence, None)
        if self.is_chosen(equivalence):
            self._chosen = None

    def is_chosen(self, equivalence: EquivalenceClass) -> bool:
        """Return whether this is the starving class that is tried before all others."""
        return equivalence is self._chosen

    @property
    def chosen(self) -> tuple[EquivalenceClass, Order] | None:
        """The chosen class and its starving pod, or None."""
        if self._chosen is None or self._first is None:
            return None
        return self._chosen, self._first

    @property
    def is_over(self) -> bool:
        """Whether the chosen pod has left, or its class starves no longer, since it was chosen."""
        if self._chosen is None or self._first is None:
            return self._first is not None
        is_member = self._chosen.members.get(self._first[2:]) == self._first
        return not is_member or not self._starves(self._chosen)

    def choose(self, head_of: Callable[[EquivalenceClass], Order | None]) -> Order | None:
        """Choose the class whose first pod comes first in the queue; return that pod, or None."""
        self._starved = dict.fromkeys(filter(self._starves, self._starved))
        heads = {
            head: equivalence
            for equivalence in self._starved
            if (head := head_of(equivalence)) is not None
        }
        first = min(heads, default=None)
        self._chosen = None if first is None else heads[first]
        self._first = first
        return first

    def _starves(self, equivalence: EquivalenceClass) -> bool:
        return equivalence.failures >= self._failures_max and equivalence.insufficient
