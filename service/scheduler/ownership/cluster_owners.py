"""Which worker decides a cluster's requests, so that those that reach each other need not race (P19)."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial

from service.background_tasks import log_failure
from service.model.errors import MoorageError, StorageUnavailable
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock, Store

LEASE = "requests@"
"""The lease's name begins with this; the name of those servers follows whose workers reach each other."""
ALL_SERVERS = "*"
"""Stands there for all servers of a database that are told to forward requests to each other."""

_log = logging.getLogger(__name__)


def _lives(_worker: str) -> bool:
    """Take every worker for alive; the leases of dead ones then end by themselves."""
    return True


def _answers(_worker: str) -> bool:
    """Take every worker for one that answers; the leases of others then end by themselves."""
    return True


class ClusterOwners:
    """Knows which workers hold the clusters' leases.

    This is only a hint: two workers that decide one cluster are kept apart by the swap of the head.
    A worker that gets a request for a cluster whose lease is free takes the lease, and prolongs it
    while it has the cluster in memory. After a third of a lease's time the database is asked again,
    in the background; a request waits for the database only if nothing is known. The lease of a
    worker that is known to be dead counts as free. So does that of one that stands still: the first
    that notices it takes its place, and the others learn who that is, so that they need not race.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        limits: Limits,
        *,
        server: str,
        own: str,
        lives: Callable[[str], bool] = _lives,
        answers: Callable[[str], bool] = _answers,
    ) -> None:
        """`lives` returns whether a worker is running, and `answers` whether it also says anything.

        Both say yes where nothing is known.

        `server` names the workers that reach each other: those of one server, or of all of them.
        """
        self.own = own
        """The name of this worker, by which others find it."""
        self._servers = server
        self._name = LEASE + server
        self._store = store
        self._clock = clock
        self._lives = lives
        self._answers = answers
        self._seconds = limits.owner_lease_seconds
        self._known: dict[str, _Owner] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._passed: dict[str, _Owner] = {}
        """The clusters that this worker has passed on or lost, and who has them since."""
        self._closed = False

    async def elsewhere(self, cluster: str) -> str | None:
        """Return the worker that holds the cluster's lease; None if it is this one, or none is known."""
        owner, now = self._known.get(cluster), self._clock.monotonic()
        if owner is None or now >= owner.asked + self._seconds:
            await asyncio.shield(self._ask(cluster))
            owner = self._known.get(cluster)
        elif now >= owner.asked + self._seconds / 3:
            _ = self._ask(cluster)
        return None if owner is None or owner.holder == self.own else owner.holder

    def is_elsewhere(self, cluster_id: int) -> bool:
        """Whether, as far as is known, another worker holds the cluster's lease."""
        return any(
            owner.cluster_id == cluster_id
            and owner.holder != self.own
            and self._lives(owner.holder)
            for owner in self._known.values()
        )

    def not_reached(self, worker: str) -> None:
        """Note that a worker did not answer; if it is dead or stands still, others take its leases."""
        self._known = {
            name: owner
            for name, owner in self._known.items()
            if owner.holder != worker or not self._may_take(name, worker)
        }

    def held(self) -> list[str]:
        """The clusters whose lease this worker holds, as far as it knows."""
        return [name for name, owner in self._known.items() if owner.holder == self.own]

    def passed_to(self, cluster: str) -> str | None:
        """The worker that has had a cluster of late in place of this one, so that others may not know it.

        None: this worker decides whatever is forwarded to it.
        """
        owner = self._passed.get(cluster)
        if owner is None or self._clock.monotonic() >= owner.asked + self._seconds:
            return None
        return owner.holder

    def learn(self, cluster: str, holder: str) -> None:
        """Note that a cluster has been passed on, as the worker says that had it."""
        owner = self._known.get(cluster)
        if owner is not None:
            self._known[cluster] = _Owner(owner.cluster_id, holder, self._clock.monotonic())

    async def announce(self, seconds: float) -> dict[str, int]:
        """Say that this worker is there for so long; how many clusters each worker has that is there.

        Workers that are known to be dead are left out. Raises StorageUnavailable.
        """
        found = await self._store.workers.announce(self._servers, self.own, self._name, seconds)
        return {
            name: number for name, number in found.items() if name == self.own or self._lives(name)
        }

    async def withdraw(self, seconds: float) -> dict[str, int]:
        """Say that this worker is about to end; how many clusters each of the others has that is there.

        Raises StorageUnavailable.
        """
        found = await self.announce(seconds)
        await self._store.workers.withdraw(self._servers, self.own)
        return {name: number for name, number in found.items() if name != self.own}

    async def pass_on(self, cluster: str, worker: str) -> bool:
        """Give a cluster to another worker, which gets its requests from now on; whether that was done.

        Raises StorageUnavailable: it may have been done, and is asked for again soon.
        """
        owner = self._known.get(cluster)
        if owner is None or owner.holder != self.own or self._closed:
            return False
        asked = self._clock.monotonic()
        if not await self._store.leases.transfer(
            owner.cluster_id, self._name, self.own, worker, self._seconds
        ):
            self._known.pop(cluster, None)
            return False
        self._known[cluster] = _Owner(owner.cluster_id, worker, asked)
        self._passed[cluster] = self._known[cluster]
        _log.info(
            "The lease is passed on.", extra={"lease": LEASE, "cluster": cluster, "holder": worker}
        )
        return True

    def tick(self, in_memory: Iterable[str]) -> None:
        """Prolong the leases of the clusters in memory; this is called every now and then."""
        now = self._clock.monotonic()
        for cluster in in_memory:
            owner = self._known.get(cluster)
            if owner is None or now >= owner.asked + self._seconds / 3:
                _ = self._ask(cluster)
        old = now - self._seconds
        self._known = {name: owner for name, owner in self._known.items() if owner.asked >= old}
        self._passed = {name: owner for name, owner in self._passed.items() if owner.asked >= old}

    async def close(self) -> None:
        """Give all leases back, so that other workers can take them; raises nothing."""
        if self._closed:
            return
        self._closed = True
        for task in list(self._asking.values()):
            await asyncio.wait({task})
        try:
            await self._store.workers.withdraw(self._servers, self.own)
            for owner in list(self._known.values()):
                if owner.holder == self.own:
                    await self._store.leases.release(owner.cluster_id, self._name, self.own)
        except MoorageError:
            _log.debug("Leases end by themselves.", exc_info=True)

    def _ask(self, cluster: str) -> asyncio.Task[None]:
        """Ask who holds the lease, and take or prolong it if possible; one question at a time."""
        task = self._asking.get(cluster)
        if task is None:
            task = self._asking[cluster] = asyncio.create_task(self._asked(cluster))
            task.add_done_callback(partial(self._end_asking, cluster))
        return task

    def _end_asking(self, cluster: str, task: asyncio.Task[None]) -> None:
        del self._asking[cluster]
        log_failure(task)

    async def _asked(self, cluster: str) -> None:
        asked = self._clock.monotonic()
        try:
            if not self._closed:
                before = self._known.get(cluster)
                claimed = await self._claim(cluster, asked)
                if self._known.get(cluster) not in {None, before}:
                    return  # It was passed on meanwhile.
                self._known[cluster] = claimed
                self._tell(cluster, before, claimed)
                if claimed.holder == self.own:
                    self._passed.pop(cluster, None)
                elif before is not None and before.holder == self.own:
                    self._passed[cluster] = claimed
        except StorageUnavailable:
            _log.debug("The lease could not be asked for.", exc_info=True)
            if (owner := self._known.get(cluster)) is not None:
                owner.asked = asked  # The old holder is still the best guess.
        except MoorageError:
            self._known.pop(cluster, None)

    def _tell(self, cluster: str, before: "_Owner | None", owner: "_Owner") -> None:
        """Log it if this worker begins, or ceases, to decide all requests of a cluster."""
        had = before is not None and before.holder == self.own
        has = owner.holder == self.own
        told = {"lease": LEASE, "cluster": cluster}
        if has and not had:
            _log.info("The lease is taken.", extra=told)
        elif had and not has and self.passed_to(cluster) is None:
            _log.warning("The lease is lost.", extra={**told, "holder": owner.holder})

    async def _claim(self, cluster: str, asked: float) -> "_Owner":
        cluster_id = await self._store.clusters.find(cluster)
        claimed = cluster_id, self._name, self.own, self._seconds
        lease = await self._store.leases.claim(*claimed)
        if lease is not None and self._may_take(cluster, lease.holder):
            await self._store.leases.transfer(
                cluster_id, self._name, lease.holder, self.own, self._seconds
            )
            lease = await self._store.leases.claim(*claimed)
        return _Owner(cluster_id, lease.holder if lease else self.own, asked)

    def _may_take(self, cluster: str, holder: str) -> bool:
        """Whether the lease of another worker may be taken before its end.

        Two workers that only do not hear each other would take a cluster from each other again and
        again. So whoever has lost it of late leaves it to the other one for a while.
        """
        if holder == self.own:
            return False
        if not self._lives(holder):
            return True
        known = self._known.get(cluster)
        has_just_lost_it = known is not None and known.holder == self.own
        return not (self._answers(holder) or has_just_lost_it or self.passed_to(cluster))


class _Owner:
    """The worker that held a cluster's lease at the time `asked`."""

    __slots__ = ("asked", "cluster_id", "holder")

    def __init__(self, cluster_id: int, holder: str, asked: float) -> None:
        self.cluster_id = cluster_id
        self.holder = holder
        self.asked = asked


class NoClusterOwners:
    """Stands for `ClusterOwners` in a worker that forwards nothing, and so decides all clusters."""

    def is_elsewhere(self, cluster_id: int) -> bool:  # noqa: ARG002
        """Return False, as no other worker decides a cluster."""
        return False

    def tick(self, in_memory: Iterable[str]) -> None:
        """Do nothing, as there are no leases."""

    async def close(self) -> None:
        """Do nothing, as there are no leases."""
