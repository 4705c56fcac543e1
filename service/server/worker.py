"""The program of a server's worker process: the application, and the tie to its supervisor."""

import ctypes
import gc
import os
import signal
import sys
from typing import Any

from service.server.connection_reaper import guard_connections
from service.settings import settings_of_this_process

PR_SET_PDEATHSIG = 1

SUPERVISOR_VARIABLE = "SUPERVISOR_PID"
"""The environment variable by which a supervisor tells its fork servers its own process id."""

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


def end_with_parent(parent: int | None = None) -> None:
    """Have the kernel kill this process as soon as its parent is gone, however that ended (Linux).

    A worker that outlived `kill -9` of the server would keep answering on the port, beside the
    workers of the next server. `parent` is the parent's process id, if the caller knows it.
    """
    if sys.platform != "linux":
        return
    if parent is None:
        parent = os.getppid() if os.getpid() == IMPORTED_BY else IMPORTED_BY
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # The parent died before the kernel was asked.
        os.kill(os.getpid(), signal.SIGKILL)


def end_with_supervisor() -> None:
    """Do the same for the fork server, whose supervisor may have been killed while it started.

    It would not notice that its parent is another one by now, and would live on with the workers
    that the supervisor had asked for.
    """
    end_with_parent(int(os.environ[SUPERVISOR_VARIABLE]))  # noqa: TID251 - the supervisor's word
