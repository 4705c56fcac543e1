"""Validation rules of affinity and topology spread constraints.

Source: `pkg/apis/core/validation`, v1.35, plus the `requiredDuringSchedulingRequired…` forms, which
Kubernetes never implemented. Conflicts between a selector and its `matchLabelKeys` depend on the
pod's labels and on whether the pod is being created: see `service.model.pods.label_keys`.
"""

from service.model.core import names
from service.model.core.selector_rules import LABEL_SELECTOR, NODE_SELECTOR, PREFERRED_NODE_TERM
from service.model.core.type_rules import declared, fields_of
from service.model.core.validators import (
    Problems,
    Record,
    RecordCheck,
    Rule,
    at,
    entries_of,
    items_of,
    list_of,
    text,
)
from service.model.pods.pod import (
    Affinity,
    DataAffinity,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    PodConnection,
    PreferredData,
    PreferredSchedulingTerm,
    RequiredData,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)

_REQUIRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "requiredDuringSchedulingRequiredDuringExecution",
)
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_LABEL_KEYS = list_of(text(names.label_key))
_TOLERANCE = "toleranceSeconds"
_EXEMPT = "firstPodExempt"
IN_BOTH = "exists in both matchLabelKeys and labelSelector"


def _own_keys(record_: Record, field: str) -> list[tuple[int, str]]:
    keys = enumerate(items_of(record_.get(field)))
    return [(index, key) for index, key in keys if isinstance(key, str)]


def mentions(selector: object, key: str) -> list[object]:
    """Return a selector's expressions about a key, including its `matchLabels` entry, if any."""
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
    if constraint.get("minDomains") is not None and when == "ScheduleAnyway":
        message = "can only be used if whenUnsatisfiable is DoNotSchedule or FallbackWhenFull"
        problems.add(at(path, "minDomains"), message, constraint["minDomains"])


def _is_not_tolerated(rule: Record, path: str, problems: Problems) -> None:
    if rule.get(_TOLERANCE) is not None:
        message = (
            f"is only for terms of podAffinity.{_REQUIRED[1]}: all other rules have no grace period"
        )
        problems.add(at(path, _TOLERANCE), message, rule[_TOLERANCE])


def _has_no_limit(term: Record, path: str, problems: Problems) -> None:
    if term.get("maxPerDomain") is not None:
        message = "can only be used in required podAntiAffinity"
        problems.add(at(path, "maxPerDomain"), message, term["maxPerDomain"])


def _exempts_nobody(term: Record, path: str, problems: Problems) -> None:
    if term.get(_EXEMPT):
        message = f"can only be used in podAffinity.{_REQUIRED[0]}"
        problems.add(at(path, _EXEMPT), message, term[_EXEMPT])


def _pod_term(*also: RecordCheck) -> Rule:
    return declared(
        PodAffinityTerm,
        {
            "topologyKey": text(names.topology_key),
            "labelSelector": LABEL_SELECTOR,
            "namespaces": list_of(text(names.namespace_entry), values=True),
            "namespaceSelector": LABEL_SELECTOR,
            "exceptNamespaceSelector": LABEL_SELECTOR,
            "matchLabelKeys": _LABEL_KEYS,
            "mismatchLabelKeys": _LABEL_KEYS,
        },
        mistakes={"selector": "labelSelector", "podAffinityTerm": "the term itself, without it"},
        also=(_needs_selector, _keys_not_in_both, *also),
    )


_OF_SOME_TERMS = (_TOLERANCE, "maxPerDomain", _EXEMPT)
_POD_TERM = _pod_term(_is_not_tolerated, _has_no_limit, _exempts_nobody)
_WEIGHTED_POD_TERM = declared(
    WeightedPodAffinityTerm,
    {"podAffinityTerm": _POD_TERM},
    mistakes={
        name: f"podAffinityTerm.{name}"
        for name in fields_of(PodAffinityTerm)
        if name not in _OF_SOME_TERMS
    },
)
_PREFERRED_POD = {_PREFERRED: list_of(_WEIGHTED_POD_TERM)}
_REPELLING = list_of(_pod_term(_is_not_tolerated, _exempts_nobody))
_PLACING = list_of(_pod_term(_is_not_tolerated, _has_no_limit))
_ENDURING = list_of(_pod_term(_has_no_limit, _exempts_nobody))
_POD_AFFINITY = declared(
    PodAffinity,
    _PREFERRED_POD | {_REQUIRED[0]: _PLACING, _REQUIRED[1]: _ENDURING},
)
_POD_ANTI_AFFINITY = declared(
    PodAffinity,
    _PREFERRED_POD | dict.fromkeys(_REQUIRED, _REPELLING),
    also=(_is_not_tolerated,),
)
_PREFERRED_NODE = declared(
    PreferredSchedulingTerm,
    {"preference": PREFERRED_NODE_TERM},
    mistakes={
        "matchExpressions": "preference.matchExpressions",
        "matchFields": "preference.matchFields",
    },
)
NODE_AFFINITY = declared(
    NodeAffinity, dict.fromkeys(_REQUIRED, NODE_SELECTOR) | {_PREFERRED: list_of(_PREFERRED_NODE)}
)
AFFINITY = declared(
    Affinity,
    {
        "nodeAffinity": NODE_AFFINITY,
        "podAffinity": _POD_AFFINITY,
        "podAntiAffinity": _POD_ANTI_AFFINITY,
    },
)

