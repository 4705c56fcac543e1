"""Runs tests on a copy of the tracked files, and finds out what became of each test."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

from service.store.embedded import EmbeddedPostgres
from tests.conftest import OTHER_SERVER, UNSAFE_BUT_QUICK
from tools.mutants.catalogue import CLIENT, ROOT, Mutant

SECONDS = 300
OPTIONS = (
    *("-q", "-rN", "--tb=line", "-p", "no:cacheprovider"),
    "--hypothesis-profile=mutants",
)
NOT_COLLECTED = (2, 4, 5)
"""The exit codes of pytest if no test ran: collection failed, wrong usage, or no tests found."""


@dataclass(frozen=True)
class Outcome:
    """The results of a run, by each test's name with its parameters."""

    by_test: dict[str, str] = field(default_factory=dict)
    """`passed`, `failed` or `skipped`."""
    is_complete: bool = True
    """Whether all tests were collected and run."""
    is_hung: bool = False
    output: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    """The seconds that each test took, by its name without parameters: the longest of these."""

    def of(self, test: str) -> str | None:
        """Return what became of a test; if it has parameters, the worst result."""
        found = {
            told
            for name, told in self.by_test.items()
            if name == test or name.startswith(f"{test}[")
        }
        return next((told for told in ("failed", "skipped", "passed") if told in found), None)

    def failed(self) -> list[str]:
        return [name for name, told in self.by_test.items() if told == "failed"]


class Tree:
    """A copy of the tracked files in which mutants are planted; the checkout is never touched.

    The engine always runs from its sources: a compiled engine would not have the mistake, and tests
    that look into it would be left out.
    """

    def __init__(self, folder: Path, names: Iterable[str], source: Path = ROOT) -> None:
        self.folder = folder / "tree"
        self._temporary = folder / "tmp"
        self._temporary.mkdir(parents=True)
        self._is_planted = False
        self._runner: subprocess.Popen[str] | None = None
        self._postgres: EmbeddedPostgres | None = None
        for name in names:
            target = self.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, target)

    def copied(self, folder: Path) -> "Tree":
        """Make another tree like this one, with all bytecode that was made for this one."""
        names = (path for path in self.folder.rglob("*") if path.is_file())
        return Tree(folder, (str(path.relative_to(self.folder)) for path in names), self.folder)

    @contextlib.contextmanager
    def planted(self, mutants: Sequence[Mutant]) -> Iterator[None]:
        """Plant these mistakes in the tree for the duration of the context.

        Raises:
            ValueError: the text that a mistake replaces is not in its file exactly once.
        """
        before = {each.file: (self.folder / each.file).read_text("utf-8") for each in mutants}
        texts = {each.file: each.mutated(before[each.file]) for each in mutants}
        times = {name: (self.folder / name).stat().st_mtime for name in texts}
        self._is_planted = True
        try:
            for name, text in texts.items():
                self._write(name, text, times[name] + 1)
            yield
        finally:
            self._is_planted = False
            for name, text in before.items():
                self._write(name, text, times[name])

    def run(
        self, tests: Iterable[str], seconds: float = SECONDS, options: Sequence[str] = ()
    ) -> Outcome:
        """Run these tests once, in a process of its own that ends in time."""
        report, output = self._temporary / "report.xml", self._temporary / "output"
        report.unlink(missing_ok=True)
        code = self._ask(
            folder=str(self.folder),
            arguments=[*OPTIONS, f"--junit-xml={report}", *options, *tests],
            environment=self._environment(),
            output=str(output),
            seconds=seconds,
        )
        outcomes, took = outcomes_in(report) if report.exists() else ({}, {})
        text = output.read_text(encoding="utf-8", errors="replace")
        is_complete = report.exists() and code is not None and code not in NOT_COLLECTED
        return Outcome(outcomes, is_complete, code is None, text, took)

    def close(self) -> None:
        """End the processes that run tests."""
        if self._runner is not None:
            self._runner.communicate()
        if self._postgres is not None:
            self._postgres.stop()

    def _ask(self, **request: object) -> int | None:
        """Return the exit code of pytest; None if the run had to be ended."""
        runner = self._runner = self._runner or _start_runner()
        assert runner.stdin is not None
        assert runner.stdout is not None
        runner.stdin.write(json.dumps(request) + "\n")
        runner.stdin.flush()
        code: int | None = json.loads(runner.stdout.readline())
        return code

    def _environment(self) -> dict[str, str]:
        return {
            "MOORAGE_ENGINE": "interpreted",
            "PYTHONPATH": f"{self.folder}{os.pathsep}{self.folder / CLIENT}",
            # Bytecode with one mistake must not be taken for that of the next.
            "PYTHONDONTWRITEBYTECODE": "1" if self._is_planted else "",
            "TMPDIR": str(self._temporary),
            OTHER_SERVER: self._database_url(),
        }

    def _database_url(self) -> str:
        """Return the URL of one PostgreSQL for all runs: starting one would take too long."""
        if self._postgres is None:
            folder = self._temporary / "postgres"
            self._postgres = EmbeddedPostgres(folder, settings=UNSAFE_BUT_QUICK)
            self._postgres.start()
        return self._postgres.url

    def _write(self, name: str, text: str, time: float) -> None:
        """Write a file with its own modification time.

        Python would otherwise take one source's bytecode for another's.
        """
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        os.utime(path, (time, time))


def _start_runner() -> subprocess.Popen[str]:
    command = [sys.executable, str(Path(__file__).with_name("pytest_in_forks.py"))]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd="/",
    )


def tracked(checkout: Path = ROOT) -> list[str]:
    """Return the files that git tracks, or would if somebody added them."""
    command = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(command, cwd=checkout, check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.split("\0") if name and (checkout / name).is_file()]


def outcomes_in(report: Path) -> tuple[dict[str, str], dict[str, float]]:
    """Read from a report what became of each test, and how many seconds each took.

    A test that failed and had an error at its end, too, counts once.
    """
    found: dict[str, str] = {}
    took: dict[str, float] = {}
    for case in ET.parse(report).iter("testcase"):
        told = _told({child.tag for child in case})
        name = _node_id(case.get("classname", ""), case.get("name", ""))
        if found.get(name) != "failed":
            found[name] = told
        base = name.partition("[")[0]
        took[base] = max(took.get(base, 0.0), float(case.get("time") or 0))
    return found, took


def _told(tags: set[str]) -> str:
    if tags & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in tags else "passed"


def _node_id(class_name: str, name: str) -> str:
    """Make `tests/a/test_b.py::test_c` from dotted names of a module and perhaps a class."""
    parts = class_name.split(".")
    modules = [part for part in parts if not part[:1].isupper()]
    return "::".join(["/".join(modules) + ".py", *parts[len(modules) :], name])
