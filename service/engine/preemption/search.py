"""Kubernetes' DefaultPreemption: the node where room can be made for a pod at the lowest cost.

All nodes are considered, whereas Kubernetes samples them. The cluster stays unchanged.
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
from service.engine.preemption.all_nodes import PreemptionCandidates, Removable, judge
from service.engine.preemption.budgets import Budgets
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
"""DynamicResources' report on a pod without device claims."""
CLAIMS_KEPT: Final = "still not schedulable"
"""DynamicResources' report on a pod with device claims."""
VICTIMS_MAX: Final = 1_000
"""The total number of the candidates' victims at which the cross-node search stops."""


class Preemption(NamedTuple):
    """A node where room can be made for a pod, and the victims."""

    node_name: str
    victims: Victims
    candidates: Mapping[str, Victims] | None
    """The victims on every candidate node, or None if they were not requested."""
    is_reported: bool = False
    """Whether the refused pod's message says how many victims there are."""

    def message_after(self, message: str) -> str:
        """Return Kubernetes' report on a pod that was refused with this message."""
        if not self.is_reported:
            return message
        count = len(self.victims.pods)
        report = f"found a potential placement for pod on node {self.node_name}"
        return f"{message} preemption: {report}, preempting {count} victims"


class NoPreemption(NamedTuple):
    """The result if evicting pods cannot make room for the pod."""

    why: str | None
    """The message of Kubernetes' plugin, or None if Kubernetes does not call it."""
    ends_nomination: bool = False
    """Whether the pod's previous nomination has become useless."""
    of_devices: str = NO_CLAIMS
    """The report of DynamicResources, which is called first, or "" if it has none."""

    def message_after(self, message: str) -> str:
        """Return Kubernetes' report on a pod that was refused with this message.

        If the PreFilter of another plugin refused all nodes, DynamicResources does not find its own
        state, and preemption is not called.
        """
        if message == NO_NODES:
            return message
        if self.why is None:
            return f"{message} not found"
        reports = filter(None, (self.of_devices, self.why))
        return f"{message} {', '.join(reports)}"


def preempt(
    cluster: Cluster,
    pod: Pod,
    budgets: Sequence[DisruptionBudget] = (),
    *,
    within: Collection[str] | None = None,
    scope: PreemptionScope = "Node",
    all_candidates: bool = False,
) -> Preemption | NoPreemption:
    """Find victims whose eviction makes a pod fit on a node, without changing the cluster.

    Args:
        cluster: the cluster.
        pod: a pod that fits nowhere.
        budgets: the disruption budgets to respect where possible.
        within: the namespaces whose pods may be evicted, or None for all.
        scope: with Node, only pods of the node itself may leave, as in Kubernetes; with Domains, also
            pods on other nodes because of which a rule refuses the node.
        all_candidates: whether to return all candidates with their victims.

    Raises:
        UnknownSchedulerError: the pod's scheduler is not a profile of the cluster.
    """
    pod_class = cluster.class_of(pod)
    outcome = _preempt(
        cluster, pod, pod_class, budgets, within, scope, all_candidates=all_candidates
    )
    if isinstance(outcome, Preemption):
        return outcome
    if cluster.config.scheduler_version.omits_device_report:
        return outcome._replace(of_devices="")
    devices = pod_class.devices
    knows_none = devices is None or devices.rejection() is not None
    return outcome if knows_none else outcome._replace(of_devices=CLAIMS_KEPT)


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
    prefiltered = prefilter(cluster, pod_class, profile)
    if not cluster.nodes.count:
        return NoPreemption(None)
    if isinstance(prefiltered, PrefilterRejection):
        return _without_nodes(cluster, pod, profile, prefiltered)
    tried = _resolvable_at_first(cluster, pod, profile, prefiltered)
    if pod.spec.preemption_policy == "Never":
        return NoPreemption(f"preemption: {NEVER}")
    search = _Search(
        cluster,
        pod,
        Removability(pod.priority, within),
        budgets,
        follows_code=cluster.config.follows_code and scope == "Node",
    )
    resolvable = _resolvable(cluster, pod, profile, prefiltered) if scope == "Domains" else tried
    if _is_under_way(cluster, pod, tried) or (
        scope == "Domains" and search.is_under_way(resolvable)
    ):
        return NoPreemption(f"preemption: {UNDER_WAY}")
    search.search_nodes(np.flatnonzero(tried))
    if scope == "Domains":
        search.search_across_nodes(np.flatnonzero(resolvable))
    return search.outcome(all_candidates=all_candidates)


