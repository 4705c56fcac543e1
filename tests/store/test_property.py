"""Any sequence of commits gives the same answers, log and objects in memory and on PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings, strategies as st

from service.model.core.errors import OutcomeUnknown
from service.model.log.commit import Change, Diverged, Head, LogPage, ReplicaMismatch
from service.scheduler.protocol.limits import Limits
from service.scheduler.replica.loading import load
from service.store.postgres import PostgresStore
from tests.seeds import examples
from tests.store.history import (
    AnyStore,
    answer,
    commit_on,
    create,
    delete,
    new_id,
    put,
    ticking_clock,
)
from tests.support.memory_store.store import MemoryStore

NAMES = st.sampled_from("abcde")
KEYS = st.lists(st.sampled_from("xyz"), max_size=2, unique=True)


class Write(msgspec.Struct, frozen=True):
    """One change, right for the state at that moment unless `wrong`."""

    name: str
    remove: bool
    body: int
    wrong: bool


class Commit(msgspec.Struct, frozen=True):
    writes: list[Write]
    keys: list[str]
    stale: bool
    locked: bool


class Fence(msgspec.Struct, frozen=True):
    stale: bool


class Compact(msgspec.Struct, frozen=True):
    keep: int
    rows: int


class Answer(msgspec.Struct, frozen=True):
    keys: list[str]
    stale: bool


class Sweep(msgspec.Struct, frozen=True):
    pass


WRITE = st.builds(
    Write, NAMES, st.booleans(), st.integers(0, 9), st.integers(0, 30).map(lambda n: n == 0)
)
STALE = st.integers(0, 9).map(lambda n: n == 0)
STEP = st.one_of(
    st.builds(Commit, st.lists(WRITE, min_size=1, max_size=6), KEYS, STALE, st.booleans()),
    st.builds(Commit, st.lists(WRITE, min_size=1, max_size=6), st.just([]), STALE, st.booleans()),
    st.builds(Fence, st.booleans()),
    st.builds(Compact, st.integers(0, 8), st.integers(1, 9)),
    st.builds(Answer, KEYS, STALE),
    st.just(Sweep()),
)


class Player:
    """Plays steps on one store and keeps what it answers, without ids and times."""

    def __init__(self, store: AnyStore) -> None:
        self.store = store
        self.answers: list[object] = []

    async def start(self) -> None:
        row = await self.store.clusters.create(f"cluster-{new_id()}", b"{}")
        self.cluster_id, self.old = row.cluster_id, row.head

    async def play(self, step: Any) -> None:
        play: Callable[[Any], Any] = getattr(self, f"_{type(step).__name__.lower()}")
        try:
            self.answers.append(plain(await play(step)))
        except (ReplicaMismatch, OutcomeUnknown) as error:
            self.answers.append(type(error).__name__)

    async def _head(self, *, stale: bool) -> Head:
        return self.old if stale else await self.store.log.head(self.cluster_id)

    async def _commit(self, step: Commit) -> object:
        head = await self._head(stale=step.stale)
        stored = await load(self.store, self.cluster_id)
        changes = list(changes_of(step.writes, {row.name for row in stored.rows}))
        if not changes:
            return None
        keys = [answer(key) for key in step.keys]
        request = commit_on(head, *changes, idempotency=keys)
        if step.locked:
            return await self.store.log.commit_locked(
                self.cluster_id,
                head.revision,
                head.tip,
                lambda page: commit_on(page.head, *changes, idempotency=keys),
            )
        return await self.store.log.commit(self.cluster_id, request)

    async def _fence(self, step: Fence) -> object:
        request = commit_on(await self._head(stale=step.stale), create("never"))
        return await self.store.log.settle_unknown(self.cluster_id, request)

    async def _compact(self, step: Compact) -> object:
        return await self.store.housekeeping.compact(
            self.cluster_id, keep_changes=step.keep, keep_seconds=0, rows=step.rows
        )

    async def _answer(self, step: Answer) -> object:
        head = await self._head(stale=step.stale)
        records = [answer(key) for key in step.keys]
        return await self.store.log.record_answers(self.cluster_id, head, records)

    async def _sweep(self, _: Sweep) -> object:
        return await self.store.housekeeping.sweep_answers(self.cluster_id, keep_seconds=0)

    async def state(self) -> list[object]:
        """Everything that can be read, and that it fits together."""
        snapshot = await load(self.store, self.cluster_id, Limits(load_rows=2))
        log = await self.store.log.read(self.cluster_id, 0, None, 1000)
        if isinstance(log, Diverged):
            log = await self.store.log.read(self.cluster_id, log.floor, None, 1000)
        assert isinstance(log, LogPage)
        assert log.revision == log.head.revision == snapshot.head.revision
        await self._check_pages(log.floor)
        found = await self.store.log.find_answers(self.cluster_id, [answer(k).id for k in "xyz"])
        return [plain(snapshot), plain(log), sorted(record.key for record in found)]

    async def _check_pages(self, floor: int) -> None:
        """Small pages add up to the same log as a large one."""
        whole = await self.store.log.read(self.cluster_id, floor, None, 1000)
        at, seen = floor, []
        while at < whole.head.revision:
            page = await self.store.log.read(self.cluster_id, at, None, 2)
            at, seen = page.revision, [*seen, *page.changes]
        assert tuple(seen) == whole.changes


def changes_of(writes: list[Write], present: set[str]) -> list[Change]:
    changes = []
    for write in writes:
        there = (write.name in present) != write.wrong
        if write.remove and not there:
            continue
        body = f"{write.body}".encode()
        change = (
            delete(write.name) if write.remove else put(write.name, created=not there, body=body)
        )
        present = present - {write.name} if write.remove else present | {write.name}
        changes.append(change)
    return changes


def plain(value: object) -> object:
    """The value with ids and times taken out, which no two stores share."""
    data = msgspec.to_builtins(value)
    return [type(value).__name__, without_identity(data)]


def without_identity(data: object) -> object:
    if isinstance(data, dict):
        skipped = {"tip", "at", "commit_id", "parent"}
        return {key: without_identity(part) for key, part in data.items() if key not in skipped}
    if isinstance(data, list | tuple):
        return [without_identity(part) for part in data]
    return data


@given(steps=st.lists(STEP, min_size=1, max_size=12))
@settings(
    max_examples=examples(30),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_p1_p2_any_history_is_the_same_in_every_store(database_url: str, steps: list[object]):
    asyncio.run(play_on_both(database_url, steps))


async def play_on_both(database_url: str, steps: list[object]) -> None:
    async with _closing(PostgresStore(database_url, connections=2)) as postgres:
        players = [Player(MemoryStore(ticking_clock(), new_id)), Player(postgres)]
        for player in players:
            await player.start()
            for step in steps:
                await player.play(step)
        assert players[0].answers == players[1].answers
        assert await players[0].state() == await players[1].state()


@asynccontextmanager
async def _closing(store: PostgresStore) -> AsyncIterator[PostgresStore]:
    try:
        yield store
    finally:
        await store.close()
