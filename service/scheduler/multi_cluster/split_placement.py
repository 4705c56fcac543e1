"""Splits a group across clusters in two phases: each reserves its part, the home decides, then all bind or release.

Clusters have their own logs, so no transaction spans them. First each cluster reserves the nodes of
its part (`GroupReservation`) in one commit, the group's home before the others. When all have, the
home makes one more commit, which decides that the group is placed (`SplitGroup`) and binds the
home's own part; then the others bind theirs. Any process may have the home give up the group before
that commit, and none can afterwards. So any later process, such as a repeated request or a
cluster's controller (`service.scheduler.controllers.group_recovery`), can tell from the home alone
what to do.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TypeVar

from msgspec.structs import replace

from service.model.cluster.comparison import ClusterComparison, SpreadOverClusters
from service.model.core.errors import MoorageError, OutcomeUnknown, Overloaded
from service.model.core.primitives import LabelSelector
from service.model.core.selectors import matches
from service.model.log.lease import HeldLeases
from service.model.pods.affinity import spread_selector
from service.model.pods.cluster_topology import CLUSTER_KEY
from service.model.pods.pod import Pod
from service.scheduler.multi_cluster.cluster_bids import (
    ClusterBid,
    ClusterClient,
    ClusterQuery,
    MultiClusterRequest,
    Unit,
    has_node,
    too_full,
)
from service.scheduler.protocol.intents import AdvanceGroup
from service.scheduler.protocol.placements import PlacementResult
from service.scheduler.protocol.ports import Clock
from service.scheduler.protocol.split_groups import (
    STORED_MEANWHILE,
    GroupAnswer,
    GroupStep,
    ReservationTerms,
)

ATTEMPTS_MAX = 4
"""How many times nodes are reserved for other parts if a cluster refuses its part."""

K = TypeVar("K")

Parts = Mapping[str, Sequence[int]]
"""The places within the unit of the pods for each cluster, with the home cluster first."""
Places = Mapping[int, tuple[str, PlacementResult]]
"""Each pod's cluster and that cluster's answer, by the pod's place within the unit."""


