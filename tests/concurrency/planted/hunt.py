"""How soon the simulation finds each planted bug."""

import time
from collections import Counter
from dataclasses import dataclass

from tests.concurrency.checker import check
from tests.concurrency.planted.registry import Bug
from tests.concurrency.simulation.run import simulate


@dataclass(frozen=True)
class Finding:
    """`seeds`: how many were run until one failed; 0: none did. `by`: how it was told."""

    bug: Bug
    seeds: int
    seconds: float
    by: str


def hunt(bug: Bug, seeds_max: int, first: int = 0) -> Finding:
    """Run seeds with the bug planted until one of them fails."""
    started = time.process_time()
    with bug.planted():
        for number, seed in enumerate(range(first, first + seeds_max), start=1):
            violations = check(simulate(seed).history)
            if violations:
                by = Counter(each.invariant for each in violations)
                told = ", ".join(sorted(by))
                return Finding(bug, number, time.process_time() - started, told)
    return Finding(bug, 0, time.process_time() - started, "")
