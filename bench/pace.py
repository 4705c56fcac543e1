"""How fast the machine is just now: a shared one varies by a factor of two within minutes."""

import math
import statistics
import time
from collections.abc import Callable
from typing import TypeVar

ADDITIONS = 2_000_000
TRIES = 3
LOOK_SECONDS = 1.0

T = TypeVar("T")


def pace() -> float:
    """Return the CPU milliseconds of a loop that is always the same; the least of several tries."""
    return min(_loop() for _ in range(TRIES)) * 1000


def _loop() -> float:
    began = time.process_time()
    total = 0
    for number in range(ADDITIONS):
        total += number * number
    return time.process_time() - began


class Gate:
    """Lets a run count only if the machine was fast enough before and after it.

    Whether it counts depends on the pace alone, not on what was measured. If it does not count, it
    is repeated, until the time for this is over: from then on every run counts.
    """

    def __init__(self, pace_max: float = math.inf, patience_seconds: float = 0.0) -> None:
        self._pace_max = pace_max
        self._patience_seconds = patience_seconds
        self.open()

    def open(self) -> None:
        """Begin a section, with its own time for repeats."""
        self._paces: list[float] = []
        self._last: float | None = None
        self._deadline = time.monotonic() + self._patience_seconds

    def measured(self, run: Callable[[], T]) -> T:
        """Repeat a run until it counts, and return what it found."""
        while True:
            before = self._wait()
            found = run()
            self._last = pace()
            slower = max(before, self._last)
            if slower <= self._pace_max or self._is_over():
                self._paces.append(slower)
                return found

    def told(self) -> str:
        """Say at which pace the runs of this section were measured."""
        if not self._paces:
            return f"Pace of the machine: {pace():.0f} ms."
        least, greatest = min(self._paces), max(self._paces)
        middle = statistics.median(self._paces)
        return f"Pace of the machine: {middle:.0f} ms ({least:.0f} to {greatest:.0f})."

    def _wait(self) -> float:
        now = self._last or pace()  # the pace after one run is that before the next
        while now > self._pace_max and not self._is_over():
            time.sleep(LOOK_SECONDS)
            now = pace()
        return now

    def _is_over(self) -> bool:
        return time.monotonic() > self._deadline
