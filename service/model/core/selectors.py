"""Label and node selectors, matched by slow but obvious code; the engine compiles them to arrays.

Labels are a mapping of keys to values. Sources: `k8s.io/apimachinery/pkg/labels` and
`k8s.io/component-helpers/scheduling/corev1/nodeaffinity`, v1.35.
"""

import re
from collections.abc import Iterable, Mapping

from service.model.core.primitives import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)

Labels = Mapping[str, str]

_INTEGER = re.compile(r"[+-]?[0-9]+")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?")
_LABEL_VALUE_LENGTH_MAX = 63
_INTEGER_DIGITS_MAX = 64


def matches(selector: LabelSelector | None, labels: Labels) -> bool:
    """Return whether labels satisfy a selector; None matches nothing, and `{}` everything."""
    if selector is None:
        return False
    wanted = selector.match_labels or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        requirement_matches(r, labels) for r in selector.match_expressions or ()
    )


def is_empty(selector: LabelSelector) -> bool:
    """Return whether a selector is present but requires nothing: `{}`."""
    return not selector.match_labels and not selector.match_expressions


def requirement_matches(
    requirement: LabelSelectorRequirement | NodeSelectorRequirement, labels: Labels
) -> bool:
    """Return whether labels satisfy a requirement; NotIn holds if the key is absent."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in (requirement.values or ())
        case "NotIn":
            return value is None or value not in (requirement.values or ())
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _number_matches(requirement.operator, value, requirement.values)


def parse_integer(text: str) -> int | None:
    """Return a signed 64-bit decimal integer as Go's `strconv.ParseInt` reads it, or None."""
    if len(text) > _INTEGER_DIGITS_MAX or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def is_label_value(text: str) -> bool:
    """Return whether a text is a valid label value: empty, or at most 63 allowed characters."""
    return len(text) <= _LABEL_VALUE_LENGTH_MAX and _LABEL_VALUE.fullmatch(text) is not None


def _number_matches(operator: str, value: str | None, bounds: tuple[str, ...] | None) -> bool:
    have = None if value is None else parse_integer(value)
    bound = parse_integer(bounds[0]) if bounds else None
    if have is None or bound is None:
        return False
    return have > bound if operator == "Gt" else have < bound


def is_parsable(requirement: NodeSelectorRequirement) -> bool:
    """Return whether kube-scheduler can parse a requirement: label values, and integer bounds.

    A term with an unparsable requirement matches no node; its sibling terms still may.
    """
    values = requirement.values or ()
    if not all(is_label_value(value) for value in values):
        return False
    match requirement.operator:
        case "In" | "NotIn":
            return bool(values)
        case "Gt" | "Lt":
            return len(values) == 1 and parse_integer(values[0]) is not None
        case "Exists" | "DoesNotExist":
            return not values


def node_term_is_empty(term: NodeSelectorTerm | None) -> bool:
    """Return whether a term is null or requires nothing."""
    return term is None or not (term.match_expressions or term.match_fields)


def node_term_matches(
    term: NodeSelectorTerm | None,
    node_name: str,
    labels: Labels,
    *,
    empty_matches_all: bool = False,
) -> bool:
    """Return whether a node satisfies one term: all of its expressions and fields.

    `empty_matches_all` is the setting `emptyNodeSelectorTerm: MatchAll`; in Kubernetes an empty
    term matches no node.
    """
    if term is None or node_term_is_empty(term):
        return empty_matches_all
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    return (
        all(is_parsable(r) for r in expressions)
        and all(requirement_matches(r, labels) for r in expressions)
        and all(requirement_matches(r, {r.key: _field(r, node_name)}) for r in fields)
    )


def _field(requirement: NodeSelectorRequirement, node_name: str) -> str:
    """Return the node field that a `matchFields` requirement names; only `metadata.name` exists."""
    return node_name if requirement.key == "metadata.name" else ""


def node_terms_match(
    terms: Iterable[NodeSelectorTerm | None],
    node_name: str,
    labels: Labels,
    *,
    empty_matches_all: bool = False,
) -> bool:
    """Return whether a node satisfies any of the terms."""
    return any(
        node_term_matches(term, node_name, labels, empty_matches_all=empty_matches_all)
        for term in terms
    )
