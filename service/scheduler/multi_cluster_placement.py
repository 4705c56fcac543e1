"""Places pods over several clusters: each pod, or group, goes to one of them.

Each cluster remains a log of its own, so that a choice between clusters is no transaction. What
makes it right is this: while a request chooses and places, it holds a lease for each of its
namespaces on each of its clusters, so that of two requests that might choose for the same pod, or
count the same pods, one waits. Within this time it asks all clusters by dry runs, and has one of
them place the pod as any placement is made there.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec

from service.model.cluster_comparison import ClusterComparison, SpreadOverClusters
from service.model.errors import Conflict, OutcomeUnknown, Overloaded
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.placements import (
    ClusterRefusal,
    OverClustersAnswer,
    OverClustersResult,
    PlacementAnswer,
    PlacementResult,
    Strategy,
)
from service.scheduler.protocol.ports import Clock, Store

LEASE = "placements-over-clusters@"
"""The name of a lease begins with this, and the namespace follows."""
RETRY_SECONDS = 0.01
"""How long a request waits at first before it asks for a lease again; then twice as long each time."""
RETRY_SECONDS_MAX = 0.2
RULE = "ClusterTopology"
"""The reason of a cluster that a rule over clusters excludes."""
_SETTLE_SECONDS = 10.0
"""How much longer a lease lasts than any placement that begins under it."""


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that go to one cluster together: a single one, or a group."""

    indices: Sequence[int]
    """The positions of its pods in the request."""
    names: Sequence[tuple[str, str]]
    """Their namespaces and names."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What one cluster is asked about a unit."""

    cluster: str
    indices: Sequence[int]
    dry_run: bool = False
    queue: bool = False


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
            Overloaded: time ran out; units that were placed before stay placed, and asking again
                answers where.
            Conflict: pods of one unit are in different clusters already.
            MoorageError: as `AsksClusters`.
        """
        deadline = self._clock.monotonic() + self._request_seconds_max
        if asked.dry_run:
            return await _Work(asked, clusters, self._no_lease).answer()
        async with self._leases(asked, deadline) as leases:

            async def may_go_on() -> None:
                if self._clock.monotonic() >= deadline:
                    raise Overloaded("Time ran out before all pods were placed; ask again.")
                await leases.keep()

            return await _Work(asked, clusters, may_go_on).answer()

    async def _no_lease(self) -> None:
        """Dry runs need no lease, as nothing rests on what they answer."""

    @asynccontextmanager
    async def _leases(self, asked: PlaceOverClusters, deadline: float) -> AsyncIterator["_Leases"]:
        """Hold all leases of a request, taken in one order by everybody.

        After a placement whose outcome is not known they are left to end by themselves, which is
        later than that placement can still be made. So are they if the process is stopped.
        """
        numbers = sorted({await self._store.find_cluster(each) for each in asked.clusters})
        namespaces = sorted({namespace for unit in asked.units for namespace, _ in unit.names})
        leases = _Leases(
            self._store,
            self._clock,
            self._holder,
            self._request_seconds_max + _SETTLE_SECONDS,
            [(number, LEASE + each) for number in numbers for each in namespaces],
        )
        try:
            await leases.take(deadline)
            yield leases
        except (OutcomeUnknown, asyncio.CancelledError):
            raise
        except BaseException:
            await leases.release()
            raise
        await leases.release()


class _Leases:
    """The leases of one request: on each of its clusters, one for each namespace."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        holder: str,
        seconds: float,
        wanted: Sequence[tuple[int, str]],
    ) -> None:
        """They last for `seconds`, unless they are prolonged."""
        self._store = store
        self._clock = clock
        self._holder = holder
        self._seconds = seconds
        self._wanted = wanted
        self._since = clock.monotonic()

    async def take(self, deadline: float) -> None:
        """Take them all, one after the other.

        Raises:
            Overloaded: another request holds one of them for too long.
        """
        for number, name in self._wanted:
            pause, begun = RETRY_SECONDS, self._clock.monotonic()
            while not await self._acquire(number, name):
                if self._clock.monotonic() >= deadline:
                    raise _held_by_another()
                await self._clock.sleep(pause)
                pause, begun = min(2 * pause, RETRY_SECONDS_MAX), self._clock.monotonic()
            if (number, name) == self._wanted[0]:
                self._since = begun
        await self.keep()

    async def keep(self) -> None:
        """Prolong them, if a placement that begins now could end after them.

        Raises:
            Overloaded: they have ended meanwhile, so that what was seen under them may be out of date.
        """
        now = self._clock.monotonic()
        if now < self._since + _SETTLE_SECONDS / 2:
            return
        if now >= self._since + self._seconds:
            raise _held_by_another()
        for each in self._wanted:
            if not await self._acquire(*each):
                raise _held_by_another()
        self._since = now

    async def release(self) -> None:
        """Give them all back."""
        for number, name in self._wanted:
            await self._store.release_lease(number, name, self._holder)

    async def _acquire(self, number: int, name: str) -> bool:
        lease = await self._store.acquire_lease(number, name, self._holder, self._seconds)
        return lease is not None


def _held_by_another() -> Overloaded:
    return Overloaded("Another request places pods of this namespace over these clusters.")


class _Work:
    """The placing of one request, while it holds its leases."""

    def __init__(
        self,
        asked: PlaceOverClusters,
        clusters: AsksClusters,
        may_go_on: Callable[[], Awaitable[None]],
    ) -> None:
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
        return await self._heard(Ask(cluster=cluster, indices=unit.indices, queue=queue))

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
