"""Which placed pods break which of their required rules: each taken out and judged where it is."""

from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

from tests.reference import interpod, spread
from tests.reference.selectors import node_selector_matches
from tests.reference.view import (
    REQUIRED,
    Manifest,
    View,
    affinity_of,
    labels_of,
    name_of,
    namespace_of,
    spec_of,
)

ENDURING, IGNORED = REQUIRED
NODE_REASON = "node(s) didn't match Pod's node affinity/selector"


class Violation(NamedTuple):
    namespace: str
    name: str
    rule: str
    execution: str
    plugin: str
    reason: str
    conflicts: tuple[tuple[str, str], ...] = ()
    skew: int | None = None


def violations(view: View) -> list[Violation]:
    """Return the violations of all pods that count, by namespace, name and rule."""
    found = [
        Violation(namespace_of(pod), name_of(pod), *broken)
        for node_name, pods in view.pods_on.items()
        for pod in pods
        for broken in broken_rules(
            without(view, node_name, pod),
            pod,
            view.nodes[node_name],
            without_terms=is_exempt(view, pod),
        )
    ]
    return sorted(found, key=lambda each: each[:3])


def is_exempt(view: View, pod: Manifest) -> bool:
    """Whether it is the oldest of the siblings that break affinity which is for scheduling only."""
    breaking = [
        each
        for node_name, pods in view.pods_on.items()
        for each in pods
        if interpod.are_siblings(pod, each)
        and any(
            execution == "Ignored"
            for _, execution, *_ in broken_affinity(
                without(view, node_name, each), each, labels_of(view.nodes[node_name])
            )
        )
    ]
    return bool(breaking) and min(breaking, key=age_of) is pod


def age_of(pod: Manifest) -> tuple[str, str, str]:
    created = pod["metadata"].get("creationTimestamp") or ""
    return created, namespace_of(pod), name_of(pod)


def without(view: View, node_name: str, pod: Manifest) -> View:
    twin = copy(view)
    left = [each for each in view.pods_on[node_name] if each is not pod]
    twin.pods_on = view.pods_on | {node_name: left}
    return twin


def broken_rules(
    view: View, pod: Manifest, node: Manifest, *, without_terms: bool
) -> Iterator[tuple[Any, ...]]:
    """`without_terms`: the terms are left out that have `firstPodExempt`."""
    yield from broken_node_rules(view, pod, node)
    yield from broken_affinity(view, pod, labels_of(node), without_terms=without_terms)
    yield from broken_anti_affinity(view, pod, labels_of(node))
    yield from broken_spread(view, pod, node)


def broken_node_rules(view: View, pod: Manifest, node: Manifest) -> Iterator[tuple[Any, ...]]:
    told = ("NodeAffinity", NODE_REASON)
    wanted = spec_of(pod).get("nodeSelector") or {}
    if any(labels_of(node).get(key) != value for key, value in wanted.items()):
        yield ("spec.nodeSelector", "Ignored", *told)
    affinity = affinity_of(pod, "nodeAffinity")
    for variant, execution in ((ENDURING, "Required"), (IGNORED, "Ignored")):
        selector = affinity.get(variant)
        if selector is not None and not node_selector_matches(view, selector, node):
            yield (f"spec.affinity.nodeAffinity.{variant}", execution, *told)


def unmet_terms(
    view: View, pod: Manifest, terms: list[Manifest], here: dict[str, str]
) -> list[Manifest]:
    """The affinity terms of the pod that its place does not satisfy, all judged together."""
    held = interpod.attracting_domains(view, pod, terms)
    waived = interpod.starts_groups(view, pod, terms, held)
    domains = [interpod.domain_of(term, here) for term in terms]
    return [
        term
        for term, domain, satisfied, first in zip(terms, domains, held, waived, strict=True)
        if domain is None or not (first or domain in satisfied)
    ]


def broken_affinity(
    view: View, pod: Manifest, here: dict[str, str], *, without_terms: bool = False
) -> Iterator[tuple[Any, ...]]:
    """What must last is judged by itself; the rest together with it, as at scheduling."""
    affinity = affinity_of(pod, "podAffinity")
    lasting, rest = affinity.get(ENDURING) or [], affinity.get(IGNORED) or []
    holding = [term for term in rest if not (without_terms and term.get("firstPodExempt"))]
    unmet = [id(term) for term in unmet_terms(view, pod, lasting, here)]
    together = unmet_terms(view, pod, [*lasting, *holding], here)
    unmet_at_scheduling = [id(term) for term in together]
    unmet_rest = [id(term) for term in holding if id(term) in unmet_at_scheduling]
    if unmet_at_scheduling and not unmet and not unmet_rest:
        unmet_rest = [id(term) for term in holding]
    told = ("InterPodAffinity", "node(s) didn't match pod affinity rules")
    for variant, execution, terms, broken in (
        (ENDURING, "Required", lasting, unmet),
        (IGNORED, "Ignored", rest, unmet_rest),
    ):
        for index, term in enumerate(terms):
            if id(term) in broken:
                yield (f"spec.affinity.podAffinity.{variant}[{index}]", execution, *told)


def broken_anti_affinity(
    view: View, pod: Manifest, here: dict[str, str]
) -> Iterator[tuple[Any, ...]]:
    affinity = affinity_of(pod, "podAntiAffinity")
    for variant, execution in ((ENDURING, "Required"), (IGNORED, "Ignored")):
        for index, term in enumerate(affinity.get(variant) or []):
            domain = interpod.domain_of(term, here)
            conflicts = sorted(
                (namespace_of(other), name_of(other))
                for other, labels in view.placed()
                if domain
                and interpod.domain_of(term, labels) == domain
                and interpod.repels(view, term, pod, other)
            )
            limit = term.get("maxPerDomain")
            itself = interpod.repels(view, term, pod, pod)
            if len(conflicts) > (0 if limit is None else limit - itself):
                verdict = interpod.ANTI_AFFINITY if limit is None else interpod.FULL
                yield (
                    f"spec.affinity.podAntiAffinity.{variant}[{index}]",
                    execution,
                    "InterPodAffinity",
                    *verdict.reasons,
                    tuple(conflicts),
                )


def broken_spread(view: View, pod: Manifest, node: Manifest) -> Iterator[tuple[Any, ...]]:
    """Each hard constraint; the cluster's own for a pod that has none at all."""
    own = spec_of(pod).get("topologySpreadConstraints")
    path = "spec.topologySpreadConstraints" if own else "defaultTopologySpreadConstraints"
    hard = spread.constraints_of(view, pod, "DoNotSchedule")
    for constraint in hard:
        index = own.index(constraint) if own else constraint["index"]
        told = (f"{path}[{index}]", "Ignored", "PodTopologySpread")
        here = labels_of(node).get(constraint["topologyKey"])
        if here is None:
            yield (*told, f"{spread.UNEVEN} (missing required label)")
            continue
        skew = skew_at(view, pod, constraint, hard, here)
        if skew > constraint.get("maxSkew", 1):
            yield (*told, spread.UNEVEN, (), skew)


def skew_at(
    view: View, pod: Manifest, constraint: Manifest, hard: list[Manifest], here: str
) -> int:
    """With the pod there, and not counted otherwise."""
    counts: dict[str, int] = {}
    for value, count in spread.pods_per_node(view, pod, constraint, hard):
        counts[value] = counts.get(value, 0) + count
    enough = len(counts) >= (constraint.get("minDomains") or 1)
    least = min(counts.values()) if enough else 0
    itself = spread.counts_itself(view, constraint, pod)
    return counts.get(here, 0) + itself - least
