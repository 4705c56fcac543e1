"""What chance decides in a run, each decision under a name, so that a run can be done again.

A seed's run asks chance and writes down every decision that differs from the plain one: nothing
fails, no message is slow, the oldest callback is next, a client that is not mentioned asks nothing.
What was written down is the run's schedule. With a schedule nothing is left to chance: what it does
not mention is plain. So the whole schedule is the same run again, and a part of it a simpler run.

Names have parts, the first of which is who it concerns ("client-2/5/ask"). They count what one
client, one request or one worker does, never what all do, so that a decision that is left out does
not give its successors other names.
"""

import random
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
Schedule = dict[str, Any]
"""Decisions by name: values that JSON has."""
ACTOR: ContextVar[str] = ContextVar("ACTOR", default="run")
"""Whose work a callback does: a client's request, a worker, or what troubles them."""
_NO = False


class Choices:
    """Takes decisions: by chance if there is no schedule, else as the schedule has them."""

    def __init__(self, schedule: Schedule | None = None) -> None:
        self.taken: Schedule = {}
        """The decisions so far that are not the plain ones."""
        self._schedule = schedule
        self._numbers: dict[str, int] = {}

    @property
    def replays(self) -> bool:
        return self._schedule is not None

    def take(self, name: str, plain: T, draw: Callable[[], T]) -> T:
        """`draw` asks chance; it is called in the run of a seed only."""
        value = draw() if self._schedule is None else self._schedule.get(name, plain)
        if value != plain:
            self.taken[name] = value
        return value

    def take_next(self, name: str, plain: T, draw: Callable[[], T]) -> T:
        """The next decision of several with this name."""
        return self.take(self.numbered(name), plain, draw)

    def does(self, name: str, source: random.Random, chance: float) -> bool:
        """Whether something happens that plainly does not."""
        return self.take(name, _NO, lambda: source.random() < chance)

    def there_is(self, name: str) -> bool:
        """What every seed's run has, and a schedule need not have."""
        return self.take(name, _NO, lambda: True)

    def numbered(self, name: str) -> str:
        number = self._numbers.get(name, 0)
        self._numbers[name] = number + 1
        return f"{name}/{number}"

    def kept(self, name: str, most: int, draw: Callable[[], int]) -> list[int]:
        """The numbers from 0 of those that there are; chance says how many."""
        number = most if self.replays else draw()
        return [each for each in range(number) if self.there_is(f"{name}-{each}")]
