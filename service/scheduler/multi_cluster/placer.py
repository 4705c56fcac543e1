"""Places pods across several clusters: each pod or group goes to one cluster.

Each cluster has its own log, so a choice between clusters is not a transaction. The choice is safe
because a request holds a lease for each of its namespaces on each of its clusters while it chooses
and places: of two requests that could choose for the same pod, or count the same pods, one waits.
Under the leases, the request queries all clusters by dry runs, and has one of them place the pod
like any other. The commit of that placement checks the leases again and keeps them until it has
ended. So no stall, however long, can lead to a placement based on an outdated choice.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from msgspec.structs import replace

from service.model.core.errors import MoorageError, Overloaded, StorageUnavailable
from service.model.log.lease import HeldLeases
from service.scheduler.multi_cluster.cluster_bids import (
    ClusterBid,
    ClusterClient,
    ClusterQuery,
    MultiClusterRequest,
    Unit,
    excluded_by_rules,
    has_node,
    holders_of,
    in_order,
)
from service.scheduler.multi_cluster.split_placement import Places, SplitGroupPlacement
from service.scheduler.protocol.clients import CLIENT
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.placements import (
    ClusterRefusal,
    Outcome,
    OverClustersAnswer,
    OverClustersResult,
    PlacementAnswer,
    PlacementResult,
)
from service.scheduler.protocol.ports import Clock, Store

LEASE = "placements-over-clusters@"
"""The prefix of a lease's name; the namespace follows."""
ANY_NAMESPACE = "*"
"""Replaces the namespace in the lease for pods whose multi-cluster affinity counts other
namespaces."""
LEASE_SECONDS = 15.0
"""How long an unrenewed lease lasts, and so how long requests wait after another was killed."""
RENEW_SECONDS = 5.0
"""The age at which the next step of a request renews its leases."""
RETRY_SECONDS = 0.01
"""How long a request first waits before retrying a lease; the wait doubles each time."""
RETRY_SECONDS_MAX = 0.2
RULE = "ClusterTopology"
"""The reason reported for a cluster that a multi-cluster rule excludes."""


class MultiClusterPlacer:
    """Places the units of requests one after another, each in one of several clusters."""

    def __init__(self, store: Store, clock: Clock, limits: Limits, holder: str) -> None:
        """Create a placer; `holder` identifies its leases to waiting requests."""
        self._store = store
        self._clock = clock
        self._holder = holder
        self._request_seconds_max = limits.request_seconds_max
        self._reservation_seconds = limits.group_reservation_seconds

    async def place(
        self, request: MultiClusterRequest, clusters: ClusterClient
    ) -> OverClustersAnswer:
        """Place all units, or report why every cluster refused.

        Raises:
            NotFound: a cluster does not exist.
            Overloaded: time ran out, or the leases expired because the process or the database
                stalled; placed units stay placed, and a repeated request returns their nodes.
            Conflict: pods of one unit are in different clusters already.
            MoorageError: as `ClusterClient`.
        """
        deadline = self._clock.monotonic() + self._request_seconds_max
        if request.dry_run:
            # Dry runs need no lease, as nothing depends on their answers.
            client = CLIENT.get()

            async def is_wanted() -> None:
                self._refuse_late(deadline)
                if client is not None and client.has_left():
                    raise Overloaded("The client has left.")

            return await self._work(request, clusters, is_wanted, None).answer()
        async with self._leases(request, deadline) as leases:

            async def may_go_on() -> None:
                self._refuse_late(deadline)
                await leases.keep()

            return await self._work(request, clusters, may_go_on, leases.held).answer()

    def _work(
        self,
        request: MultiClusterRequest,
        clusters: ClusterClient,
        may_go_on: Callable[[], Awaitable[None]],
        leases: HeldLeases | None,
    ) -> "_Work":
        splitting = SplitGroupPlacement(
            request, clusters, may_go_on, leases, self._clock, self._reservation_seconds
        )
        return _Work(request, clusters, may_go_on, leases, splitting)

    def _refuse_late(self, deadline: float) -> None:
        if self._clock.monotonic() >= deadline:
            raise Overloaded("Time ran out before all pods were placed; ask again.")

    @asynccontextmanager
    async def _leases(
        self, request: MultiClusterRequest, deadline: float
    ) -> AsyncIterator["RequestLeases"]:
        """Hold all leases of a request, acquired in one global order, and release them at the end.

        A placement with an unknown outcome either keeps the leases until it is committed, or can no
        longer succeed once they are released.
        """
        numbers = sorted({await self._store.clusters.find(cluster) for cluster in request.clusters})
        names = {LEASE + namespace for unit in request.units for namespace, _ in unit.names}
        if any(unit.counts_others for unit in request.units):
            names.add(LEASE + ANY_NAMESPACE)
        lease_names = [(number, name) for number in numbers for name in sorted(names)]
        leases = RequestLeases(self._store, self._clock, self._holder, lease_names)
        try:
            await leases.take(deadline)
            yield leases
        finally:
            await leases.release()


