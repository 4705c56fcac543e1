"""What campaigns have found, for which state of the sources: `docs/campaigns.json`, and a page of it.

A campaign that is run with `--ledger` adds a line when it ends, whatever it has found. Nothing is
written by hand. `python -m tools.ledger` writes the page anew.
"""

import argparse
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import structs

ROOT = Path(__file__).parents[1]
LEDGER = ROOT / "docs" / "campaigns.json"
PAGE = ROOT / "docs" / "campaigns.md"
_SOURCES = (
    "service",
    "migrations",
    "clients/python",
    "tests",
    "tools",
    "pyproject.toml",
    "uv.lock",
)
_HEAD = """# Campaigns

Each line is a run of one of the [campaigns](reliability.md#campaigns), written by the run itself
when it ended: `make` with `ARGS="… --ledger"`. The commit is the one whose sources ran; a `+` says
that they had been changed since.

"""
_GOALS_HEAD = """| campaign | goal | reached | share | violations |
|---|--:|--:|--:|--:|
"""
_RUNS_HEAD = """
| ended | campaign | commit | seeds | hours | runs | faults | placements | steps of plans | calls | violations |
|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|
"""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One campaign that has ended."""

    campaign: str
    commit: str
    """The commit of the sources, twelve digits; with `+` if they differed from it."""
    ended: datetime
    seeds: str
    """All that is needed to begin the same once more."""
    hours: float
    runs: int = 0
    """Seeds or rounds."""
    faults: int = 0
    """Processes that were killed or stopped, connections that were broken, and the like."""
    placements: int = 0
    """Pods that were acknowledged as placed."""
    steps: int = 0
    """Steps of plans that were committed."""
    calls: int = 0
    """Calls of the store of which the answers were compared."""
    violations: int = 0


class Goal(NamedTuple):
    """How much of a campaign is to be run, over all commits."""

    campaign: str
    figure: str
    """The figure of its entries that is added up."""
    told: str
    number: int


GOALS = (
    Goal("simulation", "runs", "seeds", 100_000),
    Goal("race", "placements", "placements", 10_000_000),
    Goal("faults", "faults", "faults", 10_000),
    Goal("failovers", "faults", "failovers", 100),
    Goal("failovers", "placements", "placements", 1_000_000),
    Goal("plans", "steps", "steps of plans", 100_000),
)


class Campaign:
    """Measures a campaign's time; `add` puts what it has found into the ledger."""

    def __init__(self, name: str, ledger: Path | None) -> None:
        self._name = name
        self._ledger = ledger
        self._commit = "" if ledger is None else commit_that_runs()
        self._begun = time.monotonic()

    def add(  # noqa: PLR0913 - the figures of a line
        self,
        *,
        seeds: str,
        runs: int = 0,
        faults: int = 0,
        placements: int = 0,
        steps: int = 0,
        calls: int = 0,
        violations: int = 0,
        seconds: float | None = None,
    ) -> None:
        """Add a line, if there is a ledger; `seconds` are those that it took, since the begin if None."""
        if self._ledger is None:
            return
        took = time.monotonic() - self._begun if seconds is None else seconds
        entry = Entry(
            campaign=self._name,
            commit=self._commit,
            ended=datetime.fromtimestamp(int(time.time()), UTC),
            seeds=seeds,
            hours=round(took / 3600, 3),
            runs=runs,
            faults=faults,
            placements=placements,
            steps=steps,
            calls=calls,
            violations=violations,
        )
        write([*read(self._ledger), entry], self._ledger)

    @contextmanager
    def telling_failure(self, seeds: str) -> Iterator[None]:
        """Add a line with a violation if what is done meanwhile finds anything that must not be."""
        try:
            yield
        except AssertionError:
            self.add(seeds=seeds, violations=1)
            raise


def add_ledger(parser: argparse.ArgumentParser) -> None:
    """Add the option that says where the ledger is."""
    parser.add_argument(
        "--ledger",
        type=Path,
        nargs="?",
        const=LEDGER,
        help="add a line to this file when it ends, docs/campaigns.json if none is named",
    )


def read(ledger: Path) -> list[Entry]:
    """All lines of a ledger; none if there is no such file."""
    found = msgspec.json.decode(ledger.read_bytes(), type=list[Entry]) if ledger.exists() else []
    return [each if each.runs else structs.replace(each, runs=_seeds_of(each)) for each in found]


def _seeds_of(entry: Entry) -> int:
    """How many seeds an entry names that does not count them, as the first ones did not."""
    first, _, last = entry.seeds.partition(" to ")
    is_range = first.isdecimal() and last.isdecimal()
    return int(last) - int(first) + 1 if is_range else 0


def write(entries: Iterable[Entry], ledger: Path) -> None:
    """Write a ledger, a line for each entry, and the page beside it."""
    lines = [msgspec.json.encode(each).decode() for each in entries]
    ledger.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    ledger.with_suffix(".md").write_text(page(read(ledger)), encoding="utf-8")


def page(entries: Iterable[Entry]) -> str:
    """The page of a ledger: goals, entries of which the newest comes first, and sums of campaigns."""
    entries = sorted(entries, key=lambda each: each.ended, reverse=True)
    names = sorted({each.campaign for each in entries})
    sums = [_sum(name, [each for each in entries if each.campaign == name]) for name in names]
    goals = "".join(_reached(goal, entries) for goal in GOALS)
    lines = "".join(map(_line, entries)) + "".join(sums)
    return _HEAD + _GOALS_HEAD + goals + _RUNS_HEAD + lines


def _reached(goal: Goal, entries: list[Entry]) -> str:
    own = [each for each in entries if each.campaign == goal.campaign]
    reached = sum(getattr(each, goal.figure) for each in own)
    violations = sum(each.violations for each in own)
    cells = (f"{goal.number:,} {goal.told}", f"{reached:,}", f"{reached / goal.number:.1%}")
    return f"| {goal.campaign} | {' | '.join(cells)} | {violations:,} |\n"


def _line(entry: Entry) -> str:
    cells = (f"{entry.ended:%Y-%m-%d %H:%M}", entry.campaign, f"`{entry.commit}`", entry.seeds)
    return f"| {' | '.join(cells)} | {_figures(entry)} |\n"


def _sum(name: str, entries: list[Entry]) -> str:
    total = Entry(
        campaign=name,
        commit="",
        ended=entries[0].ended,
        seeds="",
        hours=sum(each.hours for each in entries),
        runs=sum(each.runs for each in entries),
        faults=sum(each.faults for each in entries),
        placements=sum(each.placements for each in entries),
        steps=sum(each.steps for each in entries),
        calls=sum(each.calls for each in entries),
        violations=sum(each.violations for each in entries),
    )
    return f"| | **{name}, all** | | | {_figures(total)} |\n"


def _figures(entry: Entry) -> str:
    done = (entry.runs, entry.faults, entry.placements, entry.steps, entry.calls)
    counts = (*done, entry.violations)
    return " | ".join((f"{entry.hours:.2f}", *(f"{each:,}" for each in counts)))


def commit_that_runs() -> str:
    """The commit of the sources that run, and whether they differ from it."""
    commit = asked_of_git("rev-parse", "--short=12", "HEAD").strip()
    return commit + ("+" if asked_of_git("status", "--porcelain", "--", *_SOURCES) else "")


def asked_of_git(*arguments: str) -> str:
    """What git says of this checkout."""
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    write(read(LEDGER), LEDGER)
