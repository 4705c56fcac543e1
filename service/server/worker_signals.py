"""Handling of the stop signal in a server's processes, at any moment and only once.

A terminal's Ctrl-C reaches the supervisor alone, since the workers have a session of their own; the
supervisor sends one SIGTERM to each. Others, such as systemd, signal every process of a server, so
that a worker gets two signals. Granian's workers handle neither well: a second signal blocks them
while they finish their requests after the first, and a signal between two runs of their event loop
is lost.
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
"""The signals that are blocked while the fork server starts, until it has left the terminal."""


class Alarm(threading.Event):
    """An event that a signal handler may set while its own thread runs any method of it.

    Python's own event takes a lock in each call, so a handler would wait forever for the call that
    it has interrupted.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_set = False
        self._calls: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:  # type: ignore[explicit-override] # typing.override is Python 3.12's
        """Set the event: waiting threads continue, and none waits until it is cleared."""
        self._is_set = True
        self._calls.put(None)

    def clear(self) -> None:  # type: ignore[explicit-override] # typing.override is Python 3.12's
        """Clear the event, so that the next caller waits again."""
        self._is_set = False

    def is_set(self) -> bool:  # type: ignore[explicit-override]
        """Return whether the event is set."""
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:  # type: ignore[explicit-override]
        """Wait until the event is set or `timeout` (in seconds) is over; return whether it is set.

        A set before the last clear may also end the wait.
        """
        if not self._is_set:
            with suppress(Empty):
                self._calls.get(timeout=timeout)
        return self._is_set


class WorkerLoop(uvloop.Loop):
    """An event loop that reports a stop signal once, even if it came before the loop ran."""

    _has_stopped = False

    def add_signal_handler(  # type: ignore[explicit-override]
        self, sig: int, callback: Callable[[Unpack[Ts]], object], *args: *Ts
    ) -> None:
        """Handle SIGTERM once, and ignore SIGINT, after which the supervisor sends SIGTERM."""
        if sig == signal.SIGINT:
            return

        def handle(_number: int, _frame: FrameType | None) -> None:
            if not self._has_stopped:
                self._has_stopped = True
                self.call_soon_threadsafe(callback, *args)

        signal.signal(sig, handle)
        signal.siginterrupt(sig, False)  # noqa: FBT003 - takes it by position only


def run_worker(secrets: Mapping[str, str], *arguments: Any) -> None:
    """Run granian's worker in a worker process, on a `WorkerLoop`.

    The secrets come through a pipe after the process has started, so that they are not in the
    environment that `ps` shows.
    """
    os.environ.update(secrets)  # noqa: TID251 - the worker reads its settings there
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    loops.register("uvloop")(_make_loop)
    MPServer._spawn_asgi_lifespan_worker(*arguments)  # noqa: SLF001


def leave_terminal() -> None:
    """Separate this process and its children from the terminal, and unblock `LAUNCH_SIGNALS`.

    The process was launched with these signals blocked.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, LAUNCH_SIGNALS)


def _make_loop() -> asyncio.AbstractEventLoop:
    loop = WorkerLoop()
    asyncio.set_event_loop(loop)
    return loop
