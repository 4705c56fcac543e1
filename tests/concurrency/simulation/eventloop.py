"""An event loop in which the seed is the scheduler and time is a number.

Whichever callback is ready may run next, so every order in which awaits can interleave is some
seed's order. Time passes only where nothing is ready, and by a small step with each callback.
Each callback belongs to a process (or to none); those of a process that has died never run.
"""

import asyncio
import random
from contextvars import ContextVar
from heapq import heappop
from typing import Any


class Process:
    """Something that can die: its callbacks run only while it is alive."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True


PROCESS: ContextVar[Process | None] = ContextVar("PROCESS", default=None)
STEPS_MAX = 200_000


class Stuck(Exception):  # noqa: N818 - a finding
    """Nothing will ever happen again, or far too much does."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs one callback at a time, chosen by the seed."""

    def __init__(self, source: random.Random) -> None:
        super().__init__()
        self.steps = 0
        self.failures: list[str] = []
        """What nobody caught."""
        self._buried: list[asyncio.Handle] = []
        """Callbacks of the dead."""
        self._kept: list[asyncio.Task[Any]] = []
        """All tasks, since nobody else holds on to those of the dead."""
        self._has_ended = False
        self._random = source
        self._seconds = 0.0
        self._ready: list[asyncio.Handle] = []  # type: ignore[assignment]
        self._in_order = source.choice((0.0, 0.0, 0.5, 0.9))
        """How often the oldest callback is taken, as asyncio always does."""
        self._tick = source.choice((0.0, 0.0001, 0.002))
        self.set_exception_handler(self._note)

    def time(self) -> float:
        return self._seconds

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task = super().create_task(coro, **options)
        self._kept.append(task)
        return task

    def spend(self) -> None:
        """Let a little time pass, as looking at a clock does."""
        self._seconds += self._tick

    async def end_all_tasks(self) -> None:
        """Cancel what runs, and what the dead left behind, so that it does not end later."""
        tasks = asyncio.all_tasks(self) - {asyncio.current_task(self)}
        self._has_ended = True
        for task in tasks:
            task.cancel()
        self._ready.extend(self._buried)
        if tasks:
            await asyncio.wait(tasks, timeout=10)

    def _is_alive(self, handle: asyncio.Handle) -> bool:
        owner = handle._context.get(PROCESS)
        return owner is None or owner.alive or self._has_ended

    def _run_once(self) -> None:
        self._release_due()
        ready = self._ready
        if not ready:
            raise Stuck(f"Nothing is ready at {self._seconds:.3f} s.")
        orderly = len(ready) == 1 or self._random.random() < self._in_order
        handle = ready.pop(0 if orderly else int(self._random.random() * len(ready)))
        if handle._cancelled:
            return
        if not self._is_alive(handle):
            self._buried.append(handle)
            return
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise Stuck(f"No end after {STEPS_MAX} steps.")
        self._seconds += self._tick
        handle._run()

    def _release_due(self) -> None:
        timers = self._scheduled
        if not self._ready and not self._stopping:
            while timers and (timers[0]._cancelled or not self._is_alive(timers[0])):
                timer = heappop(timers)
                timer._scheduled = False
                self._buried.append(timer)
            if timers:
                self._seconds = max(self._seconds, timers[0]._when)
        while timers and timers[0]._when <= self._seconds:
            timer = heappop(timers)
            timer._scheduled = False
            self._ready.append(timer)

    def _process_events(self, event_list: Any) -> None:
        """There is no input or output."""

    def _write_to_self(self) -> None:
        """Nobody else could wake this loop."""

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.failures.append(f"{context['message']}: {error or context!r}")
