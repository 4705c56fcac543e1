"""Having pods evicted whose rules that are required during execution do not hold any more.

Clusters without such rules cost one look at a flag for each commit.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from datetime import datetime
from typing import Any

from service.model.errors import MoorageError
from service.scheduler.answers import Answer, EvictionsAnswer
from service.scheduler.decide.evicting import eviction_state, watches
from service.scheduler.follower import Observer
from service.scheduler.intents import EvictViolating
from service.scheduler.leases import HeldLease
from service.scheduler.limits import Limits
from service.scheduler.loop import ClusterGone
from service.scheduler.ports import Clock, Store
from service.scheduler.replica import Entry, Replica
from service.scheduler.tickets import Ticket

LEASE = "evictions"
PAUSE_SECONDS = 1.0
"""After a sweep that failed."""

_log = logging.getLogger(__name__)
Spawn = Callable[[Coroutine[Any, Any, None]], None]


class Observers:
    """Several observers as one."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def loaded(self, replica: Replica) -> None:
        """See `Observer`."""
        for each in self._observers:
            each.loaded(replica)

    def settled(self, entries: Sequence[Entry]) -> None:
        """See `Observer`."""
        for each in self._observers:
            each.settled(entries)


class Evictions:
    """The evictions of one cluster, as far as this process is concerned.

    After each commit that is not its own all rules are looked at once more, in a request among
    those of clients: a sweep. The lease keeps workers from doing that all at once; that no pod is
    evicted twice, or in vain, is seen to where it is decided (`decide.evicting`).
    """

    def __init__(self, *, lease: HeldLease, clock: Clock, limits: Limits, spawn: Spawn) -> None:
        self._lease = lease
        self._clock = clock
        self._limits = limits
        self._spawn = spawn
        self._enqueue: Callable[[Ticket], None] | None = None
        self._replica: Replica | None = None
        self._changed = False
        """Whether anything was committed since the last sweep began."""
        self._due: datetime | None = None
        """When to look again although nothing has changed."""
        self._sweeping = self._asking = self._closed = False
        self._not_before = clock.monotonic()

    def serve(self, enqueue: Callable[[Ticket], None]) -> None:
        """Begin: `enqueue` puts a ticket into the inbox of the cluster's loop."""
        self._enqueue = enqueue

    @property
    def is_needed(self) -> bool:
        """Whether the cluster has to stay in memory for this."""
        return self._lease.held and self._watches

    @property
    def _watches(self) -> bool:
        replica = self._replica
        return replica is not None and watches(replica.cluster, eviction_state(replica))

    # What the replica tells

    def loaded(self, replica: Replica) -> None:
        """There is a new replica, of which nothing is tentative."""
        self._replica = replica
        self._changed = True
        self._advance()

    def settled(self, entries: Sequence[Entry]) -> None:
        """These changes of the replica are in the log."""
        self._changed = self._changed or bool(entries)
        self._advance()

    # What time tells

    def tick(self) -> None:
        """Look after the lease, and at timers that have ended. Called every now and then."""
        if self._lease.held and self._lease.due and not self._asking:
            self._ask(self._renew)
        self._advance()

    async def close(self) -> None:
        """Sweep no more, and leave the lease to others; raises nothing."""
        self._closed = True
        try:
            await self._lease.hand_over()
        except MoorageError:
            _log.debug("The lease ends by itself.", exc_info=True)

    # Sweeps

    def _advance(self) -> None:
        """Sweep, if there may be anything to do and it is ours to do."""
        if self._closed or self._sweeping or not (self._changed or self._due):
            return
        if self._clock.monotonic() < self._not_before or not self._watches:
            return
        if not self._lease.held:
            if self._lease.due and not self._asking:
                self._ask(self._acquire)
        elif self._changed or self._is_due:
            self._sweep()

    @property
    def _is_due(self) -> bool:
        return self._due is not None and self._lease.database_time() >= self._due

    def _sweep(self) -> None:
        self._sweeping, self._changed = True, False
        began = self._clock.monotonic()
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        intent = EvictViolating(clock=self._lease.database_time)
        try:
            assert self._enqueue is not None
            deadline = began + self._limits.request_seconds_max
            self._enqueue(Ticket(intent, deadline, None, future))
        except (MoorageError, ClusterGone) as error:
            future.set_exception(error)
        future.add_done_callback(lambda done: self._conclude(done, began))

    def _conclude(self, future: asyncio.Future[Answer], began: float) -> None:
        """Go on no sooner than it took, so that sweeps leave room for requests."""
        now = self._clock.monotonic()
        self._sweeping = False
        error = future.exception()
        if error is None:
            answer = future.result()
            assert isinstance(answer, EvictionsAnswer)
            self._due = answer.due
            self._not_before = now + min(now - began, PAUSE_SECONDS)
        else:
            self._changed = True
            self._not_before = now + PAUSE_SECONDS
        self._advance()

    # The lease

    def _ask(self, work: Callable[[], Awaitable[None]]) -> None:
        self._asking = True
        self._spawn(self._asked(work))

    async def _asked(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except MoorageError:
            _log.debug("The lease could not be asked for.", exc_info=True)
        finally:
            self._asking = False
        self._advance()

    async def _acquire(self) -> None:
        """A new holder does not know what was looked at before."""
        if await self._lease.acquire():
            self._changed = True

    async def _renew(self) -> None:
        if self._watches:
            await self._lease.acquire()
        else:
            await self._lease.release()


class AllEvictions:
    """The evictions of all clusters that this process has to do with."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        limits: Limits,
        holder: str,
        spawn: Spawn,
        is_elsewhere: Callable[[int], bool],
    ) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._holder = holder
        self._spawn = spawn
        self._is_elsewhere = is_elsewhere
        self._by_cluster: dict[int, Evictions] = {}

    def of(self, cluster_id: int) -> Evictions:
        """Those of a cluster whose replica is to be loaded."""
        made = self._by_cluster[cluster_id] = Evictions(
            lease=self._lease(cluster_id),
            clock=self._clock,
            limits=self._limits,
            spawn=self._spawn,
        )
        return made

    def are_needed(self, cluster_id: int) -> bool:
        """Whether the cluster has to stay in memory for them."""
        evictions = self._by_cluster.get(cluster_id)
        return evictions is not None and evictions.is_needed

    def tick(self, alive: Iterable[int]) -> None:
        """Called every now and then, with the clusters that are in memory still."""
        kept = {cluster_id: self._by_cluster[cluster_id] for cluster_id in alive}
        self._by_cluster = kept
        for evictions in kept.values():
            evictions.tick()

    async def adopt(self, serve: Callable[[str], Awaitable[object]]) -> None:
        """Find clusters whose evictions nobody looks after any more, and serve them, for ever.

        A lease that ran out is left by a worker that died or stopped.
        """
        while True:
            try:
                for name in await self._store.expired_leases(LEASE):
                    cluster_id = await self._store.find_cluster(name)
                    if await self._lease(cluster_id).acquire():
                        await serve(name)
            except MoorageError:
                _log.debug("Evictions could not be looked for.", exc_info=True)
            except Exception:  # noqa: BLE001 - a bug here must not end all adopting
                _log.exception("Looking for evictions failed; it will be tried again.")
            await self._clock.sleep(self._limits.evictions_lease_seconds / 3)

    async def close(self) -> None:
        """Leave all to others; raises nothing."""
        for evictions in self._by_cluster.values():
            await evictions.close()

    def _lease(self, cluster_id: int) -> HeldLease:
        return HeldLease(
            self._store,
            self._clock,
            cluster_id,
            name=LEASE,
            holder=self._holder,
            seconds=self._limits.evictions_lease_seconds,
            is_elsewhere=self._is_elsewhere,
        )
