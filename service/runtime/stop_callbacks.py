"""Callbacks in a worker's event loop for the stop signal."""

import asyncio
import signal
import threading
from collections.abc import Callable
from types import FrameType

Handler = Callable[[int, FrameType | None], object] | int | None


def on_stop_signal(act: Callable[[], object]) -> None:
    """Call `act` in the running event loop as soon as this process gets a signal to stop.

    Streams have to end then, because the HTTP server waits for them before its lifespan ends. The
    HTTP server still handles the signal itself. If it does so through the event loop, which
    receives signals differently, the signal's handler is unused; otherwise, our handler calls its
    handler.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)
        if before != signal.SIG_IGN:  # an ignored signal stops nothing
            signal.signal(number, _both(before, loop, act))
            signal.siginterrupt(number, False)  # noqa: FBT003 - takes it by position only


def _both(
    before: Handler, loop: asyncio.AbstractEventLoop, act: Callable[[], object]
) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(act)
        if callable(before):
            before(number, frame)
        elif before == signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    return handle
