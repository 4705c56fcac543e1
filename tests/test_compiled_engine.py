"""The compiled engine is never older than its sources, and where it is missing these run."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from service.runtime import compiled_engine
from tests.paths import ROOT
from tools.compile_engine import NOT_COMPILED

WHICH = "from service import compiled_engine; from service.engine.state.nodes import rank as ranks; print(compiled_engine.is_in_use(), ranks.VETO, ranks.__file__)"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What compiling and importing the engine need, with what is compiled here."""
    shutil.copytree(ROOT / "service", tmp_path / "service")
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    return tmp_path


def run(checkout: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, *arguments)
    inherited = {k: v for k, v in os.environ.items() if k != compiled_engine.VARIABLE}  # noqa: TID251
    return subprocess.run(
        command,
        cwd=checkout,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=True,
    )


def which(checkout: Path, **environment: str) -> list[str]:
    return run(checkout, "-c", WHICH, **environment).stdout.split()


@pytest.mark.skipif(not compiled_engine.folder().exists(), reason="not compiled here")
def test_what_is_compiled_from_these_sources_runs(checkout):
    in_use, _, file = which(checkout)
    assert in_use == "True"
    assert "_compiled" in file


def test_an_edited_source_runs_whatever_is_compiled(checkout):
    ranks = checkout / "service/engine/state/nodes/rank.py"
    ranks.write_text(ranks.read_text().replace("= -(2**62)", "= -(2**61)"))
    assert which(checkout) == ["False", str(-(2**61)), str(ranks)]


def test_an_edited_source_that_the_engine_imports_counts_too(checkout):
    with (checkout / "service/model/pods/pod.py").open("a") as objects:
        objects.write("\n# Another line.\n")
    assert which(checkout)[0] == "False"


def test_sources_run_where_that_is_asked_for(checkout):
    in_use, _, file = which(checkout, MOORAGE_ENGINE=compiled_engine.INTERPRETED)
    assert (in_use, Path(file).suffix) == ("False", ".py")


def test_without_a_compiler_a_line_tells_that_sources_run(checkout):
    shutil.rmtree(checkout / "service/_compiled", ignore_errors=True)
    done = run(checkout, "-m", "tools.compile_engine", CC="no-such-compiler")
    assert done.stderr == (
        "The engine is not compiled, so it is slower: there is no C compiler (no-such-compiler).\n"
    )
    assert which(checkout)[0] == "False"


def test_a_compiler_that_fails_leaves_nothing_behind(checkout):
    (checkout / "setuptools.py").write_text("raise ImportError('no tools here')\n")
    shutil.rmtree(checkout / "service/_compiled", ignore_errors=True)
    done = run(checkout, "-m", "tools.compile_engine")
    told = done.stderr.splitlines()[-1]
    assert told == "The engine is not compiled, so it is slower: ImportError: no tools here."
    assert [each.name for each in (checkout / "service/_compiled").iterdir()] == [".lock"]
    assert which(checkout)[0] == "False"


def test_a_compiler_that_fails_fails_what_is_shipped(checkout):
    (checkout / "setuptools.py").write_text("raise ImportError('no tools here')\n")
    shutil.rmtree(checkout / "service/_compiled", ignore_errors=True)
    with pytest.raises(subprocess.CalledProcessError) as failed:
        run(checkout, "-m", "tools.compile_engine", "--required")
    assert "ImportError: no tools here." in failed.value.stderr
    without = run(checkout, "-m", "tools.compile_engine", "--required", CC="no-such-compiler")
    assert "there is no C compiler" in without.stderr


def test_what_needs_the_sources_runs_in_the_gates_session_with_sources():
    line = re.search(
        r"^INTERPRETED := ((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert line is not None
    listed = set(line[1].replace("\\\n", " ").split())
    marked = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if "\n@pytest.mark.interpreted" in path.read_text()
    }
    assert len(marked) > 2
    assert marked <= listed


def test_what_is_not_compiled_is_there() -> None:
    """A module that got another name would be compiled, and its structs have no fields then."""
    engine = ROOT / "service" / "engine"
    assert set(NOT_COMPILED) <= {str(path.relative_to(engine)) for path in engine.rglob("*.py")}
