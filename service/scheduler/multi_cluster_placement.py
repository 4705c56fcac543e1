"""Places pods over several clusters: each pod, or group, goes to one of them.

Each cluster remains a log of its own, so that a choice between clusters is no transaction. What
makes it right is this: while a request chooses and places, it holds a lease for each of its
namespaces on each of its clusters, so that of two requests that might choose for the same pod, or
count the same pods, one waits. Within this time it asks all clusters by dry runs, and has one of
them place the pod as any placement is made there. The commit of that placement looks at the leases
once more and keeps them until it has ended. So whatever stands still in between, and for however
long, nothing is placed by a choice that may be out of date.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Protocol

import msgspec
from msgspec.structs import replace

from service.model.cluster_comparison import ClusterComparison, SpreadOverClusters
from service.model.commit_log import HeldLeases
from service.model.errors import Conflict, Overloaded, StorageUnavailable
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.placements import (
    ClusterRefusal,
    OverClustersAnswer,
    OverClustersResult,
    PlacementAnswer,
    PlacementResult,
    Strategy,
)
from service.scheduler.protocol.store_and_clock import Clock, Store

LEASE = "placements-over-clusters@"
"""The name of a lease begins with this, and the namespace follows."""
ANY_NAMESPACE = "*"
"""In place of a namespace: the lease of all whose affinity over clusters counts pods of other namespaces."""
LEASE_SECONDS = 15.0
"""How long a lease lasts unless it is prolonged: so long others wait for a request that was killed."""
RENEW_SECONDS = 5.0
"""How old leases are when the next step of their request prolongs them."""
RETRY_SECONDS = 0.01
"""How long a request waits at first before it asks for a lease again; then twice as long each time."""
RETRY_SECONDS_MAX = 0.2
RULE = "ClusterTopology"
"""The reason of a cluster that a rule over clusters excludes."""


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that go to one cluster together: a single one, or a group."""

    indices: Sequence[int]
    """The positions of its pods in the request."""
    names: Sequence[tuple[str, str]]
    """Their namespaces and names."""
    counts_others: bool = False
    """Whether required affinity over clusters counts pods of other namespaces than their own."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What one cluster is asked about a unit."""

    cluster: str
    indices: Sequence[int]
    dry_run: bool = False
    queue: bool = False
    leases: HeldLeases | None = None
    """What has to be held still when the pods are placed."""


class AsksClusters(Protocol):
    """Asks the worker that decides for a cluster, as a request of the caller to this cluster would."""

    async def place(self, ask: Ask) -> PlacementAnswer:
        """Place pods in one cluster; dry runs are asked with `compare`."""
        ...


class PlaceOverClusters(msgspec.Struct, frozen=True, kw_only=True):
    """Units of pods, and the clusters in which they may be placed."""

    clusters: Sequence[str]
    units: Sequence[Unit]
    strategy: Strategy = "LeastAllocated"
    queue: bool = False
    dry_run: bool = False


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
    def has_placed(self) -> bool:
        """Whether any pod of the unit has a node there already."""
        return any(each.outcome == "AlreadyPlaced" for each in self.results)

    @property
    def takes_all(self) -> bool:
        """Whether every pod of the unit gets a node there."""
        return all(_has_node(each) for each in self.results)

    @property
    def takes_any(self) -> bool:
        """Whether any pod of the unit gets a node there."""
        return any(_has_node(each) for each in self.results)