class SplitGroupPlacement:
    """Places one request's groups across clusters, while its leases are held."""

    def __init__(
        self,
        request: MultiClusterRequest,
        clusters: ClusterClient,
        may_go_on: Callable[[], Awaitable[None]],
        leases: HeldLeases | None,
        clock: Clock,
        reservation_seconds: float,
    ) -> None:
        self._request = request
        self._clusters = clusters
        self._may_go_on = may_go_on
        self._leases = leases
        self._clock = clock
        self._reservation = timedelta(seconds=reservation_seconds)
        self._groups = 0
        """The number of groups, or parts of them, that nodes have been reserved for so far."""
        self.revisions: dict[str, int] = {}
        """The revisions at which clusters have bound pods."""

    async def place(self, unit: Unit) -> Places | None:
        """Place all pods of a unit in clusters that take them together, or return None if none do.

        Raises:
            Overloaded: time ran out, or the group was given up by another process; no pod is
                placed.
            OutcomeUnknown: whether the group is placed is not known yet; repeat the request.
            MoorageError: as `ClusterClient`; no pod is placed.
        """
        refused: set[tuple[str, int]] = set()
        for _ in range(ATTEMPTS_MAX):
            parts = await self._share_out(unit, refused)
            if parts is None:
                return None
            placed = await self._place_parts(unit, parts, refused)
            if placed is not None:
                return placed
        return None

    async def end_earlier(self, group: str, home: str, among: Sequence[str]) -> None:
        """End a group begun by an earlier, interrupted request.

        Raises:
            MoorageError: as `ClusterClient`.
        """
        answer = await self._step(home, group, "Release")
        step: GroupStep = "Bind" if answer.committed else "Release"
        for cluster in answer.clusters or among:
            if cluster != home:
                await self._step(cluster, group, step)
        if answer.committed:
            await self._step(home, group, "Forget")

    # Which cluster gets which pods

    async def _share_out(self, unit: Unit, refused: set[tuple[str, int]]) -> Parts | None:
        """Divide the pods among clusters that take them together, or return None.

        All clusters are asked about all remaining pods, until each pod has its cluster: once one
        cluster has some of the pods, another may take more.
        """
        sharing = _Sharing(self._request, unit, refused)
        while sharing.left:
            await self._may_go_on()
            bids = await asyncio.gather(
                *(self._bid(cluster, unit, sharing) for cluster in sharing.clusters)
            )
            if not sharing.go_on(bids):
                return None
        return sharing.parts()

    async def _bid(self, cluster: str, unit: Unit, sharing: "_Sharing") -> ClusterBid:
        places = sharing.asked_of(cluster)
        indices = [unit.indices[place] for place in places]
        answer = await self._clusters.place(
            ClusterQuery(cluster=cluster, indices=indices, dry_run=True, alone=True)
        )
        return ClusterBid(cluster=cluster, results=answer.results)

    # The two phases

    async def _place_parts(
        self, unit: Unit, parts: Parts, refused: set[tuple[str, int]]
    ) -> Places | None:
        """Place a group's parts, or return None after recording which cluster refuses its part."""
        self._groups += 1
        holder = "" if self._leases is None else self._leases.holder
        terms = ReservationTerms(
            group=f"{holder}-{self._groups}",
            home=next(iter(parts)),
            until=self._clock.now() + self._reservation,
        )
        reserved: Places | None = None
        try:
            reserved = await self._reserve(unit, parts, terms, refused)
            if reserved is None or self._request.dry_run:
                await self._give_up(terms, parts)
                return reserved
            await self._may_go_on()
            await self._commit(terms)
        except MoorageError:
            if not await self._give_up(terms, parts):
                raise
            assert reserved is not None, "what is committed was reserved"
        await self._bind(terms, parts)
        return reserved

    async def _reserve(
        self, unit: Unit, parts: Parts, terms: ReservationTerms, refused: set[tuple[str, int]]
    ) -> Places | None:
        """Reserve the nodes of all parts, starting with the home's, which records the group."""
        placed: dict[int, tuple[str, PlacementResult]] = {}
        at_home = replace(terms, clusters=tuple(parts))
        whole = await self._reserve_in(unit, parts, at_home, terms.home, refused, placed)
        if not whole:
            return None
        others = [
            self._reserve_in(unit, parts, terms, cluster, refused, placed)
            for cluster in parts
            if cluster != terms.home
        ]
        done = await asyncio.gather(*others, return_exceptions=True)
        for outcome in done:
            if isinstance(outcome, BaseException):
                raise outcome
        return placed if all(done) else None

    async def _reserve_in(
        self,
        unit: Unit,
        parts: Parts,
        terms: ReservationTerms,
        cluster: str,
        refused: set[tuple[str, int]],
        placed: dict[int, tuple[str, PlacementResult]],
    ) -> bool:
        """Reserve the nodes of one part, and return whether the cluster took all of it.

        Raises:
            Overloaded: a pod has since been placed there, and must not go to another cluster, too.
        """
        await self._may_go_on()
        places = parts[cluster]
        ask = ClusterQuery(
            cluster=cluster,
            indices=[unit.indices[place] for place in places],
            dry_run=self._request.dry_run,
            leases=self._leases,
            reserving=terms,
        )
        answer = await self._clusters.place(ask)
        results = list(zip(places, answer.results, strict=True))
        placed.update((place, (cluster, result)) for place, result in results)
        if all(result.outcome == "Placed" for _, result in results):
            return True
        if any(_was_stored_meanwhile(result) for _, result in results):
            raise Overloaded("A pod of the group was stored meanwhile; ask again.")
        failed = [place for place, result in results if result.outcome != "GroupRefused"]
        refused.update((cluster, place) for place in failed or places[-1:])
        return False

    async def _commit(self, terms: ReservationTerms) -> None:
        """Commit the group, after which no process can give it up."""
        answer = await self._step(terms.home, terms.group, "Commit", self._leases)
        if not answer.committed:
            raise Overloaded("The cluster that decides for the group is gone; ask again.")

    async def _give_up(self, terms: ReservationTerms, parts: Parts) -> bool:
        """Give up the group and return False, or return True if it turns out to be committed.

        Parts that cannot be given up now expire on their own.

        Raises:
            OutcomeUnknown: whether the group is committed cannot be determined now.
        """
        if self._request.dry_run:
            return False
        try:
            answer = await self._step(terms.home, terms.group, "Release")
        except MoorageError as error:
            raise OutcomeUnknown(
                "It is not known yet whether the group is placed; ask again."
            ) from error
        if answer.committed:
            return True
        for cluster in parts:
            if cluster != terms.home:
                with suppress(MoorageError):
                    await self._step(cluster, terms.group, "Release")
        return False

    async def _bind(self, terms: ReservationTerms, parts: Parts) -> None:
        """Have all other clusters bind their parts, then have the home delete the group.

        Raises:
            OutcomeUnknown: a cluster did not answer; its part will be bound later.
        """
        others = [cluster for cluster in parts if cluster != terms.home]
        try:
            await asyncio.gather(*(self._step(cluster, terms.group, "Bind") for cluster in others))
        except MoorageError as error:
            raise OutcomeUnknown(
                "The group is placed, but not yet everywhere; ask again."
            ) from error
        with suppress(MoorageError):
            await self._step(terms.home, terms.group, "Forget")

    async def _step(
        self, cluster: str, group: str, step: GroupStep, leases: HeldLeases | None = None
    ) -> GroupAnswer:
        intent = AdvanceGroup(group=group, step=step, leases=leases)
        answer = await self._clusters.advance(cluster, intent)
        if step in ("Commit", "Bind"):
            self.revisions[cluster] = answer.revision
        return answer


