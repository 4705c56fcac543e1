"""One seed: some workers, some clients, some trouble, and what they leave behind."""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import msgspec

from service.model.core.errors import Compacted
from service.scheduler.protocol.intents import PlacePods, PutObject
from tests.agreement import answers_anew, disagreements
from tests.concurrency.checker.evicting import eviction_of
from tests.concurrency.checker.history import History, Key, Listing, ReplicaState, Seen, Transcript
from tests.concurrency.replicas import loaded
from tests.concurrency.simulation import workload
from tests.concurrency.simulation.choices import ACTOR, Choices, Schedule
from tests.concurrency.simulation.clients import Client, Crowd, Operation
from tests.concurrency.simulation.database import Database, Trouble
from tests.concurrency.simulation.eventloop import STEPS_MAX, SimulatedLoop, Stuck
from tests.concurrency.simulation.peers import SimulatedPeers
from tests.concurrency.simulation.recording import RecordedCall
from tests.concurrency.simulation.workers import Place, Worker, some_limits

QUIET_SECONDS = 5.0
JUMPS = (-420, -180, -20, 0, 40, 300)
"""How many minutes wall clocks may be wrong by, the database's too."""
OPERATIONS = 48
"""Of all clients together, but for those that are there in some runs only."""
SETUPS_MAX = 12
EVENTS_MAX = 1000
"""Of each kind in one run; far more than there are."""
PROBES_MAX = 30
ROUNDS_MAX = 60
STREAM_ROUNDS = 30
"""Tenths of a second until a stream that was being opened has to be over, too."""
CLUSTER = 1


class Run(msgspec.Struct, kw_only=True):
    """What one seed did."""

    seed: int
    history: History
    points: Counter[str]
    steps: int
    seconds: float
    """Simulated."""
    crashes: int = 0
    restarts: int = 0
    drains: int = 0
    """Workers that were stopped in good order."""
    jumps: int = 0
    """Of wall clocks."""
    schedule: Schedule = {}
    """The decisions that were taken: with them, the run is the same again."""
    told: list[tuple[int, str]] = []
    """What went on, and at which steps."""

    @property
    def conflicts(self) -> int:
        return sum(self.points[f"log.{name}: Lost"] for name in ("commit", "record_answers"))

    @property
    def lost_answers(self) -> int:
        return sum(
            number
            for point, number in self.points.items()
            if point.endswith((": answer lost", ": late"))
        )

    @property
    def evictions(self) -> int:
        """By the service itself; a pod that is marked is not changed again."""
        return sum(
            each.verb == "Put" and eviction_of(each) is not None for each in self.history.changes
        )

    @property
    def denials(self) -> int:
        """Pods that quotas had no room for."""
        return sum(
            result.get("reason") == "QuotaExceeded"
            for call in self.history.calls
            if call.action == "place" and call.outcome == "ok"
            for result in call.body["results"]
        )

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {len(self.history.calls)} calls, {len(self.history.changes)} changes, "
            f"{self.conflicts} conflicts, {self.lost_answers} lost answers, {self.crashes} crashes, "
            f"{self.restarts} restarts, {self.drains} drains, {self.jumps} jumps of clocks, {self.evictions} evictions, {self.denials} denials, "
            f"{self.steps} steps, {self.seconds:.1f} s simulated"
        )


def simulate(
    seed: int,
    schedule: Schedule | None = None,
    *,
    steps_max: int = STEPS_MAX,
    preempting: bool = False,
    protecting: bool = False,
    by_domains: bool = False,
    calls: list[RecordedCall] | None = None,
) -> Run:
    """The same for the same seed, always; with a schedule, the run that this describes.

    `preempting`: pods have priorities, and placements have others evicted; `by_domains`: on any
    node. `protecting`: disruption budgets hold back evictions. `calls` gets all that the database
    is asked.
    """
    choices = Choices(schedule)
    loop = SimulatedLoop(random.Random(f"loop {seed}"), choices)
    loop.steps_max = steps_max
    with alarms() as heard, closing(loop):
        # What is known of seeds rests on this text, which is therefore never changed.
        forwarding = random.Random(f"hand over {seed}")
        others = Others(*(random.Random(f"{name} {seed}") for name in Others._fields))
        world = random.Random(f"world {seed}")
        simulation = _Simulation(loop, world, forwarding, others, heard, calls)
        if preempting:
            simulation.preempt(random.Random(f"preempt {seed}"), by_domains=by_domains)
        simulation.protects = protecting
        try:
            loop.run_until_complete(simulation.main())
        except Stuck as stuck:
            heard.append(str(stuck))
            simulation.leave()
            loop.steps = 0
            with suppress(Stuck):
                loop.run_until_complete(loop.end_all_tasks())
    return Run(
        seed=seed,
        history=simulation.left,
        points=simulation.database.points,
        steps=simulation.steps,
        seconds=simulation.seconds,
        crashes=simulation.crashes,
        restarts=simulation.restarts,
        drains=simulation.drains,
        jumps=simulation.jumps,
        schedule=simulation.schedule,
        told=simulation.told,
    )


