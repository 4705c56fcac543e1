"""Back-off: repeatedly refused pods wait longer and longer between attempts.

When idle, kube-scheduler also tries pods in back-off. Here, a few of the first pods may be tried
after any change, even if often refused, so that they can benefit from the change.
"""

import heapq
from collections.abc import Iterator
from itertools import count

from service.scheduler.pending.equivalence_classes import EquivalenceClass, Order, State
from service.scheduler.protocol.limits import Limits


class Backoff:
    """The equivalence classes of one queue that are in back-off.

    A class that leaves without these methods is no longer in `State.BACKOFF`.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: list[tuple[float, int, EquivalenceClass]] = []
        self._first: list[tuple[Order, int, EquivalenceClass]] = []
        """The equivalence classes again, ordered by their first pods."""
        self._early = 0
        """How many classes may still be tried before their back-off is over."""
        self._numbers = count()

    def has_work(self, now: float) -> bool:
        """Return whether any class may be tried now."""
        return bool((self._waiting and self._waiting[0][0] <= now) or (self._first and self._early))

    def begin(self, equivalence: EquivalenceClass, now: float) -> None:
        """Set when a newly refused equivalence class may be tried again."""
        equivalence.due = now + self._seconds(equivalence)

    def put(self, equivalence: EquivalenceClass, head: Order | None) -> None:
        """Add an equivalence class until its back-off is over; `head` is its first pod."""
        equivalence.state = State.BACKOFF
        heapq.heappush(self._waiting, (equivalence.due, next(self._numbers), equivalence))
        if head is not None and not equivalence.is_costly:
            heapq.heappush(self._first, (head, next(self._numbers), equivalence))
            self._early = self._limits.pending_early_tries

    def take(self, now: float) -> Iterator[EquivalenceClass]:
        """Remove and yield the classes whose back-off is over."""
        while self._waiting and self._waiting[0][0] <= now:
            _, _, equivalence = heapq.heappop(self._waiting)
            if equivalence.state is State.BACKOFF and equivalence.due <= now:
                yield equivalence

    def take_early(self, active: Order | None) -> EquivalenceClass | None:
        """Remove and return a class to try before its back-off is over, or None.

        The class's first pod has to come before `active`.
        """
        while self._first and self._early:
            first, _, equivalence = self._first[0]
            if active is not None and active < first:
                break
            heapq.heappop(self._first)
            if equivalence.state is State.BACKOFF:
                self._early -= 1
                return equivalence
        return None

    def _seconds(self, equivalence: EquivalenceClass) -> float:
        """Return the back-off: 0 s after the first refusal, then 1 s by default, doubling."""
        limits, failures = self._limits, equivalence.failures
        if equivalence.is_costly:
            return limits.pending_backoff_seconds_max
        doubled = 2.0 ** min(failures - 2, 32) if failures > 1 else 0.0
        return min(limits.pending_backoff_seconds * doubled, limits.pending_backoff_seconds_max)
