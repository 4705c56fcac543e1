"""Required anti-affinity against all pods, which admission limits and quotas charge for."""

from collections.abc import Iterator

from msgspec.structs import replace

from service.model.core.primitives import LabelSelector
from service.model.core.selectors import is_empty, matches
from service.model.pods.pod import PodAffinityTerm, PodSpec

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label with a namespace's name, which Kubernetes sets on every namespace."""

_VARIANTS = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "requiredDuringSchedulingRequiredDuringExecution",
)


def required_terms(
    spec: PodSpec, *, reads_selectors: bool = True
) -> Iterator[tuple[str, PodAffinityTerm]]:
    """Yield the required anti-affinity terms of both forms, each with its path.

    If `reads_selectors` is false, each term's `namespaceSelector` is dropped.
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
    """Return whether a term applies to every namespace that can exist.

    Any requirement excludes some namespaces, except the one that a name label exists.
    """
    selector = term.namespace_selector
    if selector is not None and is_empty(without_tautologies(selector)):
        return True
    return empty_list_means_all and term.namespaces == ()


def without_tautologies(selector: LabelSelector) -> LabelSelector:
    """Drop the requirements of a namespace selector that every namespace in Kubernetes meets."""
    kept = tuple(
        requirement
        for requirement in selector.match_expressions or ()
        if (requirement.key, requirement.operator) != (NAMESPACE_NAME, "Exists")
    )
    return LabelSelector(match_labels=selector.match_labels, match_expressions=kept)


def exclusive_keys(
    spec: PodSpec, *, empty_list_means_all: bool, reads_selectors: bool = True
) -> tuple[str, ...]:
    """Return the topology keys whose domains the pod reserves for itself; usually none.

    Such a key belongs to a required anti-affinity term that matches a pod without labels in a
    namespace without labels other than its name. Selectors that require the absence of labels are
    treated like `{}`.
    """
    keys = [
        term.topology_key
        for _, term in required_terms(spec, reads_selectors=reads_selectors)
        if matches(term.label_selector, {})
        and _reaches_anybody(term, empty_list_means_all=empty_list_means_all)
    ]
    return tuple(sorted(set(keys)))


def _reaches_anybody(term: PodAffinityTerm, *, empty_list_means_all: bool) -> bool:
    """Return whether a term applies to a namespace that has only its name label."""
    selector = term.namespace_selector
    if selector is not None and matches(without_tautologies(selector), {}):
        return True
    return covers_all_namespaces(term, empty_list_means_all=empty_list_means_all)