def _without_nodes(
    cluster: Cluster, pod: Pod, profile: Profile, rejection: PrefilterRejection
) -> NoPreemption:
    """Return the answer for a pod that was refused before any node was examined.

    Preemption is called only if it was DynamicResources that refused the pod, and finds no node.
    """
    plugins = {plugin.name: plugin for plugin in profile.prefilters}
    if not plugins[rejection.plugin].allocates_devices:
        return NoPreemption(None)
    if pod.spec.preemption_policy == "Never":
        return NoPreemption(f"preemption: {NEVER}")
    count = cluster.nodes.count
    message = message_of(count, Counter({NOT_HELPFUL: count}))
    return NoPreemption(f"preemption: {message}", ends_nomination=True)


def _prefiltered_nodes(cluster: Cluster, prefiltered: PrefilterNodes | None) -> Mask:
    """Return the nodes that PreFilter allows, shape (nodes,)."""
    nodes = cluster.nodes
    remaining: Mask = nodes.alive.copy()
    if prefiltered is not None:
        remaining[:] = False
        remaining[[nodes.slots[name] for name in prefiltered.names if name in nodes.slots]] = True
    return remaining


def _resolvable(
    cluster: Cluster, pod: Pod, profile: Profile, prefiltered: PrefilterNodes | None
) -> Mask:
    """Return the nodes where every filter may accept the pod once others leave, shape (nodes,)."""
    resolvable = _prefiltered_nodes(cluster, prefiltered)
    for failures in failures_of(cluster, pod, profile).values():
        for failure in failures:
            resolvable &= ~(failure.nodes & failure.unresolvable)
    return resolvable


def _resolvable_at_first(
    cluster: Cluster, pod: Pod, profile: Profile, prefiltered: PrefilterNodes | None
) -> Mask:
    """Return the nodes whose first refusing filter may accept after removals, shape (nodes,)."""
    remaining = _prefiltered_nodes(cluster, prefiltered)
    tried = np.zeros_like(remaining)
    for failures in failures_of(cluster, pod, profile).values():
        refused, hopeless = np.zeros_like(tried), np.zeros_like(tried)
        for failure in failures:
            refused |= failure.nodes
            hopeless |= failure.nodes & failure.unresolvable
        tried |= remaining & refused & ~hopeless
        remaining &= ~refused
    return tried


def _is_under_way(cluster: Cluster, pod: Pod, tried: Mask) -> bool:
    """Return whether pods are already leaving the pod's nominated node."""
    slot = cluster.nodes.slots.get(pod.nominated_node_name or "")
    if slot is None or not tried[slot]:
        return False
    return any(
        placed.priority < pod.priority and placed.terminating and placed.preempted
        for placed, _ in cluster.placed_on(slot)
    )