class _Sharing:
    """An ongoing division of a unit's pods among clusters."""

    def __init__(
        self, request: MultiClusterRequest, unit: Unit, refused: set[tuple[str, int]]
    ) -> None:
        self._request = request
        self._pods = [request.pods[index] for index in unit.indices]
        self._refused = refused
        self._parts: dict[str, list[int]] = {cluster: [] for cluster in request.clusters}
        self._spread = _SpreadCounts(self._pods)
        self.clusters = list(request.clusters)
        """The clusters that are still candidates."""
        self.left = list(range(len(self._pods)))
        """The places of the pods without a cluster so far."""

    def parts(self) -> Parts:
        """Return the parts of all clusters that get pods, the largest first."""
        parts = {name: sorted(places) for name, places in self._parts.items() if places}
        return dict(sorted(parts.items(), key=lambda part: -len(part[1])))

    def asked_of(self, cluster: str) -> list[int]:
        """Return the positions of the pods to query a cluster about: its own and the remaining.

        A cluster that refused a pod is queried about it, too, because its pods count for
        multi-cluster rules.
        """
        return [*self._parts[cluster], *self.left]

    def go_on(self, bids: Sequence[ClusterBid]) -> bool:
        """Assign pods to clusters that take them; return False if no remaining pod gets one."""
        answers_by_cluster = {bid.cluster: self._answers_of(bid) for bid in bids}
        if not self._has_members(answers_by_cluster):
            return False
        taking = {
            name: {
                place
                for place, result in answers.items()
                if place in self.left and has_node(result) and (name, place) not in self._refused
            }
            for name, answers in answers_by_cluster.items()
        }
        before = len(self.left)
        for place in list(self.left):
            cluster = self._cluster_for(place, answers_by_cluster, taking)
            if cluster is not None:
                self._parts[cluster].append(place)
                self._spread.note(cluster, place)
                self.left.remove(place)
        return len(self.left) < before

    def _has_members(self, answers_by_cluster: Mapping[str, Mapping[int, PlacementResult]]) -> bool:
        """Return whether each pod group has enough members, counting these and all placed ones."""
        least_members: Counter[str] = Counter()
        placed: dict[tuple[str, str], int] = {}
        joining: dict[str, set[int]] = {}
        for cluster, answers in answers_by_cluster.items():
            for place, comparison in _compared(answers).items():
                if comparison.group is not None:
                    name = comparison.group.name
                    least_members[name] = max(least_members[name], comparison.group.min_member)
                    placed[cluster, name] = comparison.group.placed
                    joining.setdefault(name, set()).add(place)
        there: Counter[str] = Counter()
        for (_, name), pods in placed.items():
            there[name] += pods
        return all(
            there[name] + len(joining[name]) >= least for name, least in least_members.items()
        )

    def _answers_of(self, bid: ClusterBid) -> dict[int, PlacementResult]:
        return dict(zip(self.asked_of(bid.cluster), bid.results, strict=True))

    def _cluster_for(
        self,
        place: int,
        answers_by_cluster: Mapping[str, Mapping[int, PlacementResult]],
        taking: Mapping[str, set[int]],
    ) -> str | None:
        """Choose a pod's cluster by multi-cluster rules, then to use few clusters."""
        answers = {
            name: results[place] for name, results in answers_by_cluster.items() if place in results
        }
        compared = _compared(answers)
        affine = {name for name, comparison in compared.items() if comparison.affine is not False}
        drawn = any(comparison.affine is not None for comparison in compared.values())
        if drawn and not any(comparison.affine for comparison in compared.values()):
            return None  # The pods have affinity to each other, so they need the same cluster.
        allowed, soft = self._spread.judge(
            place, {name: comparison.spread for name, comparison in compared.items()}
        )
        names = [
            name
            for name in self.clusters
            if name in allowed & affine and place in taking[name] and _may_be_split(compared[name])
        ]

        def rank(name: str) -> tuple[int, int, int, float]:
            if self._request.strategy == "AsListed":
                return soft[name], -compared[name].preferred, 0, 0.0
            share = compared[name].used_share
            return soft[name], -compared[name].preferred, -len(taking[name]), share

        return min(names, key=rank, default=None)


