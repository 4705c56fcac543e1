"""Makes the schedule of a run that fails as small as it gets, so that a person can read it.

What can be left out is tried in bigger parts first and one by one last (delta debugging): clients,
requests, workers, faults, deviations from the order in which callbacks became ready. A part stays
left out if the run still fails in the same way. Decisions that the smaller run never came to are
dropped with it. The same run shrinks to the same schedule if it is the number of runs that ends it.
"""

import argparse
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tests.concurrency.checker import check
from tests.concurrency.checker.history import Violation
from tests.concurrency.simulation.choices import Schedule
from tests.concurrency.simulation.run import Run, simulate

E = TypeVar("E")
Part = frozenset[str]
"""Names of decisions that are left out together."""
RUNS_MAX = 1_000
SECONDS_MAX = 60.0
STEPS_GROWTH = 2
"""A run that takes so many times the steps of the seed's run hangs, which is another failure."""


class Failure(NamedTuple):
    """A way to fail: the invariant, and what is said of it but for names and numbers."""

    invariant: str
    told: str


def failure_of(violation: Violation) -> Failure:
    bare, before = violation.message, ""
    while bare != before:
        bare, before = _QUOTED.sub("", bare), bare
    return Failure(violation.invariant, " ".join(_WORD.findall(bare)[:6]))


_QUOTED = re.compile(r"""\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|'[^']*'|"[^"]*\"""")
_WORD = re.compile(r"(?<![\w/.-])[a-z]+(?![\w/.-])")


@dataclass(frozen=True)
class Failed:
    """A run that fails."""

    run: Run
    violations: list[Violation]

    @property
    def failures(self) -> set[Failure]:
        return {failure_of(each) for each in self.violations}

    @property
    def invariants(self) -> set[str]:
        return {each.invariant for each in self.violations}


def failed(run: Run) -> Failed | None:
    violations = check(run.history)
    return Failed(run, violations) if violations else None


def reduce(parts: list[E], fails: Callable[[list[E]], bool]) -> list[E]:
    """Some of them that still fail together, and of which none can be left out alone."""
    size = len(parts)
    while size:
        at, before = 0, len(parts)
        while at < len(parts):
            rest = parts[:at] + parts[at + size :]
            if fails(rest):
                parts = rest
            else:
                at += size
        if size > 1 or len(parts) == before:
            size //= 2
    return parts


def add_shrinking(parser: argparse.ArgumentParser) -> None:
    """The options of a command that shrinks."""
    add = parser.add_argument
    add("--shrink-seconds", type=float, default=SECONDS_MAX, help="at most, for each failing seed")
    add(
        "--shrink-runs",
        type=int,
        default=RUNS_MAX,
        help="the same, but with the same outcome every time",
    )
    add("--schedules", type=Path, default=Path("schedules"), help="where shrunk schedules are kept")


def shrink(
    found: Failed, *, runs_max: int = RUNS_MAX, seconds_max: float = SECONDS_MAX
) -> "Shrinking":
    """Shrink until nothing can be left out, or one of the bounds is reached."""
    shrinking = Shrinking(found, runs_max, time.monotonic() + seconds_max)
    shrinking.go_on()
    return shrinking


@dataclass
class Shrinking:
    """One failing run on its way to a smaller one."""

    first: Failed
    runs_max: int
    ends: float
    runs: int = 0
    is_complete: bool = False
    """Whether nothing more can be left out; else a bound ended it."""
    _passing: set[Part] = field(default_factory=set)
    """What was found not to fail in this way any more."""

    def __post_init__(self) -> None:
        self.now = self.first
        named = [each for each in self.first.violations if each.invariant != "alarm"]
        self.target = failure_of((named or self.first.violations)[0])
        self._steps_max = STEPS_GROWTH * self.first.run.steps + 1_000

    @property
    def schedule(self) -> Schedule:
        return self.now.run.schedule

    @property
    def _is_over(self) -> bool:
        """Whether a bound is reached."""
        return self.runs >= self.runs_max or time.monotonic() > self.ends

    def go_on(self) -> None:
        """Do all passes until a round of them has changed nothing."""
        before: Schedule | None = None
        while self.schedule != before and not self._is_over:
            before = self.schedule
            for parts_of in PASSES:
                self._reduce(parts_of(self.schedule))
            self._leave_out_pods()
            self._merge_clients()
        self.is_complete = not self._is_over

    def _reduce(self, parts: list[Part]) -> None:
        def fails(rest: list[Part]) -> bool:
            gone = _union(parts) - _union(rest)
            kept = {name: each for name, each in self.schedule.items() if name not in gone}
            return len(kept) == len(self.schedule) or self._try_part(kept)

        reduce(parts, fails)

    def _leave_out_pods(self) -> None:
        """Have requests that are for several pods ask for fewer."""
        for name in [each for each in self.schedule if each.endswith("/ask")]:
            number = 0
            while name in self.schedule and number < _pods_of(self.schedule[name]):
                shorter = _without_pod(self.schedule[name], number)
                number += not self._try(self.schedule | {name: shorter})

    def _merge_clients(self) -> None:
        """Have one client ask what two do, each thing when its turn comes."""
        for gone in reversed(_clients(self.schedule)):
            others = (each for each in _clients(self.schedule) if each != gone)
            any(self._try(merged(self.now.run, gone, into)) for into in others)

    def _try_part(self, schedule: Schedule) -> bool:
        names = frozenset(schedule)
        if names in self._passing:
            return False
        fails = self._try(schedule)
        if not fails:
            self._passing.add(names)
        return fails

    def _try(self, schedule: Schedule) -> bool:
        """Whether it fails in the same way; if so, it is the schedule from now on."""
        if self._is_over:
            return False
        self.runs += 1
        seed = self.first.run.seed
        try:
            smaller = failed(simulate(seed, schedule, steps_max=self._steps_max))
        except Exception:  # noqa: BLE001 - what cannot even run, as without workers, shows nothing
            return False
        if smaller is None or not self._is_the_same(smaller):
            return False
        self.now = smaller
        return True

    def _is_the_same(self, other: Failed) -> bool:
        """Nothing else may be broken either, which would be the doing of what was left out."""
        return self.target in other.failures and other.invariants <= self.first.invariants


