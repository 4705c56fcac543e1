"""How long each plugin takes for one pod, for those who watch the scheduler in production."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from service.engine.cluster import Cluster
from service.engine.pipeline import Pipeline
from service.engine.placement import pipeline_of, spread_scores
from service.engine.plugin import RawScore
from service.engine.plugins.inter_pod_affinity import InterPodAffinity
from service.engine.plugins.pod_topology_spread import PodTopologySpread
from service.engine.ranking.candidates import vetoed
from service.engine.state.classes import PodClass
from service.engine.state.columns import ALL, Ints, Mask
from service.engine.state.nodes import NodeTable
from service.engine.state.rules import NodeRules
from service.model.objects import Pod

ExtensionPoint = Literal["Filter", "Score"]
Status = Literal["Success", "Unschedulable"]


class Execution(NamedTuple):
    """One plugin's work at one extension point: for one pod, on all nodes."""

    plugin: str
    extension_point: ExtensionPoint
    status: Status
    """Unschedulable: no node passes this filter."""
    seconds: float


def time_plugins(cluster: Cluster, pod: Pod, now: Callable[[], float]) -> list[Execution]:
    """Have each plugin that the pod concerns judge all nodes afresh; changes nothing.

    Placements keep most of this from pod to pod, so they take much less than the sum. `now` gives
    seconds since some fixed moment. Raises `UnknownSchedulerError`.
    """
    pipeline, pod_class = pipeline_of(cluster, pod), cluster.class_of(pod)
    executions = []
    for name, admits in _filters(cluster.nodes, pipeline, pod_class):
        started = now()
        mask = admits()
        seconds = now() - started
        status: Status = "Success" if mask.any() else "Unschedulable"
        executions.append(Execution(name, "Filter", status, seconds))
    for name, score in _scores(cluster, pipeline, pod_class):
        started = now()
        score()
        executions.append(Execution(name, "Score", "Success", now() - started))
    return executions


def _filters(
    nodes: NodeTable, pipeline: Pipeline, pod_class: PodClass
) -> Iterator[tuple[str, Callable[[], Mask]]]:
    rules = pod_class.template.rules
    for plugin in (*pipeline.static_filters, *pipeline.usage_filters):
        yield plugin.name, partial(plugin.admits, nodes, rules, ALL)
    for relation in (pipeline.topology_spread, pipeline.inter_pod_affinity):
        if pipeline.filters_with(relation.name) and relation.concerns(pod_class):
            yield relation.name, partial(_vetoed, relation, nodes, pod_class)


def _scores(
    cluster: Cluster, pipeline: Pipeline, pod_class: PodClass
) -> Iterator[tuple[str, Callable[[], object]]]:
    nodes, rules = cluster.nodes, pod_class.template.rules
    for plugin, _ in pipeline.node_scores:
        if plugin.applies(rules):
            yield plugin.name, partial(plugin.scores, nodes, rules, ALL)
    for raw_score, _ in pipeline.raw_scores:
        yield raw_score.name, partial(_normalized, raw_score, nodes, rules)
    if pipeline.image_locality.name in pipeline.weights:
        yield (
            pipeline.image_locality.name,
            partial(pipeline.image_locality.scores, nodes, rules, ALL),
        )
    if pipeline.inter_pod_affinity.name in pipeline.weights:
        yield pipeline.inter_pod_affinity.name, partial(_affinity, pipeline, nodes, pod_class)
    if pipeline.topology_spread.name in pipeline.weights and pod_class.template.soft_spread:
        everywhere = np.zeros(nodes.size, dtype=np.int64)
        spread = partial(spread_scores, cluster, pod_class, pipeline, everywhere)
        yield pipeline.topology_spread.name, spread


def _normalized(plugin: RawScore, nodes: NodeTable, rules: NodeRules) -> Ints | None:
    raw = plugin.raw(nodes, rules, ALL)
    return None if raw is None else plugin.normalize(raw, np.zeros_like(raw))


def _affinity(pipeline: Pipeline, nodes: NodeTable, pod_class: PodClass) -> Ints | None:
    plugin = pipeline.inter_pod_affinity
    terms = plugin.scoring_terms(pod_class)
    if not terms:
        return None
    raw = plugin.raw(nodes, terms)
    return plugin.normalize(raw, np.zeros_like(raw))


def _vetoed(
    plugin: InterPodAffinity | PodTopologySpread, nodes: NodeTable, pod_class: PodClass
) -> Mask:
    everywhere = np.zeros(nodes.size, dtype=np.int64)
    passing: Mask = (
        vetoed(everywhere, (each.nodes for each in plugin.vetoes(nodes, pod_class))) == 0
    )
    return passing
