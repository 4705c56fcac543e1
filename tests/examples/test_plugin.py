"""The example of a plugin, by the suite that it inherits."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples/plugin"))

from test_gpu_reserve import TestGpuReserve

__all__ = ["TestGpuReserve"]
