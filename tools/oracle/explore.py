"""Fresh random cases for the oracle and the engine, and the differences, made small.

For each Kubernetes version and each family of cases this prints how many cases were compared and
how many differ. For each place where answers differ, it shrinks the first case.
"""

import json
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from service.model.cluster.versions.known import VERSIONS
from tools.ledger import LEDGER, Campaign
from tools.oracle.build import build
from tools.oracle.comparing import Comparer, Comparison, Place
from tools.oracle.engine import Engine
from tools.oracle.generators.families import FAMILIES, generate
from tools.oracle.process import Oracle
from tools.oracle.shrink import shrink

Case = dict[str, Any]

CASES = 200
AT_ONCE = 50
SHOWN = 6
"""How many differences of a case are printed."""
SEED_MAX = 10**9


@dataclass(frozen=True, kw_only=True)
class Share:
    """A run of cases of one family, for one version."""

    version: str
    family: str
    seed: int
    numbers: range


@dataclass(kw_only=True)
class Outcome:
    """What came of a number of cases."""

    cases: int = 0
    differ: int = 0
    known: Counter[str] = field(default_factory=Counter)
    """Cases that differ for a known reason, by its name."""
    deviations: Counter[str] = field(default_factory=Counter)
    """Cases that were also compared by a documented rule, by the name of the deviation from it."""
    errors: Counter[str] = field(default_factory=Counter)
    """Cases to which the oracle has no answer, by its error."""
    places: Counter[Place] = field(default_factory=Counter)
    first: dict[Place, Comparison] = field(default_factory=dict)
    """The first case that differs in a place."""

    def add(self, comparison: Comparison) -> None:
        """Count one more case."""
        self.cases += 1
        self.deviations.update(comparison.deviations)
        if comparison.error is not None:
            self.errors[_kind_of(comparison.error)] += 1
        elif comparison.known is not None:
            self.known[comparison.known] += 1
        elif comparison.places:
            self.differ += 1
            self.places.update(comparison.places)
            for place in comparison.places:
                self.first.setdefault(place, comparison)

    def merge(self, other: "Outcome") -> None:
        """Add the counts of another share."""
        self.cases += other.cases
        self.differ += other.differ
        self.known += other.known
        self.deviations += other.deviations
        self.errors += other.errors
        self.places += other.places
        self.first = {**other.first, **self.first}


def _kind_of(error: str) -> str:
    """Return an error without the names of nodes and claims."""
    return error.rpartition(": ")[2][:60]


def explore(
    version: str, families: Sequence[str], *, seed: int, cases: int, jobs: int
) -> Iterator[tuple[str, Outcome]]:
    """Yield each family, and the outcome of this many of its cases for a version."""
    size = max(AT_ONCE, -(-cases // jobs))
    shares = [
        Share(version=version, family=family, seed=seed, numbers=range(at, min(at + size, cases)))
        for family in families
        for at in range(0, cases, size)
    ]
    last = {share.family: share for share in shares}
    outcomes: dict[str, Outcome] = {}
    with ProcessPoolExecutor(jobs) as pool:
        for share, outcome in zip(shares, pool.map(compare, shares), strict=True):
            outcomes.setdefault(share.family, Outcome()).merge(outcome)
            if last[share.family] is share:
                yield share.family, outcomes.pop(share.family)


def compare(share: Share) -> Outcome:
    """Compare a share of cases in this process."""
    comparer, outcome = _comparer(share.version), Outcome()
    for at in range(0, len(share.numbers), AT_ONCE):
        numbers = share.numbers[at : at + AT_ONCE]
        drawn = [generate(share.family, share.seed, number) for number in numbers]
        for comparison in comparer.compare(drawn):
            outcome.add(comparison)
    return outcome


@cache
def _comparer(version: str) -> Comparer:
    return Comparer(version, Oracle(version, workers=1), Engine())


def shrunk(version: str, comparison: Comparison, place: Place) -> Comparison:
    """Return the comparison of a smaller case that still differs in a place."""
    comparer = _comparer(version)
    small = shrink(comparison.case, lambda case: comparer.differs(case, place))
    (again,) = comparer.compare([small])
    return again


def write_case(comparison: Comparison, place: Place, folder: Path) -> Path:
    """Write a case that differs to a file, named after the place and the case."""
    folder.mkdir(parents=True, exist_ok=True)
    case = comparison.case
    named = [case["config"]["kubernetes"], *filter(None, place), case["name"]]
    path = folder / f"{'-'.join(named)}.json"
    path.write_text(json.dumps(case, indent=1) + "\n", encoding="utf-8")
    return path


def run(
    *,
    kubernetes: Annotated[
        list[str] | None, typer.Option(help="A version to compare with. [default: all]")
    ] = None,
    family: Annotated[
        list[str] | None, typer.Option(help="A family of cases. [default: all]")
    ] = None,
    cases: Annotated[int, typer.Option(help="How many cases of each family.")] = CASES,
    seed: Annotated[int | None, typer.Option(help="[default: a random one]")] = None,
    jobs: Annotated[int, typer.Option(help="Processes.")] = os.cpu_count() or 1,
    keep: Annotated[
        Path | None, typer.Option(help="Write a small case for each difference there.")
    ] = None,
    ledger: Annotated[
        bool, typer.Option("--ledger", help="Add a line for each version to docs/campaigns.json.")
    ] = False,
) -> None:
    """Put random cases to the oracle and to the engine, and make those that differ small."""
    versions, families = kubernetes or list(VERSIONS), family or list(FAMILIES)
    seed = random.SystemRandom().randrange(1, SEED_MAX) if seed is None else seed
    print(f"seed {seed}", flush=True)
    differ = 0
    for version in versions:
        build(version)
        campaign = Campaign(f"oracle {version}", LEDGER if ledger else None)
        total = Outcome()
        for name, outcome in explore(version, families, seed=seed, cases=cases, jobs=jobs):
            print(_row(version, name, outcome), flush=True)
            total.merge(outcome)
        for place, comparison in total.first.items():
            _show(shrunk(version, comparison, place), place, keep)
        print(_row(version, "all", total), flush=True)
        seeds = f"{seed}, {cases} of {len(families)} families"
        campaign.add(seeds=seeds, runs=total.cases, violations=total.differ)
        differ += total.differ
    sys.exit(differ > 0)


def _row(version: str, family: str, outcome: Outcome) -> str:
    parts = [f"oracle {version} {family}: {outcome.cases} cases, {outcome.differ} differences"]
    parts += [
        f"{count} {' '.join(filter(None, place))}" for place, count in outcome.places.most_common()
    ]
    parts += [f"{count} by {name}" for name, count in outcome.known.items()]
    parts += [f"{count} also documented ({name})" for name, count in outcome.deviations.items()]
    parts += [f"{count} without an answer ({error})" for error, count in outcome.errors.items()]
    return ", ".join(parts)


def _show(comparison: Comparison, place: Place, folder: Path | None) -> None:
    print(f"\n{comparison.case['name']} differs in {' '.join(filter(None, place))}")
    for difference in comparison.differences[:SHOWN]:
        print(f"  {difference.describe()}")
    if folder is not None:
        print(f"  kept as {write_case(comparison, place, folder)}")
