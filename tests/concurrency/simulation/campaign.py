"""Many seeds on all cores, and what they have seen altogether."""

import gc
import os
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context

import msgspec

from tests.concurrency.checker import check
from tests.concurrency.simulation.run import simulate

POINTS = (
    *(
        "log.commit: Committed",
        "log.commit: Lost",
        "log.commit: DuplicateKey",
        "log.commit: refused",
    ),
    *("log.commit: answer lost", "log.commit: late", "log.commit: answer to the dead"),
    "log.commit: after its worker died",
    *("log.commit_locked: Committed", "log.commit_locked: answered", "log.commit_locked: refused"),
    *(
        "log.commit_locked: answer lost",
        "log.commit_locked: Diverged",
        "log.commit_locked: DuplicateKey",
    ),
    "log.commit_locked: answer to the dead",
    *("log.settle_unknown: Committed", "log.settle_unknown: Lost", "log.settle_unknown: refused"),
    *("log.settle_unknown: answer lost", "log.settle_unknown: raised OutcomeUnknown"),
    *("log.settle_unknown: answer to the dead", "log.settle_unknown: after its worker died"),
    *(
        "log.record_answers: Committed",
        "log.record_answers: Lost",
        "log.record_answers: DuplicateKey",
    ),
    *("log.record_answers: refused", "log.record_answers: answer lost"),
    *("log.record_answers: answer to the dead", "log.record_answers: after its worker died"),
    *("log.head: answered", "log.head: refused", "log.head: answer to the dead"),
    *("log.heads: answered", "log.heads: refused", "log.heads: answer to the dead"),
    *("objects.read: answered", "objects.read: refused", "objects.read: answer to the dead"),
    *("log.read: answered", "log.read: Diverged", "log.read: refused"),
    "log.read: answer to the dead",
    *(
        "log.find_answers: answered",
        "log.find_answers: refused",
        "log.find_answers: answer to the dead",
    ),
    *("clusters.find: answered", "clusters.find: refused", "clusters.find: answer to the dead"),
    *("leases.claim: answered", "leases.claim: refused", "leases.claim: answer to the dead"),
    *("forwarding: answered", "forwarding: not reached", "forwarding: answer lost"),
    "forwarding: worker died",
    *(
        "housekeeping.compact: answered",
        "housekeeping.sweep_answers: answered",
        "leases.acquire: answered",
    ),
)
"""Every way in which a call of the store can end: where interleavings differ."""


class Result(msgspec.Struct, frozen=True):
    """One seed, without its history."""

    seed: int
    told: str
    violations: list[str]
    points: dict[str, int]
    conflicts: int
    lost_answers: int
    crashes: int
    restarts: int
    evictions: int
    denials: int
    seconds: float


@contextmanager
def _garbage_afterwards() -> Iterator[None]:
    """Have garbage looked for when a run is over and let go, and in what it left alone.

    During a run nearly all is in use or freed at once, and the collector finds nothing.
    """
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()


def run_seed(seed: int) -> Result:
    with _garbage_afterwards():
        return _told(seed)


def _told(seed: int) -> Result:
    started = time.monotonic()
    run = simulate(seed)
    violations = [str(each) for each in check(run.history)]
    return Result(
        seed=seed,
        told=str(run),
        violations=violations,
        points=dict(run.points),
        conflicts=run.conflicts,
        lost_answers=run.lost_answers,
        crashes=run.crashes,
        restarts=run.restarts,
        evictions=run.evictions,
        denials=run.denials,
        seconds=time.monotonic() - started,
    )


def run_seeds(seeds: Iterable[int], jobs: int = 1) -> Iterator[Result]:
    """In their order; more than one job: as many processes."""
    if jobs <= 1:
        yield from map(run_seed, seeds)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run_seed, seeds, chunksize=10)


@dataclass
class Summary:
    """What all seeds have seen."""

    results: int = 0
    failed: list[int] = field(default_factory=list)
    points: Counter[str] = field(default_factory=Counter)
    conflicts: list[int] = field(default_factory=list)
    lost_answers: int = 0
    crashes: int = 0
    restarts: int = 0
    evictions: int = 0
    denials: int = 0

    def add(self, result: Result) -> None:
        self.results += 1
        self.failed += [result.seed] if result.violations else []
        self.points.update(result.points)
        self.conflicts.append(result.conflicts)
        self.lost_answers += result.lost_answers
        self.crashes += result.crashes
        self.restarts += result.restarts
        self.evictions += result.evictions
        self.denials += result.denials

    @property
    def missed(self) -> list[str]:
        """Interleaving points that no seed passed."""
        return [point for point in POINTS if not self.points[point]]

    def __str__(self) -> str:
        middle = statistics.median(self.conflicts) if self.conflicts else 0
        passed = f"{len(POINTS) - len(self.missed)} of {len(POINTS)} interleaving points passed"
        trouble = f"{self.lost_answers} lost answers, {self.crashes} crashes"
        lines = (
            f"{self.results} seeds, {sum(self.conflicts)} conflicts (median {middle:g} a seed)",
            f"{trouble}, {self.restarts} restarts",
            f"{self.evictions} evictions, {self.denials} pods denied by quotas",
            passed + (f"; missed: {', '.join(self.missed)}" if self.missed else ""),
            f"failed: {', '.join(map(str, self.failed)) or 'none'}",
        )
        return "\n".join(lines)


def cores() -> int:
    return len(os.sched_getaffinity(0))
