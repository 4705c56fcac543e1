"""What a race has shown: of each round, and of all together."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

LOST_MIN = 0.10
"""Of the commits: a run in which fewer lost a race proves little."""
REPLANNED_MAX = 0.05


class RoundFigures(msgspec.Struct, kw_only=True):
    """One round that was checked, as it is kept in a file, one line each."""

    seed: int
    number: int
    placements: int
    """Acknowledged."""
    unplaced: int
    seconds: float
    """How long the callers took."""
    commits: int
    lost: int
    """Swaps that lost a race."""
    redecided: int
    """Requests that were decided again."""
    revalidated: int
    """Placements in these."""
    replanned: int
    """Of these, the placements that got another node."""
    attempts: dict[int, int]
    """Placement requests by how often they were decided."""
    worst: dict[str, int]
    """The most attempts of each caller."""
    checked: int
    """Placements in the log."""
    violations: list[str]
    full: tuple[float, float, float]
    """How full the cluster was before each placement: mean, least, greatest."""
    cpu: dict[str, float]
    """CPU seconds of each part."""
    commit: str = ""
    """Of the sources that raced."""

    def __str__(self) -> str:
        return (
            f"round {self.number}: {self.placements:,} placements in {self.seconds:,.0f} s, "
            f"{self.checked:,} checked, {len(self.violations)} violations; "
            f"{_share(self.lost, self.lost + self.commits):.1%} of the swaps lost, "
            f"{_share(self.replanned, self.placements):.2%} re-planned, "
            f"at most {max(self.worst.values(), default=0)} attempts"
        )


class Report:
    """All rounds that were checked."""

    def __init__(self, rounds: Iterable[RoundFigures] = ()) -> None:
        self.rounds: list[RoundFigures] = list(rounds)

    @property
    def placements(self) -> int:
        return sum(each.placements for each in self.rounds)

    @property
    def violations(self) -> list[str]:
        return [told for each in self.rounds for told in each.violations]

    @property
    def lost_share(self) -> float:
        lost = sum(each.lost for each in self.rounds)
        return _share(lost, lost + sum(each.commits for each in self.rounds))

    @property
    def replanned_share(self) -> float:
        return _share(sum(each.replanned for each in self.rounds), self.placements)

    @property
    def proves_something(self) -> bool:
        """Whether enough races were lost, and not too many placements planned again."""
        return self.lost_share >= LOST_MIN and self.replanned_share <= REPLANNED_MAX

    def __str__(self) -> str:
        """A table in Markdown."""
        seeds = ", ".join(map(str, sorted({each.seed for each in self.rounds})))
        head = (f"| seed {seeds}, {len(self.rounds)} rounds | |", "|---|--:|")
        return "\n".join((*head, *(f"| {name} | {told} |" for name, told in self._rows())))

    def _rows(self) -> Iterator[tuple[str, str]]:
        rounds, seconds = self.rounds, sum(each.seconds for each in self.rounds)
        checked = sum(each.checked for each in rounds)
        yield "placements acknowledged / checked", f"{self.placements:,} / {checked:,}"
        yield "violations", f"{len(self.violations)}"
        yield "pods that found no place", f"{sum(each.unplaced for each in rounds):,}"
        if rounds:
            mean = sum(each.full[0] * each.checked for each in rounds) / max(1, checked)
            least, most = min(each.full[1] for each in rounds), max(each.full[2] for each in rounds)
            told = f"{mean:.1%} ({least:.1%} to {most:.1%})"
            yield "full, on average (least to greatest)", told
        yield "commits", f"{sum(each.commits for each in rounds):,}"
        lost = sum(each.lost for each in rounds)
        yield "swaps lost, share of those tried", f"{lost:,}, {self.lost_share:.1%}"
        yield "requests decided again", f"{sum(each.redecided for each in rounds):,}"
        yield "re-validations of a placement", f"{sum(each.revalidated for each in rounds):,}"
        yield (
            f"… that led to a re-plan, share of the placements (goal {REPLANNED_MAX:.0%})",
            f"{sum(each.replanned for each in rounds):,}, {self.replanned_share:.2%}",
        )
        attempts: Counter[int] = sum((Counter(each.attempts) for each in rounds), Counter())
        told = ", ".join(f"{attempts[number]:,}" for number in sorted(attempts))
        yield f"requests decided {', '.join(map(_times, sorted(attempts)))}", told
        yield "most attempts of each caller", self._worst()
        yield "placements a second", f"{_share(self.placements, seconds):,.0f}"
        cpu: Counter[str] = sum((Counter(each.cpu) for each in rounds), Counter())
        yield (
            f"CPU seconds per 1,000 placements: {', '.join(cpu)}",
            ", ".join(f"{1_000 * _share(each, self.placements):.2f}" for each in cpu.values()),
        )

    def _worst(self) -> str:
        worst: dict[str, int] = {}
        for each in self.rounds:
            for caller, attempts in each.worst.items():
                worst[caller] = max(attempts, worst.get(caller, 0))
        callers = Counter(worst.values())
        return ", ".join(
            f"{attempts} ({callers[attempts]} callers)" for attempts in sorted(callers)
        )


def read_rounds(file: Path) -> list[RoundFigures]:
    """The rounds that a file has; none if there is no such file."""
    if not file.exists():
        return []
    return [msgspec.json.decode(line, type=RoundFigures) for line in file.read_bytes().splitlines()]


def add_round(file: Path, figures: RoundFigures) -> None:
    """Put one more round at a file's end."""
    with file.open("ab") as stream:
        stream.write(msgspec.json.encode(figures) + b"\n")


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
