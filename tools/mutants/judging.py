"""Whether a mutant was killed: found by the tests that it names."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tools.mutants.catalogue import Mutant
from tools.mutants.running import Outcome

WHOLE = ("-m", "not slow and not exploration")


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant."""

    mutant: Mutant
    told: Literal["killed", "killed by its time", "survived", "not applied"]
    slept: tuple[str, ...] = ()
    """Tests named for it that passed all the same."""
    note: str = ""

    @property
    def is_killed(self) -> bool:
        return self.told.startswith("killed")

    @property
    def is_well(self) -> bool:
        """Whether it was killed, and by each test that it names."""
        return self.is_killed and not self.slept


def not_passed(mutants: Iterable[Mutant], outcome: Outcome) -> list[str]:
    """The named tests that do not pass where nothing is planted."""
    tests = dict.fromkeys(test for each in mutants for test in each.tests)
    return [test for test in tests if outcome.of(test) != "passed"]


def settled(pack: Sequence[Mutant], outcome: Outcome) -> list[Verdict]:
    """Those of a pack that are killed beyond doubt: all ran to their end, and each test named failed."""
    if not outcome.is_complete or outcome.is_hung:
        return []
    verdicts = (alone(each, outcome) for each in pack)
    return [each for each in verdicts if each.is_well]


def alone(mutant: Mutant, outcome: Outcome) -> Verdict:
    """What a run with nothing else planted says."""
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
"""Plants these, and runs these tests with these options."""


def judge(pack: Sequence[Mutant], run: Run, *, whole: bool = False) -> Iterator[Verdict]:
    """Try a pack at once; whatever that does not settle once more, alone."""
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
