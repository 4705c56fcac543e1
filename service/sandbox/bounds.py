"""Limits of one evaluation; the kernel ends a process that exceeds them."""

import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

TIME_SECONDS = 0.05
"""The CPU time of one evaluation."""
PREPARATION_SECONDS = 1.0
"""The CPU time for compiling expressions and decoding objects."""
MEMORY_BYTES = 64 * 1024 * 1024
"""The additional memory that the process may allocate."""
_STATM = Path("/proc/self/statm")


@contextmanager
def within(seconds: float, memory: int = MEMORY_BYTES) -> Iterator[None]:
    """Limit CPU time and added memory (Linux) during the context."""
    _limit_memory(memory)
    before = signal.setitimer(signal.ITIMER_PROF, seconds)[0]
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, before)


def evaluating() -> AbstractContextManager[None]:
    """Limit the time and memory of one evaluation."""
    return within(TIME_SECONDS)


def _limit_memory(added: int) -> None:
    if sys.platform != "linux":
        return
    size = int(_STATM.read_bytes().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + added, most))


def resident_bytes() -> int:
    """Return the resident memory of this process, or 0 on systems that do not report it."""
    if sys.platform != "linux":
        return 0
    return int(_STATM.read_bytes().split()[1]) * resource.getpagesize()
