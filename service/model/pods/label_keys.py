"""Merging of `matchLabelKeys` and `mismatchLabelKeys` into selectors when a pod is created.

The keys of an affinity term become requirements of its selector, with the values of the pod's own
labels. As in kube-apiserver, they are merged once: a pod that is relabeled later keeps its original
requirements. The keys of a spread constraint are only checked; they apply to the pod's current
labels, as in kube-scheduler. Source: `pkg/registry/core/pod/strategy.go` and
`pkg/apis/core/validation`, v1.35.
"""

from collections.abc import Iterator, Mapping
from typing import cast

from service.model.core.validators import Problems, at, entries_of, items_of, without_nulls
from service.model.pods.affinity_rules import IN_BOTH, mentions

Json = dict[str, object]
LabelKeys = tuple[str, ...]

_REQUIRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "requiredDuringSchedulingRequiredDuringExecution",
)
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_OPERATORS = {"matchLabelKeys": "In", "mismatchLabelKeys": "NotIn"}


def label_keys(spec: Json) -> LabelKeys:
    """Return the labels whose values determine the requirements merged into a new pod's spec."""
    keys: dict[str, None] = {}
    for _, term in pod_terms(spec):
        keys |= dict.fromkeys(key for _, key in _wanted(term))
    for _, constraint in _constraints(spec):
        own = dict.fromkeys(_match_keys(constraint))
        keys |= {key: None for key in own if mentions(constraint.get("labelSelector"), key)}
    return tuple(keys)


def merge_label_keys(
    spec: Json, labels: Mapping[str, str], stored: Json | None = None, *, elsewhere: bool = False
) -> None:
    """Merge the keys into the selectors of a valid spec, in place.

    A pod that an API server created `elsewhere` was merged there, possibly with labels that it no
    longer has. Terms that are also in the `stored` spec keep the requirements merged earlier.

    Raises:
        InvalidManifest: a selector contradicts a requirement that would be merged.
    """
    problems = Problems()
    before = dict(pod_terms(stored or {}))
    for path, term in pod_terms(spec):
        old = before.get(path)
        if old is not None and _is_kept(term, old):
            term["labelSelector"] = old["labelSelector"]
            continue
        if not elsewhere:
            # As in kube-apiserver, keys that the pod lacks are not merged, so selectors may mention
            # them.
            _check(
                term, [key for key in _match_keys(term) if key in labels], path, labels, problems
            )
        _merge(term, labels, elsewhere=elsewhere)
    known = [constraint for _, constraint in _constraints(stored or {})]
    for path, constraint in _constraints(spec):
        if constraint not in known and not elsewhere:
            _check(constraint, _match_keys(constraint), path, labels, problems)
    problems.raise_any()


def _check(
    fields: Json, keys: list[str], path: str, labels: Mapping[str, str], problems: Problems
) -> None:
    """Add an error for each key whose merged requirement would contradict the selector."""
    for key in keys:
        merged = {"key": key, "operator": "In", "values": [labels.get(key)]}
        if mentions(fields.get("labelSelector"), key) not in ([], [merged]):
            index = _match_keys(fields).index(key)
            problems.add(f"{at(path, 'matchLabelKeys')}[{index}]", IN_BOTH, key)


def _merge(term: Json, labels: Mapping[str, str], *, elsewhere: bool) -> None:
    selector = term.get("labelSelector")
    if not isinstance(selector, dict):
        return
    present = [entries_of(expression) for expression in items_of(selector.get("matchExpressions"))]
    done = (
        {_shape(expression) for expression in present if _looks_merged(expression)}
        if elsewhere
        else set()
    )
    merged: list[Json] = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for operator, key in _wanted(term)
        if key in labels and (operator, key) not in done
    ]
    missing = [requirement for requirement in merged if requirement not in present]
    if missing:
        term["labelSelector"] = selector | {"matchExpressions": present + missing}


def _is_kept(term: Json, old: Json) -> bool:
    """Return whether a term equals a stored one, apart from requirements merged into it."""
    if not (isinstance(term.get("labelSelector"), dict) and _wanted(term)):
        return False
    bare, merged = _split(term)
    old_bare, old_merged = _split(old)
    return bare == old_bare and all(expression in old_merged for expression in merged)


def _split(term: Json) -> tuple[object, list[Json]]:
    """Separate a term from the requirements that merging may have added."""
    wanted = _wanted(term)
    selector = entries_of(term.get("labelSelector"))
    present = [entries_of(expression) for expression in items_of(selector.get("matchExpressions"))]
    merged = [
        expression
        for expression in present
        if _looks_merged(expression) and _shape(expression) in wanted
    ]
    rest = [expression for expression in present if expression not in merged]
    bare = term | {"labelSelector": selector | {"matchExpressions": rest}}
    return without_nulls(bare), merged


def _looks_merged(requirement: Json) -> bool:
    return len(items_of(requirement.get("values"))) == 1


def _shape(requirement: Json) -> tuple[object, object]:
    return requirement.get("operator"), requirement.get("key")


def _wanted(term: Json) -> list[tuple[str, str]]:
    """Return the operator and key of each requirement to merge into a term's selector."""
    return [
        (operator, key) for field, operator in _OPERATORS.items() for key in _texts(term, field)
    ]


def pod_terms(spec: Json) -> Iterator[tuple[str, Json]]:
    """Yield each term of the six lists of pod affinity and anti-affinity, with its path."""
    affinity = entries_of(spec.get("affinity"))
    for side in ("podAffinity", "podAntiAffinity"):
        lists, path = entries_of(affinity.get(side)), f"spec.affinity.{side}"
        for name in _REQUIRED:
            for index, term in enumerate(items_of(lists.get(name))):
                yield f"{path}.{name}[{index}]", entries_of(term)
        for index, weighted in enumerate(items_of(lists.get(_PREFERRED))):
            term = entries_of(weighted).get("podAffinityTerm")
            yield f"{path}.{_PREFERRED}[{index}].podAffinityTerm", entries_of(term)


def _constraints(spec: Json) -> Iterator[tuple[str, Json]]:
    for index, constraint in enumerate(items_of(spec.get("topologySpreadConstraints"))):
        yield f"spec.topologySpreadConstraints[{index}]", entries_of(constraint)


def _match_keys(fields: Json) -> list[str]:
    return _texts(fields, "matchLabelKeys")


def _texts(value: Mapping[str, object], field: str) -> list[str]:
    return cast("list[str]", items_of(value.get(field)))
