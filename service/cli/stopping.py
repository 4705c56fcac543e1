"""How the processes of a server get the signal to stop: at any moment, and only once.

A terminal's Ctrl-C is for the supervisor alone, since the workers have a session of their own; it passes on one SIGTERM to each. Others,
such as systemd, tell every process of a server, so that a worker hears of it twice. Granian's workers bear neither a second signal, by which
they lock up while they still work off the first, nor one between two runs of their event loop, which nobody reads.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, TypeVarTuple, Unpack

import uvloop
from granian._loops import loops
from granian.server import MPServer

Ts = TypeVarTuple("Ts")

LAUNCH_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
"""They wait while the fork server is launched, until it has left the terminal."""


class Alarm(threading.Event):
    """An event that a signal handler may set in the middle of anything that its own thread does with it.

    Python's own takes a lock for each call, and a handler would wait for ever for what it has interrupted.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_set = False
        self._calls: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:  # type: ignore[explicit-override] # typing.override is Python 3.12's
        """Set the event: threads that wait go on, and none waits until it is cleared."""
        self._is_set = True
        self._calls.put(None)

    def clear(self) -> None:  # type: ignore[explicit-override] # typing.override is Python 3.12's
        """Have the next caller wait again."""
        self._is_set = False

    def is_set(self) -> bool:  # type: ignore[explicit-override]
        """Whether the event is set."""
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:  # type: ignore[explicit-override]
        """Wait until it is set, or was set before it was last cleared, or the time is up; whether it is set."""
        if not self._is_set:
            with suppress(Empty):
                self._calls.get(timeout=timeout)
        return self._is_set


class WorkerLoop(uvloop.Loop):
    """An event loop that calls whoever waits for a stop signal once, also for one that came before the loop ran."""

    _was_told = False

    def add_signal_handler(  # type: ignore[explicit-override]
        self, sig: int, callback: Callable[[Unpack[Ts]], object], *args: *Ts
    ) -> None:
        """Call back for SIGTERM; SIGINT is for the supervisor, which sends SIGTERM then."""
        if sig == signal.SIGINT:
            return

        def handle(_number: int, _frame: FrameType | None) -> None:
            if not self._was_told:
                self._was_told = True
                self.call_soon_threadsafe(callback, *args)

        signal.signal(sig, handle)
        signal.siginterrupt(sig, False)  # noqa: FBT003 - takes it by position only


def run_worker(secrets: Mapping[str, str], *arguments: Any) -> None:
    """What runs in a worker process: granian's own, on a loop of ours.

    The secrets come by the pipe to a process that has started already, so that `ps` does not show them with its environment.
    """
    os.environ.update(secrets)  # noqa: TID251 - where the worker reads all of its settings
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    loops.register("uvloop")(_make_loop)
    MPServer._spawn_asgi_lifespan_worker(*arguments)  # noqa: SLF001


def leave_terminal() -> None:
    """Have a process that was launched with `LAUNCH_SIGNALS` blocked, and its children, hear nothing of the terminal."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, LAUNCH_SIGNALS)


def _make_loop() -> asyncio.AbstractEventLoop:
    loop = WorkerLoop()
    asyncio.set_event_loop(loop)
    return loop
