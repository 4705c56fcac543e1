"""Waits for a server to be ready, as long as it makes progress."""

import threading
import time

from service.store.embedded import probe, serverlog
from service.store.embedded.errors import StartFailedError
from service.store.embedded.layout import DataFolder
from service.store.embedded.postmaster import Postmaster
from service.store.embedded.probe import ProbeAnswer

STOP_SECONDS_MAX = 10.0
_STALL_SECONDS_MAX = 120.0  # a recovery reports each second; its last checkpoint does not
FOREIGN_SECONDS_MAX = 5.0
"""How long to wait for a server that another process started and that does not answer."""
_PAUSE_SECONDS_MIN = 0.02
_PAUSE_SECONDS_MAX = 0.1  # each premature probe adds a line to the server's log


def await_ready(server: Postmaster, folder: DataFolder, stopping: threading.Event) -> None:
    """Return when the server accepts sessions, or when `stopping` is set.

    Raises:
        StartFailedError: it ended, refuses sessions, or makes no progress; it no longer runs.
    """
    stall = _Stall(folder)
    pause = _PAUSE_SECONDS_MIN
    while (answer := probe.ask(folder.socket)) is not ProbeAnswer.READY:
        if not server.is_alive():
            server.forget()
            raise StartFailedError(f"It ended:\n{serverlog.tail(folder)}")
        if (reason := _is_hopeless(server, answer, stall)) is not None:
            server.stop(STOP_SECONDS_MAX)
            raise StartFailedError(f"{reason}:\n{serverlog.tail(folder)}")
        if stopping.wait(pause):
            return
        pause = min(1.5 * pause, _PAUSE_SECONDS_MAX)


class _Stall:
    """Measures how long the server's log has not grown."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._seen = serverlog.progress(folder)
        self._since = time.monotonic()

    def seconds(self) -> float:
        seen = serverlog.progress(self._folder)
        if seen != self._seen:
            self._seen = seen
            self._since = time.monotonic()
        return time.monotonic() - self._since


def _is_hopeless(server: Postmaster, answer: ProbeAnswer, stall: _Stall) -> str | None:
    if answer is ProbeAnswer.REFUSED and not server.is_adopted:
        return "It does not let us in"
    stalled = stall.seconds()
    if stalled > _STALL_SECONDS_MAX:
        return "It made no progress"
    # A server that was started in the folder by hand has another socket, or other rules.
    if server.is_adopted and answer is not ProbeAnswer.NOT_YET and stalled > FOREIGN_SECONDS_MAX:
        return "It was not started by Moorage"
    return None
