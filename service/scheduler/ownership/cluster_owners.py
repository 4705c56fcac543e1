"""The worker that decides each cluster's requests, to avoid races between servers (protocol rule P19)."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial

from service.model.core.errors import MoorageError, StorageUnavailable
from service.runtime.tasks import log_failure
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock, Store

LEASE = "requests@"
"""The prefix of the lease's name, followed by the name of the group of connected workers."""
ALL_SERVERS = "*"
"""The name for all servers of a database that forward requests to each other."""

_log = logging.getLogger(__name__)


def _lives(_worker: str) -> bool:
    """Return True for any worker; the leases of dead workers then expire on their own."""
    return True


def _answers(_worker: str) -> bool:
    """Return True for any worker; the leases of unresponsive workers then expire on their own."""
    return True


class ClusterOwners:
    """Tracks which workers hold the clusters' leases.

    Ownership is only a hint; the compare-and-swap of the head protects against two workers deciding
    one cluster. A worker that gets a request for a cluster with a free lease acquires it, and
    renews it while it has the cluster in memory. After a third of a lease's duration, the database
    is queried again in the background; a request waits for the database only if the owner is
    unknown. The lease of a worker known to be dead or stalled counts as free. The first worker to
    notice a stall takes over and announces itself, so that the others need not race.
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
        """Create a view of the owners.

        `lives` returns whether a worker is running, and `answers` whether it also responds. Both
        return True if the state is unknown. `server` names a group of connected workers: those of
        one server, or of all servers.
        """
        self.own = own
        """This worker's name, under which other workers find it."""
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
        """The clusters that this worker has passed on or lost, with their new owners."""
        self._closed = False

    async def elsewhere(self, cluster: str) -> str | None:
        """Return the other worker that holds the cluster's lease, or None."""
        owner, now = self._known.get(cluster), self._clock.monotonic()
        if owner is None or now >= owner.asked_at + self._seconds:
            await asyncio.shield(self._ask(cluster))
            owner = self._known.get(cluster)
        elif now >= owner.asked_at + self._seconds / 3:
            _ = self._ask(cluster)
        return None if owner is None or owner.holder == self.own else owner.holder

    def is_elsewhere(self, cluster_id: int) -> bool:
        """Return whether another worker is known to hold the cluster's lease."""
        return any(
            owner.cluster_id == cluster_id
            and owner.holder != self.own
            and self._lives(owner.holder)
            for owner in self._known.values()
        )

    def not_reached(self, worker: str) -> None:
        """Record that a worker did not answer; if it is dead or stalled, others take its leases."""
        self._known = {
            name: owner
            for name, owner in self._known.items()
            if owner.holder != worker or not self._may_take(name, worker)
        }

    def held(self) -> list[str]:
        """Return the clusters whose leases this worker is known to hold."""
        return [name for name, owner in self._known.items() if owner.holder == self.own]

    def passed_to(self, cluster: str) -> str | None:
        """Return the worker that recently took over a cluster from this one, or None.

        Other workers may not know the new owner yet. If None, this worker decides all forwarded
        requests.
        """
        owner = self._passed.get(cluster)
        if owner is None or self._clock.monotonic() >= owner.asked_at + self._seconds:
            return None
        return owner.holder

    def learn(self, cluster: str, holder: str) -> None:
        """Record the new owner of a cluster, as reported by its previous one."""
        owner = self._known.get(cluster)
        if owner is not None:
            self._known[cluster] = _Owner(owner.cluster_id, holder, self._clock.monotonic())

    async def announce(self, seconds: float) -> dict[str, int]:
        """Announce this worker as alive for some seconds; return each live worker's cluster count.

        Raises:
            StorageUnavailable: the database cannot be reached.
        """
        clusters = await self._store.workers.register(self._servers, self.own, self._name, seconds)
        return {
            name: number
            for name, number in clusters.items()
            if name == self.own or self._lives(name)
        }

    async def withdraw(self, seconds: float) -> dict[str, int]:
        """Announce that this worker is about to stop; return each other worker's cluster count.

        Raises:
            StorageUnavailable: the database cannot be reached.
        """
        clusters = await self.announce(seconds)
        await self._store.workers.deregister(self._servers, self.own)
        return {name: number for name, number in clusters.items() if name != self.own}

    async def pass_on(self, cluster: str, worker: str) -> bool:
        """Hand a cluster and its future requests to another worker; return whether that succeeded.

        Raises:
            StorageUnavailable: the outcome is unknown; this worker will soon check.
        """
        owner = self._known.get(cluster)
        if owner is None or owner.holder != self.own or self._closed:
            return False
        asked_at = self._clock.monotonic()
        if not await self._store.leases.transfer(
            owner.cluster_id, self._name, self.own, worker, self._seconds
        ):
            self._known.pop(cluster, None)
            return False
        self._known[cluster] = _Owner(owner.cluster_id, worker, asked_at)
        self._passed[cluster] = self._known[cluster]
        _log.info(
            "The lease is passed on.", extra={"lease": LEASE, "cluster": cluster, "holder": worker}
        )
        return True

    def tick(self, in_memory: Iterable[str]) -> None:
        """Renew the leases of the clusters in memory; called periodically."""
        now = self._clock.monotonic()
        for cluster in in_memory:
            owner = self._known.get(cluster)
            if owner is None or now >= owner.asked_at + self._seconds / 3:
                _ = self._ask(cluster)
        old = now - self._seconds
        self._known = {name: owner for name, owner in self._known.items() if owner.asked_at >= old}
        self._passed = {
            name: owner for name, owner in self._passed.items() if owner.asked_at >= old
        }

    async def close(self) -> None:
        """Release all leases so that other workers can acquire them. Never raises."""
        if self._closed:
            return
        self._closed = True
        for task in list(self._asking.values()):
            await asyncio.wait({task})
        try:
            await self._store.workers.deregister(self._servers, self.own)
            for owner in list(self._known.values()):
                if owner.holder == self.own:
                    await self._store.leases.release(owner.cluster_id, self._name, self.own)
        except MoorageError:
            _log.debug("Leases end by themselves.", exc_info=True)

    def _ask(self, cluster: str) -> asyncio.Task[None]:
        """Read the lease's holder, and acquire or renew the lease if possible."""
        task = self._asking.get(cluster)
        if task is None:
            task = self._asking[cluster] = asyncio.create_task(self._refresh(cluster))
            task.add_done_callback(partial(self._end_asking, cluster))
        return task

    def _end_asking(self, cluster: str, task: asyncio.Task[None]) -> None:
        del self._asking[cluster]
        log_failure(task)

    async def _refresh(self, cluster: str) -> None:
        asked_at = self._clock.monotonic()
        try:
            if not self._closed:
                before = self._known.get(cluster)
                claimed = await self._claim(cluster, asked_at)
                if self._known.get(cluster) not in {None, before}:
                    return  # The cluster was handed over in the meantime.
                self._known[cluster] = claimed
                self._log_transition(cluster, before, claimed)
                if claimed.holder == self.own:
                    self._passed.pop(cluster, None)
                elif before is not None and before.holder == self.own:
                    self._passed[cluster] = claimed
        except StorageUnavailable:
            _log.debug("The lease could not be asked for.", exc_info=True)
            if (owner := self._known.get(cluster)) is not None:
                owner.asked_at = asked_at  # The old holder is still the best guess.
        except MoorageError:
            self._known.pop(cluster, None)

    def _log_transition(self, cluster: str, before: "_Owner | None", owner: "_Owner") -> None:
        """Log that this worker starts or stops deciding all requests of a cluster."""
        had = before is not None and before.holder == self.own
        has = owner.holder == self.own
        context = {"lease": LEASE, "cluster": cluster}
        if has and not had:
            _log.info("The lease is taken.", extra=context)
        elif had and not has and self.passed_to(cluster) is None:
            _log.warning("The lease is lost.", extra={**context, "holder": owner.holder})

    async def _claim(self, cluster: str, asked_at: float) -> "_Owner":
        cluster_id = await self._store.clusters.find(cluster)
        claimed = cluster_id, self._name, self.own, self._seconds
        lease = await self._store.leases.claim(*claimed)
        if lease is not None and self._may_take(cluster, lease.holder):
            await self._store.leases.transfer(
                cluster_id, self._name, lease.holder, self.own, self._seconds
            )
            lease = await self._store.leases.claim(*claimed)
        return _Owner(cluster_id, lease.holder if lease else self.own, asked_at)

    def _may_take(self, cluster: str, holder: str) -> bool:
        """Return whether another worker's lease may be taken before it expires.

        Two live workers that cannot reach each other would repeatedly take the cluster from each
        other. So a worker that has just lost a cluster leaves it to the other for a while.
        """
        if holder == self.own:
            return False
        if not self._lives(holder):
            return True
        known = self._known.get(cluster)
        has_just_lost_it = known is not None and known.holder == self.own
        return not (self._answers(holder) or has_just_lost_it or self.passed_to(cluster))


class _Owner:
    """The worker that held a cluster's lease at the time `asked_at`."""

    __slots__ = ("asked_at", "cluster_id", "holder")

    def __init__(self, cluster_id: int, holder: str, asked_at: float) -> None:
        self.cluster_id = cluster_id
        self.holder = holder
        self.asked_at = asked_at


class NoClusterOwners:
    """Replaces `ClusterOwners` in a worker that forwards nothing and so decides all clusters."""

    def is_elsewhere(self, cluster_id: int) -> bool:  # noqa: ARG002
        """Return False, since no other worker decides any cluster."""
        return False

    def tick(self, in_memory: Iterable[str]) -> None:
        pass

    async def close(self) -> None:
        pass
