"""The program of a server's worker process: the application, and the tie to its supervisor."""

import ctypes
import gc
import os
import signal
import sys
from typing import Any

from service.cli.server.limits_on_open_and_unread_connections import guard_connections
from service.settings import settings_of_this_process

PR_SET_PDEATHSIG = 1

IMPORTED_BY = os.getpid()
"""The process that imported this module: in a worker, the fork server that it was forked from."""

COLLECTION_THRESHOLDS = (50_000, 20, 20)
"""When the garbage collector looks for cycles: rarely, as a worker makes hardly any.

A replica consists of some hundred thousand objects that live long, and that reference counting
frees. With Python's own thresholds (700, 10, 10) the collector walks through many of them again and
again: that took a sixth of the worker's time while pods were placed, and 0.14 s at a time with
50,000 pods. `gc.freeze` after loading a replica gained nothing more."""


def create_app() -> Any:
    """Make the ASGI application from this process's environment; granian calls this."""
    end_with_parent()
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # The supervisor decides what a hangup means.
    from service.app import create_app_from_environment  # noqa: PLC0415 - after the tie is made

    guard_connections(settings_of_this_process())
    return create_app_from_environment()


def end_with_parent() -> None:
    """Have the kernel kill this process as soon as its parent is gone, however that ended (Linux).

    A worker that outlived `kill -9` of the server would keep answering on the port, beside the
    workers of the next server.
    """
    if sys.platform != "linux":
        return
    parent = os.getppid() if os.getpid() == IMPORTED_BY else IMPORTED_BY
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # The parent died before the kernel was asked.
        os.kill(os.getpid(), signal.SIGKILL)
