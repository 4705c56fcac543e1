"""What an evaluation may use at most: the process that goes beyond it is ended by the kernel."""

import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

TIME_SECONDS = 0.05
"""CPU time of one evaluation."""
PREPARATION_SECONDS = 1.0
"""CPU time in which expressions are compiled, and objects decoded."""
MEMORY_BYTES = 64 * 1024 * 1024
"""By how much the memory of the process may grow."""
_STATM = Path("/proc/self/statm")


@contextmanager
def within(seconds: float, memory: int = MEMORY_BYTES) -> Iterator[None]:
    """Bound what is done within by CPU time, and by how much memory is added (Linux)."""
    _limit_memory(memory)
    before = signal.setitimer(signal.ITIMER_PROF, seconds)[0]
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, before)


def evaluating() -> AbstractContextManager[None]:
    """Bound one evaluation."""
    return within(TIME_SECONDS)


def _limit_memory(added: int) -> None:
    if sys.platform != "linux":
        return
    size = int(_STATM.read_bytes().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + added, most))


def resident_bytes() -> int:
    """Return how much memory the process has, or 0 where nobody says so."""
    if sys.platform != "linux":
        return 0
    return int(_STATM.read_bytes().split()[1]) * resource.getpagesize()
