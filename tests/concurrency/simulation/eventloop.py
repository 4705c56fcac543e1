"""An event loop in which the seed is the scheduler and time is a number.

Whichever callback is ready may run next, so every order in which awaits can interleave is some
seed's order. That the oldest is passed over is a decision of its actor (see `choices`). Time passes only where nothing is ready, and by a small step with each callback.
Each callback belongs to a process (or to none); those of a process that has died never run.
"""

import asyncio
import random
from collections import Counter
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from typing import Any

from tests.concurrency.simulation.choices import ACTOR, Choices


class Process:
    """Something that can die: its callbacks run only while it is alive."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True


PROCESS: ContextVar[Process | None] = ContextVar("PROCESS", default=None)
STEPS_MAX = 200_000
SECONDS_A_STEP_IN_QUIET = 0.0001


class Stuck(Exception):  # noqa: N818 - a finding
    """Nothing will ever happen again, or far too much does."""


def _told(handle: asyncio.Handle) -> str:
    """Whose callback it is, and what it goes on with."""
    callback: Any = handle._callback
    task = getattr(callback, "__self__", None)
    work = task.get_coro() if isinstance(task, asyncio.Task) else callback
    name = getattr(work, "__qualname__", type(work).__name__)
    return f"{_actor(handle)} ({name.removesuffix('.<locals>.<lambda>')})"


def _actor(handle: asyncio.Handle) -> str:
    return handle._context.get(ACTOR) or "run"


class _Callback(asyncio.Handle):
    """A callback, made in one step: a run has tens of thousands, and no debugging."""

    __slots__ = ()

    def __init__(
        self, callback: Any, args: Any, loop: "SimulatedLoop", context: Context | None
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = self._source_traceback = None

    def cancel(self) -> None:
        self._cancelled = True
        self._callback = self._args = None


class _Timer(asyncio.TimerHandle):
    """The same of a callback that has to wait."""

    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Any,
        args: Any,
        loop: "SimulatedLoop",
        context: Context | None,
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = self._source_traceback = None
        self._when = when
        self._scheduled = True

    def cancel(self) -> None:
        self._cancelled = True
        self._callback = self._args = None


class _Due(float):
    """When a timer is due. Numbers are compared faster than timers, which a heap does all the time."""

    __slots__ = ("timer",)

    timer: _Timer


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs one callback at a time, chosen by the seed or by a schedule."""

    def __init__(self, source: random.Random, choices: Choices | None = None) -> None:
        super().__init__()
        self.steps = 0
        self.steps_max = STEPS_MAX
        self.choices = choices = choices or Choices()
        self._replays = choices.replays
        self.told: list[tuple[int, str]] = []
        """What went on, and at which steps."""
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
        self._scheduled: list[_Due] = []  # type: ignore[assignment]
        self._in_order = source.choice((0.0, 0.0, 0.5, 0.9))
        """How often the oldest callback is taken, as asyncio always does."""
        self._tick = choices.take("tick", 0.0, lambda: source.choice((0.0, 0.0001, 0.002)))
        self._ran: Counter[str] = Counter()
        """How many callbacks of each actor have had their turn."""
        self._passed: Counter[tuple[str, int]] = Counter()
        """How often the one whose turn it was had to wait."""
        self.set_exception_handler(self._note)

    def time(self) -> float:
        return self._seconds

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        """Unless it is told otherwise, what a worker starts is the worker's own work."""
        context = options.get("context") or copy_context()
        process = context.get(PROCESS)
        if process is not None and "context" not in options:
            context.run(ACTOR.set, process.name)
        task = super().create_task(coro, **{**options, "context": context})
        self._kept.append(task)
        return task

    def spend(self) -> None:
        """Let a little time pass, as looking at a clock does."""
        self._seconds += self._tick

    def hasten(self) -> None:
        """Let no step take long any more: a machine that cannot keep up is trouble, too."""
        self._tick = min(self._tick, SECONDS_A_STEP_IN_QUIET)

    async def end_all_tasks(self) -> None:
        """Cancel what runs, and what the dead left behind, so that it does not end later."""
        tasks = asyncio.all_tasks(self) - {asyncio.current_task(self)}
        self._has_ended = True
        for task in tasks:
            task.cancel()
        self._ready.extend(self._buried)
        if tasks:
            await asyncio.wait(tasks, timeout=10)

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        self._check_closed()
        handle = _Callback(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._seconds + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self._check_closed()
        due = _Due(when)
        due.timer = _Timer(when, callback, args, self, context)
        heappush(self._scheduled, due)
        return due.timer

    def _is_alive(self, handle: asyncio.Handle) -> bool:
        owner = handle._context.get(PROCESS)
        return owner is None or owner.alive or self._has_ended

    def _run_once(self) -> None:
        ready, timers = self._ready, self._scheduled
        if not ready or (timers and timers[0] <= self._seconds):
            self._release_due()
        if not ready:
            raise Stuck(f"Nothing is ready at {self._seconds:.3f} s.")
        handle = ready.pop(self._next() if len(ready) > 1 else 0)
        context = handle._context
        self._ran[context.get(ACTOR) or "run"] += 1
        if handle._cancelled:
            return
        owner = context.get(PROCESS)
        if owner is not None and not self._is_alive(handle):
            self._buried.append(handle)
            return
        self.steps += 1
        if self.steps > self.steps_max:
            raise Stuck(f"No end after {self.steps_max} steps.")
        self._seconds += self._tick
        handle._run()

    def _next(self) -> int:
        """The place in the line of the callback that is next."""
        ready, replays = self._ready, self._replays
        place = 0 if replays else self._draw()
        if not place and not replays:
            return 0
        actor = _actor(ready[0])
        turn = actor, self._ran[actor]
        name = f"{actor}/passed over/{turn[1]}/{self._passed.get(turn, 0)}"
        place = min(self.choices.take(name, 0, lambda: place), len(ready) - 1)
        if place:
            self._passed[turn] += 1
        if place and replays:
            self.tell(f"{_told(ready[place])} runs before {_told(ready[0])}")
        return place

    def tell(self, event: str) -> None:
        """Note what goes on, for those who read what became of a schedule."""
        self.told.append((self.steps, event))

    def _draw(self) -> int:
        if self._random.random() < self._in_order:
            return 0
        return int(self._random.random() * len(self._ready))

    async def until(self, when: float) -> None:
        """Sleep until the loop's time is that."""
        awaken = self.create_future()
        timer = self.call_at(when, lambda: awaken.done() or awaken.set_result(None))
        try:
            await awaken
        finally:
            timer.cancel()

    def _release_due(self) -> None:
        timers = self._scheduled
        if not self._ready and not self._stopping:
            while timers and (timers[0].timer._cancelled or not self._is_alive(timers[0].timer)):
                self._buried.append(self._pop_timer())
            if timers:
                self._seconds = max(self._seconds, float(timers[0]))
        while timers and timers[0] <= self._seconds:
            self._ready.append(self._pop_timer())

    def _pop_timer(self) -> asyncio.TimerHandle:
        timer = heappop(self._scheduled).timer
        timer._scheduled = False
        return timer

    def _process_events(self, event_list: Any) -> None:
        """There is no input or output."""

    def _write_to_self(self) -> None:
        """Nobody else could wake this loop."""

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.failures.append(f"{context['message']}: {error or context!r}")
