"""Kubernetes' DefaultPreemption: on which node room can be made for a pod, and at whose cost.

All nodes are looked at, where Kubernetes looks at a sample of them. Nothing is changed.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from service.engine.cluster import Cluster
from service.engine.framework.plugin import NodePlugin
from service.engine.placing.nominations import reservations
from service.engine.placing.placement import profile_of
from service.engine.placing.refusal import (
    NO_NODES,
    PrefilterNodes,
    PrefilterRejection,
    failures_of,
    message_of,
    prefilter,
)
from service.engine.preemption.all_nodes import (
    PreemptionCandidates,
    Removable,
    judge,
)
from service.engine.preemption.cross_node import NOTHING, CrossNodeSearch
from service.engine.preemption.one_node import NodeByNodeSearch
from service.engine.preemption.victims import Cost, Removability, Victims, cost_of
from service.engine.profiles.profile import Profile
from service.engine.state.nodes.columns import Mask, Slots
from service.engine.state.nodes.node_table import tie_hash
from service.engine.state.pods.classes import PodClass
from service.model.cluster.cluster_config import PreemptionScope
from service.model.pods.pod import Pod
from service.model.workloads.disruption_budget import DisruptionBudget

NEVER = "not eligible due to preemptionPolicy=Never."
UNDER_WAY = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS = "No preemption victims found for incoming pod"
CUT_SHORT = "The search for victims on other nodes ended early; there may still be some."
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_CLAIMS: Final = "no new claims to deallocate"
"""What DynamicResources says of a pod without claims to devices."""
VICTIMS_MAX: Final = 1_000
"""When the nodes that are found for pods elsewhere to leave have so many victims together, no more are tried."""


class Preemption(NamedTuple):
    """Where room can be made for a pod."""

    node_name: str
    victims: Victims
    candidates: Mapping[str, Victims] | None
    """All nodes that were to choose from, if they were asked for."""


class NoPreemption(NamedTuple):
    """Why no room can be made."""

    why: str | None
    """Why nothing was found, in the words of Kubernetes' plugin; None where it is not asked at all."""
    ends_nomination: bool = False
    """Whether the node that was nominated for the pod before is of no use any more."""
    claims_devices: bool = False
    """Whether DynamicResources has looked at claims of the pod."""

    def following(self, message: str) -> str:
        """Return what Kubernetes says of a pod that was refused with this message.

        DynamicResources is asked before, and speaks for every pod; after a refusal of all nodes at
        once it does not find its own state, and preemption is not asked.
        """
        if message == NO_NODES:
            return message
        if self.why is None:
            return f"{message} not found"
        of_devices = "still not schedulable" if self.claims_devices else NO_CLAIMS
        return f"{message} {of_devices}, {self.why}"


def preempt(
    cluster: Cluster,
    pod: Pod,
    budgets: Sequence[DisruptionBudget] = (),
    *,
    within: Collection[str] | None = None,
    scope: PreemptionScope = "Node",
    all_candidates: bool = False,
) -> Preemption | NoPreemption:
    """Make room for a pod that fits nowhere, in thought; of pods in the namespaces `within`, or of all.

    `scope`: whether only pods of the node itself may leave, as in Kubernetes, or with Domains also
    pods on other nodes because of which a rule refuses the node.

    Raises:
        UnknownSchedulerError: the pod's scheduler is no profile of the cluster.
    """
    pod_class = cluster.class_of(pod)
    found = _preempt(cluster, pod, pod_class, budgets, within, scope, all_candidates=all_candidates)
    if isinstance(found, NoPreemption) and pod_class.devices is not None:
        return found._replace(claims_devices=True)
    return found


def _preempt(
    cluster: Cluster,
    pod: Pod,
    pod_class: PodClass,
    budgets: Sequence[DisruptionBudget],
    within: Collection[str] | None,
    scope: PreemptionScope,
    *,
    all_candidates: bool,
) -> Preemption | NoPreemption:
    profile = profile_of(cluster, pod)
    said = prefilter(cluster, pod_class, profile)
    if not cluster.nodes.count or isinstance(said, PrefilterRejection):
        return NoPreemption(None)
    tried = _tried(cluster, pod, profile, said)
    if pod.spec.preemption_policy == "Never":
        return NoPreemption(f"preemption: {NEVER}")
    search = _Search(cluster, pod, Removability(pod.priority, within), budgets)
    resolvable = _resolvable(cluster, pod, profile, said) if scope == "Domains" else tried
    if _is_under_way(cluster, pod, tried) or (
        scope == "Domains" and search.is_under_way(resolvable)
    ):
        return NoPreemption(f"preemption: {UNDER_WAY}")
    search.search_nodes(np.flatnonzero(tried))
    if scope == "Domains":
        search.search_across_nodes(np.flatnonzero(resolvable))
    return search.outcome(all_candidates=all_candidates)


