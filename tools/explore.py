"""Look for bugs that the gate cannot find, as it always does the same: `python -m tools.explore`.

Until the time is over, this runs in turn: parts of the test suite in random order, with fresh seeds
and more examples; the simulation; placements and plans that race; faults in real processes; and
random cases beside kube-scheduler's own code, where Go is there to build it. For each failure it
prints the one command that repeats it, and whether that command failed again. A seed that is found
here becomes a fixed case of the gate.
"""

import argparse
import itertools
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from service.runtime import compiled_engine
from tools.verdicts import failed_tests

ROOT = Path(__file__).parents[1]
PYTHON = (
    os.path.relpath(sys.executable, ROOT)
    if Path(sys.executable).is_relative_to(ROOT)
    else sys.executable
)
TESTS = "tests"
CLIENTS = "clients"
"""A folder of tests that need what `make clients` fetches; `make explore-contract` tries more of that."""
FILES_AT_ONCE = 20
SIMULATED = 100
RACED, ROUND = 4_000, 2_000
PLANNED = 2_000
INJECTED = 10
COMPARED = 40
SEED_MAX = 10**9


@dataclass(frozen=True)
class Command:
    """A command line with its environment variables; as text, it is what a shell takes."""

    words: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        settings = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join([*settings, shlex.join(self.words)])

    def run(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words,
            cwd=ROOT,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


@dataclass(frozen=True)
class Failure:
    """A failure, with its output and the command that repeats it."""

    what: str
    output: str
    again: Command
    is_repeated: bool


Exploration = Callable[[int], Iterator[Failure]]
"""A function that explores with a seed, and yields failures."""


def main() -> int:
    """Explore until the time is over; return 1 if anything failed."""
    options = _options()
    print(f"seed {options.seed}", flush=True)
    end, failures = time.monotonic() + 60 * options.minutes, 0
    for seed, (name, explore) in zip(seeds(options.seed), _turns(options.only)):  # noqa: B905
        if time.monotonic() >= end:
            break
        started = time.monotonic()
        for failure in explore(seed):
            failures += 1
            _tell(failure)
        print(f"{name}, seed {seed}: {time.monotonic() - started:.0f} s", flush=True)
    print(f"{failures} failures", flush=True)
    return 1 if failures else 0


def seeds(first: int) -> Iterator[int]:
    """Yield the seed of each turn; the first is `first`, so that one turn can be repeated."""
    chance = random.Random(first)
    yield first
    while True:
        yield chance.randrange(1, SEED_MAX)


def _turns(only: str | None) -> Iterator[tuple[str, Exploration]]:
    names = [only] if only else list(EXPLORATIONS)
    return ((name, EXPLORATIONS[name]) for name in itertools.cycle(names))


def _tell(failure: Failure) -> None:
    print(f"\n{failure.output[-4000:]}\nFAILED {failure.what}")
    does = "Repeats it" if failure.is_repeated else "Did not fail when it was tried again"
    print(f"{does}: {failure.again}\n", flush=True)


def suite(seed: int) -> Iterator[Failure]:
    """Run some files of tests in random order."""
    found = [path.relative_to(ROOT) for path in (ROOT / TESTS).rglob("test_*.py")]
    files = sorted(path.as_posix() for path in found if CLIENTS not in path.parts)
    chosen = random.Random(seed).sample(files, min(FILES_AT_ONCE, len(files)))
    with tempfile.TemporaryDirectory() as folder:
        junit = Path(folder) / "verdicts.xml"
        whole = _pytest(seed, chosen)
        done = Command([*whole.words, f"--junitxml={junit}"], whole.environment).run()
        failed = list(failed_tests(junit)) if junit.exists() else []
    for test in failed:
        alone = _pytest(seed, [test])
        again = alone.run()
        if again.returncode:
            yield Failure(test, again.stdout, alone, is_repeated=True)
        else:
            yield _repeated(test, done.stdout, whole)
    if done.returncode and not failed:
        yield _repeated("the run itself", done.stdout, whole)


def _repeated(what: str, output: str, command: Command) -> Failure:
    return Failure(what, output, command, is_repeated=command.run().returncode != 0)


def _pytest(seed: int, tests: Sequence[str]) -> Command:
    """Make a command that runs tests in one process, so that the order is always the same.

    Every second seed runs on the sources of the engine, because some limits can be replaced only there.
    """
    words = [PYTHON, "-m", "pytest", "-q", "-o", "addopts=-ra --import-mode=importlib"]
    words += [f"--randomly-seed={seed}", f"--hypothesis-seed={seed}", "-m", "", *tests]
    environment = {"MOORAGE_TEST_SEED": str(seed), "PYTHONHASHSEED": str(seed % 2**32)}
    if seed % 2:
        environment[compiled_engine.VARIABLE] = compiled_engine.INTERPRETED
    return Command(words, environment)


def simulation(seed: int) -> Iterator[Failure]:
    """Run the simulation with new seeds."""
    module = [PYTHON, "-m", "tests.concurrency.simulation"]
    done = Command([*module, "--seeds", str(SIMULATED), "--first", str(seed), "--quiet"]).run()
    if done.returncode == 0:
        return
    told = done.stdout.rpartition("failed: ")[2].splitlines()
    for found in told[0].split(", ") if told else []:
        again = Command([*module, "--seeds", "1", "--first", found])
        yield _repeated(f"the simulation, seed {found}", done.stdout, again)


def race(seed: int) -> Iterator[Failure]:
    """Let planners race for the last free places."""
    numbers = ("--placements", str(RACED), "--round", str(ROUND), "--seed", str(seed))
    yield from _whole([PYTHON, "-m", "tests.concurrency.race", *numbers], accepted=(0, 2))


def plans(seed: int) -> Iterator[Failure]:
    """Let plans race with placements, and kill planners meanwhile."""
    numbers = ("--steps", str(PLANNED), "--seed", str(seed))
    yield from _whole([PYTHON, "-m", "tests.concurrency.race", *numbers], accepted=(0,))


def faults(seed: int) -> Iterator[Failure]:
    """Kill and stop real processes, and cut their connections, while pods are placed and plans made."""
    numbers = ("--plans", "--injections", str(INJECTED), "--seed", str(seed))
    yield from _whole([PYTHON, "-m", "tests.concurrency.faults", *numbers], accepted=(0,))


def oracle(seed: int) -> Iterator[Failure]:
    """Compare the engine with kube-scheduler's own code on random cases."""
    if shutil.which("go") is None:
        print("The oracle is left out, as there is no Go to build it.", flush=True)
        return
    numbers = ("--cases", str(COMPARED), "--seed", str(seed))
    yield from _whole([PYTHON, "-m", "tools.oracle", "explore", *numbers], accepted=(0,))


def _whole(words: Sequence[str], accepted: Sequence[int]) -> Iterator[Failure]:
    command = Command(words)
    done = command.run()
    if done.returncode not in accepted:
        yield _repeated(" ".join(words[2:]), done.stdout, command)


EXPLORATIONS: Mapping[str, Exploration] = {
    "suite": suite,
    "simulation": simulation,
    "race": race,
    "plans": plans,
    "faults": faults,
    "oracle": oracle,
}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.explore", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="begin no turn after so many")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, SEED_MAX))
    parser.add_argument("--only", choices=EXPLORATIONS, help="this in every turn")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