class _Search:
    """A search for the best node to make room on."""

    def __init__(
        self,
        cluster: Cluster,
        pod: Pod,
        removability: Removability,
        budgets: Sequence[DisruptionBudget],
        *,
        follows_code: bool,
    ) -> None:
        self._cluster = cluster
        self._follows_code = follows_code
        """Whether evictions count as in kube-scheduler's code, also where that makes no room."""
        self._removability = removability
        self._pod = pod
        self._class = cluster.class_of(pod)
        self._tie_hash = tie_hash(f"{pod.namespace}/{pod.name}")
        self._budgets = Budgets.of(budgets, cluster.config.scheduler_version)
        self._reasons: Counter[str] = Counter()
        self._in_bulk: PreemptionCandidates | None = None
        self._one_by_one: dict[int, Victims] = {}
        self._trials: NodeByNodeSearch | None = None
        self._elsewhere: dict[int, Victims] = {}
        """Victims that include pods on other nodes, by slot."""
        self._is_cut_short = False
        """Whether the cross-node search ended before fully trying all nodes."""

    def is_under_way(self, resolvable: Mask) -> bool:
        """Return whether pods on any node are already leaving for the pod's previous nomination."""
        slot = self._cluster.nodes.slots.get(self._pod.nominated_node_name or "")
        if slot is None or not resolvable[slot]:
            return False
        return self._trials_elsewhere().is_leaving(slot, self._pod.priority)

    def search_nodes(self, slots: Slots) -> None:
        """Search these nodes for candidates."""
        cluster, pod, removability = self._cluster, self._pod, self._removability
        follows_code = self._follows_code
        self._reasons[NOT_HELPFUL] += cluster.nodes.count - len(slots)
        table = cluster.importance(name for name, _ in self._class.template.rules.needs.amounts)
        alone = table.crowded[slots] | self._reserved()[slots]
        removable = Removable(table, slots[~alone], removability, follows_code=follows_code)
        populated: Mask = np.logical_or.reduce(removable.mask, axis=0)
        self._reasons[NO_VICTIMS] += len(populated) - int(populated.sum())
        removable = Removable(
            table, removable.slots[populated], removability, follows_code=follows_code
        )
        filters = profile_of(cluster, pod).filters
        verdict = judge(removable, cluster.nodes, self._class, filters)
        self._reasons += verdict.reasons
        if len(verdict.fitting):
            self._in_bulk = PreemptionCandidates(
                table, verdict, removability, self._budgets, follows_code=follows_code
            )
        for slot in (*slots[alone].tolist(), *verdict.unsure.tolist()):
            self._try(slot)

    def _reserved(self) -> Mask:
        """Return the nodes with room reserved for other pods, shape (nodes,).

        The arrays of `PreemptionCandidates` ignore reservations.
        """
        cluster = self._cluster
        reserved = np.zeros(cluster.nodes.size, dtype=np.bool_)
        if cluster.has_reservations:
            reserved[[reservation.slot for reservation in reservations(cluster, self._pod)]] = True
        return reserved

    def _try(self, slot: int) -> None:
        pod = self._pod
        if not any(self._removability.has(placed) for placed, _ in self._cluster.placed_on(slot)):
            self._reasons[NO_VICTIMS] += 1
            return
        if self._trials is None:
            self._trials = NodeByNodeSearch(
                self._cluster,
                pod,
                self._removability,
                self._budgets,
                follows_code=self._follows_code,
            )
        outcome = self._trials.victims_on(slot)
        if isinstance(outcome, Victims):
            self._one_by_one[slot] = outcome
        else:
            self._reasons.update(outcome)

    def search_across_nodes(self, slots: Slots) -> None:
        """Search these nodes for candidates that also require evictions elsewhere.

        Nodes with the lowest estimate are tried first, and nodes whose bound is no better than the
        best candidate are skipped. The search ends when its work budget is spent.
        """
        trials, victims = self._trials_elsewhere(), 0
        least = min([cost for cost, _, _ in self._costed_candidates()], default=None)
        for _, slot, bound in sorted(self._estimates(slots, trials)):
            if least is not None and victims >= VICTIMS_MAX:
                break
            candidate = trials.victims_for(slot) if least is None or bound < least else None
            if candidate is not None:
                self._elsewhere[slot] = candidate
                victims += len(candidate.pods)
                least = cost_of(candidate) if least is None else min(least, cost_of(candidate))
        self._is_cut_short = trials.is_cut_short

    def _trials_elsewhere(self) -> CrossNodeSearch:
        return CrossNodeSearch(self._cluster, self._pod, self._removability, self._budgets)

    def _estimates(
        self, slots: Slots, trials: CrossNodeSearch
    ) -> Iterator[tuple[tuple[Cost, int], int, Cost]]:
        """Yield nodes that may need evictions elsewhere, with an estimate and a lower bound."""
        for slot, alone in self._costs_alone(slots).items():
            bound = trials.bound(slot)
            if bound is not None:
                cost = bound.cost if slot in bound.slots else _together(bound.cost, alone)
                yield (cost, -self._tie(slot)), slot, bound.cost

    def _costs_alone(self, slots: Slots) -> dict[int, Cost]:
        """Return the costs of nodes when rules about other pods are ignored.

        Nodes that are too small are omitted.
        """
        cluster, pod = self._cluster, self._pod
        table = cluster.importance(name for name, _ in self._class.template.rules.needs.amounts)
        crowded = table.crowded[slots]
        removable = Removable(table, slots[~crowded], self._removability)
        filters = [
            plugin for plugin in profile_of(cluster, pod).filters if isinstance(plugin, NodePlugin)
        ]
        verdict = judge(removable, cluster.nodes, self._class, filters)
        costs = dict.fromkeys((*slots[crowded].tolist(), *verdict.unsure.tolist()), NOTHING)
        if len(verdict.fitting):
            costs |= PreemptionCandidates(table, verdict, self._removability, self._budgets).costs()
        return costs

    def outcome(self, *, all_candidates: bool) -> Preemption | NoPreemption:
        """Return the best candidate, or the reason that there is none."""
        best = self._best()
        if best is None:
            message = message_of(self._cluster.nodes.count, self._reasons)
            message = f"{message} {CUT_SHORT}" if self._is_cut_short else message
            return NoPreemption(f"preemption: {message}", ends_nomination=True)
        slot, victims = best
        candidates = self._candidates() if all_candidates else None
        reports = self._cluster.config.scheduler_version.reports_preemption
        return Preemption(self._name(slot), victims, candidates, is_reported=reports)

    def _costed_candidates(self) -> list[tuple[Cost, int, Victims | None]]:
        """Return the candidates with their costs, and None for victims found in bulk.

        Of the candidates found in bulk, only the best are returned. Candidates without evictions
        elsewhere come first.
        """
        candidates: list[tuple[Cost, int, Victims | None]] = [
            (cost_of(victims), slot, victims) for slot, victims in self._one_by_one.items()
        ]
        if self._in_bulk is not None:
            cost, slots = self._in_bulk.best()
            candidates += [(cost, slot, None) for slot in slots.tolist()]
        return candidates + [
            (cost_of(victims), slot, victims) for slot, victims in self._elsewhere.items()
        ]

    def _best(self) -> tuple[int, Victims] | None:
        """Return the node with the lowest cost, breaking ties as for placements, or None."""
        candidates = self._costed_candidates()
        if not candidates:
            return None
        least = min(cost for cost, _, _ in candidates)
        equal = [(slot, victims) for cost, slot, victims in candidates if cost == least]
        slot, victims = max(equal, key=lambda candidate: self._tie(candidate[0]))
        if victims is None:
            assert self._in_bulk is not None
            victims = self._in_bulk.victims_on(slot)
        return slot, victims

    def _tie(self, slot: int) -> int:
        return self._cluster.nodes.tie_at(slot) ^ self._tie_hash

    def _candidates(self) -> dict[str, Victims]:
        candidates = dict(self._one_by_one)
        if self._in_bulk is not None:
            candidates.update(self._in_bulk.all())
        for slot, victims in self._elsewhere.items():
            if slot not in candidates or cost_of(victims) < cost_of(candidates[slot]):
                candidates[slot] = victims
        return {self._name(slot): victims for slot, victims in candidates.items()}

    def _name(self, slot: int) -> str:
        node = self._cluster.nodes.nodes[slot]
        assert node is not None
        return node.name


def _together(one: Cost, other: Cost) -> Cost:
    """Return the combined cost of disjoint victims, ignoring start times."""
    return Cost(
        violations=one.violations + other.violations,
        highest_priority=max(one.highest_priority, other.highest_priority),
        priorities=one.priorities + other.priorities,
        victims=one.victims + other.victims,
        earliest_start=one.earliest_start,
    )
