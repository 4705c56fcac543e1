"""Wheels carry the engine compiled, where there is a C compiler; without one they are pure Python.

A compiler that fails is an error, so that no wheel is slower without anybody noticing.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledEngine(BuildHookInterface[Any]):
    """Runs `tools/compile_engine.py` before a wheel is packed; a checkout is `make setup`'s business."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        subprocess.run(
            (sys.executable, "-m", "tools.compile_engine", "--required"), cwd=self.root, check=True
        )
        if any(Path(self.root, "service/_compiled").glob("*/*__mypyc*")):
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
