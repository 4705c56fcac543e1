"""The example of a plugin, by the suite that it inherits."""

from test_gpu_reserve import TestGpuReserve

__all__ = ["TestGpuReserve"]
