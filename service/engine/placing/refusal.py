"""Why no node takes a pod: reasons counted over nodes, in kube-scheduler's own words."""

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
    """The answer if no node is feasible."""

    message: str
    """The text `0/N nodes are available: …` as kube-scheduler v1.35 writes it, without
    preemption."""
    reasons: dict[str, dict[str, int]] = field(default_factory=dict)
    """By plugin and reason, the number of nodes for which the plugin is the first to fail."""

    @property
    def plugins(self) -> frozenset[str]:
        """The plugins that rejected the pod; one of them has to change its verdict first."""
        return frozenset(self.reasons)


Failures = dict[str, list[Failure]]
"""By plugin, in filters' order."""


def failures_of(cluster: Cluster, pod: Pod, profile: Profile) -> Failures:
    """Return the failures of every filter of a profile on every node.

    Where room is kept for nominated pods, and the pod does not fit beside them, the failures are
    those that there are beside them.
    """
    pod_class = cluster.class_of(pod)
    beside = _failures_beside_nominated(cluster, pod, profile) if cluster.has_reservations else []
    failures = _failures(cluster, pod_class, profile)
    for slot, told in beside:
        for plugin, each in failures.items():
            failures[plugin] = _with_failures(each, slot, told.get(plugin, {}), cluster.nodes.size)
    return failures


def _failures(cluster: Cluster, pod_class: PodClass, profile: Profile) -> Failures:
    return {plugin.name: plugin.failures(cluster.nodes, pod_class) for plugin in profile.filters}


SlotFailures = dict[str, dict[str, bool]]
"""By plugin and reason, whether the failure is unresolvable; of one node."""


def _failures_beside_nominated(
    cluster: Cluster, pod: Pod, profile: Profile
) -> list[tuple[int, SlotFailures]]:
    """Return the slots where the pod does not fit beside nominated pods, with what filters say."""
    pod_class, found = cluster.class_of(pod), []
    for reservation in reservations(cluster, pod):
        mark = cluster.mark()
        assume_reservation(cluster, reservation)
        told = _failures_at(_failures(cluster, pod_class, profile), reservation.slot)
        cluster.undo(mark)
        if told:
            found.append((reservation.slot, told))
    return found


def _failures_at(failures: Failures, slot: int) -> SlotFailures:
    found: SlotFailures = {}
    for plugin, each in failures.items():
        for failure in each:
            if failure.nodes[slot]:
                unresolvable = bool(
                    np.broadcast_to(failure.unresolvable, failure.nodes.shape)[slot]
                )
                found.setdefault(plugin, {})[failure.reason] = unresolvable
    return found


def _with_failures(
    failures: list[Failure], slot: int, told: dict[str, bool], size: int
) -> list[Failure]:
    """Replace what one plugin says of one node."""
    answer = []
    for reason, before, hopeless in failures:
        nodes = before.copy()
        unresolvable: Mask = np.broadcast_to(hopeless, nodes.shape).copy()
        nodes[slot], unresolvable[slot] = reason in told, told.get(reason, False)
        answer.append(Failure(reason, nodes, unresolvable))
    known = {failure.reason for failure in failures}
    for reason, is_hopeless in told.items():
        if reason not in known:
            nodes = np.zeros(size, dtype=np.bool_)
            nodes[slot] = True
            answer.append(Failure(reason, nodes, is_hopeless))
    return answer


class PrefilterRejection(NamedTuple):
    """One plugin rejects a pod everywhere, before any node was looked at (PreFilter)."""

    plugin: str
    reason: str


class PrefilterNodes(NamedTuple):
    """The nodes that one plugin left before any node was looked at (PreFilter)."""

    plugin: str
    names: frozenset[str]


def prefilter(
    cluster: Cluster, pod_class: PodClass, profile: Profile
) -> PrefilterRejection | PrefilterNodes | None:
    """Return what plugins say before any node is looked at; the first rejection ends it."""
    narrowing = None
    for plugin in profile.prefilters:
        said = plugin.prefilter(cluster.nodes, pod_class)
        if said is None:
            continue
        if said.reason is not None:
            return PrefilterRejection(plugin.name, said.reason)
        if said.names is not None and narrowing is None:
            narrowing = PrefilterNodes(plugin.name, said.names)
    return narrowing


def refuse(
    cluster: Cluster, pod: Pod, profile: Profile, within: GroupDomain | None = None
) -> Refusal:
    """Say why a pod fits nowhere, or nowhere `within` a domain, given that it does not."""
    count = cluster.nodes.count
    if not count:
        return Refusal(NO_NODES)
    said = prefilter(cluster, cluster.class_of(pod), profile)
    if isinstance(said, PrefilterRejection):
        text = f"0/{count} nodes are available: {said.reason}."
        return Refusal(text, {said.plugin: {said.reason: count}})
    failures = failures_of(cluster, pod, profile)
    reasons = _first_reasons(cluster, failures, said, within)
    totals: Counter[str] = Counter()
    for by_reason in reasons.values():
        totals.update(by_reason)
    return Refusal(message_of(count, totals), reasons)


def _first_reasons(
    cluster: Cluster,
    failures: dict[str, list[Failure]],
    narrowed: PrefilterNodes | None,
    within: GroupDomain | None,
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
    if within is not None:
        outside = remaining & (within.vetoes.nodes < 0)
        if outside.any():
            reasons[GROUP_TOPOLOGY] = {within.reason: int(outside.sum())}
        remaining &= ~outside
    for plugin, each in failures.items():
        failed = np.zeros(nodes.size, dtype=np.bool_)
        for failure in each:
            hit = failure.nodes & remaining
            if hit.any():
                reasons.setdefault(plugin, {})[failure.reason] = int(hit.sum())
                failed |= hit
        remaining &= ~failed
    return reasons


def message_of(count: int, reasons: Counter[str]) -> str:
    """`0/N nodes are available: …`, with the nodes counted for each reason."""
    parts = sorted(f"{nodes} {reason}" for reason, nodes in reasons.items() if nodes)
    return f"0/{count} nodes are available: {', '.join(parts)}."
