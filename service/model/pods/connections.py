"""Weighted connections between a pod and the pods that it communicates with.

A connection is equivalent to a preferred pod affinity term, but allows a greater weight. Decoding a
spec converts connections to such terms, so that rules need no knowledge of connections.
"""

from msgspec.structs import replace

from service.model.pods.pod import (
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    PodConnection,
    PodSpec,
    WeightedPodAffinityTerm,
)


def with_connections(spec: PodSpec) -> PodSpec:
    """Return a decoded spec with its connections appended as preferred affinity terms."""
    if not spec.connections:
        return spec
    affinity = spec.affinity or Affinity()
    rules = affinity.pod_affinity or PodAffinity()
    stated = rules.preferred_during_scheduling_ignored_during_execution or ()
    terms = (*stated, *map(_term, spec.connections))
    rules = replace(rules, preferred_during_scheduling_ignored_during_execution=terms)
    return replace(spec, affinity=replace(affinity, pod_affinity=rules))


def stated_affinity(spec: PodSpec) -> Affinity:
    """Return a spec's affinity without the terms that were created from its connections."""
    affinity = spec.affinity or Affinity()
    rules = affinity.pod_affinity
    if not spec.connections or rules is None:
        return affinity
    terms = rules.preferred_during_scheduling_ignored_during_execution or ()
    stated = terms[: len(terms) - len(spec.connections)]
    rules = replace(rules, preferred_during_scheduling_ignored_during_execution=stated)
    return replace(affinity, pod_affinity=rules)


def _term(connection: PodConnection) -> WeightedPodAffinityTerm:
    term = PodAffinityTerm(
        topology_key=connection.topology_key,
        label_selector=connection.label_selector,
        namespaces=connection.namespaces,
    )
    return WeightedPodAffinityTerm(weight=connection.weight, pod_affinity_term=term)
