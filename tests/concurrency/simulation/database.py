"""The one database of a run, and the troubled connections through which workers ask it.

A statement travels to the database, is executed there in one instant, and its answer travels
back. On the way connections break: before the statement arrives, after it was executed, or while
it is still travelling, so that it arrives long after its sender was told that it failed. A worker
that dies leaves its statements behind.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextvars import Context
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from operator import attrgetter
from typing import Any
from uuid import UUID

from service.model.core.errors import OutcomeUnknown, StorageUnavailable
from service.model.core.generate_name import SUFFIXES, suffix_of
from service.model.log.commit import Change, CommitInfo, Diverged, Head
from service.model.log.results import Behind, Committed, DuplicateKey, Lost
from tests.concurrency.simulation.choices import ACTOR
from tests.concurrency.simulation.eventloop import Process, SimulatedLoop
from tests.concurrency.simulation.recording import RecordedCall, RecordingStore
from tests.support.memory_store.store import PARTS, MemoryStore

START = datetime(2026, 1, 1, tzinfo=UTC)
WRITES = frozenset({"log.commit", "log.record_answers", "log.commit_locked", "log.settle_unknown"})


class SimulatedClock:
    """The loop's time; each look at it takes a moment. A wall clock may jump."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self.wrong_by = timedelta()

    def now(self) -> datetime:
        return START + timedelta(seconds=self._loop.time()) + self.wrong_by

    def monotonic(self) -> float:
        self._loop.spend()
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0))


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


@dataclass(kw_only=True)
class Trouble:
    """How often what goes wrong, each a probability."""

    refused: float = 0.0
    lost_answer: float = 0.0
    late: float = 0.0
    unsettled: float = 0.0
    """How often a worker cannot ask what became of a commit."""
    slow: float = 0.3
    hints: float = 1.0
    """How often a hint arrives."""

    def allows(self, fate: str, statement: str) -> bool:
        """Whether that can befall a statement of this name: not if it is never so, or not now."""
        if fate == "none":
            return True
        refused = self.unsettled if statement == "log.settle_unknown" else self.refused
        chances = {"refused": refused, "lost answer": self.lost_answer, "late": self.late}
        return chances.get(fate, 1.0) > 0


class Database:
    """The store in memory, and all that was ever in its logs; `calls` gets what it is asked."""

    def __init__(
        self,
        loop: SimulatedLoop,
        source: random.Random,
        trouble: Trouble,
        calls: list[RecordedCall] | None = None,
    ) -> None:
        self.loop = loop
        self.choices = loop.choices
        self.random = source
        self.trouble = trouble
        self.points: Counter[str] = Counter()
        """How often each interleaving point was passed."""
        self.context = Context()
        self.clock = SimulatedClock(loop)
        self.store = _store(self.clock.now, CountedIds(0).commit_id, calls)
        self.commits: dict[int, list[CommitInfo]] = {}
        self.changes: dict[int, list[Change]] = {}
        self.committed_at: dict[UUID, float] = {}
        self.seconds_max = {"leases.acquire": 0.0, "log.commit": 0.0}
        """What the longest statement of each name took, of those by which time is judged."""
        self._written: dict[int, UUID] = {}

    def take_note(self) -> list[str]:
        """Copy what the logs have gained since the last look, before compaction takes it away.

        Tells what the first cluster gained, if it is a schedule that runs.
        """
        gained: list[str] = []
        for number, own in self.store.states.items():
            if own.head.tip == self._written.get(number):
                continue
            commits = self.commits.setdefault(number, [])
            changes = self.changes.setdefault(number, [])
            known = {commit.commit_id for commit in commits[-4:]}
            seen = changes[-1].revision if changes else 0
            tail = own.commits if not commits else own.commits[-4:]
            for commit in tail:
                if commit.commit_id not in known:
                    commits.append(commit)
                    self.committed_at[commit.commit_id] = self.loop.steps
            new = own.changes[max(0, seen - own.floor) :]
            changes.extend(new)
            if number == 1 and self.choices.replays:
                gained.append("; ".join(map(_brief, new)))
            self._written[number] = own.head.tip
        return gained

    @property
    def blur(self) -> timedelta:
        """By how much what is decided may be older than the time of its commit.

        Workers learn the database's time by leases, and a commit is on its way for a while.
        """
        return timedelta(seconds=sum(self.seconds_max.values()))

    def head_of(self, cluster_id: int) -> int:
        return self.store.states[cluster_id].head.revision

    def later(self, seconds: float, do: Callable[[], None]) -> None:
        """Outside of every process: what has left one goes on without it."""
        context = self.context.copy()
        context.run(ACTOR.set, ACTOR.get())
        self.loop.call_later(seconds, do, context=context)

    def travel_seconds(self, what: str | None = None) -> float:
        """How long something is on its way: `what`, or what the actor of this moment sends."""
        what = what or ACTOR.get()
        seconds = self.choices.take_next(f"{what}/slow", 0.0, self._travel_seconds)
        if seconds and self.choices.replays:
            self.loop.tell(f"a message of {what} takes {seconds:g} s")
        return seconds

    def _travel_seconds(self) -> float:
        if self.random.random() > self.trouble.slow:
            return 0.0
        return self.random.choice((0.001, 0.01, 0.1))


