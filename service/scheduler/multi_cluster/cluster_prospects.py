"""What is asked about several clusters, what they answer, and which of them come into question for pods.

Of a unit of pods each cluster tells by a dry run whether it would take it, and how many pods it has that
rules over clusters count. Everything else about a choice follows from these answers, without asking.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from service.model.core.primitives import ObjectName
from service.model.errors import Conflict
from service.model.log.leases import HeldLeases
from service.model.multi_cluster.multi_cluster_criteria import ClusterComparison, SpreadOverClusters
from service.model.objects.pods_and_nodes import Pod
from service.scheduler.protocol.intents import AdvanceGroup
from service.scheduler.protocol.placements import PlacementAnswer, PlacementResult, Strategy
from service.scheduler.protocol.split_groups import GroupAnswer, ReservationTerms


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that go to one cluster together: a single one, or a group."""

    indices: Sequence[int]
    """The positions of its pods in the request."""
    names: Sequence[ObjectName]
    """Their namespaces and names."""
    counts_others: bool = False
    """Whether required affinity over clusters counts pods of other namespaces than their own."""
    is_group: bool = False
    """Whether all of them, or enough of them, have to be placed for any to be."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What one cluster is asked about a unit."""

    cluster: str
    indices: Sequence[int]
    dry_run: bool = False
    queue: bool = False
    leases: HeldLeases | None = None
    """What has to be held still when the pods are placed."""
    alone: bool = False
    """Whether each pod is asked about by itself, whatever group it is in."""
    reserving: ReservationTerms | None = None
    """If it is given, all pods or none are only reserved, for a group in several clusters."""


class AsksClusters(Protocol):
    """Asks the worker that decides for a cluster, as a request of the caller to this cluster would."""

    async def place(self, ask: Ask) -> PlacementAnswer:
        """Place pods in one cluster, or reserve their nodes; dry runs are asked with `compare`."""
        ...

    async def advance(self, cluster: str, step: AdvanceGroup) -> GroupAnswer:
        """Take a step of a group in several clusters; a cluster that is gone has taken it."""
        ...


class PlaceOverClusters(msgspec.Struct, frozen=True, kw_only=True):
    """Units of pods, and the clusters in which they may be placed."""

    clusters: Sequence[str]
    units: Sequence[Unit]
    strategy: Strategy = "LeastAllocated"
    queue: bool = False
    dry_run: bool = False
    split_groups: bool = False
    """Whether a group that no cluster takes as a whole may be placed in several."""
    pods: Sequence[Pod] = ()
    """All pods of the request; needed if groups may be split."""


class Prospect(msgspec.Struct, frozen=True, kw_only=True):
    """What one cluster has answered to a dry run of a unit."""

    cluster: str
    results: Sequence[PlacementResult]

    @property
    def comparisons(self) -> list[ClusterComparison]:
        """What it tells with each pod of the unit."""
        return [
            each.comparison
            for each in self.results
            if isinstance(each.comparison, ClusterComparison)
        ]

    @property
    def stored(self) -> frozenset[int]:
        """The positions within the unit of the pods that the cluster has already."""
        return frozenset(place for place, each in enumerate(self.comparisons) if each.stored)

    @property
    def placed(self) -> frozenset[int]:
        """The positions within the unit of the pods that have a node there already."""
        told = enumerate(self.results)
        return frozenset(place for place, each in told if each.outcome == "AlreadyPlaced")

    @property
    def has_placed(self) -> bool:
        """Whether any pod of the unit has a node there already."""
        return bool(self.placed)

    @property
    def takes_all(self) -> bool:
        """Whether every pod of the unit gets a node there."""
        return all(has_node(each) for each in self.results)

    @property
    def takes_any(self) -> bool:
        """Whether any pod of the unit gets a node there."""
        return any(has_node(each) for each in self.results)


def holders_of(unit: Unit, prospects: Sequence[Prospect]) -> list[Prospect]:
    """The cluster that has pods of a unit already, which then is the only one for the unit.

    If more than one has the same pod, these are those where it has a node, else the first.

    Raises:
        Conflict: different pods of the unit are in different clusters.
    """
    holders = [each for each in prospects if each.stored]
    if not holders:
        return []
    together = frozenset().union(*(each.stored for each in holders))
    whole = [each for each in holders if each.stored == together]
    if not whole:
        namespace, name = unit.names[min(together)]
        raise Conflict(f"The pods placed with {namespace}/{name} are in different clusters.")
    return ([each for each in whole if each.has_placed] or whole)[:1]


def excluded_by_rules(prospects: Sequence[Prospect]) -> Mapping[str, str]:
    """The clusters that rules over clusters exclude for a unit, each with what it is told.

    A topology spread constraint compares with the emptiest cluster that is a domain for it, as in
    Kubernetes. Required affinity leaves the clusters that have pods for all its terms, if any has:
    the first pod that matches its own terms may go anywhere. Anti-affinity is judged by each
    cluster itself.
    """
    if any(len(each.comparisons) != len(each.results) for each in prospects):
        return {}
    found: dict[str, str] = {}
    for place in range(len(prospects[0].results) if prospects else 0):
        compared = {each.cluster: each.comparisons[place] for each in prospects}
        if any(each.affine for each in compared.values()):
            for cluster, each in compared.items():
                if each.affine is False:
                    found[cluster] = "the cluster didn't match pod affinity rules"
        for number in range(len(next(iter(compared.values())).spread)):
            rules = {cluster: each.spread[number] for cluster, each in compared.items()}
            for cluster in too_full(rules, place + 1):
                found.setdefault(
                    cluster, "the cluster didn't match pod topology spread constraints"
                )
    return found


def too_full(rules: Mapping[str, SpreadOverClusters], pods: int) -> list[str]:
    """The clusters in which one constraint would not hold with so many more of the pods that have it."""
    domains = [each.pods for each in rules.values() if each.eligible]
    least = min(domains, default=0)
    return [
        cluster
        for cluster, each in rules.items()
        if each.required and each.pods + pods * each.counts_itself - least > each.max_skew
    ]


def in_order(prospects: Sequence[Prospect], strategy: Strategy) -> list[Prospect]:
    """The clusters in the order in which they are tried.

    First come those that take the whole unit, then those with fewest pods by constraints that only
    rank, then those with most by preferred affinity, then those that the strategy prefers; else the
    order is that of the request.
    """

    def rank(each: Prospect) -> tuple[bool, bool, int, int, float]:
        soft = sum(
            one.pods for compared in each.comparisons for one in compared.spread if not one.required
        )
        preferred = sum(compared.preferred for compared in each.comparisons)
        load = max((one.used_share for one in each.comparisons), default=0.0)
        share = load if strategy == "LeastAllocated" else 0.0
        return (not each.takes_all, not each.takes_any, soft, -preferred, share)

    return sorted(prospects, key=rank)


def has_node(result: PlacementResult) -> bool:
    """Whether a pod has a node, or got one."""
    return result.outcome in {"Placed", "AlreadyPlaced"}
