"""One seed: some workers, some clients, some trouble, and what they leave behind."""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from typing import Any, NamedTuple

import msgspec

from service.model.errors import Compacted
from service.scheduler.intents import PlacePods, PutObject
from tests.agreement import disagreements
from tests.concurrency.checker.evicting import eviction_of
from tests.concurrency.checker.history import (
    History,
    Key,
    Listing,
    ReplicaState,
    Seen,
    Transcript,
)
from tests.concurrency.replicas import loaded
from tests.concurrency.simulation import workload
from tests.concurrency.simulation.clients import Client, Crowd
from tests.concurrency.simulation.database import Database, Trouble
from tests.concurrency.simulation.eventloop import SimulatedLoop, Stuck
from tests.concurrency.simulation.peers import SimulatedPeers
from tests.concurrency.simulation.workers import Worker, some_limits

QUIET_SECONDS = 5.0
JUMPS = tuple(timedelta(minutes=each) for each in (-420, -180, -20, 0, 40, 300))
"""What wall clocks may be wrong by, the database's too."""
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

    @property
    def conflicts(self) -> int:
        return sum(self.points[f"{name}: Lost"] for name in ("commit", "record_answers"))

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


def simulate(seed: int) -> Run:
    """The same for the same seed, always."""
    loop = SimulatedLoop(random.Random(f"loop {seed}"))
    with alarms() as heard, closing(loop):
        handing = random.Random(f"hand over {seed}")
        others = Others(*(random.Random(f"{name} {seed}") for name in Others._fields))
        world = random.Random(f"world {seed}")
        simulation = _Simulation(loop, world, handing, others, heard)
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
        handing: random.Random,
        others: Others,
        alarms: list[str],
    ) -> None:
        self._loop = loop
        self._random = source
        self._others = others
        self._secludes = others.seclude.random() < 0.3
        self._alarms = alarms
        self._limits = some_limits(source)
        self.database = Database(loop, source, _some_trouble(source))
        self._peers = SimulatedPeers(self.database, handing) if handing.random() < 0.3 else None
        """In other runs nothing is handed over."""
        self._lives = 0
        self.crashes = self.restarts = self.drains = self.jumps = self.steps = 0
        self.seconds = 0.0
        self.workers: list[Worker] = []
        self._crowd = Crowd(self.database, source, self.workers)
        self._crash_every = source.choice((None, 6.0, 2.0, 0.7))
        self._clocks_jump = source.random() < 0.2
        self._over = False
        self._watched: Worker | None = None
        """Whose stream is read now."""
        self.left = History(
            foreign=workload.FOREIGN.encode(), storage_fails=self.database.trouble.refused > 0
        )

    async def main(self) -> None:
        self.database.take_note()
        self.workers.extend(self._new_worker() for _ in range(self._random.randrange(2, 9)))
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
        clients = [Client(self._crowd, f"client-{n}") for n in range(self._random.randrange(3, 7))]
        share = 48 // len(clients)
        work = [client.run(share) for client in clients]
        if self._others.gather.random() < 0.3:
            work.append(Client(self._crowd, "gatherer").gather(self._others.gather, 24))
        if self._secludes:
            work.append(Client(self._crowd, "hermit").seclude(self._others.seclude, 24))
        await asyncio.gather(*work)
        self._over = True
        self.database.trouble = Trouble()
        self._bring_back()
        await asyncio.gather(*trouble)
        await asyncio.sleep(QUIET_SECONDS)
        await self._probe()
        self.left.ended = self.database.store._clock()
        self.leave()
        for worker in self.workers:
            await worker.run(worker.scheduler.stop())
        await self._loop.end_all_tasks()

    def leave(self) -> None:
        """Gather what the checker needs; what happens after this is of no interest."""
        database, left = self.database, self.left
        self.steps, self.seconds = self._loop.steps, self._loop.time()
        left.alarms = self._alarms + self._loop.failures
        own = database.store._clusters.get(CLUSTER)
        left.calls = [call for call in self._crowd.calls if call is not None]
        left.commits = list(database.commits[CLUSTER])
        left.changes = list(database.changes[CLUSTER])
        left.committed_at = dict(database.committed_at)
        left.blur = max(left.blur, timedelta(seconds=database.lease_seconds_max))
        if own is not None:
            left.head = (own.head.revision, own.head.tip)
            left.rows = {tuple(k): (row.revision, row.body) for k, row in own.objects.items()}

    async def _set_up(self) -> None:
        """Some nodes and namespaces, written as everything else is."""
        client = Client(self._crowd, "setup")
        quiet, self.database.trouble = self.database.trouble, Trouble()
        operations = [self._crowd.operation("apply nodes") for _ in range(2)]
        if self._random.random() < 0.5:
            operations.append(self._crowd.without_queue())
        operations.append(self._crowd.evicting_soon())
        if self._secludes:
            operations.append(self._crowd.admitting_hermits())
        operations += [self._crowd.operation("relabel node") for _ in range(len(self._crowd.nodes))]
        for operation in operations:
            await client.ask(operation)
        self.database.trouble = quiet

    # Trouble

    async def _upset(self) -> None:
        """Workers die and come back."""
        while self._crash_every is not None and not self._over:
            await asyncio.sleep(self._random.expovariate(1 / self._crash_every))
            if not self._over:
                self._hit(self._random.choice(self.workers))

    async def _mislead(self) -> None:
        """Wall clocks jump, forwards and backwards."""
        while self._clocks_jump and not self._over:
            await asyncio.sleep(self._random.expovariate(2.0))
            worker = self._random.choice(self.workers)
            clock = self._random.choice((self.database.clock, worker.clock))
            clock.wrong_by = self._random.choice(JUMPS)
            self.left.clocks_jump = True
            self.jumps += 1

    async def _drain(self) -> None:
        """Workers are told to stop, as by SIGTERM, and others take their places."""
        chance = self._others.drain
        drains = chance.random() < 0.3
        while drains and not self._over:
            await asyncio.sleep(chance.expovariate(1.0))
            alive = self._crowd.alive()
            if alive and not self._over:
                await self._stop(chance.choice(alive))

    async def _stop(self, worker: Worker) -> None:
        """New requests go elsewhere; streams end at once, so that their clients go on elsewhere."""
        self.drains += 1
        await worker.drain()
        for _ in range(STREAM_ROUNDS):
            if self._watched is worker:
                await asyncio.sleep(0.1)
        if worker.alive and self._watched is worker:
            self.left.healed.append(f"{worker.process.name} is to stop, but a stream stays open")
        await worker.stop()
        if worker in self.workers:
            self._replace(worker)

    def _hit(self, worker: Worker) -> None:
        if worker.alive:
            self._kill(worker)
        if self._random.random() < 0.7:
            self._replace(worker)

    def _kill(self, worker: Worker) -> None:
        worker.crash()
        self.crashes += 1

    def _replace(self, worker: Worker) -> None:
        self.workers[self.workers.index(worker)] = self._new_worker()
        self.restarts += 1

    def _bring_back(self) -> None:
        for worker in list(self.workers):
            if not worker.alive:
                self._replace(worker)

    def _new_worker(self) -> Worker:
        self._lives += 1
        name = f"worker-{self._lives}"
        return Worker(self.database, name, self._lives, self._limits, self._peers)

    # Readers

    async def _watch(self) -> None:
        """Watch one worker after the other, each time from where the last stream broke off."""
        since = self.database.head_of(CLUSTER)
        rounds_left = ROUNDS_MAX
        while rounds_left and not (self._over and since >= self.database.head_of(CLUSTER)):
            rounds_left -= self._over
            alive = self._crowd.alive()
            if not alive:
                await asyncio.sleep(0.1)
                continue
            worker = self._random.choice(alive)
            transcript = Transcript(since=since, events=[], truths=[])
            self.left.transcripts.append(transcript)
            self._watched = worker
            task = worker.run(_transcribe(worker, transcript))
            await asyncio.wait({task}, timeout=self._random.choice((0.05, 0.5, 2.0)))
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
        for _ in range(2):
            await asyncio.sleep(self._random.choice((0.05, 0.5, 2.0)))
            rows: dict[Key, tuple[int, bytes]] = {}
            first, after = None, None
            while True:
                page = await self.database.store.list_objects(CLUSTER, "Pod", after=after, limit=3)
                first = page.head.revision if first is None else first
                rows |= {tuple(row.key): (row.revision, row.body) for row in page.rows}
                if len(page.rows) < 3:
                    break
                after = (page.rows[-1].namespace, page.rows[-1].name)
                await asyncio.sleep(self._random.choice((0.0, 0.1)))
            self.left.listings.append(Listing(kind="Pod", revision=first, rows=rows))

    async def _live_elsewhere(self) -> None:
        """Another cluster on the same workers, of which this one must never hear (A17)."""
        await self.database.store.create_cluster(workload.OTHER_CLUSTER, b"{}")
        for number in range(3):
            manifest = workload.marked(
                workload.node(f"n{number}").label(zone=workload.FOREIGN, host="n"), number
            )
            intent = PutObject(manifest=workload.parsed({"kind": "Node"} | manifest))
            alive = self._crowd.alive()
            if alive:
                reply = self._random.choice(alive).ask(workload.OTHER_CLUSTER, intent)
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
        objects = self.database.store._clusters[CLUSTER].objects
        rows = {tuple(key): (row.revision, row.body) for key, row in objects.items()}
        fresh = loaded(rows, revision)
        self.left.loaded = fresh.digest()
        manifests = [
            workload.pod_manifest(shape, app, f"probe-{shape}-{app}", "shop")
            for shape in range(workload.SHAPES)
            for app in self._crowd.apps[:2]
        ]
        pods = [each.pod for each in workload.parsed_pods(manifests)]
        for worker in self.workers:
            replica = worker.scheduler._loops["default"]._follower.replica
            found = disagreements(replica.cluster, fresh.cluster, pods)
            self.left.differing += [f"{worker.process.name}: {each}" for each in found]

    async def _probed(self, worker: Worker) -> ReplicaState:
        shapes = self._crowd.shapes[:3]
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


def _some_trouble(source: random.Random) -> Trouble:
    """Some runs are calm, some full of one kind of trouble (swarm testing)."""
    return Trouble(
        refused=source.choice((0.0, 0.0, 0.02, 0.1)),
        lost_answer=source.choice((0.0, 0.05, 0.15)),
        late=source.choice((0.0, 0.05, 0.15)),
        unsettled=source.choice((0.0, 0.0, 0.1, 0.8)),
        slow=source.choice((0.1, 0.5, 0.9)),
        hints=source.choice((0.0, 0.5, 1.0)),
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
