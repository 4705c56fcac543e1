"""Holding a lease: who does a cluster's work of some name, so that not every process does it."""

from collections.abc import Callable
from datetime import datetime, timedelta

from service.scheduler.protocol.ports import Clock, Store


class HeldLease:
    """One lease of one cluster, as its holder or would-be holder sees it.

    The lease ends by the database's clock (P16). The holder counts from before it asked, on its
    own clock, so it stops before anybody else can begin, unless its clock is slow: a lease saves
    double work and guarantees nothing.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        cluster_id: int,
        *,
        name: str,
        holder: str,
        seconds: float,
        is_elsewhere: Callable[[int], bool],
    ) -> None:
        self._is_elsewhere = is_elsewhere
        """Whether another worker decides the cluster's requests: that one should do this too."""
        self._store = store
        self._clock = clock
        self._cluster_id = cluster_id
        self._name = name
        self._holder = holder
        self._seconds = seconds
        self._until = self._asked = float("-inf")
        self._taken: tuple[datetime, float] | None = None
        """The database's time when the lease was taken, and ours not before that."""

    @property
    def held(self) -> bool:
        """Whether it is ours now."""
        return self._clock.monotonic() < self._until

    @property
    def due(self) -> bool:
        """Whether it is time to ask for it, or to ask for more of it."""
        return self._clock.monotonic() >= self._asked + self._seconds / 3

    async def acquire(self) -> bool:
        """Take it or prolong it; whether it is ours. Raises StorageUnavailable."""
        self._asked = self._clock.monotonic()
        if self._is_elsewhere(self._cluster_id):
            await self.relinquish()
            return False
        lease = await self._store.acquire_lease(
            self._cluster_id, self._name, self._holder, self._seconds
        )
        self._until = float("-inf") if lease is None else self._asked + self._seconds
        if lease is not None:
            taken = lease.until - timedelta(seconds=self._seconds)
            self._taken = (taken, self._clock.monotonic())
        return self.held

    def database_time(self) -> datetime:
        """The database's time now, or a moment ago (P16); only of a lease that was taken."""
        assert self._taken is not None
        at, own = self._taken
        return at + timedelta(seconds=self._clock.monotonic() - own)

    async def release(self) -> None:
        """Give it back: the work is done. Raises StorageUnavailable."""
        self._until = self._asked = float("-inf")
        await self._store.release_lease(self._cluster_id, self._name, self._holder)

    async def relinquish(self) -> None:
        """Let it end now, and be found by others: there is work left. Raises StorageUnavailable."""
        if self.held:
            self._until = float("-inf")
            await self._store.acquire_lease(self._cluster_id, self._name, self._holder, 0.0)
