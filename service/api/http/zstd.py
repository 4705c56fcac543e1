"""zstd: from Python's own library where that has it, since 3.14, and else from its backport."""

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["zstd"]
