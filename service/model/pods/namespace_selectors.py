"""Access to the `namespaceSelector`s of pod affinity and anti-affinity terms."""

from collections.abc import Iterator

from service.model.core.metadata import Json
from service.model.core.validators import entries_of, items_of
from service.model.pods.affinity import all_terms
from service.model.pods.pod import Affinity

_SELECTOR = "namespaceSelector"
_SIDES = ("podAffinity", "podAntiAffinity")
_REQUIRED = (
    "requiredDuringSchedulingRequiredDuringExecution",
    "requiredDuringSchedulingIgnoredDuringExecution",
)
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def uses_namespace_selector(affinity: Affinity | None) -> bool:
    """Return whether any term has a namespace selector."""
    return affinity is not None and any(
        term.namespace_selector is not None for term in all_terms(affinity)
    )


def namespace_selectors(spec: Json) -> Iterator[tuple[str, Json]]:
    """Yield the path of each namespace selector in a decoded spec, and the term that has it."""
    affinity = entries_of(spec.get("affinity"))
    for side in _SIDES:
        for path, term in _decoded_terms(entries_of(affinity.get(side))):
            if term.get(_SELECTOR) is not None:
                yield f"spec.affinity.{side}.{path}.{_SELECTOR}", term


def without_namespace_selectors(spec: Json) -> Json:
    """Remove all namespace selectors from the terms of a decoded spec, in place."""
    for _, term in namespace_selectors(spec):
        del term[_SELECTOR]
    return spec


def _decoded_terms(rules: Json) -> Iterator[tuple[str, Json]]:
    for variant in _REQUIRED:
        for index, term in enumerate(items_of(rules.get(variant))):
            yield f"{variant}[{index}]", entries_of(term)
    for index, weighted in enumerate(items_of(rules.get(_PREFERRED))):
        term = entries_of(entries_of(weighted).get("podAffinityTerm"))
        yield f"{_PREFERRED}[{index}].podAffinityTerm", term