class _Part:
    """A part of the store, whatever calls that has."""

    def __init__(self, ask: Callable[..., Awaitable[Any]], part: str) -> None:
        self._ask, self._part = ask, part

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("_"):
            raise AttributeError(name)
        asked = self.__dict__[name] = partial(self._ask, f"{self._part}.{name}")
        return asked


class Connection:
    """A worker's way to the database: the scheduler's `Store`, whatever calls that has."""

    epoch = MemoryStore.epoch

    def __init__(self, database: Database, process: Process) -> None:
        self._database = database
        self._process = process
        self.recovery = self

    async def continue_history(self, cluster_id: int, known: Head | None) -> bool:
        """Answer at once: this database tells one history, so that nothing is ever lost of it (P3)."""
        lifted = await self._database.store.recovery.continue_history(cluster_id, known)
        assert not lifted
        return lifted

    def __getattr__(self, name: str) -> _Part:
        if name not in PARTS:
            raise AttributeError(name)
        part = self.__dict__[name] = _Part(self._ask, name)
        return part

    async def _ask(self, name: str, *arguments: Any, **options: Any) -> Any:
        database, asked = self._database, self._database.loop.time()
        call = partial(attrgetter(name)(database.store), *arguments, **options)
        subject = _subject(name, arguments) or f"{self._process.name}/{name}"
        answer = await _Statement(database, self._process, name, call, subject).run()
        took = database.loop.time() - asked
        if name in database.seconds_max:
            database.seconds_max[name] = max(database.seconds_max[name], took)
        return answer

    def notify(self, cluster_id: int) -> None:
        """A hint: it may come late, or never (P14)."""
        database, certain = self._database, self._database.trouble.hints >= 1
        hints = database.trouble.hints
        name = database.choices.numbered(f"{ACTOR.get()}/loses a hint")
        lost = database.choices.take(name, bool(0), lambda: database.random.random() >= hints)
        if lost and not certain:
            database.loop.tell(f"the hint of {self._process.name} is lost")
            return
        store = database.store
        database.later(database.travel_seconds(), lambda: store.notify(cluster_id))

    def listen(self) -> AsyncGenerator[frozenset[int], None]:
        return self._database.store.listen()


def _store(
    clock: Callable[[], datetime], new_id: Callable[[], UUID], calls: list[RecordedCall] | None
) -> MemoryStore:
    if calls is None:
        return MemoryStore(clock, new_id, audit=True)
    return RecordingStore(clock, new_id, calls, audit=True)


def _brief(change: Change) -> str:
    node = f" on {change.node_name}" if change.node_name else ""
    return f"{change.revision}: {change.verb} {'/'.join(filter(None, change.key))}{node}"


def _subject(name: str, arguments: tuple[Any, ...]) -> str | None:
    """Attempts are known by the first object that they change, whoever makes them and when."""
    if name not in ("log.commit", "log.settle_unknown"):
        return None
    kind, inside, own = arguments[1].changes[0].key
    return f"{name} of {kind} {inside}/{own}"


_TROUBLES = ("refused", "late", "answer lost", "answer to the dead", "Lost")
"""What a reader of a schedule wants to know of a statement."""