class OverClusters:
    """Places the units of requests, one after the other, each in one of several clusters."""

    def __init__(self, store: Store, clock: Clock, limits: Limits, holder: str) -> None:
        """`holder` names the request to others that wait for its leases."""
        self._store = store
        self._clock = clock
        self._holder = holder
        self._request_seconds_max = limits.request_seconds_max

    async def place(self, asked: PlaceOverClusters, clusters: AsksClusters) -> OverClustersAnswer:
        """Place all units, or say why every cluster refused.

        Raises:
            NotFound: there is no such cluster.
            Overloaded: time ran out, or the leases did because the process or the database stood
                still; units that were placed before stay placed, and asking again answers where.
            Conflict: pods of one unit are in different clusters already.
            MoorageError: as `AsksClusters`.
        """
        deadline = self._clock.monotonic() + self._request_seconds_max
        if asked.dry_run:
            return await _Work(asked, clusters, self._no_lease, None).answer()
        async with self._leases(asked, deadline) as leases:

            async def may_go_on() -> None:
                if self._clock.monotonic() >= deadline:
                    raise Overloaded("Time ran out before all pods were placed; ask again.")
                await leases.keep()

            return await _Work(asked, clusters, may_go_on, leases.held).answer()

    async def _no_lease(self) -> None:
        """Dry runs need no lease, as nothing rests on what they answer."""

    @asynccontextmanager
    async def _leases(self, asked: PlaceOverClusters, deadline: float) -> AsyncIterator["_Leases"]:
        """Hold all leases of a request, taken in one order by everybody, and give them back.

        A placement whose outcome is not known either keeps them until it is committed, or can no
        longer be made when they are given back.
        """
        numbers = sorted({await self._store.find_cluster(each) for each in asked.clusters})
        names = {LEASE + namespace for unit in asked.units for namespace, _ in unit.names}
        if any(unit.counts_others for unit in asked.units):
            names.add(LEASE + ANY_NAMESPACE)
        wanted = [(number, each) for number in numbers for each in sorted(names)]
        leases = _Leases(self._store, self._clock, self._holder, wanted)
        try:
            await leases.take(deadline)
            yield leases
        finally:
            await leases.release()


class _Leases:
    """The leases of one request: on each of its clusters, one for each namespace."""

    def __init__(
        self, store: Store, clock: Clock, holder: str, wanted: Sequence[tuple[int, str]]
    ) -> None:
        self._store = store
        self._clock = clock
        self.held = HeldLeases(holder=holder, names=tuple(wanted))
        """All of them, once they are taken."""
        self._since = clock.monotonic()

    async def take(self, deadline: float) -> None:
        """Take them all, one after the other.

        Raises:
            Overloaded: another request holds one of them for too long.
        """
        for count, (number, name) in enumerate(self.held.names):
            pause = RETRY_SECONDS
            while not await self._acquire(number, name):
                if self._clock.monotonic() >= deadline:
                    raise _held_by_another()
                await self._clock.sleep(pause)
                pause = min(2 * pause, RETRY_SECONDS_MAX)
                await self._prolong(replace(self.held, names=self.held.names[:count]))

    async def keep(self) -> None:
        """Prolong them if they are no longer new.

        Raises:
            Overloaded: one has ended meanwhile, so that what was seen under it may be out of date.
        """
        await self._prolong(self.held)

    async def release(self) -> None:
        """Give them all back; those that cannot be given back now end by themselves."""
        with suppress(StorageUnavailable):
            for number, name in self.held.names:
                await self._store.release_lease(number, name, self.held.holder)

    async def _acquire(self, number: int, name: str) -> bool:
        holder = self.held.holder
        return await self._store.acquire_lease(number, name, holder, LEASE_SECONDS) is not None

    async def _prolong(self, held: HeldLeases) -> None:
        """Prolong what is held; what has ended is not taken anew, as another may have had it in between."""
        now = self._clock.monotonic()
        if now < self._since + RENEW_SECONDS:
            return
        if not await self._store.prolong_leases(held, LEASE_SECONDS):
            raise _held_by_another()
        self._since = now


def _held_by_another() -> Overloaded:
    return Overloaded("Another request places pods of this namespace over these clusters.")


