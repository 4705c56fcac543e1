"""Counts the bytecodes that the interpreter runs.

The count is exactly repeatable, whatever else the machine does, but it does not see loops in C.
"""

import sys
from collections.abc import Callable, Sequence
from types import FrameType

from bench import worlds
from service.engine import Cluster
from service.model.pods.pod import Pod


def bytecodes(cluster: Cluster, asked: Sequence[Pod]) -> int:
    """Count the bytecodes of placing these pods and undoing that, with all caches warm."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., object]:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    worlds.cpu_seconds(cluster, asked)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        worlds.cpu_seconds(cluster, asked)
    finally:
        sys.settrace(before)
    return count
