"""The scheduler's entry point: every request to a cluster enters here."""

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence, Set as AbstractSet
from contextlib import aclosing
from functools import partial
from math import inf
from typing import Any, TypeVar, cast, overload

import msgspec

from service.model.cluster.cluster_config import parse_config
from service.model.core.errors import (
    Conflict,
    Denied,
    IdempotencyKeyInProgress,
    MoorageError,
    NotFound,
    OutcomeUnknown,
    Overloaded,
    PreconditionFailed,
    Unavailable,
)
from service.model.core.times import rfc3339
from service.model.devices.cel_questions import OpenQuestions
from service.model.log.audit_chain import ITSELF, AuditedCaller
from service.model.log.commit import IdempotencyKey
from service.model.log.lease import NodeReports, ReplicaState
from service.model.registry.manifests import TemplateCache
from service.runtime.log_context import context_of
from service.scheduler.commit.cluster_loop import ClusterGone, ClusterLoop
from service.scheduler.commit.event_recorder import EventRecorder
from service.scheduler.commit.extender_calls import ExtenderCalls
from service.scheduler.commit.loops import AWAKE_SECONDS, Loops
from service.scheduler.commit.metrics import Meter, NoMeter, ProcessState, failed_attempts
from service.scheduler.commit.request_batches import LongDryRun, Ticket, key_reused_error
from service.scheduler.commit.tracer import Tracer
from service.scheduler.controllers.controller import Controllers
from service.scheduler.controllers.expired_leases import ExpiredLeases
from service.scheduler.controllers.group_recovery import SplitGroupControllers
from service.scheduler.controllers.node_heartbeats import NodeReporter
from service.scheduler.controllers.node_lifecycles import NodeLifecycleControllers
from service.scheduler.controllers.pending_pods import PendingPodControllers
from service.scheduler.controllers.plan_execution import PlanControllers
from service.scheduler.controllers.rule_evictions import EvictionControllers
from service.scheduler.controllers.upkeep import Upkeep
from service.scheduler.decide.object_writes import check_tags
from service.scheduler.decide.writing.config import refuse_hosts
from service.scheduler.multi_cluster.cluster_bids import ClusterClient, MultiClusterRequest
from service.scheduler.multi_cluster.placer import MultiClusterPlacer
from service.scheduler.ownership.cluster_owners import ClusterOwners, NoClusterOwners
from service.scheduler.planner import Planners
from service.scheduler.protocol.answers import Answer, ConfigAnswer, RecordedAnswer
from service.scheduler.protocol.clients import CLIENT
from service.scheduler.protocol.expressions import (
    ExpressionEvaluator,
    Unanswered,
    answer_until,
    until_unanswered,
)
from service.scheduler.protocol.extenders import ExtenderCaller, ExtendersRequired
from service.scheduler.protocol.intents import (
    NO_PRECONDITIONS,
    A,
    DryRun,
    Idempotency,
    Intent,
    PlacePods,
    Preconditions,
    PutConfig,
)
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.placements import OverClustersAnswer, PlacementAnswer
from service.scheduler.protocol.ports import Clock, Ids, Store
from service.scheduler.protocol.suspects import NoSuspects, SuspectRegistry
from service.scheduler.simulation import Simulation, simulate
from service.scheduler.watching import Watches

_log = logging.getLogger(__name__)

T = TypeVar("T")
D = TypeVar("D", bound=Controllers[Any])


