"""What a race has shown."""

import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.concurrency.race import metrics
from tests.concurrency.race.verdict import Verdict

LOST_MIN = 0.10
"""Of the commits: a run in which fewer lost a race proves little."""
REPLANNED_MAX = 0.05


@dataclass
class Report:
    """All rounds together."""

    placements: int = 0
    unplaced: int = 0
    rounds: int = 0
    seconds: float = 0.0
    attempts: Counter[int] = field(default_factory=Counter)
    """Placement requests by how often they were decided."""
    counted: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    checked: int = 0
    checking_seconds: float = 0.0
    fullness: list[float] = field(default_factory=list)
    """Of each round: the mean, the least, the greatest."""

    def add(self, verdict: Verdict) -> None:
        self.violations += verdict.violations
        self.checked += verdict.placements
        self.checking_seconds += verdict.seconds
        full = verdict.fullness
        self.fullness += [statistics.mean(full), min(full), max(full)] if full else []

    @property
    def lost_share(self) -> float:
        commits, lost = self.counted[metrics.COMMITS], self.counted[metrics.LOST]
        return lost / (commits + lost) if commits else 0.0

    @property
    def replanned_share(self) -> float:
        return self.counted[metrics.REPLANNED] / max(1, self.placements)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        counted, requests = self.counted, sum(self.attempts.values())
        rate = self.placements / max(1e-9, self.seconds)
        yield (
            f"{self.placements:,} placements acknowledged in {self.rounds} rounds and "
            f"{self.seconds:,.0f} s ({rate:,.0f}/s); {self.unplaced:,} pods found no place"
        )
        yield (
            f"{self.checked:,} placements in the logs of the rounds checked so far, "
            f"{len(self.violations)} violations ({self.checking_seconds:,.0f} s of checking)"
        )
        if self.fullness:
            yield (
                f"cluster full to {statistics.mean(self.fullness[::3]):.1%} on average, from "
                f"{min(self.fullness):.1%} to {max(self.fullness):.1%}"
            )
        yield (
            f"{counted[metrics.COMMITS]:,.0f} commits; {counted[metrics.LOST]:,.0f} swaps lost, "
            f"{self.lost_share:.1%} of those tried"
        )
        yield (
            f"{counted[metrics.REDECIDED]:,.0f} requests decided again, with "
            f"{counted[metrics.REVALIDATED]:,.0f} re-validations, of which "
            f"{counted[metrics.REPLANNED]:,.0f} led to a re-plan: "
            f"{self.replanned_share:.2%} of the placements"
        )
        yield (
            f"decided once: {self.attempts[1] / max(1, requests):.1%} of {requests:,} requests; "
            f"most attempts of any: {max(self.attempts, default=0)}; "
            f"requests by attempts: {dict(sorted(self.attempts.items()))}"
        )
