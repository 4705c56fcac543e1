"""What the interpreter runs, counted: exactly repeatable, whatever else the machine does, but blind for loops within C."""

import sys
from collections.abc import Callable, Sequence
from types import FrameType

from bench import worlds
from service.engine import Cluster
from service.model.objects import Pod


def bytecodes(cluster: Cluster, asked: Sequence[Pod]) -> int:
    """How many it runs while it places these pods and takes them back, all caches warm."""
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