class _Work:
    """The placing of one request, while it holds its leases."""

    def __init__(
        self,
        asked: PlaceOverClusters,
        clusters: AsksClusters,
        may_go_on: Callable[[], Awaitable[None]],
        leases: HeldLeases | None,
    ) -> None:
        self._leases = leases
        self._asked = asked
        self._clusters = clusters
        self._may_go_on = may_go_on
        self._revisions: dict[str, int] = {}
        self._committed = False
        self._results: dict[int, OverClustersResult] = {}

    async def answer(self) -> OverClustersAnswer:
        for unit in self._asked.units:
            await self._may_go_on()
            await self._place(unit)
        return OverClustersAnswer(
            committed=self._committed,
            revisions=dict(sorted(self._revisions.items())),
            results=[self._results[index] for index in sorted(self._results)],
        )

    async def _place(self, unit: Unit) -> None:
        asking = [self._prospect(each, unit) for each in self._asked.clusters]
        prospects = await asyncio.gather(*asking)
        holders = holders_of(unit, prospects)
        refused = {} if any(each.has_placed for each in holders) else excluded_by_rules(prospects)
        allowed = [each for each in holders or prospects if each.cluster not in refused]
        refusals = [
            [ClusterRefusal(cluster=name, reason=RULE, message=message)] * len(unit.indices)
            for name, message in refused.items()
        ]
        for prospect in in_order(allowed, self._asked.strategy):
            results = prospect.results
            if prospect.takes_any and not self._asked.dry_run:
                results = (await self._ask(prospect.cluster, unit)).results
            if any(map(_has_node, results)):
                self._keep(unit, results, prospect.cluster, refusals)
                return
            refusals.append([_refusal(prospect.cluster, each) for each in results])
        await self._none(unit, allowed, refusals)

    async def _none(
        self,
        unit: Unit,
        allowed: Sequence[Prospect],
        refusals: Sequence[Sequence[ClusterRefusal]],
    ) -> None:
        """Keep a unit that no cluster takes as pending in the first that may have it, if wanted."""
        ordered = in_order(allowed, self._asked.strategy)
        if self._asked.queue and not self._asked.dry_run and ordered:
            cluster = ordered[0].cluster
            results = (await self._ask(cluster, unit, queue=True)).results
            self._keep(unit, results, cluster, refusals)
            return
        first = ordered[0].results if ordered else ()
        outcomes = [each.outcome for each in first] or ["Unschedulable"] * len(unit.indices)
        for place, (index, (namespace, name)) in enumerate(
            zip(unit.indices, unit.names, strict=True)
        ):
            self._results[index] = OverClustersResult(
                namespace=namespace,
                name=name,
                outcome=outcomes[place],
                refusals=sorted((each[place] for each in refusals), key=lambda one: one.cluster),
            )

    def _keep(
        self,
        unit: Unit,
        results: Sequence[PlacementResult],
        cluster: str,
        refusals: Sequence[Sequence[ClusterRefusal]],
    ) -> None:
        for place, (index, result) in enumerate(zip(unit.indices, results, strict=True)):
            there = result.uid is not None or _has_node(result)
            told = [each[place] for each in refusals if each[place].cluster != cluster]
            if not _has_node(result):
                told.append(_refusal(cluster, result))
            self._results[index] = OverClustersResult(
                namespace=result.namespace,
                name=result.name,
                outcome=result.outcome,
                cluster=cluster if there else None,
                uid=result.uid,
                node_name=result.node_name,
                score=result.score,
                refusals=sorted(told, key=lambda one: one.cluster),
            )

    async def _prospect(self, cluster: str, unit: Unit) -> Prospect:
        answer = await self._heard(Ask(cluster=cluster, indices=unit.indices, dry_run=True))
        return Prospect(cluster=cluster, results=answer.results)

    async def _ask(self, cluster: str, unit: Unit, *, queue: bool = False) -> PlacementAnswer:
        await self._may_go_on()
        ask = Ask(cluster=cluster, indices=unit.indices, queue=queue, leases=self._leases)
        return await self._heard(ask)

    async def _heard(self, ask: Ask) -> PlacementAnswer:
        answer = await self._clusters.place(ask)
        self._revisions[ask.cluster] = answer.revision
        self._committed |= answer.committed
        return answer


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
            for cluster in _too_full(rules, place + 1):
                found.setdefault(
                    cluster, "the cluster didn't match pod topology spread constraints"
                )
    return found


def _too_full(rules: Mapping[str, SpreadOverClusters], pods: int) -> list[str]:
    """The clusters in which one constraint would not hold with so many pods of the unit more."""
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
    rank, then those that the strategy prefers; else the order is that of the request.
    """

    def rank(each: Prospect) -> tuple[bool, bool, int, float]:
        soft = sum(
            one.pods for compared in each.comparisons for one in compared.spread if not one.required
        )
        load = max((one.used_share for one in each.comparisons), default=0.0)
        share = load if strategy == "LeastAllocated" else 0.0
        return (not each.takes_all, not each.takes_any, soft, share)

    return sorted(prospects, key=rank)


def _has_node(result: PlacementResult) -> bool:
    return result.outcome in {"Placed", "AlreadyPlaced"}


def _refusal(cluster: str, result: PlacementResult) -> ClusterRefusal:
    message = result.message or f"the pod is {result.outcome}"
    return ClusterRefusal(cluster=cluster, reason=result.reason, message=message)
