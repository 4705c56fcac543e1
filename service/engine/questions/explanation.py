"""Every plugin's own verdict on every node, for people and for the conformance vectors."""

import msgspec
import numpy as np

from service.engine.cluster import Cluster
from service.engine.pipeline import Pipeline
from service.engine.placement import pipeline_of
from service.engine.plugin import Failure
from service.engine.refusal import Narrowing, failures_of, narrowing_of, refuse
from service.engine.state.classes import PodClass
from service.engine.state.columns import ALL, Ints, Mask
from service.engine.state.nodes import NodeTable
from service.model.objects import Pod

Verdicts = dict[str, dict[str, list[str]]]
"""Plugin to node to reasons."""


class Prefilter(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A PreFilter that rejected every node."""

    plugin: str
    code: str
    reasons: list[str]


class Explanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`explain: Full`: what every plugin says of every node, on its own."""

    prefilter: Prefilter | None
    prefilter_nodes: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Only where node affinity narrowed the nodes by name."""
    filters: Verdicts
    """Failing entries only."""
    unresolvable: dict[str, list[str]]
    feasible: list[str]
    scores: dict[str, dict[str, int]]
    """Plugin to node to 0 to 100, normalised, before its weight; feasible nodes only."""
    score_skipped: list[str]
    total: dict[str, int]
    best: list[str]
    message: str | None
    semantics: str


class Summary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`explain: Summary`: how many nodes fail first for which reason."""

    message: str | None
    feasible_count: int
    nodes: int
    reasons: dict[str, dict[str, int]]
    semantics: str


def explain(cluster: Cluster, pod: Pod) -> Explanation:
    """The full explanation; changes nothing. Raises `UnknownSchedulerError`."""
    pipeline = pipeline_of(cluster, pod)
    pod_class = cluster.class_of(pod)
    semantics = cluster.config.semantics
    narrowed = narrowing_of(pod_class, pipeline) if cluster.nodes.count else None
    if narrowed is not None and not narrowed.names:
        return _conflict(narrowed, refuse(cluster, pod_class, pipeline).message, semantics)
    failures = failures_of(cluster, pod_class, pipeline)
    slots = _feasible_slots(cluster, failures, narrowed)
    scores = _scores(cluster, pod_class, pipeline, slots)
    total = sum(
        (pipeline.weights[name] * vector for name, vector in scores.items()),
        np.zeros(len(slots), dtype=np.int64),
    )
    names = [_name(cluster.nodes, slot) for slot in slots]
    top = int(total.max(initial=0))
    refusal = None if len(slots) else refuse(cluster, pod_class, pipeline)
    return Explanation(
        prefilter=None,
        prefilter_nodes=msgspec.UNSET if narrowed is None else sorted(narrowed.names),
        filters=_verdicts(cluster.nodes, failures),
        unresolvable=_unresolvable(cluster.nodes, failures),
        feasible=sorted(names),
        scores={name: _by_name(names, vector) for name, vector in scores.items()},
        score_skipped=sorted(pipeline.weights.keys() - scores.keys()) if len(slots) else [],
        total=_by_name(names, total),
        best=sorted(name for name, each in zip(names, total, strict=True) if each == top),
        message=None if refusal is None else refusal.message,
        semantics=semantics,
    )


def summarize(cluster: Cluster, pod: Pod) -> Summary:
    """The counts only; changes nothing. Raises `UnknownSchedulerError`."""
    pipeline = pipeline_of(cluster, pod)
    pod_class = cluster.class_of(pod)
    failures = failures_of(cluster, pod_class, pipeline)
    narrowed = narrowing_of(pod_class, pipeline)
    feasible = len(_feasible_slots(cluster, failures, narrowed))
    answer = refuse(cluster, pod_class, pipeline)
    return Summary(
        message=None if feasible else answer.message,
        feasible_count=feasible,
        nodes=cluster.nodes.count,
        reasons=answer.reasons,
        semantics=cluster.config.semantics,
    )


def check(cluster: Cluster, pod: Pod, node_name: str) -> dict[str, list[str]]:
    """Plugin to reasons why the pod does not fit on that node; empty if it fits.

    Raises KeyError for an unknown node, `UnknownSchedulerError` for an unknown scheduler.
    """
    pipeline = pipeline_of(cluster, pod)
    slot = cluster.nodes.slots[node_name]
    failures = failures_of(cluster, cluster.class_of(pod), pipeline)
    reasons = {
        plugin: [failure.reason for failure in each if failure.nodes[slot]]
        for plugin, each in failures.items()
    }
    return {plugin: each for plugin, each in reasons.items() if each}


def _conflict(narrowed: Narrowing, message: str, semantics: str) -> Explanation:
    return Explanation(
        prefilter=Prefilter(
            plugin=narrowed.plugin,
            code="UnschedulableAndUnresolvable",
            reasons=[narrowed.conflict],
        ),
        filters={},
        unresolvable={},
        feasible=[],
        scores={},
        score_skipped=[],
        total={},
        best=[],
        message=message,
        semantics=semantics,
    )


def _feasible_slots(
    cluster: Cluster, failures: dict[str, list[Failure]], narrowed: Narrowing | None
) -> Ints:
    nodes = cluster.nodes
    mask = nodes.alive.copy()
    for each in failures.values():
        for failure in each:
            mask &= ~failure.nodes
    slots: Ints = np.flatnonzero(mask)
    if narrowed is None:
        return slots
    return np.array([s for s in slots if _name(nodes, s) in narrowed.names], dtype=np.int64)


def _scores(
    cluster: Cluster, pod_class: PodClass, pipeline: Pipeline, slots: Ints
) -> dict[str, Ints]:
    """Plugin to normalised scores of the feasible slots; skipped plugins are absent."""
    nodes, answer = cluster.nodes, {}
    if not len(slots):
        return {}
    infeasible = np.full(nodes.size, -1, dtype=np.int64)
    infeasible[slots] = 0
    for plugin, _ in pipeline.scores:
        scores = plugin.normalized_scores(nodes, pod_class, infeasible)
        if scores is not None:
            answer[plugin.name] = scores[slots]
    return answer


def _verdicts(nodes: NodeTable, failures: dict[str, list[Failure]]) -> Verdicts:
    verdicts: Verdicts = {}
    for plugin, each in failures.items():
        for failure in each:
            for slot in np.flatnonzero(failure.nodes & nodes.alive):
                by_node = verdicts.setdefault(plugin, {})
                by_node.setdefault(_name(nodes, slot), []).append(failure.reason)
    return verdicts


def _unresolvable(nodes: NodeTable, failures: dict[str, list[Failure]]) -> dict[str, list[str]]:
    answer = {}
    for plugin, each in failures.items():
        mask: Mask = np.zeros(nodes.size, dtype=np.bool_)
        for failure in each:
            mask |= failure.nodes & failure.unresolvable
        names = sorted(_name(nodes, slot) for slot in np.flatnonzero(mask & nodes.alive[ALL]))
        if names:
            answer[plugin] = names
    return answer


def _name(nodes: NodeTable, slot: int | np.intp) -> str:
    node = nodes.nodes[int(slot)]
    assert node is not None
    return node.name


def _by_name(names: list[str], vector: Ints) -> dict[str, int]:
    return dict(sorted(zip(names, vector.tolist(), strict=True)))