def _remaining(cluster: Cluster, narrowed: PrefilterNodes | None) -> Mask:
    """Shape (nodes,): the nodes that are there, or those of them that a plugin has left."""
    nodes = cluster.nodes
    remaining: Mask = nodes.alive.copy()
    if narrowed is not None:
        remaining[:] = False
        remaining[[nodes.slots[name] for name in narrowed.names if name in nodes.slots]] = True
    return remaining


def _resolvable(
    cluster: Cluster, pod: Pod, profile: Profile, narrowed: PrefilterNodes | None
) -> Mask:
    """Shape (nodes,): where no filter says that removing pods cannot help."""
    resolvable = _remaining(cluster, narrowed)
    for failures in failures_of(cluster, pod, profile).values():
        for failure in failures:
            resolvable &= ~(failure.nodes & failure.unresolvable)
    return resolvable


def _tried(cluster: Cluster, pod: Pod, profile: Profile, narrowed: PrefilterNodes | None) -> Mask:
    """Shape (nodes,): where the first filter that refuses says that removing pods may help."""
    remaining = _remaining(cluster, narrowed)
    tried = np.zeros_like(remaining)
    for failures in failures_of(cluster, pod, profile).values():
        failed, hopeless = np.zeros_like(tried), np.zeros_like(tried)
        for failure in failures:
            failed |= failure.nodes
            hopeless |= failure.nodes & failure.unresolvable
        tried |= remaining & failed & ~hopeless
        remaining &= ~failed
    return tried


def _is_under_way(cluster: Cluster, pod: Pod, tried: Mask) -> bool:
    """Return whether pods are just leaving the node that was nominated for the pod before."""
    slot = cluster.nodes.slots.get(pod.nominated_node_name or "")
    if slot is None or not tried[slot]:
        return False
    return any(
        each.priority < pod.priority and each.terminating and each.preempted
        for each, _ in cluster.placed_on(slot)
    )


