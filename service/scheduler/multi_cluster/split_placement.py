"""Places a group in several clusters, all of its pods or none, by a commit in two phases.

Clusters have logs of their own, so no transaction spans them. First each cluster reserves the nodes of
its part (`GroupReservation`), in one commit each, the group's home before the others. When all have,
the home decides by one more commit that the group is placed (`SplitGroup`), which binds its own part;
then the others bind theirs. Before that commit anybody may have the home give the group up, and after it
nobody can; so whoever comes next, a repeated request or the controllers of the clusters
(`service.scheduler.controllers.group_recovery`), can tell from the home alone what is to be done.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TypeVar

from msgspec.structs import replace

from service.model.core.primitives import LabelSelector
from service.model.errors import MoorageError, OutcomeUnknown, Overloaded
from service.model.log.leases import HeldLeases
from service.model.multi_cluster.multi_cluster_criteria import ClusterComparison, SpreadOverClusters
from service.model.multi_cluster.whole_cluster_topology_key import CLUSTER_KEY
from service.model.objects.pods_and_nodes import Pod
from service.model.objects.selectors import matches
from service.model.pods.affinity import spread_selector
from service.scheduler.multi_cluster.cluster_prospects import (
    Ask,
    AsksClusters,
    PlaceOverClusters,
    Prospect,
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
"""How often nodes are reserved for other parts if a cluster refuses its part."""

K = TypeVar("K")

Parts = Mapping[str, Sequence[int]]
"""For each cluster, its home first, the places within the unit of the pods that it is to get."""
Places = Mapping[int, tuple[str, PlacementResult]]
"""For each place within the unit, the cluster of the pod, and what this has answered."""


class SplitGroupPlacement:
    """Places the groups of one request in several clusters, while its leases are held."""

    def __init__(
        self,
        asked: PlaceOverClusters,
        clusters: AsksClusters,
        may_go_on: Callable[[], Awaitable[None]],
        leases: HeldLeases | None,
        clock: Clock,
        reservation_seconds: float,
    ) -> None:
        self._asked = asked
        self._clusters = clusters
        self._may_go_on = may_go_on
        self._leases = leases
        self._clock = clock
        self._reservation = timedelta(seconds=reservation_seconds)
        self._groups = 0
        """For how many groups, or parts of them, nodes were reserved so far."""
        self.revisions: dict[str, int] = {}
        """The revisions at which clusters have bound pods."""

    async def place(self, unit: Unit) -> Places | None:
        """Place all pods of a unit in clusters that take them together; None: there are none.

        Raises:
            Overloaded: time ran out, or somebody else gave the group up; no pod is placed.
            OutcomeUnknown: it is not known yet whether the group is placed; ask again.
            MoorageError: as `AsksClusters`; no pod is placed.
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
        """Have the end of a group come that an earlier request has begun, which can go on no more.

        Raises:
            MoorageError: as `AsksClusters`.
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
        """Share the pods out to clusters that take them beside each other; None: some are left over.

        All clusters are asked about all pods that are left, until each has its cluster: what one has
        got makes room for more in another.
        """
        sharing = _Sharing(self._asked, unit, refused)
        while sharing.left:
            await self._may_go_on()
            prospects = await asyncio.gather(
                *(self._prospect(each, unit, sharing) for each in sharing.clusters)
            )
            if not sharing.go_on(prospects):
                return None
        return sharing.parts()

    async def _prospect(self, cluster: str, unit: Unit, sharing: "_Sharing") -> Prospect:
        places = sharing.asked_of(cluster)
        indices = [unit.indices[each] for each in places]
        answer = await self._clusters.place(
            Ask(cluster=cluster, indices=indices, dry_run=True, alone=True)
        )
        return Prospect(cluster=cluster, results=answer.results)

    # The two phases

    async def _place_parts(
        self, unit: Unit, parts: Parts, refused: set[tuple[str, int]]
    ) -> Places | None:
        """Place the parts of a group; None: a cluster refuses its part, which is noted."""
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
            if reserved is None or self._asked.dry_run:
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
        """Reserve the nodes of all parts, those of the home first, which then knows of the group."""
        found: dict[int, tuple[str, PlacementResult]] = {}
        at_home = replace(terms, clusters=tuple(parts))
        whole = await self._reserve_in(unit, parts, at_home, terms.home, refused, found)
        if not whole:
            return None
        others = [
            self._reserve_in(unit, parts, terms, each, refused, found)
            for each in parts
            if each != terms.home
        ]
        done = await asyncio.gather(*others, return_exceptions=True)
        for each in done:
            if isinstance(each, BaseException):
                raise each
        return found if all(done) else None

    async def _reserve_in(
        self,
        unit: Unit,
        parts: Parts,
        terms: ReservationTerms,
        cluster: str,
        refused: set[tuple[str, int]],
        found: dict[int, tuple[str, PlacementResult]],
    ) -> bool:
        """Reserve the nodes of one part, and return whether the cluster took all of it.

        Raises:
            Overloaded: a pod was placed there meanwhile, which must not come to another cluster as well.
        """
        await self._may_go_on()
        places = parts[cluster]
        ask = Ask(
            cluster=cluster,
            indices=[unit.indices[each] for each in places],
            dry_run=self._asked.dry_run,
            leases=self._leases,
            reserving=terms,
        )
        answer = await self._clusters.place(ask)
        results = list(zip(places, answer.results, strict=True))
        found.update((place, (cluster, result)) for place, result in results)
        if all(result.outcome == "Placed" for _, result in results):
            return True
        if any(_was_stored_meanwhile(result) for _, result in results):
            raise Overloaded("A pod of the group was stored meanwhile; ask again.")
        failed = [place for place, result in results if result.outcome != "GroupRefused"]
        refused.update((cluster, place) for place in failed or places[-1:])
        return False

    async def _commit(self, terms: ReservationTerms) -> None:
        """Decide that the group is placed. From then on nobody can give it up."""
        answer = await self._step(terms.home, terms.group, "Commit", self._leases)
        if not answer.committed:
            raise Overloaded("The cluster that decides for the group is gone; ask again.")

    async def _give_up(self, terms: ReservationTerms, parts: Parts) -> bool:
        """Give the group up, and return False; or True, since it is committed after all.

        What cannot be given up now goes by itself, once its time is over.

        Raises:
            OutcomeUnknown: nobody can say now whether it is committed.
        """
        if self._asked.dry_run:
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
        """Have all other clusters bind their parts, and the home forget the group then.

        Raises:
            OutcomeUnknown: one did not answer; its part will be bound all the same.
        """
        others = [each for each in parts if each != terms.home]
        try:
            await asyncio.gather(*(self._step(each, terms.group, "Bind") for each in others))
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
    """Which cluster gets which pods of a unit, while they are shared out."""

    def __init__(self, asked: PlaceOverClusters, unit: Unit, refused: set[tuple[str, int]]) -> None:
        self._asked = asked
        self._pods = [asked.pods[each] for each in unit.indices]
        self._refused = refused
        self._parts: dict[str, list[int]] = {each: [] for each in asked.clusters}
        self._spread = _SpreadCounts(self._pods)
        self.clusters = list(asked.clusters)
        """The clusters that come into question still."""
        self.left = list(range(len(self._pods)))
        """The places of the pods that have no cluster yet."""

    def parts(self) -> Parts:
        """Return the parts of all clusters that get any pods, the one with most first."""
        found = {name: sorted(places) for name, places in self._parts.items() if places}
        return dict(sorted(found.items(), key=lambda each: -len(each[1])))

    def asked_of(self, cluster: str) -> list[int]:
        """Return the places of the pods about which a cluster is asked: those it has, and all that are left.

        A cluster that refused a pod is asked about it, too, as its pods count for rules over clusters.
        """
        return [*self._parts[cluster], *self.left]

    def go_on(self, prospects: Sequence[Prospect]) -> bool:
        """Give pods to clusters that take them; False: no pod that is left gets one."""
        told = {each.cluster: self._told(each) for each in prospects}
        if not self._has_members(told):
            return False
        taking = {
            name: {
                place
                for place, each in answers.items()
                if place in self.left and has_node(each) and (name, place) not in self._refused
            }
            for name, answers in told.items()
        }
        before = len(self.left)
        for place in list(self.left):
            cluster = self._cluster_for(place, told, taking)
            if cluster is not None:
                self._parts[cluster].append(place)
                self._spread.note(cluster, place)
                self.left.remove(place)
        return len(self.left) < before

    def _has_members(self, told: Mapping[str, Mapping[int, PlacementResult]]) -> bool:
        """Whether each pod group has enough members: those here, and those that have nodes anywhere."""
        wanted: Counter[str] = Counter()
        placed: dict[tuple[str, str], int] = {}
        joining: dict[str, set[int]] = {}
        for cluster, answers in told.items():
            for place, each in _compared(answers).items():
                if each.group is not None:
                    name = each.group.name
                    wanted[name] = max(wanted[name], each.group.min_member)
                    placed[cluster, name] = each.group.placed
                    joining.setdefault(name, set()).add(place)
        there: Counter[str] = Counter()
        for (_, name), pods in placed.items():
            there[name] += pods
        return all(there[name] + len(joining[name]) >= least for name, least in wanted.items())

    def _told(self, prospect: Prospect) -> dict[int, PlacementResult]:
        return dict(zip(self.asked_of(prospect.cluster), prospect.results, strict=True))

    def _cluster_for(
        self,
        place: int,
        told: Mapping[str, Mapping[int, PlacementResult]],
        taking: Mapping[str, set[int]],
    ) -> str | None:
        """Choose the cluster for a pod: by rules over clusters, then so that few clusters get pods."""
        answers = {name: each[place] for name, each in told.items() if place in each}
        compared = _compared(answers)
        affine = {name for name, each in compared.items() if each.affine is not False}
        drawn = any(each.affine is not None for each in compared.values())
        if drawn and not any(each.affine for each in compared.values()):
            return None  # They draw each other, so that they have to be in one cluster.
        allowed, soft = self._spread.judge(
            place, {name: each.spread for name, each in compared.items()}
        )
        names = [
            name
            for name in self.clusters
            if name in allowed & affine and place in taking[name] and _may_be_split(compared[name])
        ]

        def rank(name: str) -> tuple[int, int, int, float]:
            if self._asked.strategy == "AsListed":
                return soft[name], -compared[name].preferred, 0, 0.0
            share = compared[name].used_share
            return soft[name], -compared[name].preferred, -len(taking[name]), share

        return min(names, key=rank, default=None)


def _was_stored_meanwhile(result: PlacementResult) -> bool:
    return result.outcome == "AlreadyPlaced" or result.reason == STORED_MEANWHILE


def _compared(answers: Mapping[K, PlacementResult]) -> dict[K, ClusterComparison]:
    """What is compared of clusters, in answers that tell it."""
    return {
        key: each.comparison
        for key, each in answers.items()
        if isinstance(each.comparison, ClusterComparison)
    }


def _may_be_split(compared: ClusterComparison) -> bool:
    return compared.group is None or compared.group.may_be_split


class _SpreadCounts:
    """The pods of a group that spread constraints over clusters count, in the clusters that they are to get."""

    def __init__(self, pods: Sequence[Pod]) -> None:
        self._pods = pods
        self._counts: dict[tuple[str, str], Counter[str]] = {}
        self._selectors: dict[tuple[str, str], LabelSelector | None] = {}
        self._rules = [[self._key(pod, each) for each in _selectors(pod)] for pod in pods]

    def _key(self, pod: Pod, selector: LabelSelector | None) -> tuple[str, str]:
        key = (pod.namespace, repr(selector))
        self._selectors[key] = selector
        self._counts.setdefault(key, Counter())
        return key

    def note(self, cluster: str, place: int) -> None:
        """Count a pod in the cluster that it is to get."""
        pod = self._pods[place]
        for key, counts in self._counts.items():
            if key[0] == pod.namespace and matches(self._selectors[key], pod.labels):
                counts[cluster] += 1

    def judge(
        self, place: int, spread: Mapping[str, Sequence[SpreadOverClusters]]
    ) -> tuple[set[str], dict[str, int]]:
        """Return the clusters that all constraints of a pod allow, and what those that only rank count."""
        allowed, soft = set(spread), dict.fromkeys(spread, 0)
        for number, key in enumerate(self._rules[place]):
            rules = {
                name: replace(each[number], pods=each[number].pods + self._counts[key][name])
                for name, each in spread.items()
                if number < len(each)
            }
            allowed -= set(too_full(rules, 1))
            for name, each in rules.items():
                if not each.required:
                    soft[name] += each.pods
        return allowed, soft


def _selectors(pod: Pod) -> Iterator[LabelSelector | None]:
    for each in pod.spec.topology_spread_constraints:
        if each.topology_key == CLUSTER_KEY:
            yield spread_selector(each, pod.labels)
