"""Does what a page of the documentation says, in a folder as its readers have it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from service.cli.sources import read_objects
from tests.paths import ROOT
from tests.waiting import WAIT_SECONDS

TUTORIAL = ROOT / "docs" / "tutorial.md"
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[str]:
    """The blocks of shell commands of a page, in their order."""
    return _BLOCK.findall(page.read_text(encoding="utf-8"))


def equip(folder: Path) -> None:
    """Make a folder look like a checkout, with a kubectl that knows the sample cluster alone."""
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / ".venv").symlink_to(Path(sys.executable).parents[1])
    objects = read_objects([str(ROOT / "examples" / "cluster")])
    (folder / "kubernetes.json").write_text(json.dumps({"kind": "List", "items": objects}))
    kubectl = folder / "bin" / "kubectl"
    kubectl.parent.mkdir()
    kubectl.write_text(f"#!/bin/sh\ncat {folder}/kubernetes.json\n")
    kubectl.chmod(0o755)


def follow(commands: Sequence[str], server: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run blocks of commands in one shell, which ends at the first command that fails.

    Args:
        commands: The blocks.
        server: The URL of the server that they ask.
        folder: Where they run; `equip` has made it ready.
    """
    path = f"{folder}/bin:{folder}/.venv/bin:{os.environ['PATH']}"  # noqa: TID251 - the child's
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(commands)],
        cwd=folder,
        env={"PATH": path, "HOME": str(folder), "MOORAGE_URL": server},
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
