"""The check of one round, made in a process of its own."""

import asyncio
import time
from dataclasses import dataclass

from tests.concurrency.callers import read_history
from tests.concurrency.checker import check
from tests.concurrency.checker.counting import check_by_counting
from tests.concurrency.checker.history import Call

REFERENCE_EVERY = 200
"""One placement of so many is evaluated by the reference implementation as well."""


@dataclass
class Verdict:
    """What the check of one round says."""

    round: int
    violations: list[str]
    placements: int
    fullness: list[float]
    seconds: float


def check_round(number: int, url: str, cluster: str, calls: list[Call], granted: int) -> Verdict:
    """Everything about one round, in a process of its own."""
    started = time.monotonic()
    history = asyncio.run(read_history(url, calls, granted=granted, cluster=cluster))
    tally = check_by_counting(history)
    found = [*tally.violations, *check(history, placements_every=REFERENCE_EVERY)]
    acknowledged = sum(
        result["outcome"] == "Placed"
        for call in calls
        if call.action == "place" and call.outcome == "ok"
        for result in call.body["results"]
    )
    told = [f"round {number}: {each}" for each in found]
    if acknowledged > tally.placements:
        told.append(f"round {number}: {acknowledged} acknowledged, {tally.placements} in the log")
    return Verdict(number, told, tally.placements, tally.fullness, time.monotonic() - started)
