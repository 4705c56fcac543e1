"""Validation rules of label selectors and node selectors.

Source: `k8s.io/apimachinery/pkg/apis/meta/v1/validation` and `pkg/apis/core/validation`, v1.35.
Bounds of Gt and Lt are checked here, too; kube-apiserver accepts an invalid one, and in the
scheduler its term then matches no node.
"""

import msgspec

from service.model.core import names
from service.model.core.primitives import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Taint,
)
from service.model.core.type_rules import declared
from service.model.core.validators import (
    Problems,
    Record,
    Rule,
    TextCheck,
    at,
    items_of,
    list_of,
    map_of,
    nullable,
    one_of,
    text,
)

LABELS = map_of(names.label_key, text(names.label_value))


def _values_fit_operator(requirement: Record, path: str, problems: Problems) -> None:
    operator, values = requirement.get("operator"), items_of(requirement.get("values"))
    where = at(path, "values")
    match operator:
        case "In" | "NotIn" if not values:
            problems.add(where, "must be specified when operator is In or NotIn")
        case "Exists" | "DoesNotExist" if values:
            problems.add(where, "may not be specified when operator is Exists or DoesNotExist")
        case "Gt" | "Lt" if len(values) != 1:
            problems.add(where, "must be a single value when operator is Gt or Lt")
        case "Gt" | "Lt" if isinstance(values[0], str):
            message = names.integer(values[0])
            if message is not None:
                problems.add(f"{where}[0]", message, values[0])


def _one_value(requirement: Record, path: str, problems: Problems) -> None:
    in_list = requirement.get("operator") in ("In", "NotIn")
    if in_list and len(items_of(requirement.get("values"))) != 1:
        problems.add(at(path, "values"), "must be exactly one value for a node field")


def _requirement(type_: type[msgspec.Struct], value: Rule) -> Rule:
    rules = {"key": text(names.label_key), "values": list_of(value, values=True)}
    return declared(type_, rules, also=(_values_fit_operator,))


LABEL_SELECTOR = declared(
    LabelSelector,
    {
        "matchLabels": LABELS,
        "matchExpressions": list_of(
            _requirement(LabelSelectorRequirement, text(names.label_value))
        ),
    },
)

_NODE_FIELD = declared(
    NodeSelectorRequirement,
    {
        "key": one_of("metadata.name"),
        "operator": one_of("In", "NotIn"),
        "values": list_of(text(names.dns_subdomain), values=True),
    },
    also=(_one_value,),
)


def _node_selector_term(*value_checks: TextCheck) -> Rule:
    expression = _requirement(NodeSelectorRequirement, text(*value_checks))
    return declared(
        NodeSelectorTerm,
        {"matchExpressions": list_of(expression), "matchFields": list_of(_NODE_FIELD)},
    )


REQUIRED_NODE_TERM = _node_selector_term(names.label_value)
PREFERRED_NODE_TERM = _node_selector_term()
"""A preferred node selector term, whose values kube-apiserver does not check, as stored objects may
have any."""

NODE_SELECTOR = declared(
    NodeSelector,
    {
        "nodeSelectorTerms": list_of(
            nullable(REQUIRED_NODE_TERM), at_least="must have at least one node selector term"
        )
    },
)


TAINT = declared(
    Taint,
    {
        "key": text(names.label_key),
        "value": text(names.label_value),
        "timeAdded": text(names.timestamp),
    },
)
