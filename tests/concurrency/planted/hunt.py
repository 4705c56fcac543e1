"""How soon the simulation finds each planted bug."""

import json
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.concurrency.checker import check
from tests.concurrency.planted.registry import Bug
from tests.concurrency.simulation.run import simulate
from tests.concurrency.simulation.shrinking import Shrinking, failed, shrink

_KNOWN = Path(__file__).with_name("seeds.json")


@dataclass(frozen=True)
class Finding:
    """`seeds`: how many were run until `seed` failed; 0: none did. `by`: how it was told."""

    bug: Bug
    seeds: int
    seed: int
    seconds: float
    by: str


def known_seeds() -> dict[str, int]:
    """The seed that each bug was found by when the table was made last: very likely it still is."""
    known: dict[str, int] = json.loads(_KNOWN.read_text())
    return known


def remember(findings: Iterable[Finding]) -> None:
    """Have `known_seeds` tell them from now on."""
    known = {each.bug.name: each.seed for each in findings if each.seeds}
    _KNOWN.write_text(json.dumps(known_seeds() | known, indent=1, sort_keys=True) + "\n")


def hunt(bug: Bug, seeds: Iterable[int]) -> Finding:
    """Run seeds with the bug planted until one of them fails."""
    started = time.process_time()
    with bug.planted():
        for number, seed in enumerate(seeds, start=1):
            violations = check(simulate(seed).history)
            if violations:
                by = Counter(each.invariant for each in violations)
                told = ", ".join(sorted(by))
                return Finding(bug, number, seed, time.process_time() - started, told)
    return Finding(bug, 0, 0, time.process_time() - started, "")


class Shrunk(NamedTuple):
    """How small a run gets that finds a bug."""

    bug: Bug
    shrinking: Shrinking
    is_the_bug: bool
    """Whether the shrunk run breaks nothing without it: it is the bug that is seen, nothing else."""


def shrunk_of(bug: Bug, seeds: Iterable[int], *, runs_max: int, seconds_max: float) -> Shrunk:
    """Shrink the first run that fails, of the seed that is known for it or of these."""
    with bug.planted():
        found = next(filter(None, (failed(simulate(each)) for each in _known_first(bug, seeds))))
        shrinking = shrink(found, runs_max=runs_max, seconds_max=seconds_max)
    alone = failed(simulate(found.run.seed, shrinking.schedule))
    return Shrunk(bug, shrinking, is_the_bug=alone is None)


def _known_first(bug: Bug, seeds: Iterable[int]) -> Iterable[int]:
    return (known_seeds().get(bug.name, 0), *seeds)
