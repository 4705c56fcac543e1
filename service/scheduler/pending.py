"""Having a cluster's pending pods placed: between the queue, the lease and the cluster's loop."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any

import msgspec

from service.model.config import parse_config
from service.model.errors import MoorageError
from service.scheduler.answers import Answer, PendingAnswer
from service.scheduler.intents import PlacePending
from service.scheduler.leases import HeldLease
from service.scheduler.limits import Limits
from service.scheduler.loop import ClusterGone
from service.scheduler.ports import Clock, Store
from service.scheduler.queue import PendingQueue
from service.scheduler.replica import Entry, Replica
from service.scheduler.tickets import Ticket
from service.scheduler.turns import Turn

LEASE = "pending"
SWEEP_SECONDS = 10.0
"""How often pods are looked for that were not tried for very long."""
PAUSE_SECONDS = 1.0
"""After a turn that failed; requests of clients are told to come back no sooner either."""

_log = logging.getLogger(__name__)


class PendingPods:
    """The pending pods of one cluster, as far as this process is concerned.

    The queue follows the log at any time. Turns are taken only while the lease is held, one at a
    time, as requests among those of clients in the cluster's inbox; all safety lies there. A new
    holder tries every pod once, since it does not know what was tried before.
    """

    def __init__(
        self,
        *,
        lease: HeldLease,
        clock: Clock,
        limits: Limits,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self.queue = PendingQueue(limits)
        self._lease = lease
        self._clock = clock
        self._limits = limits
        self._spawn = spawn
        self._enqueue: Callable[[Ticket], None] | None = None
        self._turn: Turn | None = None
        """The turn that the loop is deciding."""
        self._asking = False
        """Whether the lease is being asked for."""
        self._not_before = self._swept = clock.monotonic()
        self._closed = False

    def serve(self, enqueue: Callable[[Ticket], None]) -> None:
        """Begin: `enqueue` puts a ticket into the inbox of the cluster's loop."""
        self._enqueue = enqueue

    @property
    def is_needed(self) -> bool:
        """Whether pods wait here that nobody else looks after."""
        return self._lease.held and len(self.queue) > 0 and self.queue.places

    def counts(self) -> dict[str, int]:
        """Pods by what they wait for: active, backoff, unschedulable, gated."""
        return self.queue.counts()

    # What the replica tells

    def loaded(self, replica: Replica) -> None:
        """There is a new replica, of which nothing is tentative."""
        self.queue.reset(replica.pending_pods(), replica.config, replica.groups.all_waiting())
        self._advance()

    def settled(self, entries: Sequence[Entry]) -> None:
        """These changes of the replica are in the log."""
        try:
            self.queue.observe(entries)
        except Exception:  # noqa: BLE001 - answers to what was committed must go out all the same
            _log.exception("The pending queue is of no use until the replica is loaded anew.")
            self._closed = True
        self._advance()

    # What time tells

    def tick(self) -> None:
        """Look after the lease, and at back-offs that are over. Called every now and then."""
        now = self._clock.monotonic()
        if now >= self._swept + SWEEP_SECONDS:
            self._swept = now
            self.queue.sweep(now)
        if self._lease.held and self._lease.due and not self._asking:
            self._ask(self._renew)
        self._advance()

    async def close(self) -> None:
        """Take no more turns, and leave the lease to others; raises nothing."""
        self._closed = True
        try:
            await self._lease.hand_over()
        except MoorageError:
            _log.debug("The lease ends by itself.", exc_info=True)

    # Turns

    def _advance(self) -> None:
        """Take the next turn, if there is one and it is ours to take."""
        now = self._clock.monotonic()
        if self._closed or self._turn is not None or now < self._not_before:
            return
        if not self.queue.has_work(now):
            return
        if self._lease.held:
            self._take_turn(now)
        elif self._lease.due and not self._asking:
            self._ask(self._acquire)

    def _take_turn(self, now: float) -> None:
        turn = self.queue.take(self._limits.pending_pods_per_turn, now)
        if not turn.tries and not turn.tells:
            return
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        deadline = now + self._limits.request_seconds_max
        self._turn = turn
        try:
            assert self._enqueue is not None
            self._enqueue(Ticket(PlacePending(turn=turn), deadline, None, future))
        except (MoorageError, ClusterGone) as error:
            future.set_exception(error)
        future.add_done_callback(self._conclude)

    def _conclude(self, future: asyncio.Future[Answer]) -> None:
        turn, now = self._turn, self._clock.monotonic()
        assert turn is not None
        self._turn = None
        error = future.exception()
        if error is None:
            answer = future.result()
            assert isinstance(answer, PendingAnswer)
            self.queue.conclude(turn, answer.refused, now)
        else:
            self.queue.give_back(turn, now)
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
        if await self._lease.acquire():
            self.queue.retry_all()

    async def _renew(self) -> None:
        if len(self.queue) > 0:
            await self._lease.acquire()
        else:
            await self._lease.release()


