"""Totals of a cluster: the free resources of its nodes, and the evenness of spread."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from service.engine.cluster import Cluster
from service.engine.state.nodes.columns import Ints
from service.engine.state.pods.classes import PodClass
from service.engine.state.pods.spread import SpreadRule

PODS = "pods"


class ResourceTotals(NamedTuple):
    """The totals of one resource over all nodes, in milli-units for cpu, else in whole units."""

    allocatable: int
    requested: int
    largest_free: int
    """The largest free amount on any node that accepts new pods."""


class SpreadTotals(NamedTuple):
    """The distribution over domains of the pods that a topology spread constraint counts."""

    namespace: str
    """The namespace of the pods that have the constraint."""
    topology_key: str
    is_hard: bool
    max_skew: int
    skew: int
    """The number of pods in the fullest included domain minus the number in the emptiest."""
    counted: int
    """The number of pods in all included domains."""


def resource_totals(cluster: Cluster) -> dict[str, ResourceTotals]:
    """Return the totals of each resource that any node has or any placed pod requests."""
    nodes = cluster.nodes
    if not nodes.size:
        return {}
    totals = {PODS: _totals(cluster, nodes.allowed_pods, nodes.pods)}
    for name in nodes.resources():
        total = _totals(cluster, nodes.allocatable(name), nodes.requested(name))
        if total.allocatable or total.requested:
            totals[name] = total
    return totals


def _totals(cluster: Cluster, allocatable: Ints, requested: Ints) -> ResourceTotals:
    takes_pods = cluster.nodes.alive & ~cluster.nodes.unschedulable
    left = np.where(takes_pods, allocatable - requested, 0)
    return ResourceTotals(
        int(allocatable.sum()), int(requested.sum()), max(int(left.max(initial=0)), 0)
    )


def pods_by_namespace(cluster: Cluster) -> Counter[str]:
    """Count the unfinished pods on nodes, by namespace."""
    counts: Counter[str] = Counter()
    for pod_class in cluster.placed_classes():
        counts[pod_class.namespace] += sum(pod_class.nodes.values())
    return counts


def spread_totals(cluster: Cluster) -> list[SpreadTotals]:
    """Return the totals of placed pods' spread constraints, in descending order of skew.

    Constraints of several templates that count the same pods over the same nodes are listed once.
    """
    totals: dict[object, SpreadTotals] = {}
    for pod_class in cluster.placed_classes():
        template = pod_class.template
        for rule in template.hard_spread:
            _note(totals, pod_class, rule, is_hard=True)
        for rule in template.soft_spread:
            _note(totals, pod_class, rule, is_hard=False)
    return sorted(
        totals.values(), key=lambda total: (-total.skew, total.namespace, total.topology_key, total)
    )


def _note(
    totals: dict[object, SpreadTotals], pod_class: PodClass, rule: SpreadRule, *, is_hard: bool
) -> None:
    domains = rule.included_nodes.nodes_of.get(rule.key.name)
    if rule.counter is None or domains is None or rule.counter.key is not rule.key:
        return
    identity = (pod_class.namespace, id(rule.counter), id(domains), is_hard, rule.max_skew)
    if identity in totals:
        return
    existing = domains.counts[:-1] > 0
    counts = rule.counter.counts[: len(existing)][existing]
    skew = int(counts.max() - counts.min()) if len(counts) else 0
    totals[identity] = SpreadTotals(
        pod_class.namespace, rule.key.name, is_hard, rule.max_skew, skew, int(counts.sum())
    )