def _was_stored_meanwhile(result: PlacementResult) -> bool:
    return result.outcome == "AlreadyPlaced" or result.reason == STORED_MEANWHILE


def _compared(answers: Mapping[K, PlacementResult]) -> dict[K, ClusterComparison]:
    """Return the comparisons of the answers that have one."""
    return {
        key: result.comparison
        for key, result in answers.items()
        if isinstance(result.comparison, ClusterComparison)
    }


def _may_be_split(compared: ClusterComparison) -> bool:
    return compared.group is None or compared.group.may_be_split


class _SpreadCounts:
    """Counts a group's pods for multi-cluster spread constraints, in their future clusters."""

    def __init__(self, pods: Sequence[Pod]) -> None:
        self._pods = pods
        self._counts: dict[tuple[str, str], Counter[str]] = {}
        self._selectors: dict[tuple[str, str], LabelSelector | None] = {}
        self._rules = [[self._key(pod, selector) for selector in _selectors(pod)] for pod in pods]

    def _key(self, pod: Pod, selector: LabelSelector | None) -> tuple[str, str]:
        key = (pod.namespace, repr(selector))
        self._selectors[key] = selector
        self._counts.setdefault(key, Counter())
        return key

    def note(self, cluster: str, place: int) -> None:
        """Count a pod in its future cluster."""
        pod = self._pods[place]
        for key, counts in self._counts.items():
            if key[0] == pod.namespace and matches(self._selectors[key], pod.labels):
                counts[cluster] += 1

    def judge(
        self, place: int, spread: Mapping[str, Sequence[SpreadOverClusters]]
    ) -> tuple[set[str], dict[str, int]]:
        """Return the clusters that all of a pod's constraints allow, and the soft counts."""
        allowed, soft = set(spread), dict.fromkeys(spread, 0)
        for number, key in enumerate(self._rules[place]):
            rules = {
                name: replace(
                    constraints[number], pods=constraints[number].pods + self._counts[key][name]
                )
                for name, constraints in spread.items()
                if number < len(constraints)
            }
            allowed -= set(too_full(rules, 1))
            for name, rule in rules.items():
                if not rule.required:
                    soft[name] += rule.pods
        return allowed, soft


def _selectors(pod: Pod) -> Iterator[LabelSelector | None]:
    for constraint in pod.spec.topology_spread_constraints:
        if constraint.topology_key == CLUSTER_KEY:
            yield spread_selector(constraint, pod.labels)
