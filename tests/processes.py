"""The data and the processes of servers."""

import contextlib
import subprocess
from pathlib import Path
from typing import Any

import psutil

from service.cli.local import LocalServer
from tests.waiting import WAIT_SECONDS

PLAIN_HTTP: dict[str, Any] = {"timeout": WAIT_SECONDS, "verify": False}
"""For httpx: each client of it reads certificates, which takes longer than any request here."""


def workers_of(server: LocalServer) -> list[psutil.Process]:
    """Those that serve requests, by age: a fork server's children, or the supervisor's own."""
    assert server.process is not None
    found = []
    for child in psutil.Process(server.process.pid).children():
        with contextlib.suppress(psutil.Error):  # it is ending
            command = " ".join(child.cmdline())
            if "multiprocessing.forkserver" in command:
                found += child.children()
            elif "spawn_main" in command:
                found.append(child)
    return found


def copy_data(ready_made: Path, data_dir: Path) -> None:
    """A data folder with the files of another, whose PostgreSQL does not run."""
    subprocess.run(["cp", "-a", ready_made, data_dir], check=True)
