"""SIGTERM and SIGINT in a process without workers: they end it gracefully."""

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSignal(KeyboardInterrupt):
    """A stop signal; `number` is that of SIGTERM or SIGINT."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def restored_stop_handlers(*, but_ignored: bool = False) -> Iterator[None]:
    """Restore the handlers of stop signals at the end of the context.

    With `but_ignored`, a signal that is ignored at the end stays ignored.
    """
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            if not (but_ignored and signal.getsignal(number) is signal.SIG_IGN):
                signal.signal(number, handler)


class StopRequest:
    """Records the stop signal that arrived, if any, in `number`.

    Python drops an exception of a signal handler while a finalizer or the callback of a weak
    reference runs, as happens during imports. So each step checks at its end.
    """

    number: int | None = None

    def raise_if_made(self) -> None:
        """Raise StopSignal if a stop signal arrived."""
        if self.number is not None:
            raise StopSignal(self.number)


@contextmanager
def raised_stop_signals() -> Iterator[StopRequest]:
    """Raise StopSignal once if SIGTERM or SIGINT arrives during the context, and record it.

    From then on both are ignored, even after the context. Run coroutines with `run_until_stopped`.
    """
    request = StopRequest()

    def stop(number: int, _frame: FrameType | None) -> None:
        ignore_stop_signals()
        request.number = number
        raise StopSignal(number)

    with restored_stop_handlers(but_ignored=True):
        for number in STOP_SIGNALS:
            signal.signal(number, stop)
        yield request


def ignore_stop_signals() -> None:
    """Ignore stop signals from now on.

    They must not interrupt the shutdown, nor the end of the interpreter, where Python has restored
    the default action for Ctrl-C.
    """
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def run_until_stopped(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine as `asyncio.run` does, but let a stop signal cancel it.

    A handler that raises would interrupt the event loop between any two lines, for example after
    the loop took a callback off its queue and before it called it. A task that waits for the effect
    of that callback would wait forever.

    Raises:
        StopSignal: a stop signal came, whether or not the work was done.
    """
    numbers: list[int] = []
    try:
        with restored_stop_handlers(but_ignored=True), asyncio.Runner() as runner:
            _cancel_on_stop_signals(runner.get_loop(), numbers)
            return runner.run(work)
    finally:
        work.close()
        if numbers:
            ignore_stop_signals()
            raise StopSignal(numbers[0])


def _cancel_on_stop_signals(loop: asyncio.AbstractEventLoop, numbers: list[int]) -> None:
    """Let a stop signal cancel all tasks of the loop, and record its number."""

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
