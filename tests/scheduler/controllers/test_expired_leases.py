"""One look finds the work of all kinds that nobody does any more, and no kind waits for another."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self

from service.model.core.errors import StorageUnavailable
from service.scheduler.controllers.expired_leases import ExpiredLeases
from tests.scheduler.world import StillClock

LEASE_SECONDS = 3.0


class Leases:
    """A store of which only the leases matter that have run out."""

    def __init__(self) -> None:
        self.leases = self
        self.ended: list[tuple[str, str]] = []
        self.looks: list[Sequence[str]] = []

    async def expired(self, names: Sequence[str]) -> list[tuple[str, str]]:
        self.looks.append(names)
        return self.ended


class Kind:
    """A kind of work that remembers which clusters it was to take over."""

    lease_seconds = LEASE_SECONDS

    def __init__(self, name: str, *unattended: str) -> None:
        self.name = name
        self.adopted: list[str] = []
        self.searches = 0
        self.is_down = False
        self.may_load = asyncio.Event()
        self.may_load.set()
        self._unattended = list(unattended)

    async def unattended(self) -> list[str]:
        self.searches += 1
        if self.is_down:
            raise StorageUnavailable("No connection.")
        return self._unattended

    async def adopt(self, name: str, _: Callable[[str], Awaitable[object]]) -> None:
        self.adopted.append(name)
        await self.may_load.wait()


class Looking:
    """A worker that looks; `again` lets time pass until it has looked once more."""

    def __init__(self, *kinds: Kind) -> None:
        self.store, self._clock = Leases(), StillClock()
        of_a_fake: Any = ExpiredLeases
        self._run = of_a_fake(self.store, self._clock, kinds, asyncio.sleep).run

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        await self._others()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def again(self) -> None:
        self._clock.advance(LEASE_SECONDS / 3)
        await self._others()

    async def _others(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)


async def test_a_look_asks_once_for_the_leases_of_all_kinds() -> None:
    one, other = Kind("evictions"), Kind("plans")
    async with Looking(one, other) as looking:
        assert looking.store.looks == [["evictions", "plans"]]
        looking.store.ended = [("plans", "west"), ("evictions", "east"), ("plans", "east")]
        await looking.again()
        assert (one.adopted, other.adopted) == (["east"], ["west", "east"])
        assert len(looking.store.looks) == 2


async def test_work_without_a_lease_is_searched_for_once_it_can_be() -> None:
    """The last worker may have died before it took a lease."""
    kind = Kind("plans", "east")
    kind.is_down = True
    async with Looking(kind) as looking:
        assert (kind.searches, kind.adopted) == (1, [])
        kind.is_down = False
        await looking.again()
        await looking.again()
        assert (kind.searches, kind.adopted) == (2, ["east"])


async def test_a_cluster_that_takes_long_to_load_keeps_no_other_kind_of_work_waiting() -> None:
    slow, quick = Kind("nodes", "large"), Kind("pending")
    slow.may_load.clear()
    async with Looking(slow, quick) as looking:
        looking.store.ended = [("nodes", "other"), ("pending", "other")]
        await looking.again()
        assert (slow.adopted, quick.adopted) == (["large"], ["other"])
        slow.may_load.set()
        await looking.again()
        await looking.again()
        assert slow.adopted == ["large", "other", "other"]
