"""A case put to the oracle and to the engine, and what their answers differ in."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tools.conformance.cases import ABSENT, OF_PREEMPTION, Difference
from tools.oracle.admitted import is_admitted
from tools.oracle.engine import REFUSED, Engine
from tools.oracle.quirks import (
    SKIPPED,
    UNCOUNTED,
    documented,
    uncounts_terminating,
    without_nominated_terms,
)

Case = dict[str, Any]
Place = tuple[str, str | None]
"""A field of the answer, and a plugin if the field is divided by plugins."""

CRASHED = "crashed"
"""The field of a difference where the engine fails with an error of ours."""
NO_VERDICT = "allocation: an error on a node that is refused anyway"
"""The error of an answer that has an error in place of a verdict."""
UNSTEADY = "order-of-a-map"
"""The name of the deviation where kube-scheduler itself does not always answer alike."""
REPEATED = 4
"""How often it is asked once more, where answers differ."""
FAILED = ((CRASHED, None), (REFUSED, None))
"""Places where the engine has no answer."""
ABOUT_PREEMPTION = OF_PREEMPTION | {"candidates", "chosen", "message"}
"""Fields in which answers about preemption differ."""
_CAUSES = ("filters", "unresolvable", "prefilter", "prefilterNodes", "scores", "scoreSkipped")
"""Fields from which all others follow, but for those about preemption, and in what order."""


class Respondent(Protocol):
    """Answers cases as kube-scheduler's code does."""

    def answers(self, cases: Iterable[Case]) -> Iterator[Case]:
        """Yield an answer to each case, in their order: with `expect`, or with `error`."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What came of one case."""

    case: Case
    """The case, with the oracle's answer as `expect`, if it has one."""
    differences: Sequence[Difference] = ()
    places: Sequence[Place] = ()
    """Where the answers differ, without what only follows from that."""
    deviations: Sequence[str] = ()
    """The known deviations of kube-scheduler's code that explain the differences."""
    documented: Case | None = None
    """What the documented rules answer, if deviations explain the differences."""
    error: str | None = None
    """Why the oracle has no answer."""


class Comparer:
    """Compares the engine with the oracle of one Kubernetes version."""

    def __init__(self, version: str, oracle: Respondent, engine: Engine) -> None:
        self._version = version
        self._oracle = oracle
        self._engine = engine

    def compare(self, cases: Sequence[Case]) -> Iterator[Comparison]:
        """Yield what comes of each case."""
        asked = [self._in_version(case) for case in cases]
        answers = list(self._oracle.answers(asked))
        for case, answer in zip(asked, answers, strict=True):
            yield self._compared(case, answer)

    def differs(self, case: Case, place: Place) -> bool:
        """Return whether the answers to a case differ in one place, not by a known deviation.

        A case with objects that kube-apiserver would have changed has no answer to differ.
        """
        if not is_admitted(case):
            return False
        (comparison,) = self.compare([case])
        return not comparison.deviations and place in comparison.places

    def _in_version(self, case: Case) -> Case:
        return {**case, "config": {**case["config"], "kubernetes": self._version}}

    def _compared(self, case: Case, answer: Case) -> Comparison:
        if "expect" not in answer:
            return Comparison(case=case, error=answer.get("error", "no answer"))
        if has_error(answer["expect"]):
            return Comparison(case=case, error=NO_VERDICT)
        case = {**case, "expect": answer["expect"]}
        found = self._differences(case)
        if not found:
            return Comparison(case=case)
        places = causes(found)
        deviations, rule = self._deviations(case, found) if places[0] not in FAILED else ((), None)
        return Comparison(
            case=case,
            differences=found,
            places=places,
            deviations=deviations,
            documented=rule,
        )

    def _deviations(
        self, case: Case, found: Sequence[Difference]
    ) -> tuple[Sequence[str], Case | None]:
        """Return the known deviations without which the answers would be equal.

        Some answers depend on the order of a map, and so are others when they are asked for again.
        """
        others = self._oracle.answers([case] * REPEATED)
        if any(not self._differences({**case, "expect": one["expect"]}) for one in others):
            return [UNSTEADY], None
        rewritten = documented(case)
        if rewritten is not None:
            names, question = rewritten
            (answer,) = self._oracle.answers([question])
            rule = answer.get("expect")
            if rule is not None and not self._differences({**case, "expect": rule}):
                return names, rule
        unseen = without_nominated_terms(case)
        if unseen is not None and not self._differences(unseen):
            return [SKIPPED], None
        of_preemption = all(item.field in ABOUT_PREEMPTION for item in found)
        is_uncounted = of_preemption and uncounts_terminating(case)
        return ([UNCOUNTED] if is_uncounted else ()), None

    def _differences(self, case: Case) -> list[Difference]:
        try:
            return self._engine.differences(case)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            return [Difference(field=CRASHED, expected="an answer", got=repr(error))]


def has_error(expect: Case) -> bool:
    """Return whether an allocation of devices ended with an error, of which an answer has the text.

    kube-scheduler ends the whole attempt then, unless another filter refused the node before.
    """
    verdicts = expect["filters"].get("DynamicResources", {})
    return any(reason.startswith("claim ") for reasons in verdicts.values() for reason in reasons)


def causes(found: Sequence[Difference]) -> list[Place]:
    """Return the places where answers differ, without what only follows from others."""
    for name in (CRASHED, REFUSED, *_CAUSES):
        places = {
            (item.field, item.plugin) for item in found if item.field == name and _is_cause(item)
        }
        if places:
            return sorted(places, key=str)
    return sorted({(item.field, item.plugin) for item in found}, key=str)


def _is_cause(item: Difference) -> bool:
    """Return False for a score that only one answer has, as only one calls the node feasible."""
    is_of_node = item.field == "scores" and item.node is not None
    return not (is_of_node and ABSENT in (item.expected, item.got))
