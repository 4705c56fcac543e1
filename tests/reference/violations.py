"""Which placed pods break which of their required rules: each taken out and judged where it is."""

from collections.abc import Iterator
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
    """Of all pods that count, by namespace, name and rule."""
    found = [
        Violation(namespace_of(pod), name_of(pod), *broken)
        for node_name, pods in view.pods_on.items()
        for pod in pods
        for broken in broken_rules(without(view, node_name, pod), pod, view.nodes[node_name])
    ]
    return sorted(found, key=lambda each: each[:3])


def without(view: View, node_name: str, pod: Manifest) -> View:
    twin = object.__new__(View)
    twin.settings, twin.nodes = view.settings, view.nodes
    twin.namespace_labels = view.namespace_labels
    left = [each for each in view.pods_on[node_name] if each is not pod]
    twin.pods_on = view.pods_on | {node_name: left}
    return twin


def broken_rules(view: View, pod: Manifest, node: Manifest) -> Iterator[tuple[Any, ...]]:
    yield from broken_node_rules(view, pod, node)
    yield from broken_affinity(view, pod, labels_of(node))
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


def unmet_terms(view: View, pod: Manifest, here: dict[str, str]) -> list[Manifest]:
    """The affinity terms of the pod that its place does not satisfy, all judged together."""
    terms = interpod.required_terms(pod, "podAffinity")
    held = interpod.attracting_domains(view, pod)
    first = interpod.starts_group(view, pod, held)
    domains = [interpod.domain_of(term, here) for term in terms]
    return [
        term
        for term, domain, satisfied in zip(terms, domains, held, strict=True)
        if domain is None or not (first or domain in satisfied)
    ]


def broken_affinity(view: View, pod: Manifest, here: dict[str, str]) -> Iterator[tuple[Any, ...]]:
    """What must last is judged by itself; the rest together with it, as at scheduling."""
    affinity = affinity_of(pod, "podAffinity")
    lasting, rest = affinity.get(ENDURING) or [], affinity.get(IGNORED) or []
    spec = spec_of(pod)
    alone = pod | {"spec": spec | {"affinity": {"podAffinity": {ENDURING: lasting}}}}
    unmet = [id(term) for term in unmet_terms(view, alone, here)]
    unmet_at_scheduling = [id(term) for term in unmet_terms(view, pod, here)]
    unmet_rest = [id(term) for term in rest if id(term) in unmet_at_scheduling]
    if unmet_at_scheduling and not unmet and not unmet_rest:
        unmet_rest = [id(term) for term in rest]
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
            if conflicts:
                yield (
                    f"spec.affinity.podAntiAffinity.{variant}[{index}]",
                    execution,
                    "InterPodAffinity",
                    "node(s) didn't match pod anti-affinity rules",
                    tuple(conflicts),
                )


def broken_spread(view: View, pod: Manifest, node: Manifest) -> Iterator[tuple[Any, ...]]:
    """Each hard constraint; the cluster's own for a pod that has none at all."""
    own = spec_of(pod).get("topologySpreadConstraints")
    path = "spec.topologySpreadConstraints" if own else "defaultTopologySpreadConstraints"
    hard = spread.constraints_of(view, pod, "DoNotSchedule")
    for number, constraint in enumerate(hard):
        index = own.index(constraint) if own else number
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
    selector = spread.selector_of(constraint, pod)
    itself = spread.selector_matches(selector, labels_of(pod))
    return counts.get(here, 0) + itself - least
