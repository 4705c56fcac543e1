"""Assigns clusters to workers so that each has its share (rendezvous hashing).

The lease names the worker that decides a cluster. A worker with more than its share passes some
clusters on to the workers with the fewest. A hash of worker and cluster selects them (highest
random weight, Thaler and Ravishankar 1998), so a server that returns gets the same clusters back.
By hash alone, one of two workers would get both of two clusters half of the time, so no worker gets
more than its share, and no cluster moves between workers that have their shares.
"""

import asyncio
import hashlib
import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

from service.model.core.errors import MoorageError
from service.scheduler.ownership.cluster_owners import ClusterOwners
from service.scheduler.protocol.ports import Clock

_log = logging.getLogger(__name__)

Prepare = Callable[[str, str], Awaitable[bool]]
"""Has the worker named first load a cluster; returns whether it has."""


def weight(cluster: str, worker: str) -> bytes:
    """Return a worker's weight for a cluster, comparable with other weights.

    Only the address in a worker's name counts, if any, since it survives a restart.
    """
    known_by = worker.partition("@")[2] or worker
    return hashlib.blake2b(f"{cluster}\0{known_by}".encode(), digest_size=8).digest()


def clusters_to_pass_on(
    own: str, held: Iterable[str], numbers: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    """Yield the clusters that a worker should pass on, each with its future worker.

    Args:
        own: the name of the worker.
        held: the clusters that the worker decides.
        numbers: how many clusters each live worker decides, including this one.
    """
    has = Counter(numbers)
    candidates: dict[str, list[str]] = {}
    remaining = set(held)
    while remaining:
        to = min(numbers, key=lambda worker: (has[worker], weight(own, worker)))
        if not _may_give(own, to, has):
            return
        if to not in candidates:
            candidates[to] = sorted(remaining, key=lambda cluster: (weight(cluster, to), cluster))
        while (cluster := candidates[to].pop()) not in remaining:
            pass
        remaining.remove(cluster)
        has[own] -= 1
        has[to] += 1
        yield cluster, to


def _may_give(own: str, to: str, has: Counter[str]) -> bool:
    """Return whether a worker exceeds its share, or is the one chosen to give away a remainder.

    All workers use the same numbers at about the same time, and should not all give to one worker.
    """
    share = math.ceil(has.total() / len(has))
    if has[own] < share or max(has.values()) > share:
        return has[own] > share
    givers = sorted(worker for worker in has if has[worker] == share)
    return givers.index(own) < has.total() // len(has) - has[to]


def _nobody(_worker: str) -> bool:
    """Return False, since any worker keeps running when this one ends."""
    return False


def _next(cluster: str, has: Mapping[str, int]) -> str:
    """Return the worker to pass a cluster to, given how many clusters each worker has."""
    return min(has, key=lambda worker: (has[worker], weight(cluster, worker)))


class ClusterShares:
    """Announces this worker, and passes on the clusters that other workers should have."""

    def __init__(
        self,
        cluster_owners: ClusterOwners,
        clock: Clock,
        seconds: float,
        prepare: Prepare,
        *,
        ends_too: Callable[[str], bool] = _nobody,
    ) -> None:
        """Create the shares of this worker.

        `seconds` is how long a worker counts as alive after announcing itself. `ends_too` returns
        whether a worker probably ends when this one does.
        """
        self._cluster_owners = cluster_owners
        self._clock = clock
        self._seconds = seconds
        self._prepare = prepare
        self._ends_too = ends_too
        self._is_leaving = False

    async def run(self) -> None:
        """Rebalance periodically until canceled."""
        while not self._is_leaving:
            try:
                await self.rebalance()
            except MoorageError:
                _log.debug("Clusters stay where they are.", exc_info=True)
            except Exception:  # noqa: BLE001 - it is told
                # Without this loop, the worker would soon count as dead, and never pass anything
                # on.
                _log.exception("Clusters stay where they are.")
            await self._clock.sleep(self._seconds / 3)

    async def rebalance(self) -> None:
        """Rebalance once; workers load clusters before receiving them, so that no request waits.

        Work that does not fit into a third of `seconds` is left for the next round.
        """
        owners, end = self._cluster_owners, self._clock.monotonic() + self._seconds / 3
        numbers = await owners.announce(self._seconds)
        for cluster, worker in clusters_to_pass_on(owners.own, owners.held(), numbers):
            if self._is_leaving or self._clock.monotonic() >= end:
                return
            if await self._prepared(worker, cluster):
                await owners.pass_on(cluster, worker)

    async def leave(self, seconds: float) -> None:
        """Pass all clusters on because this worker is about to end. Never raises.

        The other workers load their new clusters first, for at most `seconds` in total; the
        remaining clusters are passed on without waiting.
        """
        self._is_leaving = True
        end = self._clock.monotonic() + seconds
        try:
            numbers = await self._cluster_owners.withdraw(self._seconds)
            has = {name: number for name, number in numbers.items() if not self._ends_too(name)}
            for cluster in self._cluster_owners.held():
                while has and not await self._is_reached(to := _next(cluster, has), cluster, end):
                    del has[to]
                if has:
                    has[to] += 1
                    await self._cluster_owners.pass_on(cluster, to)
        except MoorageError:
            _log.debug("Clusters are left to whoever is asked next.", exc_info=True)

    async def _is_reached(self, worker: str, cluster: str, end: float) -> bool:
        """Have a worker load a cluster; return False only if it is unreachable."""
        try:
            async with asyncio.timeout(end - self._clock.monotonic()):
                return await self._prepare(worker, cluster)
        except TimeoutError:
            return True

    async def _prepared(self, worker: str, cluster: str) -> bool:
        """Have a worker load a cluster, however long that takes, while announcing this worker."""
        preparing = asyncio.ensure_future(self._prepare(worker, cluster))
        try:
            while not (await asyncio.wait({preparing}, timeout=self._seconds / 3))[0]:
                await self._cluster_owners.announce(self._seconds)
            return preparing.result()
        finally:
            preparing.cancel()