class Others(NamedTuple):
    """What goes on in some runs beside all else, each by chances of its own."""

    gather: random.Random
    """Pod groups come and go."""
    seclude: random.Random
    """So do pods that want to be alone."""
    drain: random.Random
    """Workers are stopped in good order."""


class _Simulation:
    def __init__(
        self,
        loop: SimulatedLoop,
        source: random.Random,
        forwarding: random.Random,
        others: Others,
        alarms: list[str],
        calls: list[RecordedCall] | None,
    ) -> None:
        self._loop = loop
        self._choices = choices = loop.choices
        self._random = source
        self.schedule: Schedule = {}
        self.told: list[tuple[int, str]] = []
        self._others = others
        self._secludes = self._choices.does("hermits", others.seclude, 0.3)
        self._alarms = alarms
        self._limits = some_limits(source, choices)
        self.database = Database(loop, source, _some_trouble(source, choices), calls)
        forwards = self._choices.does("forwards", forwarding, 0.3)
        self._peers = SimulatedPeers(self.database, forwarding) if forwards else None
        """In other runs nothing is forwarded."""
        self._lives: Counter[int] = Counter()
        self.crashes = self.restarts = self.drains = self.jumps = self.steps = 0
        self.seconds = 0.0
        self.workers: list[Worker] = []
        self._crowd = Crowd(self.database, source, self.workers)
        self._crash_every = choices.take(
            "crash every", None, lambda: source.choice((None, 6.0, 2.0, 0.7))
        )
        self._clocks_jump = self._choices.does("clocks jump", source, 0.2)
        self._over = False
        self.protects = False
        """Whether there are disruption budgets."""
        self._watched: Worker | None = None
        """Whose stream is read now."""
        self.left = History(
            foreign=workload.FOREIGN.encode(), storage_fails=self.database.trouble.refused > 0
        )

    def preempt(self, source: random.Random, *, by_domains: bool) -> None:
        """Have placements evict others by chance."""
        self._crowd.preempting = source
        self._crowd.by_domains = by_domains

    async def main(self) -> None:
        self.database.take_note()
        slots = self._choices.kept("worker", 8, lambda: self._random.randrange(2, 9))
        self.workers.extend(map(self._new_worker, slots))
        await self._set_up()
        trouble = [
            self._loop.create_task(work)
            for work in (
                self._upset(),
                self._mislead(),
                self._watch(),
                self._list(),
                self._live_elsewhere(),
                self._drain(),
            )
        ]
        numbers = self._choices.kept("client", 6, lambda: self._random.randrange(3, 7))
        clients = [Client(self._crowd, f"client-{n}") for n in numbers]
        share = OPERATIONS if self._choices.replays else OPERATIONS // len(clients)
        work = [client.run(share) for client in clients]
        if self._choices.does("gathers", self._others.gather, 0.3):
            work.append(Client(self._crowd, "gatherer").gather(self._others.gather, 24))
        if self._secludes:
            work.append(Client(self._crowd, "hermit").seclude(self._others.seclude, 24))
        await asyncio.gather(*work)
        self._over = True
        self.database.trouble = Trouble()
        self._loop.hasten()
        self._bring_back()
        await asyncio.gather(*trouble)
        await asyncio.sleep(QUIET_SECONDS)
        await self._probe()
        self.left.ended = self.database.clock.now()
        self.leave()
        for worker in self.workers:
            await worker.run(worker.scheduler.stop())
        await self._loop.end_all_tasks()

    def leave(self) -> None:
        """Gather what the checker needs; what happens after this is of no interest."""
        database, left = self.database, self.left
        self.steps, self.seconds = self._loop.steps, self._loop.time()
        self.schedule, self.told = dict(self._choices.taken), list(self._loop.told)
        left.alarms = self._alarms + self._loop.failures
        own = database.store.states.get(CLUSTER)
        left.calls = [call for call in self._crowd.calls if call is not None]
        left.commits = list(database.commits[CLUSTER])
        left.changes = list(database.changes[CLUSTER])
        left.audit = [
            row for row in database.store.state.chains.rows((0, 0)) if row.chain == CLUSTER
        ]
        left.committed_at = dict(database.committed_at)
        left.blur = max(left.blur, database.blur)
        # A look that loses its races is made again before it takes the lock.
        left.unseen += self._limits.attempts_before_lock * database.blur
        if own is not None:
            left.head = (own.head.revision, own.head.tip)
            left.rows = {tuple(k): (row.revision, row.body) for k, row in own.objects.items()}

    async def _set_up(self) -> None:
        """Some nodes and namespaces, written as everything else is."""
        client = Client(self._crowd, "setup")
        quiet, self.database.trouble = self.database.trouble, Trouble()
        operations = [
            (f"setup/{number}/0", self._crowd.wanted(f"setup/{number}", make))
            for number, make in enumerate(self._setting_up())
        ]
        for name, operation in operations:
            if operation is not None:
                await client.ask(operation, name)
        self.database.trouble = quiet
        ACTOR.set("run")

    def _setting_up(self) -> Iterator[Callable[[], Operation]]:
        """What is asked first; where no chance is asked, all that may have been."""
        crowd, all_of_it = self._crowd, self._choices.replays
        yield from [partial(crowd.operation, "apply nodes")] * 2
        if all_of_it or self._random.random() < 0.5:
            yield crowd.without_queue
        yield crowd.evicting_soon
        if self.protects:
            yield crowd.protecting
        if all_of_it or self._secludes:
            yield crowd.admitting_hermits
        nodes = SETUPS_MAX if all_of_it else len(crowd.nodes)
        yield from [partial(crowd.operation, "relabel node")] * nodes

    # Trouble

    async def _events(
        self,
        kind: str,
        source: random.Random,
        a_second: float,
        happen: Callable[[str], Awaitable[None]],
    ) -> None:
        """Have one event after the other happen, until the clients are done."""
        ACTOR.set(kind)
        for number in range(EVENTS_MAX):
            if self._over:
                return
            at = self._choices.take(
                f"{kind}/{number}/at",
                None,
                lambda: self._loop.time() + source.expovariate(a_second),
            )
            if at is not None:
                await self._loop.until(max(at, self._loop.time()))
                await happen(f"{kind}/{number}")

    async def _upset(self) -> None:
        """Workers die and come back."""
        if self._crash_every is not None:
            await self._events("crash", self._random, 1 / self._crash_every, self._hit)

    async def _mislead(self) -> None:
        """Wall clocks jump, forwards and backwards."""
        if self._clocks_jump:
            await self._events("jump", self._random, 2.0, self._jump)

    async def _jump(self, name: str) -> None:
        draw, take = self._random.choice, self._choices.take
        worker = self._crowd.one_of(self.workers, f"{name}/of", self._random)
        clocks = {"the database": self.database.clock, worker.process.name: worker.clock}
        whose = take(f"{name}/whose", "the database", lambda: draw(list(clocks)))
        minutes = take(f"{name}/minutes", 0, lambda: draw(JUMPS))
        clocks.get(whose, worker.clock).wrong_by = timedelta(minutes=minutes)
        self.left.clocks_jump = True
        self.jumps += 1
        self._loop.tell(f"the clock of {whose} is wrong by {minutes} minutes")

    async def _drain(self) -> None:
        """Workers are told to stop, as by SIGTERM, and others take their places."""
        chance = self._others.drain
        if self._choices.does("drains", chance, 0.3):
            await self._events("drain", chance, 1.0, self._stop_one)

    async def _stop_one(self, name: str) -> None:
        alive = self._crowd.alive()
        if alive and not self._over:
            await self._stop(self._crowd.one_of(alive, f"{name}/of", self._others.drain))

    async def _stop(self, worker: Worker) -> None:
        """New requests go elsewhere; streams end at once, so that their clients go on elsewhere."""
        self.drains += 1
        self._loop.tell(f"{worker.process.name} is told to stop")
        await worker.drain()
        for _ in range(STREAM_ROUNDS):
            if self._watched is worker:
                await asyncio.sleep(0.1)
        if worker.alive and self._watched is worker:
            self.left.healed.append(f"{worker.process.name} is to stop, but a stream stays open")
        await worker.stop()
        if worker in self.workers:
            self._replace(worker)

    async def _hit(self, name: str) -> None:
        if self._over:
            return
        worker = self._crowd.one_of(self.workers, f"{name}/of", self._random)
        if worker.alive:
            self._kill(worker)
        if self._choices.does(f"{name}/comes back", self._random, 0.7):
            self._replace(worker)

    def _kill(self, worker: Worker) -> None:
        worker.crash()
        self.crashes += 1
        self._loop.tell(f"{worker.process.name} dies")

    def _replace(self, worker: Worker) -> None:
        self.workers[self.workers.index(worker)] = self._new_worker(worker.place.slot)
        self.restarts += 1
        self._loop.tell(f"{worker.process.name} is started again")

    def _bring_back(self) -> None:
        for worker in list(self.workers):
            if not worker.alive:
                self._replace(worker)

    def _new_worker(self, slot: int) -> Worker:
        place = Place(slot, self._lives[slot])
        self._lives[slot] += 1
        return Worker(self.database, place, self._lives.total(), self._limits, self._peers)

    # Readers

    async def _watch(self) -> None:
        """Watch one worker after the other, each time from where the last stream broke off."""
        if not self._choices.there_is("watches"):
            return
        ACTOR.set("watcher")
        since = self.database.head_of(CLUSTER)
        rounds_left = ROUNDS_MAX
        while rounds_left and not (self._over and since >= self.database.head_of(CLUSTER)):
            rounds_left -= self._over
            alive = self._crowd.alive()
            if not alive:
                await asyncio.sleep(0.1)
                continue
            name = self._choices.numbered("watch")
            worker = self._crowd.one_of(alive, f"{name}/of", self._random)
            transcript = Transcript(since=since, events=[], truths=[])
            self.left.transcripts.append(transcript)
            self._watched = worker
            task = worker.run(_transcribe(worker, transcript))
            await asyncio.wait({task}, timeout=self._some_seconds(name, (0.05, 0.5, 2.0)))
            if worker.draining:  # it is the server that ends the stream
                await asyncio.wait({task}, timeout=STREAM_ROUNDS * 0.2)
            self._watched = None
            if not task.done():
                worker.forget_watch(task)
            elif isinstance(task.exception(), Compacted):
                since = self.database.head_of(CLUSTER)
                continue
            if transcript.truths:
                since = transcript.truths[-1][0]
        if not rounds_left:
            self.left.healed.append(f"a watcher is still at {since}")

    async def _list(self) -> None:
        """List all pods page by page while they change."""
        if not self._choices.there_is("lists"):
            return
        ACTOR.set("lister")
        for _ in range(2):
            await asyncio.sleep(self._some_seconds("list", (0.05, 0.5, 2.0)))
            rows: dict[Key, tuple[int, bytes]] = {}
            first, after = None, None
            while True:
                page = await self.database.store.objects.list(CLUSTER, "Pod", after=after, limit=3)
                first = page.head.revision if first is None else first
                rows |= {tuple(row.key): (row.revision, row.body) for row in page.rows}
                if len(page.rows) < 3:
                    break
                after = (page.rows[-1].namespace, page.rows[-1].name)
                await asyncio.sleep(self._some_seconds("list/page", (0.0, 0.1)))
            self.left.listings.append(Listing(kind="Pod", revision=first, rows=rows))

    def _some_seconds(self, name: str, among: tuple[float, ...]) -> float:
        draw = partial(self._random.choice, among)
        return self._choices.take_next(f"{name}/seconds", among[0], draw)

    async def _live_elsewhere(self) -> None:
        """Another cluster on the same workers, of which this one must never hear (A17)."""
        if not self._choices.there_is("another cluster"):
            return
        ACTOR.set("elsewhere")
        await self.database.store.clusters.create(workload.OTHER_CLUSTER, b"{}")
        for number in range(3):
            manifest = workload.marked(
                workload.node(f"n{number}").label(zone=workload.FOREIGN, host="n"), number
            )
            intent = PutObject(manifest=workload.parsed({"kind": "Node"} | manifest))
            alive = self._crowd.alive()
            if alive:
                worker = self._crowd.one_of(alive, f"elsewhere/{number}/goes to", self._random)
                reply = worker.ask(workload.OTHER_CLUSTER, intent)
                await asyncio.wait({reply}, timeout=5)
                _ = reply.exception() if reply.done() else reply.cancel()
            await asyncio.sleep(0.1)

    # The end

    async def _probe(self) -> None:
        """With all quiet: are the replicas the same, and does a placement succeed (A13, A16)?

        The queue may still be at work, so this is tried until nothing changes meanwhile.
        """
        for _ in range(PROBES_MAX):
            head = self.database.head_of(CLUSTER)
            self.left.replicas = [await self._probed(worker) for worker in self.workers]
            revisions = {state.revision for state in self.left.replicas}
            if revisions == {head} == {self.database.head_of(CLUSTER)}:
                self._compare_with_tables(head)
                return
            await asyncio.sleep(0.3)

    def _compare_with_tables(self, revision: int) -> None:
        """Every replica counts and decides as one does that is loaded now (A13)."""
        objects = self.database.store.states[CLUSTER].objects
        rows = {tuple(key): (row.revision, row.body) for key, row in objects.items()}
        fresh = loaded(rows, revision)
        self.left.loaded = fresh.digest()
        manifests = [
            workload.pod_manifest(shape, app, f"probe-{shape}-{app}", "shop")
            for shape in range(workload.SHAPES)
            for app in self._crowd.apps[:2]
        ]
        anew = answers_anew(fresh.cluster, [each.pod for each in workload.parsed_pods(manifests)])
        for worker in self.workers:
            replica = worker.scheduler.loops["default"].follower.replica
            found = disagreements(replica.cluster, anew)
            self.left.differing += [f"{worker.process.name}: {each}" for each in found]

    async def _probed(self, worker: Worker) -> ReplicaState:
        shapes = self._crowd.probed
        probes = [await self._ask(worker, self._question(shape)) for shape in shapes]
        revision, digest = worker.scheduler.replicas().get("default", (-1, ""))
        return ReplicaState(
            worker=worker.process.name, revision=revision, digest=digest, probes=probes
        )

    def _question(self, shape: int) -> PlacePods:
        """Where would this pod go? Nobody changes anything by asking."""
        names = (f"probe-{shape}", "shop")
        pods = [workload.pod_manifest(shape, self._crowd.apps[0], *names)]
        return PlacePods(pods=workload.parsed_pods(pods), dry_run=True)

    async def _ask(self, worker: Worker, intent: Any) -> Any:
        reply = worker.ask("default", intent, here=True)
        done, _ = await asyncio.wait({reply}, timeout=10)
        if not done or reply.exception() is not None:
            self.left.healed.append(f"{worker.process.name}: {reply!r}")
            return None
        result = reply.result().results[0]
        return result.outcome, result.node_name, result.score, result.message


