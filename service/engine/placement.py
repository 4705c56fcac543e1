"""Where a pod goes: all filters on all nodes, then the greatest score; ties by hash.

The fast path reads cached ranks (`service.engine.rows`) and counters. `service.engine.explanation`
asks the same plugins for their reasons, node by node.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.engine.classes import PodClass
from service.engine.cluster import Cluster
from service.engine.columns import Ints, Mask
from service.engine.nodes import TIE_BITS, tie_hash
from service.engine.pipeline import Pipeline
from service.engine.refusal import Refusal, refuse
from service.engine.rows import INFEASIBLE, RowCache
from service.model.objects import Pod

SIGN_BIT = 63


@dataclass(frozen=True, slots=True)
class Placement:
    """A node that passes every filter, and its total score."""

    node_name: str
    score: int


class UnknownSchedulerError(LookupError):
    """The pod's `schedulerName` is no profile of the cluster."""


def place(cluster: Cluster, pod: Pod, hint: str | None = None) -> Placement | Refusal:
    """The best feasible node for a pod; changes nothing.

    A feasible `hint` (the node chosen before a lost race) is kept without a search.
    Raises `UnknownSchedulerError` if the pod's scheduler is no profile.
    """
    pipeline = pipeline_of(cluster, pod)
    pod_class = cluster.class_of(pod)
    rows = cluster.rows(pod_class.template.rules, pipeline)
    ranks = masked(rows.ranks, relation_mask(cluster, pod_class, pipeline))
    if hint is not None and _feasible_at(cluster, ranks, hint):
        ranks = _only(cluster, ranks, hint)
    best = best_placement(cluster, pod, pod_class, rows, ranks)
    return best if best is not None else refuse(cluster, pod_class, pipeline)


def masked(ranks: Ints, mask: Mask | None) -> Ints:
    """Shape (nodes,): the ranks, -1 where the mask is False. In bits: `np.where` is much slower."""
    return ranks if mask is None else ranks | (mask.astype(np.int64) - 1)


def best_placement(
    cluster: Cluster, pod: Pod, pod_class: PodClass, rows: RowCache, ranks: Ints
) -> Placement | None:
    """The node of the greatest total score among those with a rank; None if there is none.

    `ranks` are those of `rows`, shape (nodes,), with more nodes left out perhaps.
    """
    totals = _totals(cluster, pod_class, pipeline_of(cluster, pod), rows, ranks)
    if not len(totals):
        return None
    best = int((totals ^ tie_hash(f"{pod.namespace}/{pod.name}")).argmax())
    rank = int(totals[best])
    if rank < 0:
        return None
    node = cluster.nodes.nodes[best]
    assert node is not None
    return Placement(node.name, (rank >> TIE_BITS) + rows.constant)


def pipeline_of(cluster: Cluster, pod: Pod) -> Pipeline:
    """The profile that the pod's `schedulerName` selects. Raises `UnknownSchedulerError`."""
    pipeline = cluster.pipeline(pod.spec.scheduler_name)
    if pipeline is None:
        raise UnknownSchedulerError(pod.spec.scheduler_name)
    return pipeline


def relation_mask(
    cluster: Cluster, pod_class: PodClass, pipeline: Pipeline, expected: Sequence[PodClass] = ()
) -> Mask | None:
    """Shape (nodes,): what the filters say that look at other pods; None if they exclude none.

    A rule that pods of the `expected` classes may still come to satisfy is taken as satisfied.
    """
    mask: Mask | None = None
    for plugin in (pipeline.topology_spread, pipeline.inter_pod_affinity):
        if pipeline.filters_with(plugin.name) and plugin.concerns(pod_class):
            passing = plugin.admits(cluster.nodes, pod_class, expected)
            if passing is not None:
                mask = passing if mask is None else mask & passing
    return mask


def _feasible_at(cluster: Cluster, ranks: Ints, node_name: str) -> bool:
    slot = cluster.nodes.slots.get(node_name)
    return slot is not None and bool(ranks[slot] >= 0)


def _only(cluster: Cluster, ranks: Ints, node_name: str) -> Ints:
    kept = np.full_like(ranks, INFEASIBLE)
    slot = cluster.nodes.slots[node_name]
    kept[slot] = ranks[slot]
    return kept


def _totals(
    cluster: Cluster, pod_class: PodClass, pipeline: Pipeline, rows: RowCache, ranks: Ints
) -> Ints:
    """Shape (nodes,): final ranks, with the scores that the set of feasible nodes decides."""
    affinity = _affinity_raw(cluster, pod_class, pipeline)
    spreads = "PodTopologySpread" in pipeline.weights and pod_class.template.soft_spread
    if affinity is None and not spreads and not rows.raw:
        return ranks
    infeasible: Ints = ranks >> SIGN_BIT
    extra = np.zeros(len(ranks), dtype=np.int64)
    for plugin, weight in pipeline.raw_scores:
        raw = rows.raw.get(plugin.name)
        if raw is not None:
            extra += weight * plugin.normalize(raw, infeasible)
    if affinity is not None:
        normalized = pipeline.inter_pod_affinity.normalize(affinity, infeasible)
        extra += pipeline.weights["InterPodAffinity"] * normalized
    if spreads:
        scores = spread_scores(cluster, pod_class, pipeline, infeasible)
        extra += pipeline.weights["PodTopologySpread"] * scores
    return (ranks + (extra << TIE_BITS)) | infeasible


def _affinity_raw(cluster: Cluster, pod_class: PodClass, pipeline: Pipeline) -> Ints | None:
    plugin = pipeline.inter_pod_affinity
    if plugin.name not in pipeline.weights:
        return None
    return plugin.raw(cluster.nodes, pod_class)


def spread_scores(
    cluster: Cluster, pod_class: PodClass, pipeline: Pipeline, infeasible: Ints
) -> Ints:
    """Shape (nodes,): PodTopologySpread's scores; 0 for nodes that lack a key."""
    answer = pipeline.topology_spread.raw(cluster.nodes, pod_class, infeasible)
    assert answer is not None
    return pipeline.topology_spread.normalize(*answer)
