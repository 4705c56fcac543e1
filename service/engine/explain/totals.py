"""The state of a cluster in few figures: what its nodes have left, and how evenly pods are spread."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from service.engine.cluster import Cluster
from service.engine.state.nodes.columns import Ints
from service.engine.state.pods.classes import PodClass
from service.engine.state.pods.spread import SpreadRule

PODS = "pods"


class ResourceTotals(NamedTuple):
    """One resource of all nodes together; milli-units of cpu, and whole units of all others."""

    allocatable: int
    requested: int
    largest_free: int
    """The most that one node has left of it, among those that take new pods."""


class SpreadTotals(NamedTuple):
    """How the pods that a topology spread constraint counts are spread over its domains."""

    namespace: str
    """The namespace of the pods that have the constraint."""
    topology_key: str
    is_hard: bool
    max_skew: int
    skew: int
    """The pods of the fullest eligible domain less those of the emptiest one."""
    counted: int
    """The pods of all eligible domains."""


def resource_totals(cluster: Cluster) -> dict[str, ResourceTotals]:
    """Return the totals of each resource that any node has or any placed pod requests."""
    nodes = cluster.nodes
    if not nodes.size:
        return {}
    totals = {PODS: _totals(cluster, nodes.allowed_pods, nodes.pods)}
    for name in nodes.resources():
        found = _totals(cluster, nodes.allocatable(name), nodes.requested(name))
        if found.allocatable or found.requested:
            totals[name] = found
    return totals


def _totals(cluster: Cluster, allocatable: Ints, requested: Ints) -> ResourceTotals:
    takes_pods = cluster.nodes.alive & ~cluster.nodes.unschedulable
    left = np.where(takes_pods, allocatable - requested, 0)
    return ResourceTotals(
        int(allocatable.sum()), int(requested.sum()), max(int(left.max(initial=0)), 0)
    )


def pods_by_namespace(cluster: Cluster) -> Counter[str]:
    """Count the pods that are on nodes and have not ended."""
    counts: Counter[str] = Counter()
    for pod_class in cluster.placed_classes():
        counts[pod_class.namespace] += sum(pod_class.nodes.values())
    return counts


def spread_totals(cluster: Cluster) -> list[SpreadTotals]:
    """Return the totals of the constraints of placed pods, the greatest skew first.

    Constraints of several templates that count the same pods over the same nodes are told once.
    """
    found: dict[object, SpreadTotals] = {}
    for pod_class in cluster.placed_classes():
        template = pod_class.template
        for rule in template.hard_spread:
            _note(found, pod_class, rule, is_hard=True)
        for rule in template.soft_spread:
            _note(found, pod_class, rule, is_hard=False)
    return sorted(
        found.values(), key=lambda each: (-each.skew, each.namespace, each.topology_key, each)
    )


def _note(
    found: dict[object, SpreadTotals], pod_class: PodClass, rule: SpreadRule, *, is_hard: bool
) -> None:
    domains = rule.included_nodes.nodes_of.get(rule.key.name)
    if rule.counter is None or domains is None or rule.counter.key is not rule.key:
        return
    identity = (pod_class.namespace, id(rule.counter), id(domains), is_hard, rule.max_skew)
    if identity in found:
        return
    existing = domains.counts[:-1] > 0
    counts = rule.counter.counts[: len(existing)][existing]
    skew = int(counts.max() - counts.min()) if len(counts) else 0
    found[identity] = SpreadTotals(
        pod_class.namespace, rule.key.name, is_hard, rule.max_skew, skew, int(counts.sum())
    )
