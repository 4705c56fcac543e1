"""What the parts of a race take of the machine's CPUs."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import psutil

from service.server.local_server import LocalServer


class Meter:
    """CPU seconds of callers, planners and PostgreSQL since they began."""

    def __init__(self, servers: Iterable[LocalServer], data: Path) -> None:
        """`data`: the data folder of the embedded PostgreSQL."""
        pid_file = next(data.rglob("postmaster.pid"))
        self._postmaster = int(pid_file.read_text().splitlines()[0])
        self._servers = list(servers)

    def read(self) -> Counter[str]:
        planners = [each.process.pid for each in self._servers if each.process is not None]
        return Counter(
            {
                "callers": _own(psutil.Process()),
                "planners": sum(map(_of_tree, planners)),
                "PostgreSQL": _of_tree(self._postmaster),
            }
        )


def _of_tree(pid: int) -> float:
    """Of a process and all that it started, also those that have ended."""
    process = psutil.Process(pid)
    total = 0.0
    for each in (process, *process.children(recursive=True)):
        try:
            times = each.cpu_times()
        except psutil.NoSuchProcess:
            continue  # it counts as a child that has ended, from now on
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _own(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
