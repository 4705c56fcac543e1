"""Helps with the data folders and the processes of servers."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from service.server.local_server import LocalServer
from tests.waiting import WAIT_SECONDS

PLAIN_HTTP: dict[str, Any] = {"timeout": WAIT_SECONDS, "verify": False}
"""Options for httpx, by which a client reads no certificates: that takes longer than any request here."""


def own_address() -> str:
    """An address of this machine that no other process of the tests listens at."""
    number = os.getpid()
    return ".".join(map(str, (127, 64 | number >> 16, number >> 8 & 255, number & 255)))


def family(pid: int) -> list[psutil.Process]:
    """A process, and all that descend from it."""
    with contextlib.suppress(psutil.NoSuchProcess):
        first = psutil.Process(pid)
        return [first, *first.children(recursive=True)]
    return []


Signalled = psutil.Process | subprocess.Popen[bytes]


def signal_all(processes: Sequence[Signalled], number: signal.Signals) -> None:
    """Signal all that are still there."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def workers_of(server: LocalServer) -> list[psutil.Process]:
    """The workers of a server, by age: children of a fork server, or of the supervisor itself."""
    assert server.process is not None
    found = []
    for child in psutil.Process(server.process.pid).children():
        with contextlib.suppress(psutil.Error):  # the process is ending
            command = " ".join(child.cmdline())
            if "multiprocessing.forkserver" in command:
                found += child.children()
            elif "spawn_main" in command:
                found.append(child)
    return found


def copy_data(ready_made: Path, data_dir: Path) -> None:
    """Make a data folder by copying another one, whose PostgreSQL must not run."""
    subprocess.run(["cp", "-a", ready_made, data_dir], check=True)
