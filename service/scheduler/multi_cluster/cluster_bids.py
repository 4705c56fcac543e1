"""Queries to several clusters, the clusters' bids, and their eligibility for pods.

A dry run in each cluster shows whether the cluster would take a unit of pods, and how many of its
pods multi-cluster rules count. The choice of a cluster follows from these answers.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from service.model.cluster.comparison import ClusterComparison, SpreadOverClusters
from service.model.core.errors import Conflict
from service.model.core.primitives import ObjectName
from service.model.log.lease import HeldLeases
from service.model.pods.pod import Pod
from service.scheduler.protocol.intents import AdvanceGroup
from service.scheduler.protocol.placements import PlacementAnswer, PlacementResult, Strategy
from service.scheduler.protocol.split_groups import GroupAnswer, ReservationTerms


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """Pods placed in one cluster together: a single pod or a group."""

    indices: Sequence[int]
    """The positions of the unit's pods in the request."""
    names: Sequence[ObjectName]
    """The pods' namespaces and names."""
    counts_others: bool = False
    """Whether required multi-cluster affinity counts pods of other namespaces."""
    is_group: bool = False
    """Whether no pod is placed unless all, or the group's minimum, are."""


class ClusterQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query to one cluster about a unit."""

    cluster: str
    indices: Sequence[int]
    dry_run: bool = False
    queue: bool = False
    leases: HeldLeases | None = None
    """Leases that must still be held when the pods are placed."""
    alone: bool = False
    """Whether each pod is placed individually, ignoring its group."""
    reserving: ReservationTerms | None = None
    """If given, the pods are only reserved, all or none, for a split group."""


class ClusterClient(Protocol):
    """Sends queries to the worker that decides a cluster, on behalf of the caller."""

    async def place(self, ask: ClusterQuery) -> PlacementAnswer:
        """Place pods in one cluster, or reserve nodes for them. Dry runs include comparisons."""
        ...

    async def advance(self, cluster: str, step: AdvanceGroup) -> GroupAnswer:
        """Take a step of a split group; a deleted cluster counts as having taken the step."""
        ...


class MultiClusterRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Units of pods, and the clusters in which they may be placed."""

    clusters: Sequence[str]
    units: Sequence[Unit]
    strategy: Strategy = "LeastAllocated"
    queue: bool = False
    dry_run: bool = False
    split_groups: bool = False
    """Whether to split a group across clusters if no single cluster takes all of it."""
    pods: Sequence[Pod] = ()
    """All pods of the request; needed if groups may be split."""


class ClusterBid(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster's answer to a dry run of a unit."""

    cluster: str
    results: Sequence[PlacementResult]

    @property
    def comparisons(self) -> list[ClusterComparison]:
        """How the cluster compares with others for each pod of the unit."""
        return [
            result.comparison
            for result in self.results
            if isinstance(result.comparison, ClusterComparison)
        ]

    @property
    def stored(self) -> frozenset[int]:
        """The positions within the unit of the pods stored in the cluster."""
        return frozenset(
            place for place, comparison in enumerate(self.comparisons) if comparison.stored
        )

    @property
    def placed(self) -> frozenset[int]:
        """The positions within the unit of the pods placed in the cluster."""
        numbered = enumerate(self.results)
        return frozenset(place for place, result in numbered if result.outcome == "AlreadyPlaced")

    @property
    def has_placed(self) -> bool:
        """Whether any pod of the unit is already placed in the cluster."""
        return bool(self.placed)

    @property
    def takes_all(self) -> bool:
        """Whether every pod of the unit gets a node in the cluster."""
        return all(has_node(result) for result in self.results)

    @property
    def takes_any(self) -> bool:
        """Whether any pod of the unit gets a node in the cluster."""
        return any(has_node(result) for result in self.results)


def holders_of(unit: Unit, bids: Sequence[ClusterBid]) -> list[ClusterBid]:
    """Return the cluster that already has pods of a unit and so must take the rest, or none.

    If several clusters have the same pod, one where the pod has a node wins, or else the first.

    Raises:
        Conflict: different pods of the unit are in different clusters.
    """
    holders = [bid for bid in bids if bid.stored]
    if not holders:
        return []
    together = frozenset().union(*(bid.stored for bid in holders))
    whole = [bid for bid in holders if bid.stored == together]
    if not whole:
        namespace, name = unit.names[min(together)]
        raise Conflict(f"The pods placed with {namespace}/{name} are in different clusters.")
    return ([bid for bid in whole if bid.has_placed] or whole)[:1]


def excluded_by_rules(bids: Sequence[ClusterBid]) -> Mapping[str, str]:
    """Return the clusters excluded by multi-cluster rules for a unit, with messages.

    A topology spread constraint compares with the emptiest cluster that is a domain for it, as in
    Kubernetes. Required affinity admits only clusters that have pods for all its terms, if any has:
    the first pod that matches its own terms may go anywhere. Each cluster checks anti-affinity
    itself.
    """
    if any(len(bid.comparisons) != len(bid.results) for bid in bids):
        return {}
    excluded: dict[str, str] = {}
    for place in range(len(bids[0].results) if bids else 0):
        compared = {bid.cluster: bid.comparisons[place] for bid in bids}
        if any(comparison.affine for comparison in compared.values()):
            for cluster, comparison in compared.items():
                if comparison.affine is False:
                    excluded[cluster] = "the cluster didn't match pod affinity rules"
        for number in range(len(next(iter(compared.values())).spread)):
            rules = {cluster: comparison.spread[number] for cluster, comparison in compared.items()}
            for cluster in too_full(rules, place + 1):
                excluded.setdefault(
                    cluster, "the cluster didn't match pod topology spread constraints"
                )
    return excluded


def too_full(rules: Mapping[str, SpreadOverClusters], pods: int) -> list[str]:
    """Return the clusters where `pods` more of the unit's pods would break a spread constraint."""
    domains = [rule.pods for rule in rules.values() if rule.eligible]
    least = min(domains, default=0)
    return [
        cluster
        for cluster, rule in rules.items()
        if rule.required and rule.pods + pods * rule.counts_itself - least > rule.max_skew
    ]


def in_order(bids: Sequence[ClusterBid], strategy: Strategy) -> list[ClusterBid]:
    """Return the clusters in the order in which to try them.

    Clusters that take the whole unit come first; then the fewest pods by soft constraints, the most
    pods by preferred affinity, the strategy, and finally the request's order decide.
    """

    def rank(bid: ClusterBid) -> tuple[bool, bool, int, int, float]:
        soft = sum(
            one.pods for compared in bid.comparisons for one in compared.spread if not one.required
        )
        preferred = sum(compared.preferred for compared in bid.comparisons)
        load = max((one.used_share for one in bid.comparisons), default=0.0)
        share = load if strategy == "LeastAllocated" else 0.0
        return (not bid.takes_all, not bid.takes_any, soft, -preferred, share)

    return sorted(bids, key=rank)


def has_node(result: PlacementResult) -> bool:
    """Return whether a pod had a node or got one."""
    return result.outcome in {"Placed", "AlreadyPlaced"}
