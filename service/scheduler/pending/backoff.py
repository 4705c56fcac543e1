"""Back-off: who was refused again and again waits between two attempts, longer each time.

kube-scheduler, too, tries pods in back-off if it has nothing else to do. Here a few of the first ones may be tried
whenever something changes, even if they were refused often, so that they get the chance that the change gives.
"""

import heapq
from collections.abc import Iterator
from itertools import count

from service.scheduler.pending.equivalence_classes import EquivalenceClass, Order, State
from service.scheduler.protocol.limits import Limits


class Backoff:
    """The equivalence classes of one queue that a change may help, but not before their time.

    Whoever leaves it by another way than these methods is no longer in `State.BACKOFF`.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: list[tuple[float, int, EquivalenceClass]] = []
        self._first: list[tuple[Order, int, EquivalenceClass]] = []
        """The equivalence classes once more, in the order of their first pods."""
        self._early = 0
        """How many of them may still be tried before their back-off is over."""
        self._numbers = count()

    def has_work(self, now: float) -> bool:
        """Whether somebody may be tried now."""
        return bool((self._waiting and self._waiting[0][0] <= now) or (self._first and self._early))

    def begin(self, equivalence: EquivalenceClass, now: float) -> None:
        """Say when an equivalence class that is refused now may be tried again."""
        equivalence.due = now + self._seconds(equivalence)

    def put(self, equivalence: EquivalenceClass, head: Order | None) -> None:
        """Keep an equivalence class, of which that pod is tried first, until its back-off is over."""
        equivalence.state = State.BACKOFF
        heapq.heappush(self._waiting, (equivalence.due, next(self._numbers), equivalence))
        if head is not None and not equivalence.is_costly:
            heapq.heappush(self._first, (head, next(self._numbers), equivalence))
            self._early = self._limits.pending_early_tries

    def take(self, now: float) -> Iterator[EquivalenceClass]:
        """Give out those whose back-off is over."""
        while self._waiting and self._waiting[0][0] <= now:
            _, _, equivalence = heapq.heappop(self._waiting)
            if equivalence.state is State.BACKOFF and equivalence.due <= now:
                yield equivalence

    def take_early(self, active: Order | None) -> EquivalenceClass | None:
        """Give out one that may be tried although its back-off is not over, if its first pod comes before `active`."""
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
        """How long the back-off is: nothing after the first refusal, then 1 s, then doubled each time."""
        limits, failures = self._limits, equivalence.failures
        if equivalence.is_costly:
            return limits.pending_backoff_seconds_max
        doubled = 2.0 ** min(failures - 2, 32) if failures > 1 else 0.0
        return min(limits.pending_backoff_seconds * doubled, limits.pending_backoff_seconds_max)
