"""A case put to the oracle and to the engine, and what their answers differ in."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tools.conformance.cases import ABSENT, BY_DOCUMENTATION, Difference
from tools.oracle.admitted import is_admitted
from tools.oracle.engine import REFUSED, Engine
from tools.oracle.quirks import SKIPPED, documented, without_nominated_terms

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
    known: str | None = None
    """The name of what explains the differences, if it is known."""
    deviations: Sequence[str] = ()
    """The deviations of kube-scheduler's code for which the documented rules answer otherwise."""
    error: str | None = None
    """Why the oracle has no answer."""


class Comparer:
    """Compares the engine with the oracle of one Kubernetes version."""

    def __init__(self, version: str, oracle: Respondent, engine: Engine) -> None:
        self._version = version
        self._oracle = oracle
        self._engine = engine

    def compare(self, cases: Sequence[Case]) -> Iterator[Comparison]:
        """Yield what comes of each case, by the rules of the code and by those that are documented.

        Where these differ, a case that is answered alike by the code is then compared by the
        documented rules.
        """
        asked = [self._in_version(case) for case in cases]
        answers = list(self._oracle.answers(asked))
        for case, answer in zip(asked, answers, strict=True):
            comparison = self._compared(case, answer)
            is_open = comparison.error is None and not comparison.places
            yield self._by_documentation(comparison) if is_open else comparison

    def differs(self, case: Case, place: Place) -> bool:
        """Return whether the answers to a case differ in one place for an unknown reason.

        A case with objects that kube-apiserver would have changed has no answer to differ.
        """
        if not is_admitted(case):
            return False
        (comparison,) = self.compare([case])
        return comparison.known is None and place in comparison.places

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
        known = None if places[0] in FAILED else self._known(case)
        return Comparison(case=case, differences=found, places=places, known=known)

    def _known(self, case: Case) -> str | None:
        """Return what explains that the answers differ, or None.

        Some answers depend on the order of a map, and so are others when they are asked for again.
        """
        others = self._oracle.answers([case] * REPEATED)
        if any(not self._differences({**case, "expect": one["expect"]}) for one in others):
            return UNSTEADY
        unseen = without_nominated_terms(case)
        return SKIPPED if unseen is not None and not self._differences(unseen) else None

    def _by_documentation(self, comparison: Comparison) -> Comparison:
        """Compare by the documented rules, where these answer otherwise than the code."""
        rewritten = documented(comparison.case)
        if rewritten is None:
            return comparison
        names, question = rewritten
        (answer,) = self._oracle.answers([question])
        if answer.get("expect", comparison.case["expect"]) == comparison.case["expect"]:
            return comparison
        config = {**comparison.case["config"], **BY_DOCUMENTATION}
        by_rule = self._compared({**comparison.case, "config": config}, answer)
        return replace(by_rule, deviations=names)

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
