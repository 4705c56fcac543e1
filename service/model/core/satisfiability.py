"""Satisfiability of label requirements: whether any object could meet all of them.

Requirements on different keys are independent, so each key is examined separately. Sources: see
`service.model.core.selectors`.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from service.model.core.primitives import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from service.model.core.selectors import is_parsable, parse_integer

Requirement = LabelSelectorRequirement | NodeSelectorRequirement

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def can_hold(requirements: Iterable[Requirement]) -> bool:
    """Return whether any set of labels satisfies all requirements."""
    by_key = defaultdict[str, list[Requirement]](list)
    for requirement in requirements:
        by_key[requirement.key].append(requirement)
    return all(map(_some_value_satisfies, by_key.values()))


def selector_can_match(selector: LabelSelector | None) -> bool:
    """Return whether any set of labels satisfies a selector; None selects nothing."""
    return selector is not None and can_hold(requirements_of(selector))


def requirements_of(selector: LabelSelector) -> list[Requirement]:
    """Return all requirements of a selector; `matchLabels` entries become `In` requirements."""
    return [*labels_required(selector.match_labels or {}), *(selector.match_expressions or ())]


def labels_required(labels: dict[str, str]) -> list[Requirement]:
    """Convert labels to requirements for exactly these values."""
    return [
        NodeSelectorRequirement(key=key, operator="In", values=(value,))
        for key, value in labels.items()
    ]


def node_terms_can_match(
    terms: Iterable[NodeSelectorTerm], required: Sequence[Requirement]
) -> bool:
    """Return whether any possible node satisfies all terms and requirements."""
    expressions, fields = list(required), list[Requirement]()
    for term in terms:
        if not all(map(is_parsable, term.match_expressions or ())):
            return False
        expressions += term.match_expressions or ()
        fields += term.match_fields or ()
    return can_hold(expressions) and can_hold(fields)


def _some_value_satisfies(requirements: Sequence[Requirement]) -> bool:
    """Return whether some value of a label, or its absence, satisfies all its requirements."""
    operators = {requirement.operator for requirement in requirements}
    if not operators & {"In", "Exists", "Gt", "Lt"}:
        return True
    if "DoesNotExist" in operators:
        return False
    within = [
        set(requirement.values or ())
        for requirement in requirements
        if requirement.operator == "In"
    ]
    if within:
        excluded = {
            v
            for requirement in requirements
            if requirement.operator == "NotIn"
            for v in requirement.values or ()
        }
        candidates = set.intersection(*within) - excluded
        return any(_is_between(value, requirements) for value in candidates)
    lowest, highest = _bounds(requirements)
    return lowest <= highest


def _is_between(value: str, requirements: Sequence[Requirement]) -> bool:
    """Return whether a value satisfies all `Gt` and `Lt` requirements."""
    if not any(requirement.operator in {"Gt", "Lt"} for requirement in requirements):
        return True
    number = parse_integer(value)
    lowest, highest = _bounds(requirements)
    return number is not None and lowest <= number <= highest


def _bounds(requirements: Sequence[Requirement]) -> tuple[int, int]:
    """Return the smallest and largest integers that `Gt` and `Lt` allow."""
    lowest, highest = _INT64_MIN, _INT64_MAX
    for requirement in requirements:
        if requirement.operator not in {"Gt", "Lt"}:
            continue
        bound = parse_integer(requirement.values[0]) if requirement.values else None
        if bound is None:
            return 0, -1
        if requirement.operator == "Gt":
            lowest = max(lowest, bound + 1)
        else:
            highest = min(highest, bound - 1)
    return lowest, highest
