"""Worker processes: each a whole scheduler that may die at any moment and be started again."""

import asyncio
import random
from contextvars import Context
from functools import partial
from typing import Any, NamedTuple

from service.scheduler.ownership.cluster_owners import ClusterOwners
from service.scheduler.protocol.limits import Limits
from service.scheduler.scheduler import Scheduler
from tests.concurrency.simulation.choices import ACTOR, Choices
from tests.concurrency.simulation.database import Connection, CountedIds, Database, SimulatedClock
from tests.concurrency.simulation.eventloop import PROCESS, Process
from tests.concurrency.simulation.peers import Asked, SimulatedPeers
from tests.concurrency.simulation.workload import TEMPLATES

STREAM_SECONDS = 0.2
"""How soon a stream ends once the worker is to stop."""
DRAIN_SECONDS_MAX = 10.0


def some_limits(source: random.Random, choices: Choices) -> Limits:
    """Small, so that every limit is reached; in some runs the log is soon compacted."""

    def some(name: str, plain: Any, among: tuple[Any, ...]) -> Any:
        return choices.take(f"limits/{name}", plain, lambda: source.choice(among))

    return Limits(
        request_seconds_max=20.0,
        batch_changes_max=12,
        batch_requests_max=6,
        log_page_changes=7,
        load_rows=some("load_rows", 2_000, (4, 10, 2_000)),
        attempts_before_lock=some("attempts_before_lock", 3, (1, 3)),
        settle_attempts_max=3,
        settle_pause_seconds=0.1,
        poll_seconds=some("poll_seconds", 1.0, (0.25, 1.0, 3.0)),
        watch_page_changes=some("watch_page_changes", 250, (1, 5, 250)),
        watch_ring_changes=some("watch_ring_changes", 1000, (1, 5, 1000)),
        log_keep_changes=some("log_keep_changes", 100_000, (0, 15, 100_000, 100_000)),
        log_keep_seconds=0.1,
        upkeep_seconds=2.0,
        upkeep_lease_seconds=5.0,
        owner_lease_seconds=2.0,
        evictions_lease_seconds=some("evictions_lease_seconds", 1.5, (0.6, 1.5)),
    )


class Place(NamedTuple):
    """Which worker it is, and how many before it were that one."""

    slot: int
    life: int = 0

    def __str__(self) -> str:
        return f"worker-{self.slot}" + (f".{self.life}" if self.life else "")


class Worker:
    """One life of one worker."""

    def __init__(
        self,
        database: Database,
        place: Place,
        owner: int,
        limits: Limits,
        peers: SimulatedPeers | None = None,
    ) -> None:
        """With `peers` it hands requests over (P19)."""
        self.place, name = place, str(place)
        self.process = Process(name)
        self._database = database
        self._context = Context()
        self._context.run(PROCESS.set, self.process)
        self._context.run(ACTOR.set, name)
        self.clock = clock = SimulatedClock(database.loop)
        store = Connection(database, self.process)
        self._peers = peers
        self._cluster_owners = None
        if peers:
            self._cluster_owners = ClusterOwners(
                *(store, clock, limits),
                server="s",
                own=name,
                lives=peers.lives,
                answers=lambda each: each not in self._unheard,
            )
            peers.add(name, partial(self.ask, here=True), lives=lambda: self.alive)
        self.scheduler = Scheduler(
            store, clock, CountedIds(owner), limits, TEMPLATES, cluster_owners=self._cluster_owners
        )
        self._unheard: set[str] = set()
        """The workers that did not answer when they were asked last."""
        self._waiting: dict[asyncio.Future[Any], asyncio.Task[Any] | None] = {}
        self.draining = False
        """It is to stop: who connects now is not let in any more."""
        self.run(self.scheduler.start())

    @property
    def alive(self) -> bool:
        return self.process.alive

    def ask(
        self, cluster: str, intent: Any, idempotency: Any = None, *, here: bool = False
    ) -> asyncio.Future[Any]:
        """Send a request; the future is what its sender hears of it, if anything.

        `here`: it is not forwarded to another worker.
        """
        loop, database = self._database.loop, self._database
        reply: asyncio.Future[Any] = loop.create_future()
        self._waiting[reply] = None
        asker = ACTOR.get()

        def arrive() -> None:
            if not self.alive or self.draining:
                self._answer(reply, ConnectionResetError("down"))
            elif not reply.done():
                submit = self.scheduler.submit if here else self._submit
                task = self._run_for(asker, submit(cluster, intent, idempotency))
                self._waiting[reply] = task
                task.add_done_callback(leave, context=self._context)

        def leave(task: asyncio.Task[Any]) -> None:
            if task.cancelled():
                return
            outcome = task.exception() or task.result()
            database.later(database.travel_seconds(), lambda: self._answer(reply, outcome))

        database.later(database.travel_seconds(), arrive)
        return reply

    async def _submit(self, cluster: str, intent: Any, idempotency: Any) -> Any:
        submit, request = self.scheduler.submit, Asked(cluster, intent, idempotency)
        peers, owners = self._peers, self._cluster_owners
        if peers is None or owners is None:
            return await submit(*request)
        holder = await owners.elsewhere(cluster)
        if holder is None:
            return await submit(*request)

        async def instead(*asked: Any) -> Any:
            self._unheard.add(holder)
            owners.not_reached(holder)
            successor = await owners.elsewhere(cluster)
            if successor is None or successor == holder:
                return await submit(*asked)
            return await peers.forward(successor, request, submit)

        self._unheard.discard(holder)
        return await peers.forward(holder, request, instead)

    def forget(self, reply: asyncio.Future[Any]) -> None:
        """Its sender has hung up."""
        task = self._waiting.pop(reply, None)
        reply.cancel()
        if task is not None and self.alive:
            task.cancel()

    def crash(self) -> None:
        """Be gone between two callbacks: whoever waits for an answer sees a reset connection."""
        self.process.alive = False
        for reply in list(self._waiting):
            self._database.later(
                self._database.travel_seconds(),
                partial(self._answer, reply, ConnectionResetError("gone")),
            )

    async def drain(self) -> None:
        """As at SIGTERM: streams end, and who was let in is answered."""
        self.draining = True
        self.scheduler.watching.close()
        ends = self._database.loop.time() + DRAIN_SECONDS_MAX
        await asyncio.sleep(STREAM_SECONDS)
        while self.alive and self._waiting and self._database.loop.time() < ends:  # noqa: ASYNC110
            await asyncio.sleep(STREAM_SECONDS)

    async def stop(self) -> None:
        """End in good order, or be killed if that takes too long."""
        if self.alive:
            await asyncio.wait({self.run(self.scheduler.stop())}, timeout=DRAIN_SECONDS_MAX)
        if self.alive:
            self.crash()

    def forget_watch(self, task: asyncio.Task[Any]) -> None:
        """A watcher has gone; a dead worker never hears of it."""
        if self.alive:
            task.cancel()

    def _answer(self, reply: asyncio.Future[Any], outcome: Any) -> None:
        self._waiting.pop(reply, None)
        if reply.done():
            return
        if isinstance(outcome, BaseException):
            reply.set_exception(outcome)
        else:
            reply.set_result(outcome)

    def run(self, work: Any) -> asyncio.Task[Any]:
        return self._database.loop.create_task(work, context=self._context)

    def _run_for(self, asker: str, work: Any) -> asyncio.Task[Any]:
        """Run what somebody asked for, under a name that does not depend on what others asked."""
        context = self._context.copy()
        context.run(ACTOR.set, f"{asker} at {self.process.name}")
        return self._database.loop.create_task(work, context=context)