class RequestLeases:
    """The leases of one request: one for each of its namespaces on each of its clusters.

    Between steps, the request checks here whether the state it saw under the leases still holds.
    """

    def __init__(
        self, store: Store, clock: Clock, holder: str, lease_names: Sequence[tuple[int, str]]
    ) -> None:
        """Create unheld leases from cluster numbers and lease names, in the global order."""
        self._store = store
        self._clock = clock
        self.held = HeldLeases(holder=holder, names=tuple(lease_names))
        """The leases, once all are acquired."""
        self._since = clock.monotonic()

    async def take(self, deadline: float) -> None:
        """Acquire the leases one after another.

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
        """Renew the leases if they are due.

        Raises:
            Overloaded: a lease has expired, so the state seen under it may be out of date.
        """
        await self._prolong(self.held)

    async def release(self) -> None:
        """Release the leases; those that cannot be released now expire on their own."""
        with suppress(StorageUnavailable):
            for number, name in self.held.names:
                await self._store.leases.release(number, name, self.held.holder)

    async def _acquire(self, number: int, name: str) -> bool:
        holder = self.held.holder
        return await self._store.leases.acquire(number, name, holder, LEASE_SECONDS) is not None

    async def _prolong(self, held: HeldLeases) -> None:
        """Renew held leases, but never reacquire an expired one."""
        now = self._clock.monotonic()
        if now < self._since + RENEW_SECONDS:
            return
        if not await self._store.leases.prolong(held, LEASE_SECONDS):
            raise _held_by_another()
        self._since = now


def _held_by_another() -> Overloaded:
    return Overloaded("Another request places pods of this namespace over these clusters.")


class _Work:
    """The placement of one request, while it holds its leases."""

    def __init__(
        self,
        request: MultiClusterRequest,
        clusters: ClusterClient,
        may_go_on: Callable[[], Awaitable[None]],
        leases: HeldLeases | None,
        splitting: SplitGroupPlacement,
    ) -> None:
        self._leases = leases
        self._splitting = splitting
        self._request = request
        self._clusters = clusters
        self._may_go_on = may_go_on
        self._revisions: dict[str, int] = {}
        self._kubernetes: dict[str, str] = {}
        self._committed = False
        self._results: dict[int, OverClustersResult] = {}

    async def answer(self) -> OverClustersAnswer:
        for unit in self._request.units:
            await self._may_go_on()
            await self._place(unit)
        return OverClustersAnswer(
            committed=self._committed,
            revisions=dict(sorted(self._revisions.items())),
            kubernetes=dict(sorted(self._kubernetes.items())),
            results=[self._results[index] for index in sorted(self._results)],
        )

    async def _place(self, unit: Unit) -> None:
        bids = await self._bids(unit)
        if unit.is_group and self._request.split_groups:
            rest = await self._keep_placed(unit, bids)
            if rest is None:
                return
            if len(rest.indices) < len(unit.indices):
                unit, bids = rest, await self._bids(rest)
        holders = holders_of(unit, bids)
        refused = {} if any(bid.has_placed for bid in holders) else excluded_by_rules(bids)
        allowed = [bid for bid in holders or bids if bid.cluster not in refused]
        refusals = [
            [ClusterRefusal(cluster=name, reason=RULE, message=message)] * len(unit.indices)
            for name, message in refused.items()
        ]
        ordered = in_order(allowed, self._request.strategy)
        if unit.is_group and self._request.split_groups and not holders:
            whole = [bid for bid in ordered if bid.takes_all]
            if await self._try(unit, whole, refusals) or await self._split(unit):
                return
            ordered = [bid for bid in ordered if not bid.takes_all]
        if not await self._try(unit, ordered, refusals):
            await self._none(unit, allowed, refusals)

    async def _try(
        self,
        unit: Unit,
        ordered: Sequence[ClusterBid],
        refusals: list[list[ClusterRefusal]],
    ) -> bool:
        """Place a unit in the first cluster that takes it; record why others refuse."""
        for bid in ordered:
            results = bid.results
            if bid.takes_any and not self._request.dry_run:
                results = (await self._ask(bid.cluster, unit)).results
            if any(map(has_node, results)):
                self._keep(unit, results, bid.cluster, refusals)
                return True
            refusals.append([_refusal(bid.cluster, result) for result in results])
        return False

    async def _split(self, unit: Unit) -> bool:
        """Place a group across several clusters, if they can take all of it together."""
        places = await self._splitting.place(unit)
        if places is None:
            return False
        self._revisions |= self._splitting.revisions
        self._committed |= not self._request.dry_run
        self._keep_apart(unit, places)
        return True

    async def _keep_placed(self, unit: Unit, bids: Sequence[ClusterBid]) -> Unit | None:
        """Record the placed pods of a group; return the unit of the others, or None.

        Stored pods without a node bind their group to their cluster.
        """
        stored = frozenset[int]().union(*(bid.stored for bid in bids))
        remaining = set(range(len(unit.indices)))
        placed: dict[str, list[int]] = {}
        for bid in bids:
            placed[bid.cluster] = [place for place in bid.placed if place in remaining]
            remaining -= bid.placed
        if not any(placed.values()) or stored & remaining:
            return unit
        for cluster, places in placed.items():
            if places:
                part = _part(unit, places)
                self._keep(part, (await self._ask(cluster, part)).results, cluster, [])
        return _part(unit, sorted(remaining)) if remaining else None

    def _keep_apart(self, unit: Unit, places: Places) -> None:
        for place, (cluster, result) in places.items():
            self._keep(_part(unit, [place]), [result], cluster, [])

    async def _none(
        self,
        unit: Unit,
        allowed: Sequence[ClusterBid],
        refusals: Sequence[Sequence[ClusterRefusal]],
    ) -> None:
        """Queue a unit that fits in no cluster, in the first allowed cluster, if requested."""
        ordered = in_order(allowed, self._request.strategy)
        if self._request.queue and not self._request.dry_run and ordered:
            cluster = ordered[0].cluster
            results = (await self._ask(cluster, unit, queue=True)).results
            self._keep(unit, results, cluster, refusals)
            return
        first = ordered[0].results if ordered else ()
        refused: Outcome = "GroupRefused" if unit.is_group else "Unschedulable"
        # A placement that a dry run promised may have been refused after all.
        outcomes = [refused if has_node(result) else result.outcome for result in first]
        outcomes = outcomes or ["Unschedulable"] * len(unit.indices)
        for place, (index, (namespace, name)) in enumerate(
            zip(unit.indices, unit.names, strict=True)
        ):
            self._results[index] = OverClustersResult(
                namespace=namespace,
                name=name,
                outcome=outcomes[place],
                refusals=sorted(
                    (unit_refusals[place] for unit_refusals in refusals),
                    key=lambda one: one.cluster,
                ),
            )

    def _keep(
        self,
        unit: Unit,
        results: Sequence[PlacementResult],
        cluster: str,
        refusals: Sequence[Sequence[ClusterRefusal]],
    ) -> None:
        for place, (index, result) in enumerate(zip(unit.indices, results, strict=True)):
            there = result.uid is not None or has_node(result)
            shown = [
                unit_refusals[place]
                for unit_refusals in refusals
                if unit_refusals[place].cluster != cluster
            ]
            if not has_node(result):
                shown.append(_refusal(cluster, result))
            self._results[index] = OverClustersResult(
                namespace=result.namespace,
                name=result.name,
                outcome=result.outcome,
                cluster=cluster if there else None,
                uid=result.uid,
                node_name=result.node_name,
                score=result.score,
                refusals=sorted(shown, key=lambda one: one.cluster),
            )

    async def _bids(self, unit: Unit) -> Sequence[ClusterBid]:
        """Return each cluster's answer to a dry run, after ending groups of earlier requests."""
        bids = await self._all_bids(unit)
        begun: dict[tuple[str, str], list[str]] = {}
        for bid in bids:
            for compared in bid.comparisons:
                if compared.reserved is not None:
                    clusters = begun.setdefault(
                        (compared.reserved.group, compared.reserved.home), []
                    )
                    clusters += [] if bid.cluster in clusters else [bid.cluster]
        if not begun or self._request.dry_run:
            return bids
        for (group, home), among in begun.items():
            try:
                await self._splitting.end_earlier(group, home, among)
            except MoorageError as error:
                message = "An earlier request has nodes reserved for these pods; ask again."
                raise Overloaded(message) from error
        return await self._all_bids(unit)

    async def _all_bids(self, unit: Unit) -> Sequence[ClusterBid]:
        asking = [self._bid(cluster, unit) for cluster in self._request.clusters]
        return await asyncio.gather(*asking)

    async def _bid(self, cluster: str, unit: Unit) -> ClusterBid:
        answer = await self._record_answer(
            ClusterQuery(cluster=cluster, indices=unit.indices, dry_run=True)
        )
        return ClusterBid(cluster=cluster, results=answer.results)

    async def _ask(self, cluster: str, unit: Unit, *, queue: bool = False) -> PlacementAnswer:
        await self._may_go_on()
        ask = ClusterQuery(cluster=cluster, indices=unit.indices, queue=queue, leases=self._leases)
        return await self._record_answer(ask)

    async def _record_answer(self, ask: ClusterQuery) -> PlacementAnswer:
        answer = await self._clusters.place(ask)
        self._revisions[ask.cluster] = answer.revision
        self._kubernetes[ask.cluster] = answer.kubernetes
        self._committed |= answer.committed
        return answer


def _part(unit: Unit, places: Sequence[int]) -> Unit:
    """Return a unit of only the pods at the given positions."""
    return replace(
        unit,
        indices=[unit.indices[place] for place in places],
        names=[unit.names[place] for place in places],
    )


def _refusal(cluster: str, result: PlacementResult) -> ClusterRefusal:
    message = result.message or f"the pod is {result.outcome}"
    return ClusterRefusal(cluster=cluster, reason=result.reason, message=message)
