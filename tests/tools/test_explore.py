"""What exploration finds comes with the command that repeats it."""

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from tools import explore

FAILS_BY_SEED = """
import os

def test_it():
    assert int(os.environ["MOORAGE_TEST_SEED"]) != 7
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with tests of its own, in place of this one."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.pytest]\nmarkers = []\n")
    monkeypatch.setattr(explore, "ROOT", tmp_path)
    monkeypatch.setattr(explore, "PYTHON", sys.executable)
    monkeypatch.setattr(explore, "failed_tests", lambda junit: ["tests/test_it.py::test_it"])
    return tmp_path


def test_a_seed_that_fails_is_repeated_by_the_command_that_is_told(project):
    (project / "tests" / "test_it.py").write_text(FAILS_BY_SEED)

    [failure] = explore.suite(7)

    assert failure.is_repeated
    assert failure.what == "tests/test_it.py::test_it"
    done = subprocess.run(
        str(failure.again), shell=True, cwd=project, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "1 failed" in done.stdout


@pytest.mark.exploration
def test_what_does_not_fail_again_is_told_as_such(project):
    (project / "tests" / "test_it.py").write_text("def test_it():\n    pass\n")

    [failure] = explore.suite(7)

    assert not failure.is_repeated


def test_one_seed_makes_all_those_that_follow():
    first, again = (list(itertools.islice(explore.seeds(5), 4)) for _ in range(2))
    assert first == again
    assert first[0] == 5
    assert len(set(first)) == 4
