"""What runs in each server process: the application, and its tie to the process that started it."""

import ctypes
import gc
import os
import signal
import sys
from typing import Any

from service.cli.connections import guard_connections
from service.settings import settings_of_this_process

PR_SET_PDEATHSIG = 1

COLLECTION_THRESHOLDS = (50_000, 20, 20)
"""When the garbage collector looks for cycles: rarely, for a worker makes hardly any.

A replica is some hundred thousand objects that stay, and goes by reference counts. Python's own thresholds (700, 10, 10) walk
through much of it again and again: a sixth of the worker's time while pods were placed, and 0.14 s at a stroke with 50,000 pods.
`gc.freeze` once a replica is loaded gained nothing more.
"""


def create_app() -> Any:
    """The ASGI application with the settings of this process's environment, for granian."""
    end_with_parent()
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the supervisor decides what a hangup means
    from service.app import create_app_from_environment  # noqa: PLC0415 - after the tie is made

    guard_connections(settings_of_this_process())
    return create_app_from_environment()


def end_with_parent() -> None:
    """Have the kernel kill this process as soon as its parent is gone, however that ended (Linux).

    A worker that outlived `kill -9` of the server would keep answering on the port beside the next server's workers.
    """
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # The parent died before the kernel was asked.
        os.kill(os.getpid(), signal.SIGKILL)
