"""The processes of a running server."""

import contextlib

import psutil

from service.cli.local import LocalServer


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