_SPREAD_CONSTRAINT = declared(
    TopologySpreadConstraint,
    {
        "topologyKey": text(names.topology_key),
        "labelSelector": LABEL_SELECTOR,
        "matchLabelKeys": _LABEL_KEYS,
        "namespaceSelector": LABEL_SELECTOR,
    },
    mistakes={"selector": "labelSelector"},
    also=(_needs_selector, _min_domains_is_hard),
)


CONNECTIONS = list_of(
    declared(
        PodConnection,
        {
            "topologyKey": text(names.topology_key),
            "labelSelector": LABEL_SELECTOR,
            "namespaces": list_of(text(names.namespace_entry), values=True),
        },
        mistakes={"selector": "labelSelector"},
    )
)


_DATA_SET = {"dataSet": text(names.dns_subdomain)}
_REQUIRED_DATA = list_of(declared(RequiredData, _DATA_SET))
_PREFERRED_DATA = list_of(declared(PreferredData, _DATA_SET))


def _required_data(value: object, path: str, problems: Problems) -> None:
    _REQUIRED_DATA(value, path, problems)
    _few_data_sets(value, path, problems)


def _preferred_data(value: object, path: str, problems: Problems) -> None:
    _PREFERRED_DATA(value, path, problems)
    _few_data_sets(value, path, problems)


def _few_data_sets(value: object, path: str, problems: Problems) -> None:
    """Check that data sets are few and not repeated, as each is looked up for each node."""
    entries = [entries_of(entry).get("dataSet") for entry in items_of(value)]
    most = problems.limits.data_sets_max
    if len(entries) > most:
        problems.add(path, f"must have at most {most} items", len(entries))
        return
    for index, name in enumerate(entries):
        if isinstance(name, str) and name in entries[:index]:
            problems.add(f"{path}[{index}].dataSet", "repeats a data set", name)


DATA_AFFINITY = declared(DataAffinity, {"required": _required_data, "preferred": _preferred_data})


def _not_repeated(constraints: object, path: str, problems: Problems) -> None:
    """Check that no two constraints have the same topology key and action."""
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
    """Check a pod's `topologySpreadConstraints`."""
    _CONSTRAINTS(value, path, problems)
    _not_repeated(value, path, problems)
    _few_fallbacks(value, path, problems)


def _few_fallbacks(constraints: object, path: str, problems: Problems) -> None:
    """Check that few constraints may fall back, as each multiplies the attempts of a placement."""
    fallbacks = [
        index
        for index, constraint in enumerate(items_of(constraints))
        if entries_of(constraint).get("whenUnsatisfiable") == "FallbackWhenFull"
    ]
    most = problems.limits.fallbacks_max
    for index in fallbacks[most:]:
        message = f"at most {most} constraints may have FallbackWhenFull"
        problems.add(f"{path}[{index}].whenUnsatisfiable", message)


def default_spread_constraints(value: object, path: str, problems: Problems) -> None:
    """Check the default constraints for pods that have none of their own."""
    spread_constraints(value, path, problems)
    for i, constraint in enumerate(map(entries_of, items_of(value))):
        if constraint.get("namespaceSelector") is not None:
            where = f"{path}[{i}].namespaceSelector"
            problems.add(where, "can only be used in constraints of a pod")
        if constraint.get("whenUnsatisfiable") == "FallbackWhenFull":
            where = f"{path}[{i}].whenUnsatisfiable"
            problems.add(where, "FallbackWhenFull can only be used in constraints of a pod")
        for j, key in _own_keys(constraint, "matchLabelKeys"):
            if mentions(constraint.get("labelSelector"), key):
                problems.add(f"{path}[{i}].matchLabelKeys[{j}]", IN_BOTH, key)


def system_has_no_list(choice: str, constraints: str) -> RecordCheck:
    """Return a check that no constraints are listed if the built-in default ones are chosen."""

    def check(fields: Record, path: str, problems: Problems) -> None:
        if fields.get(choice) == "System" and fields.get(constraints):
            problems.add(at(path, constraints), f"must be empty when {choice} is System")

    return check
