"""Leases: each names the process that does some work of a cluster, so that only one does it."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from service.scheduler.protocol.ports import Clock, Store

_log = logging.getLogger(__name__)


class HeldLease:
    """A lease on one cluster's work, as seen by a process that holds it or wants to.

    The lease ends by the database's clock (protocol rule P16). The holder measures the time on its
    own clock from before its request, so it stops before another process can begin, unless its
    clock is slow. A lease avoids double work, but is no guarantee.
    """

    def __init__(  # noqa: PLR0913 - all that it needs of the world, by name
        self,
        store: Store,
        clock: Clock,
        cluster_id: int,
        *,
        name: str,
        holder: str,
        seconds: float,
        is_elsewhere: Callable[[int], bool],
        cluster: str = "",
    ) -> None:
        """Create a lease; `cluster` is the cluster's name, for the log."""
        self._is_elsewhere = is_elsewhere
        """Whether another worker decides the cluster's requests, and so should hold this lease,
        too.
        """
        self._store = store
        self._clock = clock
        self.cluster_id = cluster_id
        """The cluster that the lease is for."""
        self.cluster = cluster
        """The cluster's name."""
        self._name = name
        self._holder = holder
        self._seconds = seconds
        self._log_context = {"lease": name, "cluster": cluster}
        self._is_logged = False
        """Whether it is already logged that this process holds the lease."""
        self._until = self._asked = float("-inf")
        self._taken: tuple[datetime, float] | None = None
        """The database's time when the lease was acquired, and this process's time just after that.
        """

    @property
    def held(self) -> bool:
        """Whether this process holds the lease now."""
        return self._clock.monotonic() < self._until

    @property
    def due(self) -> bool:
        """Whether it is time to acquire or renew the lease."""
        return self._clock.monotonic() >= self._asked + self._seconds / 3

    async def acquire(self) -> bool:
        """Acquire or renew the lease, and return whether it is held.

        Raises:
            StorageUnavailable: the database cannot be reached.
        """
        self._asked = self._clock.monotonic()
        if self._is_elsewhere(self.cluster_id):
            await self.relinquish()
            return False
        lease = await self._store.leases.acquire(
            self.cluster_id, self._name, self._holder, self._seconds
        )
        self._until = float("-inf") if lease is None else self._asked + self._seconds
        if lease is not None:
            taken = lease.until - timedelta(seconds=self._seconds)
            self._taken = (taken, self._clock.monotonic())
        self._log_transition()
        return self.held

    def database_time(self) -> datetime:
        """Return the database's time now or a moment ago (protocol rule P16).

        The lease must have been acquired before.
        """
        assert self._taken is not None
        at, own = self._taken
        return at + timedelta(seconds=self._clock.monotonic() - own)

    async def release(self) -> None:
        """Release the lease because the work is done.

        Raises:
            StorageUnavailable: the database cannot be reached.
        """
        self._give_back()
        self._until = self._asked = float("-inf")
        await self._store.leases.release(self.cluster_id, self._name, self._holder)

    async def relinquish(self) -> None:
        """Let the lease expire now, so that another process finds it and does the work.

        Raises:
            StorageUnavailable: the database cannot be reached.
        """
        if self.held:
            self._until = float("-inf")
            self._give_back()
            await self._store.leases.acquire(self.cluster_id, self._name, self._holder, 0.0)

    def _log_transition(self) -> None:
        """Log whether this process has just acquired or lost the lease."""
        if self.held and not self._is_logged:
            _log.info("The lease is taken.", extra=self._log_context)
        elif self._is_logged and not self.held:
            _log.warning("The lease is lost.", extra=self._log_context)
        self._is_logged = self.held

    def _give_back(self) -> None:
        if self._is_logged:
            _log.debug("The lease is given back.", extra=self._log_context)
        self._is_logged = False
