"""Checks and runs a scenario that is written in Python for a generated client."""

import sys
from pathlib import Path

from tests.clients import tools

SCENARIOS = tools.HERE / "scenarios"


def check_types(scenario: str, folder: Path) -> None:
    """Have mypy check a scenario strictly against the client in the folder."""
    options = ["--config-file=", "--strict", "--follow-imports=silent", "--cache-dir=/dev/null"]
    target = ["--python-executable", tools.PYTHON, SCENARIOS / f"{scenario}.py"]
    command = [sys.executable, "-m", "mypy", *options, *target]
    tools.run(command, folder, MYPYPATH=str(folder))


def run(scenario: str, folder: Path, **environment: str) -> None:
    """Run a scenario with the client in the folder."""
    command = [tools.PYTHON, SCENARIOS / f"{scenario}.py", tools.HERE / "manifests.json"]
    tools.run(command, folder, PYTHONPATH=str(folder), **environment)
