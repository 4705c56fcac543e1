"""Compare what runs of the tests said, test by test: `python -m tools.verdicts`.

`repeat` runs the gate's tests many times, some of them beside busy processes, and compares the
runs. `compare` compares runs that were kept. `seconds` writes how long each file of tests took in a
run; this is used to distribute the files over processes.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[1]
SECONDS_FILE = ROOT / "tests" / "seconds.json"
BUSY = "while True: pass"
LOOK_SECONDS = 10.0
ABSENT = "absent"
Verdicts = dict[str, str]
"""The verdict on each test: `passed`, `failed`, `error` or `skipped`."""


@dataclass(frozen=True)
class Run:
    """One run of `make test`, which writes a file for each of its sessions into a folder."""

    name: str
    beside: str
    seconds: float
    load: float
    """The average number of the machine's processes that wanted a core."""
    verdicts: Verdicts

    def row(self) -> str:
        counts = Counter(self.verdicts.values())
        figures = (counts[each] for each in ("passed", "failed", "error", "skipped"))
        told = (self.name, self.beside, f"{self.seconds:.0f}", f"{self.load:.1f}")
        return f"| {' | '.join((*told, *(f'{n:,}' for n in figures)))} |"


def main() -> int:
    """Do what the command line says; return 1 if verdicts differ."""
    options = _options()
    return int(options.do(options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.verdicts", description=__doc__)
    commands = parser.add_subparsers(required=True)
    repeat = commands.add_parser("repeat", help="run `make test` many times and compare")
    repeat.add_argument("--runs", type=int, default=10)
    repeat.add_argument("--loaded", type=int, default=5, help="how many beside busy processes")
    repeat.add_argument("--busy", type=int, default=2, help="how many busy processes")
    repeat.add_argument("--beside", help="what else the machine does, to be told in the table")
    repeat.add_argument("--folder", type=Path, default=ROOT / ".verdicts" / "runs")
    repeat.set_defaults(do=_repeat)
    compare = commands.add_parser("compare", help="compare runs, each a folder of junit files")
    compare.add_argument("folders", type=Path, nargs="+")
    compare.set_defaults(do=lambda options: tell([read(each) for each in options.folders]))
    seconds = commands.add_parser("seconds", help=f"write {SECONDS_FILE.relative_to(ROOT)}")
    seconds.add_argument("folder", type=Path, help="a whole run: a junit file for each session")
    seconds.set_defaults(do=_write_seconds)
    return parser.parse_args()


def _repeat(options: argparse.Namespace) -> int:
    for number in range(1, options.runs + 1):
        busy = options.busy if number > options.runs - options.loaded else 0
        folder = options.folder / f"{number:02}"
        folder.mkdir(parents=True)
        with _beside(busy):
            about = _run_tests(folder)
        about["beside"] = options.beside or (f"{busy} busy processes" if busy else "nothing")
        (folder / "run.json").write_text(json.dumps(about))
        print(read(folder).row(), flush=True)
    return tell([read(each) for each in sorted(options.folder.iterdir())])


def _run_tests(folder: Path) -> dict[str, float | str]:
    """Run the tests; return how many seconds that took, and the machine's load meanwhile.

    The verdicts are in the files that the run writes.
    """
    started, loads = time.monotonic(), []
    with (folder / "log").open("wb") as log:
        command = ("make", "test", f"VERDICTS={folder}")
        tests = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
        while tests.poll() is None:
            loads.append(os.getloadavg()[0])
            with contextlib.suppress(subprocess.TimeoutExpired):
                tests.wait(LOOK_SECONDS)
    return {"seconds": time.monotonic() - started, "load": statistics.mean(loads)}


@contextlib.contextmanager
def _beside(busy: int) -> Iterator[None]:
    processes = [subprocess.Popen((sys.executable, "-c", BUSY)) for _ in range(busy)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def read(folder: Path) -> Run:
    """Read a run from its folder.

    Raises:
        FileNotFoundError: there are no verdicts in the folder.
    """
    files = sorted(folder.glob("*.xml"))
    if not files:
        raise FileNotFoundError(f"There is no junit file in {folder}.")
    told = folder / "run.json"
    about = json.loads(told.read_text()) if told.exists() else {}
    verdicts = {f"{file.stem} {test}": each for file in files for test, each in _tests(file)}
    return Run(
        folder.name,
        about.get("beside", ""),
        about.get("seconds", 0.0),
        about.get("load", 0.0),
        verdicts,
    )


def failed_tests(file: Path) -> Iterator[str]:
    """Yield the tests of a junit file that failed or broke off, in the form that pytest takes."""
    for case in ET.parse(file).iter("testcase"):
        if _verdict(case) in {"failed", "error"}:
            yield _nodeid(case.get("classname", ""), case.get("name", ""))


def _tests(file: Path) -> Iterator[tuple[str, str]]:
    for case in ET.parse(file).iter("testcase"):
        yield f"{case.get('classname')}::{case.get('name')}", _verdict(case)


def _verdict(case: ET.Element) -> str:
    bad = {"failure": "failed", "error": "error", "skipped": "skipped"}
    return next((bad[child.tag] for child in case if child.tag in bad), "passed")


def differences(runs: Sequence[Run]) -> dict[str, list[str]]:
    """Return the tests whose verdicts were not the same in all runs, with the verdicts."""
    tests = sorted({test for run in runs for test in run.verdicts})
    told = {test: [run.verdicts.get(test, ABSENT) for run in runs] for test in tests}
    return {test: verdicts for test, verdicts in told.items() if len(set(verdicts)) > 1}


def tell(runs: Sequence[Run]) -> int:
    """Print a table of the runs and the tests whose verdicts differ; return 1 if there are any."""
    print("| run | beside | seconds | load | passed | failed | errors | skipped |")
    print("|--:|---|--:|--:|--:|--:|--:|--:|")
    for run in runs:
        print(run.row())
    differing = differences(runs)
    for test, verdicts in differing.items():
        print(f"{test}: {', '.join(verdicts)}")
    print(f"{len(differing)} of {len(runs[0].verdicts):,} tests differ in {len(runs)} runs.")
    return 1 if differing else 0


def _write_seconds(options: argparse.Namespace) -> int:
    sessions = {file.stem: by_file(file) for file in options.folder.glob("*.xml")}
    SECONDS_FILE.write_text(json.dumps(sessions, indent=1, sort_keys=True) + "\n")
    return 0


def by_file(junit: Path) -> Mapping[str, float]:
    """The seconds that each file of tests took."""
    seconds: Counter[str] = Counter()
    for case in ET.parse(junit).iter("testcase"):
        seconds[_file_of(case.get("classname", ""))] += float(case.get("time", 0))
    return {file: round(value, 1) for file, value in seconds.items()}


def _file_of(classname: str) -> str:
    return _nodeid(classname, "").partition("::")[0]


def _nodeid(classname: str, test: str) -> str:
    """Make pytest's node id from a class's dotted name and the name of a test.

    An example is `tests/api/middleware/test_edge.py::TestClass::test_it`.
    """
    parts, classes = classname.split("."), []
    while len(parts) > 1 and not ROOT.joinpath(*parts).with_suffix(".py").exists():
        classes.insert(0, parts.pop())
    return "::".join([f"{'/'.join(parts)}.py", *classes, test])


if __name__ == "__main__":
    sys.exit(main())
