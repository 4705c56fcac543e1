"""Why no node accepts a pod: reasons with node counts, in kube-scheduler's own words."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from service.engine.cluster import Cluster
from service.engine.framework.plugin import Failure
from service.engine.placing.nominations import assume_reservation, reservations
from service.engine.profiles.profile import Profile
from service.engine.state.nodes.columns import Mask
from service.engine.state.nodes.group_domain import GROUP_TOPOLOGY, GroupDomain
from service.engine.state.pods.classes import PodClass
from service.model.pods.pod import Pod

NO_NODES = "no nodes available to schedule pods"
NARROWED = "node(s) didn't satisfy plugin(s) [{}]"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A placement's answer if no node is feasible."""

    message: str
    """The text `0/N nodes are available: …` in the format of kube-scheduler v1.35, without the part
    about preemption."""
    reasons: dict[str, dict[str, int]] = field(default_factory=dict)
    """The number of nodes for which a plugin is the first to fail, by plugin and reason."""

    @property
    def plugins(self) -> frozenset[str]:
        """The plugins that rejected the pod; one of them must change its verdict first."""
        return frozenset(self.reasons)


Failures = dict[str, list[Failure]]
"""Failures by plugin, in filtering order."""


def failures_of(cluster: Cluster, pod: Pod, profile: Profile) -> Failures:
    """Return the failures of every filter of a profile on every node.

    If the pod does not fit on a node together with the pods nominated for it, the node's failures
    are those with the nominated pods in place.
    """
    pod_class = cluster.class_of(pod)
    with_nominated = (
        _failures_with_nominated(cluster, pod, profile) if cluster.has_reservations else []
    )
    failures = _failures(cluster, pod_class, profile)
    for slot, failing in with_nominated:
        for plugin, plugin_failures in failures.items():
            failures[plugin] = _with_failures(
                plugin_failures, slot, failing.get(plugin, {}), cluster.nodes.size
            )
    return failures


def _failures(cluster: Cluster, pod_class: PodClass, profile: Profile) -> Failures:
    return {plugin.name: plugin.failures(cluster.nodes, pod_class) for plugin in profile.filters}


SlotFailures = dict[str, dict[str, bool]]
"""Whether each failure on one node is unresolvable, by plugin and reason."""


def _failures_with_nominated(
    cluster: Cluster, pod: Pod, profile: Profile
) -> list[tuple[int, SlotFailures]]:
    """Return the slots where the pod does not fit along with nominated pods, with failures."""
    pod_class, answer = cluster.class_of(pod), []
    for reservation in reservations(cluster, pod):
        mark = cluster.mark()
        assume_reservation(cluster, reservation)
        failing = _failures_at(_failures(cluster, pod_class, profile), reservation.slot)
        cluster.undo(mark)
        if failing:
            answer.append((reservation.slot, failing))
    return answer


def _failures_at(failures: Failures, slot: int) -> SlotFailures:
    failing: SlotFailures = {}
    for plugin, plugin_failures in failures.items():
        for failure in plugin_failures:
            if failure.nodes[slot]:
                unresolvable = bool(
                    np.broadcast_to(failure.unresolvable, failure.nodes.shape)[slot]
                )
                failing.setdefault(plugin, {})[failure.reason] = unresolvable
    return failing


def _with_failures(
    failures: list[Failure], slot: int, failing: dict[str, bool], size: int
) -> list[Failure]:
    """Replace one plugin's failures on one node."""
    answer = []
    for reason, before, hopeless in failures:
        nodes = before.copy()
        unresolvable: Mask = np.broadcast_to(hopeless, nodes.shape).copy()
        nodes[slot], unresolvable[slot] = reason in failing, failing.get(reason, False)
        answer.append(Failure(reason, nodes, unresolvable))
    known = {failure.reason for failure in failures}
    for reason, is_hopeless in failing.items():
        if reason not in known:
            nodes = np.zeros(size, dtype=np.bool_)
            nodes[slot] = True
            answer.append(Failure(reason, nodes, is_hopeless))
    return answer


