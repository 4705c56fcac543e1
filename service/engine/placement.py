"""Where a pod goes: all filters on all nodes, then the greatest score; ties by hash.

The fast path reads cached ranks (`service.engine.rows`) and counters. `service.engine.explanation`
asks the same plugins for their reasons, node by node.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from service.engine.classes import PodClass
from service.engine.cluster import Cluster
from service.engine.columns import VETO, Ints
from service.engine.nodes import TIE_BITS, NodeTable, tie_hash
from service.engine.pipeline import Pipeline
from service.engine.plugin import DomainScores, Vetoes
from service.engine.refusal import Refusal, refuse
from service.engine.rows import RowCache
from service.engine.topology import TopologyKey
from service.model.objects import Pod

SIGN_BIT = 63


@dataclass(frozen=True, slots=True)
class Placement:
    """A node that passes every filter, and its total score."""

    node_name: str
    score: int


class UnknownSchedulerError(LookupError):
    """The pod's `schedulerName` is no profile of the cluster."""


class Candidates:
    """The nodes among which one placement chooses: ranks of `rows`, with more left out."""

    __slots__ = ("ranks", "rows", "vetoes")

    def __init__(self, rows: RowCache, ranks: Ints, vetoes: Sequence[Vetoes] | None = None) -> None:
        self.rows = rows
        self.ranks = ranks
        """Shape (nodes,): negative for those that are left out."""
        self.vetoes = vetoes
        """What left them out, where that is all."""

    @property
    def infeasible(self) -> Ints:
        """Shape (nodes,): -1 for nodes that are left out, else 0."""
        return self.ranks >> SIGN_BIT

    def vacant(self, key: TopologyKey) -> list[bool]:
        """Per domain of a key of few: whether no candidate is in it; last, of those without it."""
        vetoes = self.vetoes
        if vetoes is None or any(each.key is not key or not each.by_domain for each in vetoes):
            occupied = np.zeros(key.capacity + 1, dtype=np.bool_)
            occupied[key.domain_of[self.ranks >= 0]] = True
            return (~occupied).tolist()
        vacant = [not nodes for nodes in self.rows.feasible_in(key)]
        for each in vetoes:
            vacant = [
                one or veto < 0 for one, veto in zip(vacant, each.by_domain or (), strict=True)
            ]
        return vacant


def place(cluster: Cluster, pod: Pod, hint: str | None = None) -> Placement | Refusal:
    """The best feasible node for a pod; changes nothing.

    A feasible `hint` (the node chosen before a lost race) is kept without a search.
    Raises `UnknownSchedulerError` if the pod's scheduler is no profile.
    """
    pipeline = pipeline_of(cluster, pod)
    pod_class = cluster.class_of(pod)
    rows = cluster.rows(pod_class.template.rules, pipeline)
    vetoes = relation_vetoes(cluster.nodes, pod_class, pipeline)
    candidates = Candidates(rows, vetoed(rows.ranks, vetoes), vetoes)
    if hint is not None and _feasible_at(cluster, candidates.ranks, hint):
        candidates = Candidates(rows, _only(cluster, candidates.ranks, hint))
    best = best_placement(cluster, pod, pod_class, candidates)
    return best if best is not None else refuse(cluster, pod_class, pipeline)


def vetoed(ranks: Ints, vetoes: Iterable[Vetoes]) -> Ints:
    """Shape (nodes,): the ranks, negative where any rule excludes the node."""
    for each in vetoes:
        ranks = ranks | each.nodes
    return ranks


def best_placement(
    cluster: Cluster, pod: Pod, pod_class: PodClass, candidates: Candidates
) -> Placement | None:
    """The candidate of the greatest total score; None if there is none."""
    totals = candidates.ranks
    for scores in _relative_scores(cluster, pod_class, pipeline_of(cluster, pod), candidates):
        totals = totals + scores
    if not len(totals):
        return None
    best = int((totals ^ tie_hash(f"{pod.namespace}/{pod.name}")).argmax())
    rank = int(totals[best])
    if rank < 0:
        return None
    node = cluster.nodes.nodes[best]
    assert node is not None
    return Placement(node.name, (rank >> TIE_BITS) + candidates.rows.constant)


def pipeline_of(cluster: Cluster, pod: Pod) -> Pipeline:
    """The profile that the pod's `schedulerName` selects. Raises `UnknownSchedulerError`."""
    pipeline = cluster.pipeline(pod.spec.scheduler_name)
    if pipeline is None:
        raise UnknownSchedulerError(pod.spec.scheduler_name)
    return pipeline


def relation_vetoes(
    nodes: NodeTable, pod_class: PodClass, pipeline: Pipeline, expected: Sequence[PodClass] = ()
) -> list[Vetoes]:
    """What the filters exclude that look at other pods.

    A rule that pods of the `expected` classes may still come to satisfy is taken as satisfied.
    """
    vetoes: list[Vetoes] = []
    for plugin in (pipeline.topology_spread, pipeline.inter_pod_affinity):
        if pipeline.filters_with(plugin.name) and plugin.concerns(pod_class):
            vetoes += plugin.vetoes(nodes, pod_class, expected)
    return vetoes


def _feasible_at(cluster: Cluster, ranks: Ints, node_name: str) -> bool:
    slot = cluster.nodes.slots.get(node_name)
    return slot is not None and bool(ranks[slot] >= 0)


def _only(cluster: Cluster, ranks: Ints, node_name: str) -> Ints:
    kept = np.full_like(ranks, VETO)
    slot = cluster.nodes.slots[node_name]
    kept[slot] = ranks[slot]
    return kept


def _relative_scores(
    cluster: Cluster, pod_class: PodClass, pipeline: Pipeline, candidates: Candidates
) -> Iterator[Ints]:
    """Shapes (nodes,): weighed scores that depend on who the candidates are, to add to ranks."""
    for plugin, weight in pipeline.raw_scores if candidates.rows.raw else ():
        raw = candidates.rows.raw.get(plugin.name)
        if raw is not None:
            yield (weight << TIE_BITS) * plugin.normalize(raw, candidates.ranks)
    affinity, weights = pipeline.inter_pod_affinity, pipeline.weights
    terms = affinity.scoring_terms(pod_class) if affinity.name in weights else ()
    if terms:
        by_domain = affinity.by_domain(terms, candidates.vacant)
        if by_domain is None:
            scores = affinity.normalize(affinity.raw(cluster.nodes, terms), candidates.ranks)
            yield (weights[affinity.name] << TIE_BITS) * scores
        else:
            yield _on_nodes(by_domain, weights[affinity.name])
    spread = pipeline.topology_spread
    if pod_class.template.soft_spread and spread.name in weights:
        by_domain = spread.by_domain(pod_class, candidates.vacant)
        if by_domain is None:
            scores = spread_scores(cluster, pod_class, pipeline, candidates.infeasible)
            yield (weights[spread.name] << TIE_BITS) * scores
        else:
            yield _on_nodes(by_domain, weights[spread.name])


def _on_nodes(by_domain: DomainScores, weight: int) -> Ints:
    key, scores = by_domain
    return key.on_nodes(np.array([weight * each << TIE_BITS for each in scores]))


def spread_scores(
    cluster: Cluster, pod_class: PodClass, pipeline: Pipeline, infeasible: Ints
) -> Ints:
    """Shape (nodes,): PodTopologySpread's scores; 0 for nodes that lack a key."""
    answer = pipeline.topology_spread.raw(cluster.nodes, pod_class, infeasible)
    assert answer is not None
    return pipeline.topology_spread.normalize(*answer)
