"""Completes or releases split groups whose request was interrupted.

Placing a group takes a moment. If the server dies halfway, some pods have reserved nodes, but it is
unclear whether all of them do. The group's home cluster decides (`SplitGroup`): once the group's
time is over, the home gives up an uncommitted group, and the other clusters follow. Each cluster
changes only itself and reads the others.
"""

import asyncio
import logging
from typing import Any

from typing_extensions import override

from service.model.core.errors import MoorageError, NotFound
from service.scheduler.controllers.controller import PAUSE_SECONDS, Controller, Controllers, Spawn
from service.scheduler.controllers.leases import HeldLease
from service.scheduler.protocol.answers import Answer
from service.scheduler.protocol.intents import AdvanceGroup
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock, Store
from service.scheduler.protocol.split_groups import GroupAnswer, GroupStep
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import GroupReservation, SplitGroup, load_split_group

_log = logging.getLogger(__name__)
_MENTION = b'"until":'
_PAGE = 1_000
"""How many reservations of another cluster one page holds."""


class SplitGroupController(Controller):
    """Ends the overdue split groups of one cluster while this process holds the lease.

    The controller checks the replica periodically instead of following commits, since groups are
    not urgent.
    """

    def __init__(
        self, *, lease: HeldLease, clock: Clock, limits: Limits, spawn: Spawn, store: Store
    ) -> None:
        super().__init__(lease=lease, clock=clock, limits=limits, spawn=spawn)
        self._store = store
        self._replica: Replica | None = None
        self._working = False
        self._not_before = clock.monotonic()

    def on_loaded(self, replica: Replica) -> None:
        """Start from a newly loaded replica, which has no tentative changes yet."""
        self._replica = replica

    @property
    @override
    def _is_to_be_done(self) -> bool:
        if self._replica is None:
            return False
        return bool(self._replica.reservations) or self._replica.count(SplitGroup.kind) > 0

    @override
    def _begin_anew(self) -> None:
        """Do nothing, since the replica holds all of this controller's state."""

    @override
    def _advance(self) -> None:
        if self._closed or self._working or not self._is_to_be_done:
            return
        if self._clock.monotonic() >= self._not_before and self._may():
            self._working = True
            self._spawn(self._work())

    async def _work(self) -> None:
        try:
            await self._end_groups()
        except MoorageError:
            _log.debug("A group in several clusters could not be ended.", exc_info=True)
        finally:
            self._working = False
            self._not_before = self._clock.monotonic() + PAUSE_SECONDS

    async def _end_groups(self) -> None:
        assert self._replica is not None
        now = self.lease.database_time()
        homes = {
            reservation.group: reservation.home
            for reservation in self._replica.reservations.values()
            if reservation.until <= now
        }
        own = [stored.manifest for stored in self._replica.objects(SplitGroup.kind)]
        groups = [group for group in own if isinstance(group, SplitGroup) and group.until <= now]
        for group in groups:
            homes.pop(group.name, None)
            await self._end_own(group)
        for name, home in sorted(homes.items()):
            await self._follow(name, home)

    async def _end_own(self, group: SplitGroup) -> None:
        """Release a group, or delete it once all other clusters have bound its pods."""
        if not group.committed:
            await self._take(group.name, "Release")
            return
        for cluster in group.clusters:
            if cluster != self.lease.cluster and await self._is_reserved_in(cluster, group.name):
                return
        await self._take(group.name, "Forget")

    async def _follow(self, name: str, home: str) -> None:
        """Apply the home cluster's decision on a group, if any, to the group's pods here."""
        group = await self._read(home, name) if home != self.lease.cluster else None
        if group is None:
            await self._take(name, "Release")
        elif group.committed:
            await self._take(name, "Bind")

    async def _read(self, cluster: str, name: str) -> SplitGroup | None:
        """Return a group as its home stores it, or None if the group or its home is gone."""
        try:
            number = await self._store.clusters.find(cluster)
            read = await self._store.objects.get(number, SplitGroup.kind, "", name)
        except NotFound:
            return None
        return None if read.row is None else load_split_group(read.row.body)

    async def _is_reserved_in(self, cluster: str, name: str) -> bool:
        """Return whether another cluster still has to bind pods of a group."""
        mention, after = name.encode(), None
        try:
            number = await self._store.clusters.find(cluster)
            while True:
                page = await self._store.objects.list(
                    number, GroupReservation.kind, after=after, limit=_PAGE
                )
                if any(mention in row.body for row in page.rows):
                    return True
                if not page.rows:
                    return False
                after = (page.rows[-1].namespace, page.rows[-1].name)
        except NotFound:
            return False

    async def _take(self, name: str, step: GroupStep) -> None:
        """Submit a group step of this cluster to its inbox."""
        done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def conclude(future: asyncio.Future[Answer]) -> None:
            error = future.exception()
            if done.done():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(future.result())

        self._submit(AdvanceGroup(group=name, step=step), conclude)
        answer = await done
        assert isinstance(answer, GroupAnswer)
        context: dict[str, Any] = {"cluster": self.lease.cluster, "group": name, "step": step}
        _log.info("A group in several clusters was ended by its cluster.", extra=context)


class SplitGroupControllers(Controllers[SplitGroupController]):
    """The split group controllers of all clusters that this process has in memory."""

    name = "split-groups"

    @property
    @override
    def lease_seconds(self) -> float:
        return self._limits.evictions_lease_seconds

    @override
    def _controller(self, lease: HeldLease) -> SplitGroupController:
        return SplitGroupController(
            lease=lease,
            clock=self._clock,
            limits=self._limits,
            spawn=self._spawn,
            store=self._store,
        )

    @override
    async def unattended(self) -> list[str]:
        kinds = (GroupReservation.kind, SplitGroup.kind)
        names_by_kind = [
            await self._store.leases.unattended(self.name, _MENTION, kind) for kind in kinds
        ]
        return sorted({*names_by_kind[0], *names_by_kind[1]})
