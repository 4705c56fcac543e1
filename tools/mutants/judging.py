"""Whether a mutant was killed, which means that the tests it names found it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tools.mutants.catalogue import Mutant
from tools.mutants.running import Outcome

WHOLE = ("-m", "not slow and not exploration and not clients")


@dataclass(frozen=True)
class Verdict:
    """The verdict on a mutant."""

    mutant: Mutant
    told: Literal["killed", "killed by its time", "survived", "not applied"]
    slept: tuple[str, ...] = ()
    """The named tests that passed in spite of the mutant."""
    note: str = ""

    @property
    def is_killed(self) -> bool:
        return self.told.startswith("killed")

    @property
    def is_well(self) -> bool:
        """Whether each of the named tests found the mutant."""
        return self.is_killed and not self.slept


def not_passed(mutants: Iterable[Mutant], outcome: Outcome) -> list[str]:
    """Return the named tests that do not pass when nothing is planted."""
    tests = dict.fromkeys(test for each in mutants for test in each.tests)
    return [test for test in tests if outcome.of(test) != "passed"]


def settled(pack: Sequence[Mutant], outcome: Outcome) -> list[Verdict]:
    """Return the verdicts on those mutants of a pack that were killed for certain.

    This is so if all tests ran to their end, and each named test failed.
    """
    if not outcome.is_complete or outcome.is_hung:
        return []
    verdicts = (alone(each, outcome) for each in pack)
    return [each for each in verdicts if each.is_well]


def alone(mutant: Mutant, outcome: Outcome) -> Verdict:
    """Judge a mutant by a run in which nothing else was planted."""
    if outcome.is_hung:
        return Verdict(mutant, "killed by its time")
    by_collection = not outcome.is_complete and bool(outcome.failed())
    if by_collection:
        return Verdict(mutant, "killed", note="its tests cannot be imported")
    slept = tuple(test for test in mutant.tests if outcome.of(test) != "failed")
    if len(slept) == len(mutant.tests):
        return Verdict(mutant, "survived", slept)
    return Verdict(mutant, "killed", slept)


Run = Callable[[Sequence[Mutant], Sequence[str], Sequence[str]], Outcome]
"""A function that plants mutants, and runs tests on them with options."""


def judge(pack: Sequence[Mutant], run: Run, *, whole: bool = False) -> Iterator[Verdict]:
    """Try a whole pack at once, then each mutant that this did not settle alone."""
    left = list(pack)
    if len(pack) > 1:
        together = run(pack, [test for each in pack for test in each.tests], ())
        for verdict in settled(pack, together):
            left.remove(verdict.mutant)
            yield verdict
    for mutant in left:
        yield _judge_alone(mutant, run, whole=whole)


def _judge_alone(mutant: Mutant, run: Run, *, whole: bool) -> Verdict:
    try:
        verdict = alone(mutant, run([mutant], mutant.tests, ()))
    except (OSError, ValueError) as error:
        return Verdict(mutant, "not applied", note=str(error))
    if whole and not verdict.is_killed:
        found = run([mutant], ["tests"], WHOLE).failed()
        if found:
            told = f"the whole suite finds it: {', '.join(found[:3])}"
            return Verdict(mutant, "survived", verdict.slept, told)
    return verdict
