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
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from msgspec.structs import replace

from service.model.errors import MoorageError, Overloaded, StorageUnavailable
from service.model.log.commit_log import HeldLeases
from service.scheduler.multi_cluster.cluster_prospects import (
    Ask,
    AsksClusters,
    PlaceOverClusters,
    Prospect,
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


class OverClusters:
    """Places the units of requests, one after the other, each in one of several clusters."""

    def __init__(self, store: Store, clock: Clock, limits: Limits, holder: str) -> None:
        """`holder` names the request to others that wait for its leases."""
        self._store = store
        self._clock = clock
        self._holder = holder
        self._request_seconds_max = limits.request_seconds_max
        self._reservation_seconds = limits.group_reservation_seconds

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
            # Dry runs need no lease, as nothing rests on what they answer.
            client = CLIENT.get()

            async def is_wanted() -> None:
                self._refuse_late(deadline)
                if client is not None and client.has_left():
                    raise Overloaded("The client has left.")

            return await self._work(asked, clusters, is_wanted, None).answer()
        async with self._leases(asked, deadline) as leases:

            async def may_go_on() -> None:
                self._refuse_late(deadline)
                await leases.keep()

            return await self._work(asked, clusters, may_go_on, leases.held).answer()

    def _work(
        self,
        asked: PlaceOverClusters,
        clusters: AsksClusters,
        may_go_on: Callable[[], Awaitable[None]],
        leases: HeldLeases | None,
    ) -> "_Work":
        splitting = SplitGroupPlacement(
            asked, clusters, may_go_on, leases, self._clock, self._reservation_seconds
        )
        return _Work(asked, clusters, may_go_on, leases, splitting)

    def _refuse_late(self, deadline: float) -> None:
        if self._clock.monotonic() >= deadline:
            raise Overloaded("Time ran out before all pods were placed; ask again.")

    @asynccontextmanager
    async def _leases(
        self, asked: PlaceOverClusters, deadline: float
    ) -> AsyncIterator["RequestLeases"]:
        """Hold all leases of a request, taken in one order by everybody, and give them back.

        A placement whose outcome is not known either keeps them until it is committed, or can no
        longer be made when they are given back.
        """
        numbers = sorted({await self._store.clusters.find(each) for each in asked.clusters})
        names = {LEASE + namespace for unit in asked.units for namespace, _ in unit.names}
        if any(unit.counts_others for unit in asked.units):
            names.add(LEASE + ANY_NAMESPACE)
        wanted = [(number, each) for number in numbers for each in sorted(names)]
        leases = RequestLeases(self._store, self._clock, self._holder, wanted)
        try:
            await leases.take(deadline)
            yield leases
        finally:
            await leases.release()


class RequestLeases:
    """The leases of one request: on each of its clusters, one for each namespace.

    Between any two of its steps a request asks here whether what it saw under them is still true.
    """

    def __init__(
        self, store: Store, clock: Clock, holder: str, wanted: Sequence[tuple[int, str]]
    ) -> None:
        """`wanted` are numbers of clusters with names of leases, in the order in which all take them."""
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
                await self._store.leases.release(number, name, self.held.holder)

    async def _acquire(self, number: int, name: str) -> bool:
        holder = self.held.holder
        return await self._store.leases.acquire(number, name, holder, LEASE_SECONDS) is not None

    async def _prolong(self, held: HeldLeases) -> None:
        """Prolong what is held; what has ended is not taken anew, as another may have had it in between."""
        now = self._clock.monotonic()
        if now < self._since + RENEW_SECONDS:
            return
        if not await self._store.leases.prolong(held, LEASE_SECONDS):
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
        splitting: SplitGroupPlacement,
    ) -> None:
        self._leases = leases
        self._splitting = splitting
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
        prospects = await self._prospects(unit)
        if unit.is_group and self._asked.split_groups:
            rest = await self._keep_placed(unit, prospects)
            if rest is None:
                return
            if len(rest.indices) < len(unit.indices):
                unit, prospects = rest, await self._prospects(rest)
        holders = holders_of(unit, prospects)
        refused = {} if any(each.has_placed for each in holders) else excluded_by_rules(prospects)
        allowed = [each for each in holders or prospects if each.cluster not in refused]
        refusals = [
            [ClusterRefusal(cluster=name, reason=RULE, message=message)] * len(unit.indices)
            for name, message in refused.items()
        ]
        ordered = in_order(allowed, self._asked.strategy)
        if unit.is_group and self._asked.split_groups and not holders:
            whole = [each for each in ordered if each.takes_all]
            if await self._try(unit, whole, refusals) or await self._split(unit):
                return
            ordered = [each for each in ordered if not each.takes_all]
        if not await self._try(unit, ordered, refusals):
            await self._none(unit, allowed, refusals)

    async def _try(
        self,
        unit: Unit,
        ordered: Sequence[Prospect],
        refusals: list[list[ClusterRefusal]],
    ) -> bool:
        """Have the first of these clusters that takes a unit place it; the reasons of others are noted."""
        for prospect in ordered:
            results = prospect.results
            if prospect.takes_any and not self._asked.dry_run:
                results = (await self._ask(prospect.cluster, unit)).results
            if any(map(has_node, results)):
                self._keep(unit, results, prospect.cluster, refusals)
                return True
            refusals.append([_refusal(prospect.cluster, each) for each in results])
        return False

    async def _split(self, unit: Unit) -> bool:
        """Place a group in several clusters, if they take all of it together."""
        found = await self._splitting.place(unit)
        if found is None:
            return False
        self._revisions |= self._splitting.revisions
        self._committed |= not self._asked.dry_run
        self._keep_apart(unit, found)
        return True

    async def _keep_placed(self, unit: Unit, prospects: Sequence[Prospect]) -> Unit | None:
        """Tell of the pods of a group that are placed in any cluster; return the others, None if there are none.

        Pods that are stored without a node keep their group together, where they are.
        """
        stored = frozenset[int]().union(*(each.stored for each in prospects))
        left = set(range(len(unit.indices)))
        placed: dict[str, list[int]] = {}
        for each in prospects:
            placed[each.cluster] = [place for place in each.placed if place in left]
            left -= each.placed
        if not any(placed.values()) or stored & left:
            return unit
        for cluster, places in placed.items():
            if places:
                part = _part(unit, places)
                self._keep(part, (await self._ask(cluster, part)).results, cluster, [])
        return _part(unit, sorted(left)) if left else None

    def _keep_apart(self, unit: Unit, places: Places) -> None:
        for place, (cluster, result) in places.items():
            self._keep(_part(unit, [place]), [result], cluster, [])

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
        refused: Outcome = "GroupRefused" if unit.is_group else "Unschedulable"
        # What a dry run has promised may have been refused after all.
        outcomes = [refused if has_node(each) else each.outcome for each in first]
        outcomes = outcomes or ["Unschedulable"] * len(unit.indices)
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
            there = result.uid is not None or has_node(result)
            told = [each[place] for each in refusals if each[place].cluster != cluster]
            if not has_node(result):
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

    async def _prospects(self, unit: Unit) -> Sequence[Prospect]:
        """What each cluster answers to a dry run, once groups of earlier requests have come to their end."""
        prospects = await self._asked_all(unit)
        begun: dict[tuple[str, str], list[str]] = {}
        for each in prospects:
            for compared in each.comparisons:
                if compared.reserved is not None:
                    clusters = begun.setdefault(
                        (compared.reserved.group, compared.reserved.home), []
                    )
                    clusters += [] if each.cluster in clusters else [each.cluster]
        if not begun or self._asked.dry_run:
            return prospects
        for (group, home), among in begun.items():
            try:
                await self._splitting.end_earlier(group, home, among)
            except MoorageError as error:
                told = "An earlier request has nodes reserved for these pods; ask again."
                raise Overloaded(told) from error
        return await self._asked_all(unit)

    async def _asked_all(self, unit: Unit) -> Sequence[Prospect]:
        asking = [self._prospect(each, unit) for each in self._asked.clusters]
        return await asyncio.gather(*asking)

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


def _part(unit: Unit, places: Sequence[int]) -> Unit:
    """Some of the pods of a unit."""
    return replace(
        unit,
        indices=[unit.indices[place] for place in places],
        names=[unit.names[place] for place in places],
    )


def _refusal(cluster: str, result: PlacementResult) -> ClusterRefusal:
    message = result.message or f"the pod is {result.outcome}"
    return ClusterRefusal(cluster=cluster, reason=result.reason, message=message)
