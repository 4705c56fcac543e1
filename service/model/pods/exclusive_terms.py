"""Required anti-affinity against all pods, which admission limits and opportunity cost charges."""

from collections.abc import Iterator

from msgspec.structs import replace

from service.model.core.primitives import LabelSelector
from service.model.core.selectors import is_empty, matches
from service.model.pods.pod import PodAffinityTerm, PodSpec

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""A label that Kubernetes gives every namespace."""

_VARIANTS = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "requiredDuringSchedulingRequiredDuringExecution",
)


def required_terms(
    spec: PodSpec, *, reads_selectors: bool = True
) -> Iterator[tuple[str, PodAffinityTerm]]:
    """Yield the terms of both required variants, each with its path.

    Without `reads_selectors`, they have no `namespaceSelector`.
    """
    rules = spec.affinity.pod_anti_affinity if spec.affinity else None
    if rules is None:
        return
    lists = (
        rules.required_during_scheduling_ignored_during_execution,
        rules.required_during_scheduling_required_during_execution,
    )
    for variant, terms in zip(_VARIANTS, lists, strict=True):
        for index, term in enumerate(terms or ()):
            read = term if reads_selectors else replace(term, namespace_selector=None)
            yield f"spec.affinity.podAntiAffinity.{variant}[{index}]", read


def covers_all_namespaces(term: PodAffinityTerm, *, empty_list_means_all: bool) -> bool:
    """Return whether a term applies to all namespaces that can exist.

    Every requirement excludes some sets of labels, except that a namespace has a name.
    """
    selector = term.namespace_selector
    if selector is not None and is_empty(without_tautologies(selector)):
        return True
    return empty_list_means_all and term.namespaces == ()


def without_tautologies(selector: LabelSelector) -> LabelSelector:
    """Drop the requirements of a namespace selector that Kubernetes makes every namespace meet."""
    kept = tuple(
        requirement
        for requirement in selector.match_expressions or ()
        if (requirement.key, requirement.operator) != (NAMESPACE_NAME, "Exists")
    )
    return LabelSelector(match_labels=selector.match_labels, match_expressions=kept)


def exclusive_keys(
    spec: PodSpec, *, empty_list_means_all: bool, reads_selectors: bool = True
) -> tuple[str, ...]:
    """Return the topology keys in whose domains the pod excludes all others; usually none.

    Such a term matches a pod without labels in a namespace without labels. Its selector is `{}`, or
    one that asks for the absence of labels, which means the same if no namespace has them.
    """
    keys = [
        term.topology_key
        for _, term in required_terms(spec, reads_selectors=reads_selectors)
        if matches(term.label_selector, {})
        and _reaches_anybody(term, empty_list_means_all=empty_list_means_all)
    ]
    return tuple(sorted(set(keys)))


def _reaches_anybody(term: PodAffinityTerm, *, empty_list_means_all: bool) -> bool:
    """Return whether a term applies to a namespace that has no labels but its name."""
    selector = term.namespace_selector
    if selector is not None and matches(without_tautologies(selector), {}):
        return True
    return covers_all_namespaces(term, empty_list_means_all=empty_list_means_all)
