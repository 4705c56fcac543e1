"""Which affinities and topology spread constraints are valid.

Source: `pkg/apis/core/validation`, v1.35, with the variants `requiredDuringSchedulingRequired…` that
Kubernetes never built, and with `matchLabelKeys` that may be merged into the selector already.
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
_IN_BOTH = "exists in both matchLabelKeys and labelSelector"


def _own_keys(record_: Record, field: str) -> list[tuple[int, str]]:
    keys = enumerate(items_of(record_.get(field)))
    return [(index, key) for index, key in keys if isinstance(key, str)]


def _mentions(selector: object, key: str) -> list[object]:
    """What a selector says of a key: its expressions, and its equality as a pair."""
    entries = entries_of(selector)
    labels = entries_of(entries.get("matchLabels"))
    equality: list[object] = [(key, labels[key])] if key in labels else []
    expressions = items_of(entries.get("matchExpressions"))
    return equality + [e for e in expressions if entries_of(e).get("key") == key]


def _needs_selector(term: Record, path: str, problems: Problems) -> None:
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        if term.get(field) and term.get("labelSelector") is None:
            problems.add(at(path, field), "must not be specified when labelSelector is not set")


def _match_keys_are_free(term: Record, path: str, problems: Problems) -> None:
    """The selector may say of such a key only what merging it adds.

    Like kube-apiserver this looks at keys that the pod carries; others are not merged.
    """
    for index, key in _own_keys(term, "matchLabelKeys"):
        if key in problems.labels:
            _only_merged(term, key, f"{at(path, 'matchLabelKeys')}[{index}]", problems)


def _only_merged(term: Record, key: str, path: str, problems: Problems) -> None:
    merged = {"key": key, "operator": "In", "values": [problems.labels.get(key)]}
    mentions = _mentions(term.get("labelSelector"), key)
    if any(mention != merged for mention in mentions) or len(mentions) > 1:
        problems.add(path, _IN_BOTH, key)


def _keys_not_in_both(term: Record, path: str, problems: Problems) -> None:
    mismatched = {key for _, key in _own_keys(term, "mismatchLabelKeys")}
    for index, key in _own_keys(term, "matchLabelKeys"):
        if key in mismatched:
            where = f"{at(path, 'matchLabelKeys')}[{index}]"
            problems.add(where, "exists in both matchLabelKeys and mismatchLabelKeys", key)


def _spread_keys_are_free(constraint: Record, path: str, problems: Problems) -> None:
    for index, key in _own_keys(constraint, "matchLabelKeys"):
        _only_merged(constraint, key, f"{at(path, 'matchLabelKeys')}[{index}]", problems)


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
    also=(_needs_selector, _match_keys_are_free, _keys_not_in_both),
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
    also=(_needs_selector, _spread_keys_are_free, _min_domains_is_hard),
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
    """The list `topologySpreadConstraints`, of a pod or of a cluster's defaults."""
    _CONSTRAINTS(value, path, problems)
    _not_repeated(value, path, problems)
