"""Wheels carry the documentation, and the engine compiled, where there is a C compiler.

A compiler that fails is an error, so that no wheel is slower without anybody noticing.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BuiltParts(BuildHookInterface[Any]):
    """Builds what is not in the repository before a wheel is packed; a checkout has `make` for it.

    Without a compiler the wheel is pure Python.
    """

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        subprocess.run(
            (sys.executable, "-m", "tools.docs_site", "service/api/site"), cwd=self.root, check=True
        )
        subprocess.run(
            (sys.executable, "-m", "tools.compile_engine", "--required"), cwd=self.root, check=True
        )
        if any(Path(self.root, "service/_compiled").glob("*/*__mypyc*")):
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