class _Statement:
    """One statement and what befalls it."""

    def __init__(
        self,
        database: Database,
        process: Process,
        name: str,
        call: Callable[[], Coroutine[Any, Any, Any]],
        subject: str,
    ) -> None:
        self._database = database
        self._process = process
        self._name = name
        self._call = call
        self._number = database.choices.numbered(subject)
        """What it is about, and how many such there were before."""
        self._answer: asyncio.Future[Any] = database.loop.create_future()

    async def run(self) -> Any:
        database = self._database
        fate = database.choices.take(f"{self._number}/fate", "none", self._fate)
        match fate if database.trouble.allows(fate, self._name) else "none":
            case "refused":
                self._pass("refused")
                database.later(self._travel_seconds(), self._refuse)
            case "lost answer":
                database.later(self._travel_seconds(), self._execute_in_vain)
            case "late":
                self._pass("late")
                delays = (0.01, 0.3, 1.0, 4.0)
                late = database.choices.take(
                    f"{self._number}/late", 0.01, lambda: database.random.choice(delays)
                )
                database.later(late, self._execute_late)
                database.later(self._travel_seconds(), self._lose)
            case _:
                database.later(self._travel_seconds(), self._execute)
        return await self._answer

    def _travel_seconds(self) -> float:
        return self._database.travel_seconds(self._number)

    def _fate(self) -> str:
        trouble, lot = self._database.trouble, self._database.random.random()
        refused = trouble.unsettled if self._name == "log.settle_unknown" else trouble.refused
        if lot < refused:
            return "refused"
        lot -= refused
        if self._name in WRITES and lot < trouble.lost_answer:
            return "lost answer"
        lot -= trouble.lost_answer
        return "late" if self._name == "log.commit" and lot < trouble.late else "none"

    def _pass(self, moment: str) -> None:
        self._database.points[f"{self._name}: {moment}"] += 1
        if moment in _TROUBLES:
            self._database.loop.tell(f"{self._process.name}: {self._number}: {moment}")

    def _refuse(self) -> None:
        self._fail(StorageUnavailable("No connection."))

    def _lose(self) -> None:
        """Drivers raise anything when a commit's answer is lost; of the others it is known what."""
        unknown = OutcomeUnknown("The connection broke.")
        anything = self._name == "log.commit" and self._database.choices.does(
            f"{self._number}/raises", self._database.random, 0.5
        )
        self._fail(ConnectionResetError("driver") if anything else unknown)

    def _execute(self) -> None:
        self._start(self._travel_seconds, self._settle)

    def _execute_late(self) -> None:
        self._start(lambda: 0.0, lambda _: None)

    def _execute_in_vain(self) -> None:
        def lose(_: asyncio.Future[Any]) -> None:
            self._pass("answer lost")
            self._lose()

        self._start(self._travel_seconds, lose)

    def _start(
        self, travel: Callable[[], float], then: Callable[[asyncio.Future[Any]], None]
    ) -> None:
        """Execute in one instant; `then` gets the result after the way back."""
        if self._name == "log.commit_locked" and not self._process.alive:
            return
        if not self._process.alive:
            self._pass("after its worker died")
        done = _at_once(self._call(), self._database.loop)
        committed = self._database.take_note()
        self._tell(done)
        for commit in committed:
            self._database.loop.tell(f"{self._process.name} commits {commit}")
        self._database.later(travel(), lambda: then(done))

    def _tell(self, done: asyncio.Future[Any]) -> None:
        if done.exception() is not None:
            self._pass(f"raised {type(done.exception()).__name__}")
            return
        result = done.result()
        kinds = (Committed, Lost, DuplicateKey, Behind, Diverged)
        self._pass(type(result).__name__ if isinstance(result, kinds) else "answered")

    def _settle(self, done: asyncio.Future[Any]) -> None:
        if self._answer.done():
            return
        if not self._process.alive:
            self._pass("answer to the dead")
            return
        error = done.exception()
        if error is None:
            self._answer.set_result(done.result())
        else:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._answer.done():
            self._answer.set_exception(error)


def _at_once(call: Coroutine[Any, Any, Any], loop: SimulatedLoop) -> asyncio.Future[Any]:
    """Run a coroutine that never waits to its end, now."""
    done: asyncio.Future[Any] = loop.create_future()
    try:
        call.send(None)
    except StopIteration as stop:
        done.set_result(stop.value)
    except Exception as error:  # noqa: BLE001 - the asker gets it
        done.set_exception(error)
        done.exception()
    else:
        raise AssertionError(call)
    return done
