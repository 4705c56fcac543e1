"""A whole run in one process, repeatable from its seed: schedulers, one store, one clock.

Time stands still unless a test lets it pass. Other tasks run at every call of the store, a number
of steps that the seed decides, so different seeds are different interleavings.
"""

import asyncio
import heapq
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

import msgspec

from service.model.core.errors import OutcomeUnknown, StorageUnavailable
from service.model.core.generate_name import SUFFIXES, suffix_of
from service.model.log.commit import Change, CommitRequest
from service.model.registry.manifests import TemplateCache, parse_any, parse_pod
from service.scheduler.protocol.intents import ApplyObjects, Intent, PlacePods
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.placements import PlacementAnswer
from service.scheduler.scheduler import Scheduler
from tests.seeds import chance
from tests.support.memory_store.log import MemoryLog
from tests.support.memory_store.objects import MemoryObjects
from tests.support.memory_store.store import MemoryStore

START = datetime(2026, 1, 1, tzinfo=UTC)
Manifest = dict[str, Any]


class StillClock:
    """Time passes only by `advance`; `sleep(0)` lets others run once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.seconds + seconds, next(self._order), future))
        await future

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
        while self._sleepers and self._sleepers[0][0] <= self.seconds:
            _, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)


class CountedIds:
    """Ids that tell whose they are."""

    def __init__(self, owner: int) -> None:
        self._owner = owner
        self._numbers = count(1)

    def uid(self) -> str:
        return str(self.commit_id())

    def suffix(self) -> str:
        return suffix_of(next(self._numbers) % SUFFIXES)

    def commit_id(self) -> UUID:
        return UUID(fields=(self._owner, 0, 0x4000, 0x80, 0, next(self._numbers)))


class TroubledStore(MemoryStore):
    """The store in memory, with others running in between and with trouble on demand.

    `trouble` holds what befalls the next commits, one each: `lose the answer` (committed, but the
    client is not told), `hold` (the statement reaches the database only when `release_held` is
    called, and the client is not told), `refuse` (nothing happens at all).
    """

    def __init__(self, clock: StillClock, seed: int | None) -> None:
        super().__init__(clock.now, CountedIds(0).commit_id)
        self._random = None if seed is None else chance(seed)
        self.trouble: list[str] = []
        self.gate: asyncio.Event | None = None
        """Where it is set, commits wait for it before they are tried."""
        self.commits_begun: list[CommitRequest] = []
        self.calls: Counter[str] = Counter()
        self.hints = False
        """Whether notifications arrive; nothing may depend on it (P14)."""
        self.held: list[tuple[int, CommitRequest]] = []
        self.log = TroubledLog(self)
        self.objects = TroubledObjects(self)

    def notify(self, cluster_id: int) -> None:
        if self.hints:
            super().notify(cluster_id)

    async def release_held(self) -> list[Any]:
        return [await MemoryLog(self.state).commit(*held) for held in self.held]

    async def counted(self, name: str, call: Awaitable[Any]) -> Any:
        self.calls[name] += 1
        await self.others_run()
        result = await call
        await self.others_run()
        return result

    async def others_run(self) -> None:
        for _ in range(self._random.randrange(4) if self._random else 0):
            await asyncio.sleep(0)


class TroubledLog(MemoryLog):
    def __init__(self, store: TroubledStore) -> None:
        super().__init__(store.state)
        self._store = store

    async def commit(self, cluster_id: int, request: CommitRequest) -> Any:
        self._store.commits_begun.append(request)
        if self._store.gate is not None:
            await self._store.gate.wait()
        await self._store.others_run()
        trouble = self._store.trouble.pop(0) if self._store.trouble else None
        if trouble == "refuse":
            raise StorageUnavailable("No connection.")
        if trouble == "hold":
            self._store.held.append((cluster_id, request))
            raise OutcomeUnknown("The connection broke.")
        result = await super().commit(cluster_id, request)
        await self._store.others_run()
        if trouble == "lose the answer":
            raise OutcomeUnknown("The connection broke.")
        return result

    async def head(self, cluster_id: int) -> Any:
        return await self._store.counted("head", super().head(cluster_id))

    async def read(self, cluster_id: int, after: int, tip: Any, limit: int, **options: Any) -> Any:
        read = super().read(cluster_id, after, tip, limit, **options)
        return await self._store.counted("read_log", read)

    async def commit_locked(self, *arguments: Any) -> Any:
        return await self._store.counted("commit_locked", super().commit_locked(*arguments))

    async def settle_unknown(self, *arguments: Any) -> Any:
        return await self._store.counted("settle_unknown", super().settle_unknown(*arguments))


class TroubledObjects(MemoryObjects):
    def __init__(self, store: TroubledStore) -> None:
        super().__init__(store.state)
        self._store = store

    async def read(self, cluster_id: int, after: Any, limit: int) -> Any:
        name = "read_objects" if after else "load"
        return await self._store.counted(name, super().read(cluster_id, after, limit))


class World:
    """Some schedulers on one store."""

    def __init__(
        self,
        *,
        workers: int = 1,
        seed: int | None = None,
        limits: Limits | None = None,
        meter: Any = None,
        apart: Callable[["World", int], Mapping[str, Any]] = lambda _world, _worker: {},
    ) -> None:
        """`apart` tells what a worker is made with in place of what all have."""
        self.clock = StillClock()
        self.store = TroubledStore(self.clock, seed)
        self.templates = TemplateCache()
        alike = {"store": self.store, "clock": self.clock, "limits": limits, "meter": meter}
        self.schedulers = [
            Scheduler(
                ids=CountedIds(number + 1),
                templates=TemplateCache(),
                **{**alike, **apart(self, number)},
            )
            for number in range(workers)
        ]

    async def ask(self, intent: Intent[Any], worker: int = 0) -> Any:
        return await self.schedulers[worker].submit("default", intent)

    async def apply(self, *manifests: Manifest, worker: int = 0) -> Any:
        """The manifests, each with its kind, as one `List`."""
        return await self.ask(ApplyObjects(manifests=self.parsed(*manifests)), worker)

    async def place(self, *pods: Manifest, worker: int = 0, **options: Any) -> PlacementAnswer:
        answer = await self.ask(self.placing(*pods, **options), worker)
        assert isinstance(answer, PlacementAnswer)
        return answer

    def placing(self, *pods: Manifest, **options: Any) -> PlacePods:
        parsed = [parse_pod(encoded(each), self.templates, to_place=True) for each in pods]
        return PlacePods(pods=tuple(parsed), **options)

    def parsed(self, *manifests: Manifest) -> tuple[Any, ...]:
        return tuple(parse_any(encoded(kinded(each)), self.templates) for each in manifests)

    def pod(self, manifest: Manifest) -> Any:
        return parse_pod(encoded(manifest), self.templates)

    def close_gate(self) -> asyncio.Event:
        """Let commits that begin from now on wait until the gate is opened."""
        self.store.gate = asyncio.Event()
        return self.store.gate

    def open_gate(self, gate: asyncio.Event) -> None:
        self.store.gate = None
        gate.set()

    async def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await self.others()

    async def others(self, steps: int = 100) -> None:
        """Let everything run that can run while time stands still."""
        for _ in range(steps):
            await asyncio.sleep(0)

    def log(self) -> list[Change]:
        """All changes that the log still has."""
        return list(self.store.states[1].changes)

    async def head_revision(self) -> int:
        head = await MemoryLog(self.store.state).head(1)
        return head.revision

    async def stored(self, kind: str, namespace: str, name: str) -> Manifest | None:
        read = await self.store.objects.get(1, kind, namespace, name)
        return None if read.row is None else msgspec.json.decode(read.row.body)

    async def nodes_of_pods(self) -> dict[str, str | None]:
        page = await self.store.objects.list(1, "Pod", limit=1_000_000)
        return {row.name: row.node_name for row in page.rows}

    async def assert_replicas_agree(self) -> None:
        """A13: with all caught up, every replica equals the tables."""
        await self.pass_time(1)
        await self.others(1_000)
        states = {state for each in self.schedulers for state in each.replicas().values()}
        assert len(states) == 1
        assert next(iter(states))[0] == await self.head_revision()


@asynccontextmanager
async def world(**options: Any) -> AsyncIterator[World]:
    """A running world. Whatever happened in it, the log must be dense and agree with the tables."""
    made = World(**options)
    for scheduler in made.schedulers:
        await scheduler.start()
    try:
        yield made
    finally:
        if made.store.gate is not None:
            made.store.gate.set()
        for scheduler in made.schedulers:
            await scheduler.stop()
    revisions = [change.revision for change in made.log()]
    head = await made.head_revision()
    assert revisions == list(range(head - len(revisions) + 1, head + 1))


def encoded(manifest: Manifest) -> bytes:
    return msgspec.json.encode(dict(manifest))


def kinded(manifest: Manifest) -> Manifest:
    """The manifest with its kind, which the builders leave out."""
    if "kind" in manifest:
        return manifest
    kind = type(manifest).__name__.removesuffix("Builder")
    return {"apiVersion": "v1", "kind": kind, **manifest}


async def all_of(*calls: Awaitable[Any]) -> list[Any]:
    return list(await asyncio.gather(*calls))
