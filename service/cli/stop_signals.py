"""SIGTERM and SIGINT in a command that runs no workers, or none yet: they end whatever goes on, in good order."""

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSignal(KeyboardInterrupt):
    """SIGTERM or SIGINT came: `number`."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def raised_stop_signals() -> Iterator[None]:
    """From now on a stop signal is raised as a StopSignal, once; whatever needs an event loop runs by `run_until_stopped`."""

    def stop(number: int, _frame: FrameType | None) -> None:
        ignore_stop_signals()
        raise StopSignal(number)

    for number in STOP_SIGNALS:
        signal.signal(number, stop)
    yield


def ignore_stop_signals() -> None:
    """What is being stopped is not to be stopped, nor Python's own end: until then a Ctrl-C would be the default one."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def run_until_stopped(work: Coroutine[Any, Any, T]) -> T:
    """What `asyncio.run` does, but a stop signal cancels the work.

    A handler that raises would interrupt the event loop between any two lines, also after it took a callback off its queue and before it
    called it: whoever waits for what that callback does would wait for ever.

    Raises:
        StopSignal: a stop signal came, whatever became of the work.
    """
    numbers: list[int] = []
    before = [signal.getsignal(number) for number in STOP_SIGNALS]
    try:
        with asyncio.Runner() as runner:
            _cancel_on_stop_signals(runner.get_loop(), numbers)
            return runner.run(work)
    finally:
        work.close()
        if not numbers:
            for number, handler in zip(STOP_SIGNALS, before, strict=True):
                signal.signal(number, handler)
        if numbers:
            ignore_stop_signals()
            raise StopSignal(numbers[0])


def _cancel_on_stop_signals(loop: asyncio.AbstractEventLoop, numbers: list[int]) -> None:
    """Have a stop signal cancel all that the loop runs, and note its number."""

    def cancel_all() -> None:
        for task in asyncio.all_tasks(loop):
            task.cancel()

    def stop(number: int, _frame: FrameType | None) -> None:
        ignore_stop_signals()
        numbers.append(number)
        if not loop.is_closed():
            loop.call_soon_threadsafe(cancel_all)

    for number in STOP_SIGNALS:
        signal.signal(number, stop)