class AllPendingPods:
    """The pending pods of all clusters that this process has to do with."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        limits: Limits,
        holder: str,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        is_elsewhere: Callable[[int], bool],
    ) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._holder = holder
        self._spawn = spawn
        self._is_elsewhere = is_elsewhere
        self._by_cluster: dict[int, PendingPods] = {}

    def of(self, cluster_id: int) -> PendingPods:
        """Those of a cluster whose replica is to be loaded."""
        made = PendingPods(
            lease=self._lease(cluster_id),
            clock=self._clock,
            limits=self._limits,
            spawn=self._spawn,
        )
        self._by_cluster[cluster_id] = made
        return made

    def are_needed(self, cluster_id: int) -> bool:
        """Whether the cluster has to stay in memory for them."""
        pending = self._by_cluster.get(cluster_id)
        return pending is not None and pending.is_needed

    def counts(self, cluster_id: int) -> dict[str, int] | None:
        """Pods by what they wait for; None where another process, or nobody, looks after them."""
        pending = self._by_cluster.get(cluster_id)
        return pending.counts() if pending is not None and pending.is_needed else None

    def tick(self, alive: Iterable[int]) -> None:
        """Called every now and then, with the clusters that are in memory still."""
        kept = {cluster_id: self._by_cluster[cluster_id] for cluster_id in alive}
        self._by_cluster = kept
        for pending in kept.values():
            pending.tick()

    async def adopt(self, serve: Callable[[str], Awaitable[object]]) -> None:
        """Find clusters with pending pods that nobody looks after, and serve them, for ever.

        A lease that ran out is left by a worker that died or stopped. At the start all clusters
        are looked through, since the last worker may have died before it took the lease.
        """
        names = self._with_pending_pods
        while True:
            try:
                for name in await names():
                    cluster_id = await self._store.find_cluster(name)
                    if await self._lease(cluster_id).acquire():
                        await serve(name)
                names = self._abandoned
            except MoorageError:
                _log.debug("Pending pods could not be looked for.", exc_info=True)
            except Exception:  # noqa: BLE001 - a bug here must not end all adopting
                _log.exception("Looking for pending pods failed; it will be tried again.")
            await self._clock.sleep(self._limits.pending_lease_seconds / 3)

    async def close(self) -> None:
        """Leave all to others; raises nothing."""
        for pending in self._by_cluster.values():
            await pending.close()

    async def _with_pending_pods(self) -> list[str]:
        return [
            row.name
            for row in await self._store.list_clusters()
            if row.counts.pending
            and parse_config(msgspec.json.decode(row.config)).place_pending_pods
        ]

    async def _abandoned(self) -> list[str]:
        return await self._store.expired_leases(LEASE)

    def _lease(self, cluster_id: int) -> HeldLease:
        return HeldLease(
            self._store,
            self._clock,
            cluster_id,
            name=LEASE,
            holder=self._holder,
            seconds=self._limits.pending_lease_seconds,
            is_elsewhere=self._is_elsewhere,
        )
