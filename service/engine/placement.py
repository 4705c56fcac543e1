"""Where a pod goes: all filters on all nodes, then the greatest score; ties by hash.

The fast path reads cached ranks (`service.engine.ranking.rank_cache`) and counters. `service.engine.questions.explanation`
asks the same plugins for their reasons, node by node.
"""

from collections.abc import Sequence
from typing import NamedTuple

from service.engine.cluster import Cluster
from service.engine.pipeline import Pipeline
from service.engine.plugin import DomainScores
from service.engine.plugins.node_affinity import NAME as NODE_AFFINITY
from service.engine.ranking.candidates import Candidates
from service.engine.refusal import Refusal, refuse
from service.engine.state.classes import PodClass
from service.engine.state.columns import Ints
from service.engine.state.nodes import NodeTable
from service.engine.state.ranks import TIE_BITS, tie_hash
from service.engine.state.vetoes import Vetoes
from service.engine.state.views import Weighed
from service.model.objects import Pod


class Placement(NamedTuple):
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
    vetoes = relation_vetoes(cluster.nodes, pod_class, pipeline)
    candidates = candidates_of(cluster, pod_class, pipeline, vetoes)
    kept = None if hint is None else cluster.nodes.slots.get(hint)
    if kept is not None and candidates.has(kept):
        candidates = Candidates(cluster.nodes, candidates.rows, vetoes, only=[kept])
    best = best_placement(cluster, pod, pod_class, candidates)
    return best if best is not None else refuse(cluster, pod_class, pipeline)


def best_placement(
    cluster: Cluster, pod: Pod, pod_class: PodClass, candidates: Candidates
) -> Placement | None:
    """The candidate of the greatest total score; None if there is none."""
    if not cluster.nodes.size:
        return None
    pipeline = pipeline_of(cluster, pod)
    terms = _scoring_terms(pod_class, pipeline)
    tie = tie_hash(f"{pod.namespace}/{pod.name}")
    best = None
    if terms and not _scores_spread(pod_class, pipeline):
        best = candidates.best_by_affinity(terms, pipeline.affinity_scale, tie)
    if best is None:
        scores = _relative_scores(cluster, pod_class, pipeline, terms, candidates)
        best = candidates.best(scores, tie)
    slot, rank = best
    if rank < 0:
        return None
    node = cluster.nodes.nodes[slot]
    assert node is not None
    return Placement(node.name, (rank >> TIE_BITS) + candidates.rows.constant)


def pipeline_of(cluster: Cluster, pod: Pod) -> Pipeline:
    """The profile that the pod's `schedulerName` selects. Raises `UnknownSchedulerError`."""
    pipeline = cluster.pipeline(pod.spec.scheduler_name)
    if pipeline is None:
        raise UnknownSchedulerError(pod.spec.scheduler_name)
    return pipeline


def candidates_of(
    cluster: Cluster, pod_class: PodClass, pipeline: Pipeline, vetoes: Sequence[Vetoes]
) -> Candidates:
    """The nodes that pods of a class may choose from, given what rules on other pods exclude."""
    rules, nodes = pod_class.template.rules, cluster.nodes
    only = None
    if rules.named is not None and pipeline.filters_with(NODE_AFFINITY):
        only = [nodes.slots[name] for name in rules.named if name in nodes.slots]
    return Candidates(nodes, cluster.rows(rules, pipeline), vetoes, only)


def relation_vetoes(
    nodes: NodeTable, pod_class: PodClass, pipeline: Pipeline, expected: Sequence[PodClass] = ()
) -> list[Vetoes]:
    """What the filters exclude that look at other pods.

    A rule that pods of the `expected` classes may still come to satisfy is taken as satisfied.
    """
    vetoes: list[Vetoes] = []
    for plugin in (pipeline.topology_spread, pipeline.inter_pod_affinity):
        if pipeline.filters_with(plugin.name) and plugin.concerns(pod_class):
            vetoes += [v for v in plugin.vetoes(nodes, pod_class, expected) if v.may_exclude]
    return vetoes


def _scoring_terms(pod_class: PodClass, pipeline: Pipeline) -> tuple[Weighed, ...]:
    affinity = pipeline.inter_pod_affinity
    return affinity.scoring_terms(pod_class) if affinity.name in pipeline.weights else ()


def _scores_spread(pod_class: PodClass, pipeline: Pipeline) -> bool:
    return bool(pod_class.template.soft_spread) and (
        pipeline.topology_spread.name in pipeline.weights
    )


def _relative_scores(
    cluster: Cluster,
    pod_class: PodClass,
    pipeline: Pipeline,
    terms: tuple[Weighed, ...],
    candidates: Candidates,
) -> list[DomainScores | Ints]:
    """Weighed scores that depend on who the candidates are; those per node shifted like ranks."""
    answer: list[DomainScores | Ints] = []
    for plugin, weight in pipeline.raw_scores if candidates.rows.raw else ():
        raw = candidates.rows.raw.get(plugin.name)
        if raw is not None:
            answer.append((weight << TIE_BITS) * plugin.normalize(raw, candidates.ranks))
    affinity, weights = pipeline.inter_pod_affinity, pipeline.weights
    if terms:
        weight = weights[affinity.name]
        by_domain = affinity.by_domain(terms, candidates.vacant)
        if by_domain is None:
            raw = affinity.raw(cluster.nodes, terms)
            scores = affinity.weighed(raw, candidates.ranks, weight << TIE_BITS)
            if scores is not None:
                answer.append(scores)
        else:
            answer.append(by_domain.weighed(weight))
    spread = pipeline.topology_spread
    if _scores_spread(pod_class, pipeline):
        weight = weights[spread.name]
        by_domain = spread.by_domain(pod_class, candidates.vacant)
        if by_domain is None:
            scores = spread_scores(cluster, pod_class, pipeline, candidates.infeasible)
            answer.append((weight << TIE_BITS) * scores)
        else:
            answer.append(by_domain.weighed(weight))
    return answer


def spread_scores(
    cluster: Cluster, pod_class: PodClass, pipeline: Pipeline, infeasible: Ints
) -> Ints:
    """Shape (nodes,): PodTopologySpread's scores; 0 for nodes that lack a key."""
    answer = pipeline.topology_spread.raw(cluster.nodes, pod_class, infeasible)
    assert answer is not None
    return pipeline.topology_spread.normalize(*answer)
