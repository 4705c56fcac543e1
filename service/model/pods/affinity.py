"""A pod's node affinity, spread selectors, and affinity terms, matched by slow but obvious code."""

from collections.abc import Iterable, Iterator

from service.model.core.primitives import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
)
from service.model.core.selectors import Labels, node_terms_match
from service.model.pods.pod import (
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    TopologySpreadConstraint,
)


def required_node_affinity_matches(
    spec: PodSpec, node_name: str, labels: Labels, *, empty_matches_all: bool = False
) -> bool:
    """Return whether a node satisfies the pod's `nodeSelector` and all required node affinity."""
    if any(labels.get(key) != value for key, value in (spec.node_selector or {}).items()):
        return False
    return all(
        node_terms_match(
            selector.node_selector_terms, node_name, labels, empty_matches_all=empty_matches_all
        )
        for selector in required_node_selectors(spec)
    )


def required_node_selectors(spec: PodSpec) -> Iterator[NodeSelector]:
    """Yield the node selectors of both required forms of node affinity."""
    node_affinity = (spec.affinity or Affinity()).node_affinity
    if node_affinity is None:
        return
    required = (
        node_affinity.required_during_scheduling_ignored_during_execution,
        node_affinity.required_during_scheduling_required_during_execution,
    )
    yield from (selector for selector in required if selector is not None)


def spread_selector(constraint: TopologySpreadConstraint, labels: Labels) -> LabelSelector | None:
    """Return a spread constraint's selector, with the pod's own values for `matchLabelKeys`.

    Keys that the pod lacks are ignored, a nil selector stays nil, and requirements already present
    are not added again. A `{}` selector with a key that the pod has is no longer empty, so it
    counts pods.
    """
    selector = constraint.label_selector
    if selector is None:
        return None
    present = list(selector.match_expressions or ())
    for key in constraint.match_label_keys or ():
        if key in labels:
            own = LabelSelectorRequirement(key=key, operator="In", values=(labels[key],))
            present += [own] if own not in present else []
    if len(present) == len(selector.match_expressions or ()):
        return selector
    return LabelSelector(match_labels=selector.match_labels, match_expressions=tuple(present))


def all_terms(affinity: Affinity) -> Iterable[PodAffinityTerm]:
    """Yield the terms of all six lists of pod affinity and anti-affinity."""
    for rules in (affinity.pod_affinity, affinity.pod_anti_affinity):
        lists = rules or PodAffinity()
        yield from lists.required_during_scheduling_required_during_execution or ()
        yield from lists.required_during_scheduling_ignored_during_execution or ()
        for weighted in lists.preferred_during_scheduling_ignored_during_execution or ():
            yield weighted.pod_affinity_term
