"""Why no node takes a pod: reasons counted over nodes, in kube-scheduler's own words."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from service.engine.cluster import Cluster
from service.engine.pipeline import Pipeline
from service.engine.plugin import Failure
from service.engine.state.classes import PodClass
from service.engine.state.columns import Mask

NO_NODES = "no nodes available to schedule pods"
NARROWED = "node(s) didn't satisfy plugin(s) [{}]"


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
    return {each.name: each.failures(cluster.nodes, pod_class) for each in pipeline.filters}


class Narrowing(NamedTuple):
    """What one plugin left of the nodes before any was looked at (PreFilter)."""

    plugin: str
    names: frozenset[str]
    conflict: str
    """The reason if there are none."""


def narrowing_of(pod_class: PodClass, pipeline: Pipeline) -> Narrowing | None:
    """The plugin that leaves only some nodes; None if there is none."""
    for plugin in pipeline.narrowing:
        names = plugin.narrowed(pod_class)
        if names is not None:
            return Narrowing(plugin.name, names, plugin.conflict)
    return None


def refuse(cluster: Cluster, pod_class: PodClass, pipeline: Pipeline) -> Refusal:
    """Why pods of this class fit nowhere, given that they do not."""
    count = cluster.nodes.count
    if not count:
        return Refusal(NO_NODES)
    narrowed = narrowing_of(pod_class, pipeline)
    if narrowed is not None and not narrowed.names:
        text = f"0/{count} nodes are available: {narrowed.conflict}."
        return Refusal(text, {narrowed.plugin: {narrowed.conflict: count}})
    failures = failures_of(cluster, pod_class, pipeline)
    reasons = _first_reasons(cluster, failures, narrowed)
    return Refusal(_message(count, reasons), reasons)


def _first_reasons(
    cluster: Cluster, failures: dict[str, list[Failure]], narrowed: Narrowing | None
) -> dict[str, dict[str, int]]:
    nodes = cluster.nodes
    remaining: Mask = nodes.alive.copy()
    reasons: dict[str, dict[str, int]] = {}
    if narrowed is not None:
        remaining[:] = False
        remaining[[nodes.slots[name] for name in narrowed.names if name in nodes.slots]] = True
        left_out = nodes.count - int(remaining.sum())
        if left_out:
            reasons[narrowed.plugin] = {NARROWED.format(narrowed.plugin): left_out}
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
