"""What the API server does to a pod at its creation, as far as placing depends on it."""

from tests.reference.view import (
    PREFERRED,
    REQUIRED,
    Labels,
    Manifest,
    affinity_of,
    labels_of,
    spec_of,
)


def admit(pod: Manifest) -> Manifest:
    """The pod with `matchLabelKeys` and `mismatchLabelKeys` merged into its selectors."""
    spec = dict(spec_of(pod))
    affinity = dict(spec.get("affinity") or {})
    for kind in ("podAffinity", "podAntiAffinity"):
        if affinity_of(pod, kind):
            affinity[kind] = admit_terms(affinity_of(pod, kind), labels_of(pod))
    if affinity:
        spec["affinity"] = affinity
    return pod | {"spec": spec}


def admit_terms(affinity: Manifest, labels: Labels) -> Manifest:
    admitted = dict(affinity)
    for variant in REQUIRED:
        if affinity.get(variant):
            admitted[variant] = [merge_label_keys(term, labels) for term in affinity[variant]]
    if affinity.get(PREFERRED):
        admitted[PREFERRED] = [
            each | {"podAffinityTerm": merge_label_keys(each["podAffinityTerm"], labels)}
            for each in affinity[PREFERRED]
        ]
    return admitted


def merge_label_keys(term: Manifest, labels: Labels) -> Manifest:
    """Keys that the pod lacks are ignored; without a selector there is nothing to merge into."""
    selector = term.get("labelSelector")
    if selector is None:
        return term
    merged = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in term.get(field) or []
        if key in labels
    ]
    expressions = selector.get("matchExpressions") or []
    fresh = [each for each in merged if each not in expressions]
    if not fresh:
        return term
    return term | {"labelSelector": selector | {"matchExpressions": expressions + fresh}}