class Scheduler:
    """Decides and commits requests for all clusters, each in its own loop, created on demand.

    Between `start` and `stop`, any number of calls may run at once. If a call is canceled, the loop
    continues, and the request is carried out completely or not at all.
    """

    def __init__(  # noqa: PLR0913 - all that it needs of the world, by name
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        limits: Limits | None = None,
        templates: TemplateCache | None = None,
        meter: Meter | None = None,
        cluster_owners: ClusterOwners | None = None,
        *,
        tracer: Tracer | None = None,
        extenders: ExtenderCaller | None = None,
        expressions: ExpressionEvaluator | None = None,
        suspects: SuspectRegistry | None = None,
    ) -> None:
        """Create a scheduler; without `expressions`, decisions evaluate CEL themselves."""
        self._suspects = suspects or NoSuspects()
        self._store, self._extenders, self._expressions = store, extenders, expressions
        self._tracer, self._clock, self._ids = tracer, clock, ids
        self.limits = self._limits = limits or Limits()
        """The limits of everything that the scheduler does."""
        self._meter = meter or NoMeter()
        self.templates = templates or TemplateCache()
        """The template cache, shared with the API's manifest parser so that each spec is processed
        once."""
        self.watching = Watches(store, clock, self._limits, self._spawn)
        """The watches of all clusters."""
        holder = ids.uid()
        self._upkeep = Upkeep(store, clock, holder, self._limits)
        self._cluster_owners = cluster_owners or NoClusterOwners()
        self.pending = self._controllers_of(PendingPodControllers, holder)
        """The controllers that place pending pods."""
        self.pending.place, self.pending.meter = self.submit, self._meter
        self.pending.suspects = self._suspects
        self.evictions = self._controllers_of(EvictionControllers, holder)
        """The controllers that evict pods whose rules required during execution are broken."""
        self.nodes = self._controllers_of(NodeLifecycleControllers, holder)
        """The controllers that monitor nodes that are not ready, tainted, or deleted."""
        self.plans = self._controllers_of(PlanControllers, holder)
        """The controllers that carry out stored plans."""
        self._groups = self._controllers_of(SplitGroupControllers, holder)
        # All but the last are notified of commits.
        self._controllers: tuple[Controllers[Any], ...] = (
            self.pending,
            self.evictions,
            self.nodes,
            self.plans,
            self._groups,
        )
        self._node_reports = NodeReporter(store)
        self.planners = Planners(
            clock,
            ids,
            self._limits,
            self.templates,
            store=store,
            submit=self.submit,
            loop_of=self.loop_of,
            keep=self._keep,
            expressions=expressions,
        )
        self.plans.plan = self.planners.plan
        self._events = EventRecorder(store, clock, self._limits, self._meter)
        self.loops = Loops()
        """The clusters in this process's memory, by name."""
        self._creating = asyncio.Lock()
        """Held while a cluster is created, so that the preceding count stays valid."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._pulse_task: asyncio.Task[None] | None = None
        self._background: list[asyncio.Task[None]] = []
        self._deletions: dict[tuple[str, Preconditions], asyncio.Task[None]] = {}
        self._running_keys: dict[tuple[str, IdempotencyKey], bytes] = {}
        """The hash of each running request with an idempotency key in this process."""

    def _controllers_of(self, kind: type[D], holder: str) -> D:
        return kind(
            store=self._store,
            clock=self._clock,
            limits=self._limits,
            holder=holder,
            spawn=self._spawn,
            is_elsewhere=self._cluster_owners.is_elsewhere,
        )

    async def start(self) -> None:
        """Start following the active clusters."""
        self._pulse_task = asyncio.create_task(self._pulse())
        expired = ExpiredLeases(self._store, self._clock, self._controllers, self.loop_of)
        work = (self._listen(), self._upkeep.run(), self._events.run(), expired.run())
        self._background = [self._pulse_task, *map(asyncio.create_task, work)]

    async def stop(self) -> None:
        """Answer all waiting requests, then end."""
        self.watching.close()
        await self._cluster_owners.close()
        for task in (*self._background, *self._deletions.values()):
            task.cancel()
        self.planners.stop()
        for loop in self.loops.values():
            loop.stop()
        self.loops.clear()
        if waited_for := self.tasks:
            await asyncio.wait(waited_for)
        for kind in self._controllers:
            await kind.close()
        await self._events.flush()
        await self._upkeep.release()

    @property
    def running(self) -> bool:
        """Whether the scheduler was started, and has not failed or stopped since."""
        return self._pulse_task is not None and not self._pulse_task.done()

    @property
    def tasks(self) -> set[asyncio.Task[Any]]:
        """All running tasks of the scheduler; it is inactive once they have ended."""
        return {*self._tasks, *self._background}

    @property
    def pulse(self) -> asyncio.Task[None] | None:
        """The task that polls for changes by other processes, or None before `start`."""
        return self._pulse_task

    @overload
    async def submit(
        self, cluster: str, intent: Intent[A], *, caller: AuditedCaller = ...
    ) -> A: ...
    @overload
    async def submit(
        self,
        cluster: str,
        intent: Intent[A],
        idempotency: Idempotency[A] | None,
        *,
        caller: AuditedCaller = ...,
    ) -> A | RecordedAnswer: ...

    async def submit(
        self,
        cluster: str,
        intent: Intent[A],
        idempotency: Idempotency[A] | None = None,
        *,
        caller: AuditedCaller = ITSELF,
    ) -> A | RecordedAnswer:
        """Have an intent decided and committed on behalf of a caller.

        A reused idempotency key repeats the first answer (protocol rule P11).

        Raises:
            NotFound: the cluster does not exist, or the decision raised this.
            IdempotencyKeyInProgress: the first request with this key is still running.
            IdempotencyKeyReused: the first request with this key was a different one.
            MoorageError: the intent is refused, or cannot be served now (Unavailable).
        """
        try:
            return await self._decided(cluster, intent, idempotency, caller)
        except ExtendersRequired as asking:
            if self._extenders is None or not isinstance(intent, PlacePods):
                raise
            calls = ExtenderCalls(self._extenders, self._clock, self._limits, intent)
            question = asking.question
        return await calls.decided(
            question,
            lambda intent_with_verdicts: self._decided(
                cluster, cast("Intent[A]", intent_with_verdicts), idempotency, caller
            ),
        )

    async def _decided(
        self,
        cluster: str,
        intent: Intent[A],
        idempotency: Idempotency[A] | None,
        caller: AuditedCaller,
    ) -> A | RecordedAnswer:
        if idempotency is not None:
            return await self._submit_keyed(cluster, intent, idempotency, caller)
        within = intent.intent if isinstance(intent, DryRun) else intent
        if isinstance(within, PutConfig):
            return cast("A", await self._put_config(cluster, intent, within, caller))
        return cast("A", await self._ask(cluster, intent, None, caller))

    async def _submit_keyed(
        self, cluster: str, intent: Intent[A], idempotency: Idempotency[A], caller: AuditedCaller
    ) -> A | RecordedAnswer:
        key = IdempotencyKey(idempotency.operation, idempotency.key, idempotency.chunk)
        running = self._running_keys.get((cluster, key))
        if running is not None:
            if running != idempotency.request_hash:
                raise key_reused_error(key.key)
            raise IdempotencyKeyInProgress(f"A request with the key {key.key} is running.")
        self._running_keys[cluster, key] = idempotency.request_hash
        # The key stays taken until the loop has answered, even if the caller is canceled.
        asking = self._submit_once(cluster, intent, idempotency, key, caller)
        task = asyncio.create_task(asking)
        self._keep(task)
        task.add_done_callback(lambda _: self._running_keys.pop((cluster, key)))
        return await asyncio.shield(task)

    async def delete_cluster(
        self,
        cluster: str,
        caller: AuditedCaller = ITSELF,
        preconditions: Preconditions = NO_PRECONDITIONS,
        *,
        dry_run: bool = False,
    ) -> None:
        """Delete a cluster with everything in it, or only check that it could be deleted.

        Once begun, the deletion continues even if the caller is canceled. A second call for the
        same cluster, with the same preconditions, waits for the first.

        Raises:
            NotFound: no cluster has this name.
            PreconditionFailed: a precondition on the version of its configuration does not hold.
            OutcomeUnknown: this process was stopped in the meantime.
        """
        if dry_run:
            await self._delete_stored(cluster, caller, preconditions, dry_run=True)
            return
        meant = (cluster, preconditions)
        deletion = self._deletions.get(meant)
        if deletion is None:
            deletion = asyncio.create_task(self._delete_cluster(cluster, caller, preconditions))
            self._keep(deletion)
            self._deletions[meant] = deletion
            deletion.add_done_callback(lambda _: self._deletions.pop(meant))
        await asyncio.wait([deletion])
        if deletion.cancelled():
            raise OutcomeUnknown(f"The server was stopped while it deleted the cluster {cluster}.")
        deletion.result()

    async def _delete_cluster(
        self, cluster: str, caller: AuditedCaller, preconditions: Preconditions
    ) -> None:
        cluster_id = await self._delete_stored(cluster, caller, preconditions)
        self._announce(cluster_id)
        self._drop(cluster)

    async def _delete_stored(
        self,
        cluster: str,
        caller: AuditedCaller,
        preconditions: Preconditions,
        *,
        dry_run: bool = False,
    ) -> int:
        """Have the store delete a cluster, and return its number."""
        cluster_id = await self._store.clusters.find(cluster)
        check = None if preconditions == NO_PRECONDITIONS else partial(check_tags, preconditions)
        if not await self._store.clusters.delete(cluster_id, caller, check, dry_run=dry_run):
            raise NotFound(f"There is no cluster {cluster!r}.")
        return cluster_id

    async def report_nodes(self, cluster: str, names: Sequence[str]) -> NodeReports:
        """Record that nodes are alive, without a commit or any change in the cluster.

        Raises:
            NotFound: the cluster does not exist.
            StorageUnavailable: the reports could not be stored.
        """
        loop = await self.loop_of(cluster)
        reports = await self._node_reports.report(loop.cluster_id, names)
        self.nodes.on_reported(loop.cluster_id)
        return reports

    async def simulate(self, simulation: Simulation) -> PlacementAnswer:
        """Place pods on a cluster that exists only in the request, storing nothing.

        Raises:
            InvalidManifest, PodDiffers: for the same reasons as `PlacePods`.
            Overloaded: the time ran out, or the client has disconnected.
        """
        deadline = self._clock.monotonic() + self._limits.request_seconds_max
        while True:
            questions = OpenQuestions()
            questions.begin(are_deferred=self._expressions is not None)
            try:
                return await self._simulate(simulation, questions, deadline)
            except Unanswered:
                assert self._expressions is not None
                await answer_until(deadline, self._clock, self._expressions, questions.take())

    async def _simulate(
        self, simulation: Simulation, questions: OpenQuestions, deadline: float
    ) -> PlacementAnswer:
        client = CLIENT.get()
        simulated = simulate(
            simulation,
            now=rfc3339(self._clock.now(), "seconds"),
            ids=self._ids,
            limits=self._limits,
            templates=self.templates,
            questions=questions,
        )
        steps = until_unanswered(simulated, questions)
        end = self._clock.monotonic() + self._limits.slice_seconds
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                return cast("PlacementAnswer", stop.value)
            if self._clock.monotonic() >= end:
                await self._clock.sleep(0)
                now = self._clock.monotonic()
                if now >= deadline or (client is not None and client.has_left()):
                    raise Overloaded("The simulation was not finished in time.")
                end = now + self._limits.slice_seconds

    async def loop_here(self, cluster: str, cluster_id: int) -> ClusterLoop | None:
        """Return the loop whose replica shows a cluster's committed state, or None.

        Returns None if another worker has the cluster, or the name belongs to another cluster now;
        then the tables have to be read.
        """
        if self._cluster_owners.is_elsewhere(cluster_id):
            return None
        loop = await self.loop_of(cluster)
        if loop.cluster_id != cluster_id:
            return None
        loop.last_used = self._clock.monotonic()
        return loop

    async def place_over_clusters(
        self, request: MultiClusterRequest, clusters: ClusterClient
    ) -> OverClustersAnswer:
        """Place pods across several clusters, which are queried through `clusters`.

        Raises:
            NotFound, Overloaded, Conflict, MoorageError: as for `MultiClusterPlacer.place`.
        """
        placing = MultiClusterPlacer(self._store, self._clock, self._limits, self._ids.uid())
        task = asyncio.create_task(placing.place(request, clusters))
        self._keep(task)
        # If the caller is canceled, the placement still ends cleanly, so that its leases are
        # released.
        return await asyncio.shield(task)

    async def store_events(self) -> None:
        """Store as many of this process's buffered events as possible now."""
        await self._events.flush()

    def replica_states(self) -> dict[int, ReplicaState | None]:
        """Return the state of each cluster's replica, or None for one with tentative changes."""
        return {loop.cluster_id: loop.state for loop in self.loops.values() if not loop.ended}

    def replicas(self) -> dict[str, tuple[int, str]]:
        """Return the revision and digest of each replica without tentative changes, by cluster."""
        states = {name: loop.state for name, loop in self.loops.items()}
        return {name: state for name, state in states.items() if state is not None}

    @property
    def keyed_requests(self) -> int:
        """How many requests with an idempotency key this process is deciding."""
        return len(self._running_keys)

    def pending_pods(self) -> dict[str, dict[str, int]]:
        """Count the pending pods that this process has to place, by cluster.

        The counts are grouped by state: `active`, `backoff`, `unschedulable`, and `gated`.
        """
        counts = {name: self.pending.counts(loop.cluster_id) for name, loop in self.loops.items()}
        return {name: pods for name, pods in counts.items() if pods is not None}

    def gauges(self) -> ProcessState:
        """Return the gauges of this process."""
        loops = self.loops.awake
        lags = [loop.lag() for loop in loops]
        pending: Counter[str] = Counter()
        for loop in loops:
            pending.update(self.pending.counts(loop.cluster_id) or {})
        return ProcessState(
            inbox=sum(loop.waiting for loop in loops),
            pending=pending,
            watches=self.watching.watchers,
            lag_revisions=max((revisions for revisions, _ in lags), default=0),
            lag_seconds=max((seconds for _, seconds in lags), default=0.0),
            log_changes=self._upkeep.log_changes,
            objects=max((loop.objects for loop in loops), default=0),
        )

    # Requests

    async def _ask(
        self,
        cluster: str,
        intent: Intent[A],
        idempotency: Idempotency[A] | None,
        caller: AuditedCaller,
    ) -> Answer:
        started = self._clock.monotonic()
        deadline = started + self._limits.request_seconds_max
        while True:
            loop = await self.loop_of(cluster)
            future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            try:
                span = self._tracer.current() if self._tracer is not None else None
                loop.enqueue(
                    Ticket(
                        *(intent, deadline, idempotency, future),
                        arrived=started,
                        caller=caller,
                        span=span,
                        client=CLIENT.get(),
                        patience_seconds=self._patience(intent),
                    )
                )
                return await future
            except LongDryRun:
                assert isinstance(intent, PlacePods)
                return await self.planners.try_out(cluster, intent, deadline)
            except ClusterGone:
                # The cluster was deleted. A new one of this name takes its place.
                if self.loops.get(cluster) is loop:
                    self._drop(cluster)
            except Exception as error:
                if isinstance(error, Unavailable) or not isinstance(error, MoorageError):
                    self._meter.attempted(failed_attempts(intent))
                raise
            finally:
                # The future refers to the error, and the error's traceback to this frame: without
                # this line the cycle would keep the whole request in memory.
                del future

    def _patience(self, intent: Intent[Any]) -> float:
        """Return how long an intent may be decided among placements."""
        if isinstance(intent, PlacePods) and intent.dry_run and not intent.compare:
            return self._limits.dry_run_seconds
        return inf

    async def _put_config(
        self, cluster: str, outer: Intent[A], intent: PutConfig, caller: AuditedCaller
    ) -> ConfigAnswer:
        """Configure a cluster, or create it; `outer` is the intent itself, or a dry run of it."""
        try:
            return cast("ConfigAnswer", await self._ask(cluster, outer, None, caller))
        except NotFound:
            if intent.preconditions.if_match is not None:
                raise PreconditionFailed("There is no such cluster.") from None
        parsed = parse_config(intent.config or {})
        refuse_hosts(parsed, intent.hosts)
        config = msgspec.json.encode(parsed)
        if outer is not intent:
            await self._refuse_too_many_clusters()
            return ConfigAnswer(revision=0, config=config, created=True)
        try:
            async with self._creating:
                await self._refuse_too_many_clusters()
                created = await self._store.clusters.create(cluster, config, caller)
        except Conflict:
            # Another caller has just created the cluster.
            return cast("ConfigAnswer", await self._ask(cluster, intent, None, caller))
        return ConfigAnswer(revision=created.head.revision, config=config, created=True)

    async def _refuse_too_many_clusters(self) -> None:
        """Refuse to exceed the cluster limit; concurrent processes may each exceed it by one."""
        most = self._limits.clusters_max
        if len(await self._store.clusters.ids()) >= most:
            raise Denied("TooManyClusters", f"There are {most} clusters, the limit (clusters_max).")

    async def _submit_once(
        self,
        cluster: str,
        intent: Intent[A],
        idempotency: Idempotency[A],
        key: IdempotencyKey,
        caller: AuditedCaller,
    ) -> A | RecordedAnswer:
        """Have a request with an idempotency key decided once.

        If the key already has an answer, the commit notices when recording the new one. Refusals
        are not recorded, so after a refusal the key is looked up here: the first request with this
        key may be the very reason for the refusal.
        """
        try:
            return cast("A", await self._ask(cluster, intent, idempotency, caller))
        except Unavailable:
            raise
        except MoorageError:
            recorded = await self.recorded(cluster, idempotency, key)
            if recorded is None:
                raise
            return recorded

    async def recorded(
        self, cluster: str, idempotency: Idempotency[A], key: IdempotencyKey
    ) -> RecordedAnswer | None:
        """Return the answer recorded for a key, or None.

        Raises:
            IdempotencyKeyReused: the answer belongs to a different request.
        """
        cluster_id = (await self.loop_of(cluster)).cluster_id
        records = await self._store.log.find_answers(cluster_id, [key])
        if not records:
            return None
        if records[0].request_hash != idempotency.request_hash:
            raise key_reused_error(key.key)
        head = await self._store.log.head(cluster_id)
        return RecordedAnswer(revision=head.revision, answer=records[0].answer)

    # Loops

    async def loop_of(self, cluster: str) -> ClusterLoop:
        """Return the loop that serves a cluster, creating it if need be.

        Raises:
            NotFound: the cluster does not exist.
        """
        loop = self.loops.get(cluster)
        if loop is not None and not loop.ended:
            if not loop.is_awake:
                self.loops.wake(loop.cluster_id)
            return loop
        cluster_id = await self._store.clusters.find(cluster)
        loop = self.loops.get(cluster)
        if loop is None or loop.ended:
            self._drop(cluster)
            loop = self._new_loop(cluster, cluster_id)
            self.loops.put(cluster, loop)
        return loop

    def _drop(self, cluster: str) -> None:
        """Drop a cluster from memory."""
        loop = self.loops.remove(cluster)
        if loop is not None:
            loop.stop()
            for kind in self._controllers:
                kind.drop(loop.cluster_id)
            self.planners.drop(loop.cluster_id)

    def _new_loop(self, cluster: str, cluster_id: int) -> ClusterLoop:
        *own, _ = [kind.of(cluster_id, cluster) for kind in self._controllers]
        groups = self._groups.get(cluster_id)
        loop = ClusterLoop(
            cluster_id,
            store=self._store,
            clock=self._clock,
            ids=self._ids,
            limits=self._limits,
            templates=self.templates,
            announce=self._announce,
            observers=(*own, self.planners.of(cluster_id).replica),
            at_load=groups,
            meter=self._meter,
            record=self._events.record,
            expressions=self._expressions,
            suspects=self._suspects,
        )
        for controller in (*own, groups):
            controller.serve(loop.enqueue)
        self._spawn(loop.run(), cluster)
        return loop

    # News

    def _announce(self, cluster_id: int) -> None:
        """Wake the watches of a log that has grown, and schedule notices to other processes."""
        if feed := self.watching.feeds.get(cluster_id):
            feed.wake()
        self._store.notify(cluster_id)

    async def _pulse(self) -> None:
        """Poll for changes by other processes, even without a hint, and drop unused clusters.

        Each round polls only a few of the sleeping clusters, so thousands of them cost no more.
        """
        while True:
            await self._clock.sleep(self._limits.poll_seconds)
            due = self.loops.due()
            self._drop_unused(due)
            alive = {name: loop for name, loop in due.items() if name in self.loops}
            self._cluster_owners.tick(alive)
            self.planners.tick()
            for name, loop in alive.items():
                self._look_after(name, loop)
            await self._look(
                {loop.cluster_id for loop in alive.values()} | self.watching.cluster_ids
            )
            self._meter.gauges(self.gauges())

    def _look_after(self, name: str, loop: ClusterLoop) -> None:
        """Run a cluster's controllers, and put the cluster to sleep if no work is left."""
        busy = [kind.tick(loop.cluster_id) for kind in self._controllers]
        used = loop.last_used + AWAKE_SECONDS > self._clock.monotonic()
        if loop.idle and not used and not any(busy):
            self.loops.sleep(name)

    async def _listen(self) -> None:
        """Read the heads when other processes hint that logs have grown (protocol rule P14)."""
        async with aclosing(self._store.listen()) as hints:
            async for grown in hints:
                await self._look(grown or self._everything(), idle_only=bool(grown))

    def _everything(self) -> set[int]:
        """Return all clusters in memory or being watched."""
        return {loop.cluster_id for loop in self.loops.values()} | self.watching.cluster_ids

    async def _look(self, among: AbstractSet[int], *, idle_only: bool = False) -> None:
        """Make watches and idle loops read logs that have a new head.

        Busy loops only record their lag; with `idle_only` they are skipped, since hints may be
        frequent.
        """
        loops = self.loops.of(among, idle_only=idle_only)
        cluster_ids = self.watching.cluster_ids & among
        if not cluster_ids and not loops:
            return
        cluster_ids |= {loop.cluster_id for loop in loops}
        try:
            heads = await self._store.log.heads(list(cluster_ids))
        except Exception:  # noqa: BLE001 - whatever it was, the next look may succeed
            _log.debug("The heads could not be read.", exc_info=True)
            return
        for loop in loops:
            if loop.on_head(heads.get(loop.cluster_id)):
                self.loops.wake(loop.cluster_id)
        self.watching.on_head(heads, cluster_ids)

    def _drop_unused(self, looked_at: Mapping[str, ClusterLoop]) -> None:
        """Drop clusters that are no longer needed, and those whose loops have ended."""
        unused = self._clock.monotonic() - self._limits.idle_seconds_max
        for name, loop in looked_at.items():
            needed = any(kind.are_needed(loop.cluster_id) for kind in self._controllers)
            if loop.ended or (loop.idle and loop.last_used < unused and not needed):
                self._drop(name)

    def _spawn(self, work: Coroutine[Any, Any, None], cluster: str = "") -> None:
        """Start background work outside requests, optionally for one cluster."""
        self._keep(asyncio.create_task(work, context=context_of(cluster)))

    def _keep(self, task: asyncio.Task[Any]) -> None:
        """Hold a task until it ends, and log its failure."""
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, MoorageError):
            _log.error("A task of the scheduler failed.", exc_info=error)
