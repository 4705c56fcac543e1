"""Leases and workers in memory."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from service.model.log.lease import HeldLeases, Lease
from tests.support.memory_store.state import MemoryState, lasts


class MemoryLeases:
    """The leases of clusters."""

    def __init__(self, state: MemoryState) -> None:
        self.state = state

    async def acquire(
        self, cluster_id: int, name: str, holder: str, seconds: float
    ) -> Lease | None:
        """Take or prolong a lease; returns None if another holder has it or the cluster is gone."""
        own, now = self.state.states.get(cluster_id), self.state.clock()
        if own is None:
            return None
        held = own.leases.get(name)
        if held is not None and held.holder != holder and lasts(held, now):
            return None
        until = now + timedelta(seconds=seconds)
        own.leases[name] = Lease(cluster_id=cluster_id, name=name, holder=holder, until=until)
        return own.leases[name]

    async def claim(self, cluster_id: int, name: str, holder: str, seconds: float) -> Lease | None:
        """Take or prolong a lease, or return that of its holder; None if the cluster is gone."""
        taken = await self.acquire(cluster_id, name, holder, seconds)
        own = self.state.states.get(cluster_id)
        return taken or (own.leases[name] if own else None)

    async def prolong(self, held: HeldLeases, seconds: float) -> bool:
        """Prolong leases that are held still; False: at least one is not, and none is prolonged."""
        if self.state.ended([held]):
            return False
        for cluster_id, name in held.names:
            await self.acquire(cluster_id, name, held.holder, seconds)
        return True

    async def transfer(
        self, cluster_id: int, name: str, holder: str, to: str, seconds: float
    ) -> bool:
        """Give a lease to another holder, if the holder still has it; return whether that was done."""
        own, now = self.state.states.get(cluster_id), self.state.clock()
        held = own.leases.get(name) if own else None
        if own is None or held is None or held.holder != holder or not lasts(held, now):
            return False
        until = now + timedelta(seconds=seconds)
        own.leases[name] = Lease(cluster_id=cluster_id, name=name, holder=to, until=until)
        return True

    async def release(self, cluster_id: int, name: str, holder: str) -> None:
        """Give a lease back, if the holder still has it."""
        own = self.state.states.get(cluster_id)
        if own is not None and name in own.leases and own.leases[name].holder == holder:
            del own.leases[name]

    async def expired(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """The leases of these names that have expired, so that their holders neither prolonged nor released them.

        Each comes with the name of its cluster.
        """
        now = self.state.clock()
        return sorted(
            (name, own.name)
            for own in self.state.states.values()
            for name, lease in own.leases.items()
            if name in names and not lasts(lease, now)
        )

    async def unattended(self, name: str, mention: bytes, kind: str = "Pod") -> list[str]:
        """The clusters whose lease of this name nobody holds, and that have an object with these bytes in its body."""
        return sorted(
            own.name
            for own in self.state.states.values()
            if name not in own.leases
            and any(row.kind == kind and mention in row.body for row in own.objects.values())
        )


class MemoryWorkers:
    """The workers of all servers."""

    def __init__(self, state: MemoryState) -> None:
        self.state = state
        self._workers: dict[tuple[str, str], datetime] = {}

    async def register(self, servers: str, name: str, lease: str, seconds: float) -> dict[str, int]:
        """Say that a worker is there for so long; how many leases of a name each worker holds that is there."""
        now = self.state.clock()
        self._workers[servers, name] = now + timedelta(seconds=seconds)
        self._workers = {each: until for each, until in self._workers.items() if until > now}
        held = [own.leases[lease] for own in self.state.states.values() if lease in own.leases]
        holders = Counter(each.holder for each in held if lasts(each, now))
        return {each: holders[each] for common, each in self._workers if common == servers}

    async def deregister(self, servers: str, name: str) -> None:
        """Say that a worker is about to end."""
        self._workers.pop((servers, name), None)
