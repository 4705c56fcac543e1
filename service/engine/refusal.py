"""Why no node takes a pod: reasons counted over nodes, in kube-scheduler's own words."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from service.engine.cluster import Cluster
from service.engine.pipeline import Pipeline
from service.engine.plugin import Failure
from service.engine.plugins.node_affinity import CONFLICT
from service.engine.state.classes import PodClass
from service.engine.state.columns import Mask
from service.engine.state.selectors import named_nodes
from service.model.profiles import FILTERS

NO_NODES = "no nodes available to schedule pods"
NARROWED = "node(s) didn't satisfy plugin(s) [NodeAffinity]"


@dataclass(frozen=True, slots=True)
class Refusal:
    """No node is feasible."""

    message: str
    """`0/N nodes are available: …`, as kube-scheduler v1.35 says it, without preemption."""
    reasons: dict[str, dict[str, int]] = field(default_factory=dict)
    """Plugin to reason to the number of nodes for which it is the first to fail."""

    @property
    def plugins(self) -> frozenset[str]:
        """Who rejected: what has to change before another attempt can help."""
        return frozenset(self.reasons)


def failures_of(
    cluster: Cluster, pod_class: PodClass, pipeline: Pipeline
) -> dict[str, list[Failure]]:
    """Every filter that is on, in order, with its failures on every node."""
    nodes, rules = cluster.nodes, pod_class.template.rules
    by_node = {each.name: each for each in (*pipeline.static_filters, *pipeline.usage_filters)}
    relations = {
        each.name: each for each in (pipeline.topology_spread, pipeline.inter_pod_affinity)
    }
    answer = {}
    for name in FILTERS:
        if name in by_node:
            answer[name] = by_node[name].failures(nodes, rules)
        elif name in relations and pipeline.filters_with(name):
            answer[name] = relations[name].failures(nodes, pod_class)
    return answer


def narrowed_to(pod_class: PodClass, pipeline: Pipeline) -> frozenset[str] | None:
    """The nodes that node affinity names (PreFilter); None if it does not narrow."""
    if not pipeline.filters_with("NodeAffinity"):
        return None
    return named_nodes(pod_class.template.rules.required)


def refuse(cluster: Cluster, pod_class: PodClass, pipeline: Pipeline) -> Refusal:
    """Why pods of this class fit nowhere, given that they do not."""
    count = cluster.nodes.count
    if not count:
        return Refusal(NO_NODES)
    narrowed = narrowed_to(pod_class, pipeline)
    if narrowed is not None and not narrowed:
        text = f"0/{count} nodes are available: {CONFLICT}."
        return Refusal(text, {"NodeAffinity": {CONFLICT: count}})
    failures = failures_of(cluster, pod_class, pipeline)
    reasons = _first_reasons(cluster, failures, narrowed)
    return Refusal(_message(count, reasons), reasons)


def _first_reasons(
    cluster: Cluster, failures: dict[str, list[Failure]], narrowed: frozenset[str] | None
) -> dict[str, dict[str, int]]:
    nodes = cluster.nodes
    remaining: Mask = nodes.alive.copy()
    reasons: dict[str, dict[str, int]] = {}
    if narrowed is not None:
        remaining[:] = False
        remaining[[nodes.slots[name] for name in narrowed if name in nodes.slots]] = True
        left_out = nodes.count - int(remaining.sum())
        if left_out:
            reasons["NodeAffinity"] = {NARROWED: left_out}
    for plugin, each in failures.items():
        failed = np.zeros(nodes.size, dtype=np.bool_)
        for failure in each:
            hit = failure.nodes & remaining
            if hit.any():
                reasons.setdefault(plugin, {})[failure.reason] = int(hit.sum())
                failed |= hit
        remaining &= ~failed
    return reasons


def _message(count: int, reasons: dict[str, dict[str, int]]) -> str:
    totals: Counter[str] = Counter()
    for by_reason in reasons.values():
        totals.update(by_reason)
    parts = sorted(f"{pods} {reason}" for reason, pods in totals.items())
    return f"0/{count} nodes are available: {', '.join(parts)}."