class _Search:
    """One search for the best node."""

    def __init__(
        self,
        cluster: Cluster,
        pod: Pod,
        removability: Removability,
        budgets: Sequence[DisruptionBudget],
    ) -> None:
        self._cluster = cluster
        self._removability = removability
        self._pod = pod
        self._class = cluster.class_of(pod)
        self._tie_hash = tie_hash(f"{pod.namespace}/{pod.name}")
        self._budgets = [budget for budget in budgets if budget.protects_any]
        self._reasons: Counter[str] = Counter()
        self._in_bulk: PreemptionCandidates | None = None
        self._one_by_one: dict[int, Victims] = {}
        self._trials: NodeByNodeSearch | None = None
        self._elsewhere: dict[int, Victims] = {}
        """By node, victims of which some are on other nodes."""
        self._is_cut_short = False
        """Whether the search for these ended before all nodes were tried to the end."""

    def is_under_way(self, resolvable: Mask) -> bool:
        """Whether pods are just leaving anywhere that keep the pod from the node nominated for it before."""
        slot = self._cluster.nodes.slots.get(self._pod.nominated_node_name or "")
        if slot is None or not resolvable[slot]:
            return False
        return self._trials_elsewhere().is_leaving(slot, self._pod.priority)

    def search_nodes(self, slots: Slots) -> None:
        """Find the candidates among these nodes."""
        cluster, pod, removability = self._cluster, self._pod, self._removability
        self._reasons[NOT_HELPFUL] += cluster.nodes.count - len(slots)
        table = cluster.importance(name for name, _ in self._class.template.rules.needs.amounts)
        alone = table.crowded[slots] | self._reserved()[slots]
        removable = Removable(table, slots[~alone], removability)
        populated: Mask = np.logical_or.reduce(removable.mask, axis=0)
        self._reasons[NO_VICTIMS] += len(populated) - int(populated.sum())
        removable = Removable(table, removable.slots[populated], removability)
        filters = profile_of(cluster, pod).filters
        verdict = judge(removable, cluster.nodes, self._class, filters)
        self._reasons += verdict.reasons
        if len(verdict.fitting):
            self._in_bulk = PreemptionCandidates(table, verdict, removability, self._budgets)
        for slot in (*slots[alone].tolist(), *verdict.unsure.tolist()):
            self._try(slot)

    def _reserved(self) -> Mask:
        """Shape (nodes,): where room is kept for other pods, which trying all nodes at once does not see."""
        cluster = self._cluster
        reserved = np.zeros(cluster.nodes.size, dtype=np.bool_)
        if cluster.has_reservations:
            reserved[[reservation.slot for reservation in reservations(cluster, self._pod)]] = True
        return reserved

    def _try(self, slot: int) -> None:
        pod = self._pod
        if not any(self._removability.has(each) for each, _ in self._cluster.placed_on(slot)):
            self._reasons[NO_VICTIMS] += 1
            return
        if self._trials is None:
            self._trials = NodeByNodeSearch(self._cluster, pod, self._removability, self._budgets)
        found = self._trials.on(slot)
        if isinstance(found, Victims):
            self._one_by_one[slot] = found
        else:
            self._reasons.update(found)

    def search_across_nodes(self, slots: Slots) -> None:
        """Find the nodes among these that take the pod if pods elsewhere leave as well.

        Those come first that probably cost least. What certainly costs as much as what is found is
        left out. No node is tried any more once the work that all may take is spent.
        """
        trials, victims = self._trials_elsewhere(), 0
        least = min([cost for cost, _, _ in self._found()], default=None)
        for _, slot, bound in sorted(self._estimates(slots, trials)):
            if least is not None and victims >= VICTIMS_MAX:
                break
            found = trials.on(slot) if least is None or bound < least else None
            if found is not None:
                self._elsewhere[slot] = found
                victims += len(found.pods)
                least = cost_of(found) if least is None else min(least, cost_of(found))
        self._is_cut_short = trials.is_cut_short

    def _trials_elsewhere(self) -> CrossNodeSearch:
        return CrossNodeSearch(self._cluster, self._pod, self._removability, self._budgets)

    def _estimates(
        self, slots: Slots, trials: CrossNodeSearch
    ) -> Iterator[tuple[tuple[Cost, int], int, Cost]]:
        """The nodes of which pods elsewhere may have to leave, each with what it may cost, and costs at least."""
        for slot, alone in self._costs_alone(slots).items():
            bound = trials.bound(slot)
            if bound is not None:
                cost = bound.cost if slot in bound.slots else _together(bound.cost, alone)
                yield (cost, -self._tie(slot)), slot, bound.cost

    def _costs_alone(self, slots: Slots) -> dict[int, Cost]:
        """What nodes cost as if there were no rules about other pods, without those that are too small."""
        cluster, pod = self._cluster, self._pod
        table = cluster.importance(name for name, _ in self._class.template.rules.needs.amounts)
        crowded = table.crowded[slots]
        removable = Removable(table, slots[~crowded], self._removability)
        filters = [
            plugin for plugin in profile_of(cluster, pod).filters if isinstance(plugin, NodePlugin)
        ]
        verdict = judge(removable, cluster.nodes, self._class, filters)
        found = dict.fromkeys((*slots[crowded].tolist(), *verdict.unsure.tolist()), NOTHING)
        if len(verdict.fitting):
            found |= PreemptionCandidates(table, verdict, self._removability, self._budgets).costs()
        return found

    def outcome(self, *, all_candidates: bool) -> Preemption | NoPreemption:
        """Return the best candidate, or why there is none."""
        best = self._best()
        if best is None:
            told = message_of(self._cluster.nodes.count, self._reasons)
            told = f"{told} {CUT_SHORT}" if self._is_cut_short else told
            return NoPreemption(f"preemption: {told}", ends_nomination=True)
        slot, victims = best
        candidates = self._candidates() if all_candidates else None
        return Preemption(self._name(slot), victims, candidates)

    def _found(self) -> list[tuple[Cost, int, Victims | None]]:
        """The candidates with their costs, of those in bulk only the best; their victims are left open.

        Those come first for which no pods have to leave elsewhere.
        """
        found: list[tuple[Cost, int, Victims | None]] = [
            (cost_of(each), slot, each) for slot, each in self._one_by_one.items()
        ]
        if self._in_bulk is not None:
            cost, slots = self._in_bulk.best()
            found += [(cost, slot, None) for slot in slots.tolist()]
        return found + [(cost_of(each), slot, each) for slot, each in self._elsewhere.items()]

    def _best(self) -> tuple[int, Victims] | None:
        """Return the node of the least cost; ties are broken as for placements."""
        found = self._found()
        if not found:
            return None
        least = min(cost for cost, _, _ in found)
        equal = [(slot, victims) for cost, slot, victims in found if cost == least]
        slot, victims = max(equal, key=lambda each: self._tie(each[0]))
        if victims is None:
            assert self._in_bulk is not None
            victims = self._in_bulk.victims_on(slot)
        return slot, victims

    def _tie(self, slot: int) -> int:
        return self._cluster.nodes.tie_at(slot) ^ self._tie_hash

    def _candidates(self) -> dict[str, Victims]:
        found = dict(self._one_by_one)
        if self._in_bulk is not None:
            found.update(self._in_bulk.all())
        for slot, victims in self._elsewhere.items():
            if slot not in found or cost_of(victims) < cost_of(found[slot]):
                found[slot] = victims
        return {self._name(slot): victims for slot, victims in found.items()}

    def _name(self, slot: int) -> str:
        node = self._cluster.nodes.nodes[slot]
        assert node is not None
        return node.name


def _together(one: Cost, other: Cost) -> Cost:
    """Return what different victims cost together, but for their starts."""
    return Cost(
        violations=one.violations + other.violations,
        highest_priority=max(one.highest_priority, other.highest_priority),
        priorities=one.priorities + other.priorities,
        victims=one.victims + other.victims,
        earliest_start=one.earliest_start,
    )
