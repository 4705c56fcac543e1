"""The check of one round, made in a process of its own."""

import asyncio
import pickle
import time
from dataclasses import dataclass
from pathlib import Path

from tests.concurrency.callers import read_history
from tests.concurrency.checker import check
from tests.concurrency.checker.counting import check_by_counting
from tests.concurrency.checker.history import Call
from tests.concurrency.replicas import Asked, differing, loaded

REFERENCE_EVERY = 1_000
"""One placement of so many is evaluated by the reference implementation as well."""


@dataclass
class Verdict:
    """What the check of one round says."""

    violations: list[str]
    placements: int
    fullness: list[float]
    cpu_seconds: float


def check_round(
    number: int,
    url: str,
    cluster: str,
    calls: list[Call],
    granted: int,
    file: Path | None,
    asked: list[Asked],
) -> Verdict:
    """Everything about one round, in a process of its own.

    What planners were asked when it was over is compared with a replica that is loaded now.

    A history in which something is broken is pickled beside the file, to be looked into.
    """
    started = time.process_time()
    history = asyncio.run(read_history(url, calls, granted=granted, cluster=cluster))
    if history.head is not None:
        history.differing = differing(loaded(history.rows, history.head[0]), asked)
    tally = check_by_counting(history)
    found = [*tally.violations, *check(history, placements_every=REFERENCE_EVERY)]
    acknowledged = sum(call.pods_placed for call in calls)
    told = [f"round {number}: {each}" for each in found]
    if acknowledged > tally.placements:
        told.append(f"round {number}: {acknowledged} acknowledged, {tally.placements} in the log")
    if told and file is not None:
        file.with_name(f"{file.name}.round-{number}.pickle").write_bytes(pickle.dumps(history))
    return Verdict(told, tally.placements, tally.fullness, time.process_time() - started)