def _union(parts: Iterable[Part]) -> Part:
    return frozenset().union(*parts)


def _pods_of(ask: dict[str, Any]) -> int:
    """How many there are to choose from."""
    return len(ask["manifests"]) if len(ask["manifests"]) > 1 else 0


def _without_pod(ask: dict[str, Any], number: int) -> dict[str, Any]:
    pods, manifests = list(ask["asked"]["pods"]), list(ask["manifests"])
    del pods[number], manifests[number]
    return ask | {"manifests": manifests, "asked": ask["asked"] | {"pods": pods}}


def _clients(schedule: Schedule) -> list[str]:
    return [name for name in schedule if re.fullmatch(r"client-\d+", name)]


def merged(run: Run, gone: str, into: str) -> Schedule:
    """The schedule with all requests of one client made by another, in the order of the run."""
    turns = {call.operation: -call.number for call in reversed(run.history.calls)}
    asks = [n for n in run.schedule if re.fullmatch(rf"({gone}|{into})/\d+/ask", n)]
    asks.sort(key=lambda name: -turns.get(run.schedule[name]["number"], 0))
    names = {ask.removesuffix("/ask"): f"{into}/{turn}" for turn, ask in enumerate(asks)}
    return {_renamed(name, names): each for name, each in run.schedule.items() if name != gone}


def _renamed(name: str, names: dict[str, str]) -> str:
    request = "/".join(name.split("/", 2)[:2])
    return names.get(request, request) + name[len(request) :]


# The parts of a schedule


def _by(pattern: str) -> Callable[[Schedule], list[Part]]:
    """Decisions are left out together of which the pattern matches the same."""
    wanted = re.compile(pattern)

    def parts_of(schedule: Schedule) -> list[Part]:
        parts: dict[str, set[str]] = {}
        for name in schedule:
            if match := wanted.match(name):
                parts.setdefault(match[0], set()).add(name)
        return list(map(frozenset, parts.values()))

    return parts_of


KINDS = (
    r"/passed over/",
    r"/slow/|^trouble/slow",
    r"/loses a hint|^trouble/hints",
    r"/fate$|/raises$|/late$|^trouble/(refused|lost|late|unsettled)|/not reached$|/answer lost$",
    r"^crash",
    r"^drain",
    r"^jump|^clocks jump",
    r"^watch",
    r"^list",
    r"^another cluster|^elsewhere",
    r"^forwards|/to worker",
    r"^limits",
    r"^tick",
    r"^probes",
    r"^gather",
    r"^hermit",
    r"/starts$|/rests until$",
    r"/(patience|again|gives up|leaves)$",
    r"/goes to$",
    r"^setup",
)
"""What may not be needed at all."""


def _kinds(schedule: Schedule) -> list[Part]:
    patterns = map(re.compile, KINDS)
    return [frozenset(filter(pattern.search, schedule)) for pattern in patterns]


PASSES: tuple[Callable[[Schedule], list[Part]], ...] = (
    _by(r"client-\d+|gatherer|hermit"),
    _by(r"(client-\d+|gatherer|hermit)/\d+"),
    _kinds,
    _by(r"worker-\d+$"),
    _by(r"(client-\d+|gatherer|hermit|setup)/\d+"),
    _by(r"(crash|drain|jump|watch|elsewhere)/\d+"),
    _by(r".*/fate$"),
    _by(r".*/passed over/.*"),
    _by(r".*/slow/.*"),
    _by(r".*"),
)
