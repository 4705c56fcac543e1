"""Where a pod goes: all filters on all nodes, then the greatest score; ties by hash.

The fast path reads cached ranks (`service.engine.ranking.rank_cache`) and counters. `service.engine.questions.explanation`
asks the same plugins for their reasons, node by node.
"""

from collections.abc import Sequence
from typing import NamedTuple

from service.engine.cluster import Cluster
from service.engine.pipeline import Pipeline, RelativeWeight
from service.engine.plugin import DomainScores, RelativeScore
from service.engine.ranking.candidates import Candidates
from service.engine.refusal import Refusal, refuse
from service.engine.state.classes import PodClass
from service.engine.state.columns import Ints
from service.engine.state.nodes import NodeTable
from service.engine.state.rank_bits import TIE_BITS, tie_hash
from service.engine.state.vetoes import Vetoes
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
    relations = _relations(cluster.nodes, pod_class, pipeline)
    tie = tie_hash(f"{pod.namespace}/{pod.name}")
    best = None
    if len(relations) == 1:
        score, weighed = relations[0]
        if score.terms:
            best = candidates.best_by_affinity(score.terms, weighed.scale, tie)
    if best is None:
        best = candidates.best(_relative_scores(relations, candidates), tie)
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
    if rules.named is not None and pipeline.narrowing:
        only = [nodes.slots[name] for name in rules.named if name in nodes.slots]
    return Candidates(nodes, cluster.rows(rules, pipeline), vetoes, only)


def relation_vetoes(
    nodes: NodeTable, pod_class: PodClass, pipeline: Pipeline, expected: Sequence[PodClass] = ()
) -> list[Vetoes]:
    """What the filters exclude that look at other pods.

    A rule that pods of the `expected` classes may still come to satisfy is taken as satisfied.
    """
    vetoes: list[Vetoes] = []
    for plugin in pipeline.relation_filters:
        if plugin.concerns(pod_class):
            vetoes += [v for v in plugin.vetoes(nodes, pod_class, expected) if v.may_exclude]
    return vetoes


def _relations(
    nodes: NodeTable, pod_class: PodClass, pipeline: Pipeline
) -> list[tuple[RelativeScore, RelativeWeight]]:
    """The relations to other pods by which pods of a class are scored, each with its weight."""
    answer = []
    for each in pipeline.relation_scores:
        score = each.plugin.scoring(nodes, pod_class)
        if score is not None:
            answer.append((score, each))
    return answer


def _relative_scores(
    relations: list[tuple[RelativeScore, RelativeWeight]], candidates: Candidates
) -> list[DomainScores | Ints]:
    """Weighed scores that depend on who the candidates are; those per node shifted like ranks."""
    answer: list[DomainScores | Ints] = []
    for plugin, weight, raw in candidates.rows.raw:
        answer.append((weight << TIE_BITS) * plugin.normalize(raw, candidates.ranks))
    for score, relative in relations:
        weight = relative.weight
        by_domain = score.by_domain(candidates.vacant)
        if by_domain is not None:
            answer.append(by_domain.weighed(weight))
            continue
        scores = score.on_nodes(candidates.ranks, weight << TIE_BITS)
        if scores is not None:
            answer.append(scores)
    return answer