async def _transcribe(worker: Worker, transcript: Transcript) -> None:
    watch = await worker.scheduler.watching.open("default", transcript.since)
    try:
        while (commits := await watch.next()) is not None:
            for commit in commits:
                transcript.events.extend(
                    Seen(each.revision, each.verb, tuple(each.key), each.body)
                    for each in commit.changes
                )
            transcript.truths.append((watch.revision, len(transcript.events)))
        transcript.truths.append((watch.revision, len(transcript.events)))
    finally:
        watch.close()


def _some_trouble(source: random.Random, choices: Choices) -> Trouble:
    """Some runs are calm, some full of one kind of trouble (swarm testing)."""

    def some(name: str, plain: float, among: tuple[float, ...]) -> float:
        return choices.take(f"trouble/{name}", plain, lambda: source.choice(among))

    return Trouble(
        refused=some("refused", 0.0, (0.0, 0.0, 0.02, 0.1)),
        lost_answer=some("lost answers", 0.0, (0.0, 0.05, 0.15)),
        late=some("late", 0.0, (0.0, 0.05, 0.15)),
        unsettled=some("unsettled", 0.0, (0.0, 0.0, 0.1, 0.8)),
        slow=some("slow", 0.0, (0.1, 0.5, 0.9)),
        hints=some("hints", 1.0, (0.0, 0.5, 1.0)),
    )


class _AlarmHandler(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.alarms: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        cause = record.exc_info[1] if record.exc_info else None
        self.alarms.append(f"{record.getMessage()} {cause!r}")


@contextmanager
def alarms() -> Iterator[list[str]]:
    """What the service itself logs as an error; its warnings are part of the plan."""
    handler, logger = _AlarmHandler(), logging.getLogger("service")
    before, propagated = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    try:
        yield handler.alarms
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        logger.propagate = propagated
