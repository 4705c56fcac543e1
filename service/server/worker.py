"""The program of a worker process: the application, which ends with its supervisor."""

import ctypes
import gc
import os
import signal
import sys
from typing import Any

from service.server.connection_reaper import start_reaper
from service.settings import settings_of_this_process

PR_SET_PDEATHSIG = 1

SUPERVISOR_VARIABLE = "SUPERVISOR_PID"
"""The environment variable with which a supervisor passes its process id to its fork server."""

IMPORTED_BY = os.getpid()
"""The process that imported this module: in a worker, its fork server."""

COLLECTION_THRESHOLDS = (50_000, 20, 20)
"""The garbage collector's thresholds: it looks for cycles rarely, as a worker makes hardly any.

A replica consists of hundreds of thousands of long-lived objects, which reference counting frees.
With Python's own thresholds (700, 10, 10), the collector traverses many of them again and again:
that took a sixth of a worker's time while it placed pods, and 0.14 s at a time with 50,000 pods.
`gc.freeze` after loading a replica gained nothing more."""


def create_app() -> Any:
    """Return the ASGI application for this process's environment; granian calls this."""
    end_with_parent()
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # The supervisor decides what a hangup means.
    from service.app import create_app_from_environment  # noqa: PLC0415 - after the tie is made

    start_reaper(settings_of_this_process())
    return create_app_from_environment()


def end_with_parent(parent: int | None = None) -> None:
    """Have the kernel kill this process as soon as its parent has ended for any reason (Linux).

    A worker that outlived `kill -9` of the server would keep answering on the port, together with
    the workers of the next server. `parent` is the parent's process id, if the caller knows it.
    """
    if sys.platform != "linux":
        return
    if parent is None:
        parent = os.getppid() if os.getpid() == IMPORTED_BY else IMPORTED_BY
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # The parent died before the kernel was asked.
        os.kill(os.getpid(), signal.SIGKILL)


def end_with_supervisor() -> None:
    """Have the kernel kill the fork server as soon as its supervisor has ended.

    If the supervisor was killed while the fork server started, the fork server has another parent
    by now, and without this check it would live on with the workers.
    """
    end_with_parent(int(os.environ[SUPERVISOR_VARIABLE]))  # noqa: TID251 - set by the supervisor
