"""Does what a page of the documentation says, in a folder as its readers have it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from moorage.cli.input.sources import read_objects
from tests.paths import ROOT
from tests.waiting import WAIT_SECONDS

TUTORIAL = ROOT / "docs" / "tutorial.md"
SERVERS = ("http://127.0.0.1:8080", "http://localhost:8080", "localhost:8080")
"""How pages name the server of `make run`."""
LEFT_OUT = {
    "docs/tutorial.md": {"make run": "sets up a checkout, and serves until somebody ends it"},
    "docs/how-to/tenants.md": {
        "moorage token create root": "from then on every page would need a token"
    },
    "docs/api-guide.md": {
        "kubectl get": "kubernetes.md does the same",
        "moorage cordon node-7": "drain.md does the same",
        "moorage scale-in": "scale-in.md does the same",
        "moorage replace": "rolling-release.md does the same",
        "resourcequotas/compute": "other pages share the cluster; tenants.md does the same",
        "/watch?": "never ends; tests/api/handlers/test_watch.py follows it",
        "/bindings?": "never ends; tests/api/handlers/test_binding_stream.py follows it",
    },
    "README.md": {
        "make ": "targets of make, of which the gate is made",
        "pip install": "asks a package index; tests/client/test_wheel.py installs the client",
    },
    "CONTRIBUTING.md": {"make setup": "targets of make, of which the gate is made"},
    "docs/operating.md": {"": "commands for the machine of a server, its containers and database"},
    "docs/point-in-time-recovery.md": {
        "": "commands for the machine of a database and its archive"
    },
    "docs/how-to/several-machines.md": {
        "": "commands for several machines; `make many-servers` does the same on one"
    },
    "docs/how-to/replicated-postgresql.md": {
        "": "commands for machines with etcd and Patroni; `make failovers` does the same"
    },
    "docs/how-to/distributed-postgresql.md": {"": "commands for machines with Citus"},
    "docs/reliability.md": {"": "take minutes to hours; the gate has the short runs of the same"},
    "docs/decisions/migrations.md": {"": "write into the checkout, for a release"},
    "docs/public.md": {"make test": "runs all tests twice, of which this is one"},
    "docs/orchestrator.md": {"": "pieces of examples/orchestrator.py, which runs as a test"},
    "docs/plugins.md": {"": "pieces of examples/plugin, whose suite runs as a test"},
    "examples/README.md": {"": "tests/examples/test_scripts.py runs these scripts"},
}
"""The blocks that nothing executes, by their page and what is in them, and why that is so."""
_BLOCK = re.compile(
    r"^ *```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL
)
_SHELL = ("sh", "bash", "shell", "console")
_PYTHON = ("python", "py", "pycon")
_COMMAND = re.compile(r"(\$ |\.venv/bin/|(curl|kubectl|make|moorage|pip|python3?|uv) )")


class Block(NamedTuple):
    """A block of code of a page that somebody who reads it could execute."""

    language: Literal["sh", "python"]
    text: str

    @property
    def command(self) -> str:
        """What a shell does with it."""
        if self.language == "sh":
            return self.text
        return f"python - <<'END-OF-BLOCK'\n{self.text}END-OF-BLOCK\n"


def executable(page: str) -> Iterator[Block]:
    """Yield the blocks of a page's text that are commands or Python, in their order.

    A block that names no language is one if it begins with a command.
    """
    for found in _BLOCK.finditer(page):
        language, text = found["language"], found["text"]
        if language in _SHELL or (not language and _COMMAND.match(text)):
            yield Block("sh", text)
        elif language in _PYTHON:
            yield Block("python", text)


def reasons(page: Path, block: Block) -> list[str]:
    """Why nothing executes a block of a page; nothing if it is executed."""
    named = LEFT_OUT.get(page.relative_to(ROOT).as_posix(), {})
    return [why for part, why in named.items() if part in block.text]


def blocks(page: Path) -> list[str]:
    """What a shell has to do to follow a page, in order."""
    found = executable(page.read_text(encoding="utf-8"))
    return [block.command for block in found if not reasons(page, block)]


def equip(folder: Path) -> None:
    """Make a folder look like a checkout, with a kubectl that knows the sample cluster alone.

    There, curl fails if the server refuses.
    """
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / ".venv").symlink_to(Path(sys.executable).parents[1])
    objects = read_objects([str(ROOT / "examples" / "cluster")])
    (folder / "kubernetes.json").write_text(json.dumps({"kind": "List", "items": objects}))
    kubectl = folder / "bin" / "kubectl"
    kubectl.parent.mkdir()
    kubectl.write_text(f"#!/bin/sh\ncat {folder}/kubernetes.json\n")
    kubectl.chmod(0o755)
    (folder / ".curlrc").write_text("fail-with-body\n")


def follow(commands: Sequence[str], server: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run blocks of commands in one shell, which ends at the first command that fails.

    Args:
        commands: The blocks.
        server: The URL of the server that they ask.
        folder: Where they run; `equip` has made it ready.
    """
    script = "\n".join(commands)
    for written in SERVERS:
        script = script.replace(written, server)
    path = f"{folder}/bin:{folder}/.venv/bin:{os.environ['PATH']}"  # noqa: TID251 - the child's
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={"PATH": path, "HOME": str(folder), "MOORAGE_URL": server},
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
