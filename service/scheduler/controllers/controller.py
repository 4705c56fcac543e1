"""Controllers: background work on a cluster, done by one worker at a time.

A controller follows the cluster's replica and submits its work as requests to the cluster's inbox,
alongside those of clients. A lease in the database keeps several workers from doing the same work.
The lease is no guarantee, so the decisions themselves check that nothing is done twice.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

import msgspec

from service.model.core.errors import MoorageError
from service.model.log.audit_chain import ITSELF
from service.scheduler.commit.cluster_loop import ClusterGone
from service.scheduler.commit.request_batches import Ticket
from service.scheduler.controllers.leases import HeldLease
from service.scheduler.protocol.answers import Answer
from service.scheduler.protocol.intents import Intent
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock, Store

PAUSE_SECONDS = 1.0
"""How long to pause after failed work; clients are asked to wait at least this long before a retry.
"""

_log = logging.getLogger(__name__)
Spawn = Callable[[Coroutine[Any, Any, None]], None]


class Controller(ABC):
    """Base class of controllers, each of which does one kind of background work for one cluster."""

    def __init__(self, *, lease: HeldLease, clock: Clock, limits: Limits, spawn: Spawn) -> None:
        self.lease = lease
        """The work is done only while this process holds this lease."""
        self._clock = clock
        self._limits = limits
        self._spawn = spawn
        self._enqueue: Callable[[Ticket], None] | None = None
        self._asking = False
        """Whether a request for the lease is in progress."""
        self._is_neglected = False
        self._closed = False
        self.wants_new_pods = False
        """Whether the controller has to see commits that only add placed pods."""

    @property
    def is_needed(self) -> bool:
        """Whether this work requires the cluster to stay in memory."""
        return self.lease.held and self._is_to_be_done

    @property
    def has_work(self) -> bool:
        """Whether work is or may soon be waiting, or a lease is held."""
        return self.lease.held or self._is_to_be_done

    def serve(self, enqueue: Callable[[Ticket], None]) -> None:
        """Start the controller; `enqueue` puts a ticket into the inbox of the cluster's loop."""
        self._enqueue = enqueue

    def tick(self) -> None:
        """Renew the lease and do due work; called periodically."""
        if self.lease.held:
            self._ask(self._renew)
        self._advance()

    def on_lease_expired(self) -> None:
        """Look for work that a former lease holder may have left, even if none is visible here."""
        self._is_neglected = True

    async def close(self) -> None:
        """Stop working and release the lease for other processes. Never raises."""
        self._closed = True
        try:
            await self.lease.relinquish()
        except MoorageError:
            _log.debug("The lease ends by itself.", exc_info=True)

    @property
    @abstractmethod
    def _is_to_be_done(self) -> bool:
        """Whether work is or may soon be waiting, so that the lease should be kept."""

    @abstractmethod
    def _advance(self) -> None:
        """Do the pending work, if this process holds the lease."""

    @abstractmethod
    def _begin_anew(self) -> None:
        """Start over after acquiring the lease, since what was done before is unknown."""

    def _may(self) -> bool:
        """Return whether this process holds the lease; start acquiring it if not."""
        if not self.lease.held:
            self._ask(self._acquire)
        return self.lease.held

    def _submit(
        self, intent: Intent[Any], conclude: Callable[[asyncio.Future[Answer]], None]
    ) -> None:
        """Submit an intent to the inbox; `conclude` is called later with the answer."""
        assert self._enqueue is not None
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        deadline = self._clock.monotonic() + self._limits.request_seconds_max
        try:
            caller = msgspec.structs.replace(ITSELF, operation=type(intent).__name__)
            self._enqueue(Ticket(intent, deadline, None, future, caller=caller))
        except (MoorageError, ClusterGone) as error:
            future.set_exception(error)
        future.add_done_callback(conclude)

    # The lease

    def _ask(self, work: Callable[[], Awaitable[None]]) -> None:
        if self.lease.due and not self._asking:
            self._asking = True
            self._spawn(self._run_lease_request(work))

    async def _run_lease_request(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except MoorageError:
            _log.debug("The lease could not be asked for.", exc_info=True)
        finally:
            self._asking = False
        self._advance()

    async def _acquire(self) -> None:
        if await self.lease.acquire():
            self._begin_anew()

    async def _renew(self) -> None:
        if self._is_to_be_done:
            await self.lease.acquire()
        else:
            await self.lease.release()


D = TypeVar("D", bound=Controller)


class Controllers(ABC, Generic[D]):
    """The controllers of one kind, for all clusters that this process has in memory."""

    name: str
    """The name of the leases for this kind of work."""

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
        self._by_cluster: dict[int, D] = {}
        self._adopted: dict[int, HeldLease] = {}
        """The leases of clusters that are about to be loaded."""

    def of(self, cluster_id: int, cluster: str) -> D:
        """Create the controller of a cluster whose replica is about to be loaded."""
        adopted = self._adopted.pop(cluster_id, None)
        made = self._controller(adopted or self._lease(cluster_id, cluster))
        self._by_cluster[cluster_id] = made
        if adopted is not None:
            made.on_lease_expired()
        return made

    def get(self, cluster_id: int) -> D:
        """Return the controller of a loaded cluster.

        Raises:
            KeyError: the cluster is not in memory.
        """
        return self._by_cluster[cluster_id]

    def are_needed(self, cluster_id: int) -> bool:
        """Return whether the controller requires the cluster to stay in memory."""
        controller = self._by_cluster.get(cluster_id)
        return controller is not None and controller.is_needed

    def tick(self, cluster_id: int) -> bool:
        """Call the controller's `tick`; return whether another call is needed soon."""
        controller = self._by_cluster[cluster_id]
        controller.tick()
        return controller.has_work

    def drop(self, cluster_id: int) -> None:
        """Remove the controller of a cluster that has left memory."""
        self._by_cluster.pop(cluster_id, None)

    async def adopt(self, name: str, serve: Callable[[str], Awaitable[object]]) -> None:
        """Take over a cluster's unattended work, using `serve` to load the cluster.

        If the cluster is in memory, its controller asks for the lease by itself.

        Raises:
            NotFound: the cluster no longer exists.
            StorageUnavailable: the lease cannot be acquired, or the cluster cannot be loaded.
        """
        cluster_id = await self._store.clusters.find(name)
        if cluster_id in self._by_cluster:
            self._by_cluster[cluster_id].on_lease_expired()
            return
        lease = self._lease(cluster_id, name)
        if await lease.acquire():
            self._adopted[cluster_id] = lease
            try:
                await serve(name)
            finally:
                self._adopted.pop(cluster_id, None)

    @abstractmethod
    async def unattended(self) -> list[str]:
        """Return all clusters with work of this kind but no lease.

        A worker does this once, at startup, because the previous worker may have died before
        acquiring the lease.
        """

    async def close(self) -> None:
        """Close all controllers so that other workers can acquire the leases. Never raises."""
        for controller in list(self._by_cluster.values()):
            await controller.close()

    @property
    @abstractmethod
    def lease_seconds(self) -> float:
        """How long a lease lasts, and therefore how soon another worker replaces one that died."""

    @abstractmethod
    def _controller(self, lease: HeldLease) -> D:
        """Create the controller of the cluster that a lease is for."""

    def _lease(self, cluster_id: int, cluster: str) -> HeldLease:
        return HeldLease(
            self._store,
            self._clock,
            cluster_id,
            name=self.name,
            holder=self._holder,
            seconds=self.lease_seconds,
            is_elsewhere=self._is_elsewhere,
            cluster=cluster,
        )