class PrefilterRejection(NamedTuple):
    """A plugin's rejection of a pod before any node is examined (PreFilter)."""

    plugin: str
    reason: str


class PrefilterNodes(NamedTuple):
    """The nodes that plugins allow before any node is examined (PreFilter)."""

    plugins: tuple[str, ...]
    """The plugins that allow only some nodes, in the order in which they are called."""
    names: frozenset[str]

    @property
    def reason(self) -> str:
        """Why all other nodes are refused."""
        return NARROWED.format(" ".join(sorted(self.plugins)))


def prefilter(
    cluster: Cluster, pod_class: PodClass, profile: Profile
) -> PrefilterRejection | PrefilterNodes | None:
    """Return the plugins' verdict before any node is examined, stopping at the first rejection."""
    allowed: PrefilterNodes | None = None
    for plugin in profile.prefilters:
        verdict = plugin.prefilter(cluster.nodes, pod_class)
        if verdict is None:
            continue
        if verdict.reason is not None:
            return PrefilterRejection(plugin.name, verdict.reason)
        if verdict.names is None:
            continue
        if allowed is None:
            allowed = PrefilterNodes((plugin.name,), verdict.names)
        else:
            both = (*allowed.plugins, plugin.name)
            allowed = PrefilterNodes(both, allowed.names & verdict.names)
        if not allowed.names:
            return PrefilterRejection(plugin.name, f"{allowed.reason} simultaneously")
    return allowed


def refuse(
    cluster: Cluster, pod: Pod, profile: Profile, within: GroupDomain | None = None
) -> Refusal:
    """Return why a pod that fits nowhere, or nowhere `within` a domain, does not fit."""
    count = cluster.nodes.count
    if not count:
        return Refusal(NO_NODES)
    prefiltered = prefilter(cluster, cluster.class_of(pod), profile)
    if isinstance(prefiltered, PrefilterRejection):
        text = f"0/{count} nodes are available: {prefiltered.reason}."
        return Refusal(text, {prefiltered.plugin: {prefiltered.reason: count}})
    failures = failures_of(cluster, pod, profile)
    reasons = _first_reasons(cluster, failures, prefiltered, within)
    totals: Counter[str] = Counter()
    for by_reason in reasons.values():
        totals.update(by_reason)
    return Refusal(message_of(count, totals), reasons)


def _first_reasons(
    cluster: Cluster,
    failures: dict[str, list[Failure]],
    prefiltered: PrefilterNodes | None,
    within: GroupDomain | None,
) -> dict[str, dict[str, int]]:
    nodes = cluster.nodes
    remaining: Mask = nodes.alive.copy()
    reasons: dict[str, dict[str, int]] = {}
    if prefiltered is not None:
        remaining[:] = False
        remaining[[nodes.slots[name] for name in prefiltered.names if name in nodes.slots]] = True
        excluded = nodes.count - int(remaining.sum())
        if excluded:
            reasons[prefiltered.plugins[0]] = {prefiltered.reason: excluded}
    if within is not None:
        outside = remaining & (within.vetoes.nodes < 0)
        if outside.any():
            reasons[GROUP_TOPOLOGY] = {within.reason: int(outside.sum())}
        remaining &= ~outside
    for plugin, plugin_failures in failures.items():
        failed = np.zeros(nodes.size, dtype=np.bool_)
        for failure in plugin_failures:
            hit = failure.nodes & remaining
            if hit.any():
                reasons.setdefault(plugin, {})[failure.reason] = int(hit.sum())
                failed |= hit
        remaining &= ~failed
    return reasons


def message_of(count: int, reasons: Counter[str]) -> str:
    """Return `0/N nodes are available: …` with the number of nodes for each reason."""
    parts = sorted(f"{nodes} {reason}" for reason, nodes in reasons.items() if nodes)
    return f"0/{count} nodes are available: {', '.join(parts)}."
