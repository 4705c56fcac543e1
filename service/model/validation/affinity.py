"""Which affinities and topology spread constraints are valid.

Source: `pkg/apis/core/validation`, v1.35, with the variants `requiredDuringSchedulingRequired…` that
Kubernetes never built. What a selector may say of its own `matchLabelKeys` depends on the pod's labels
and on whether it is created: see `service.model.label_keys`.
"""

from service.model.validation import names
from service.model.validation.rules import (
    INT32_MAX,
    Problems,
    Record,
    Rule,
    at,
    entries_of,
    items_of,
    list_of,
    one_of,
    record,
    text,
    whole_number,
)
from service.model.validation.selectors import LABEL_SELECTOR, NODE_SELECTOR, PREFERRED_NODE_TERM

_REQUIRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "requiredDuringSchedulingRequiredDuringExecution",
)
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT = whole_number(1, 100, "must be in the range 1-100")
_LABEL_KEYS = list_of(text(names.label_key))
IN_BOTH = "exists in both matchLabelKeys and labelSelector"


def _own_keys(record_: Record, field: str) -> list[tuple[int, str]]:
    keys = enumerate(items_of(record_.get(field)))
    return [(index, key) for index, key in keys if isinstance(key, str)]


def mentions(selector: object, key: str) -> list[object]:
    """Return all that a selector says about a key: its expressions, and its `matchLabels` pair."""
    entries = entries_of(selector)
    labels = entries_of(entries.get("matchLabels"))
    equality: list[object] = [(key, labels[key])] if key in labels else []
    expressions = items_of(entries.get("matchExpressions"))
    return equality + [e for e in expressions if entries_of(e).get("key") == key]


def _needs_selector(term: Record, path: str, problems: Problems) -> None:
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        if term.get(field) and term.get("labelSelector") is None:
            problems.add(at(path, field), "must not be specified when labelSelector is not set")


def _keys_not_in_both(term: Record, path: str, problems: Problems) -> None:
    mismatched = {key for _, key in _own_keys(term, "mismatchLabelKeys")}
    for index, key in _own_keys(term, "matchLabelKeys"):
        if key in mismatched:
            where = f"{at(path, 'matchLabelKeys')}[{index}]"
            problems.add(where, "exists in both matchLabelKeys and mismatchLabelKeys", key)


def _min_domains_is_hard(constraint: Record, path: str, problems: Problems) -> None:
    when = constraint.get("whenUnsatisfiable")
    if constraint.get("minDomains") is not None and when not in (None, "DoNotSchedule"):
        message = "can only be used if whenUnsatisfiable is DoNotSchedule"
        problems.add(at(path, "minDomains"), message, constraint["minDomains"])


_POD_TERM_FIELDS: dict[str, Rule] = {
    "topologyKey": text(names.topology_key),
    "labelSelector": LABEL_SELECTOR,
    "namespaces": list_of(text(names.namespace_entry), values=True),
    "namespaceSelector": LABEL_SELECTOR,
    "matchLabelKeys": _LABEL_KEYS,
    "mismatchLabelKeys": _LABEL_KEYS,
}
_POD_TERM = record(
    _POD_TERM_FIELDS,
    required=("topologyKey",),
    hints={"selector": "labelSelector", "podAffinityTerm": "the term itself, without it"},
    also=(_needs_selector, _keys_not_in_both),
)
_WEIGHTED_POD_TERM = record(
    {"weight": _WEIGHT, "podAffinityTerm": _POD_TERM},
    required=("weight", "podAffinityTerm"),
    hints={name: f"podAffinityTerm.{name}" for name in _POD_TERM_FIELDS},
)
_POD_AFFINITY = record(
    {name: list_of(_POD_TERM) for name in _REQUIRED} | {_PREFERRED: list_of(_WEIGHTED_POD_TERM)}
)
_PREFERRED_NODE = record(
    {"weight": _WEIGHT, "preference": PREFERRED_NODE_TERM},
    required=("weight", "preference"),
    hints={
        "matchExpressions": "preference.matchExpressions",
        "matchFields": "preference.matchFields",
    },
)
NODE_AFFINITY = record(
    dict.fromkeys(_REQUIRED, NODE_SELECTOR) | {_PREFERRED: list_of(_PREFERRED_NODE)}
)
AFFINITY = record(
    {"nodeAffinity": NODE_AFFINITY, "podAffinity": _POD_AFFINITY, "podAntiAffinity": _POD_AFFINITY}
)

_SPREAD_CONSTRAINT = record(
    {
        "maxSkew": whole_number(1, INT32_MAX, "must be greater than 0"),
        "topologyKey": text(names.topology_key),
        "whenUnsatisfiable": one_of("DoNotSchedule", "ScheduleAnyway"),
        "labelSelector": LABEL_SELECTOR,
        "minDomains": whole_number(1, INT32_MAX, "must be greater than 0"),
        "nodeAffinityPolicy": one_of("Honor", "Ignore"),
        "nodeTaintsPolicy": one_of("Honor", "Ignore"),
        "matchLabelKeys": _LABEL_KEYS,
    },
    required=("topologyKey",),
    hints={"selector": "labelSelector"},
    also=(_needs_selector, _min_domains_is_hard),
)


def _not_repeated(constraints: object, path: str, problems: Problems) -> None:
    """At most one constraint for each topology key and action."""
    seen = set()
    for index, constraint in enumerate(items_of(constraints)):
        fields = entries_of(constraint)
        key, when = fields.get("topologyKey"), fields.get("whenUnsatisfiable") or "DoNotSchedule"
        if not isinstance(key, str) or not isinstance(when, str):
            continue
        if (key, when) in seen:
            message = f"repeats the constraint for topologyKey {key} with {when}"
            problems.add(f"{path}[{index}]", message, key)
        seen.add((key, when))


_CONSTRAINTS = list_of(_SPREAD_CONSTRAINT)


def spread_constraints(value: object, path: str, problems: Problems) -> None:
    """The list `topologySpreadConstraints` of a pod."""
    _CONSTRAINTS(value, path, problems)
    _not_repeated(value, path, problems)


def default_spread_constraints(value: object, path: str, problems: Problems) -> None:
    """The constraints of pods that have none; nothing has been merged into their selectors."""
    spread_constraints(value, path, problems)
    for i, constraint in enumerate(map(entries_of, items_of(value))):
        for j, key in _own_keys(constraint, "matchLabelKeys"):
            if mentions(constraint.get("labelSelector"), key):
                problems.add(f"{path}[{i}].matchLabelKeys[{j}]", IN_BOTH, key)
