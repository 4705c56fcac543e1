"""What the placements that were acknowledged tell of a cause: how long there were none, and how often."""

import itertools
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Episode:
    """One cause, from its begin until PostgreSQL was whole again, in seconds."""

    cause: str
    silence: float
    """The longest time without an acknowledged placement."""
    again: float
    """From the cause to the end of that time."""
    failovers: int


def silence(acknowledged: Sequence[float], begun: float, ended: float) -> tuple[float, float]:
    """The longest time without any between two moments, and when it ended, from the first one on."""
    within = sorted(each for each in acknowledged if begun <= each <= ended)
    gaps = itertools.pairwise([begun, *within, ended])
    before, after = max(gaps, key=lambda gap: gap[1] - gap[0])
    return after - before, after - begun


def table(episodes: Sequence[Episode]) -> Iterator[str]:
    """By cause, as Markdown."""
    by_cause: dict[str, list[Episode]] = defaultdict(list)
    for each in episodes:
        by_cause[each.cause].append(each)
    yield "| cause | times | failovers | no placement for (median, longest) | placements again after (median, longest) |"
    yield "|---|---|---|---|---|"
    for cause, found in by_cause.items():
        taken_over = sum(each.failovers for each in found)
        silences = _middle_and_longest([each.silence for each in found])
        again = _middle_and_longest([each.again for each in found])
        yield f"| {cause} | {len(found)} | {taken_over} | {silences} | {again} |"


def _middle_and_longest(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.1f} s, {max(seconds):.1f} s"
