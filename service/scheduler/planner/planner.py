"""Makes plans for all clusters of a process: small ones among placements, others in parallel.

Planning takes turns with everything else that the event loop does, in slices of three milliseconds
with a pause after each, so a placement waits for one or two such slices. See
docs/decisions/plans.md.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from service.model.core.errors import Overloaded
from service.model.core.times import rfc3339
from service.model.registry.manifests import TemplateCache
from service.scheduler.commit.cluster_loop import ClusterLoop
from service.scheduler.commit.request_batches import TIME_IS_UP
from service.scheduler.commit.suffixes import RepeatableIds
from service.scheduler.decide.context import DecisionContext, Steps
from service.scheduler.decide.placing.placement_request import place_pods
from service.scheduler.planner.garbage_collection import no_collections
from service.scheduler.planner.past import PastExplanation
from service.scheduler.planner.past_explanation import explain_then, go_back
from service.scheduler.planner.planning_replica import PlanningReplica
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.make_plan import make_plan
from service.scheduler.plans.preview.capacity import find_capacity
from service.scheduler.plans.repair.search import find_repairs
from service.scheduler.protocol.answers import CapacityAnswer
from service.scheduler.protocol.clients import CLIENT
from service.scheduler.protocol.expressions import (
    ExpressionEvaluator,
    Unanswered,
    answer_until,
    until_unanswered,
)
from service.scheduler.protocol.intents import (
    ExplainPod,
    FindCapacity,
    FindRepairs,
    MakePlan,
    PlacePods,
)
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.placements import ExplanationAnswer, PlacementAnswer
from service.scheduler.protocol.plans import Fit, PlanBounds, Planned
from service.scheduler.protocol.ports import Clock, Ids, Store
from service.scheduler.protocol.repairs import RepairsAnswer
from service.scheduler.replica.replica import Replica

T = TypeVar("T")

_PAUSE_SECONDS = 0.001
"""The pause after each slice, which gives the server's other threads the interpreter at once;
otherwise Python would switch only after five milliseconds. The event loop counts in milliseconds
and treats half of one as none."""


class Planner:
    """Makes the plans of one cluster, one at a time."""

    def __init__(
        self,
        clock: Clock,
        ids: Ids,
        limits: Limits,
        templates: TemplateCache,
        expressions: ExpressionEvaluator | None = None,
    ) -> None:
        self._expressions = expressions
        self.replica = PlanningReplica(templates, limits.plan_fork_behind_max)
        """The replica on which plans are made."""
        self.last_used = clock.monotonic()
        self._clock = clock
        self._ids = ids
        self._limits = limits
        self._templates = templates
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._stopping = False

    def stop(self) -> None:
        """End the plan in progress as if its time were up, and refuse all others."""
        self._stopping = True

    async def plan(self, loop: ClusterLoop, intent: MakePlan) -> Planned:
        """Make a plan on the committed state of a cluster's loop.

        Raises:
            Overloaded: too many plans are waiting, or the cluster was dropped from memory.
            MoorageError: the plan is refused.
        """

        def decide(replica: Replica) -> Steps[Planned]:
            return make_plan(self._context(replica, self._bounds(intent)), intent)

        return await self._decided(loop, decide)

    async def repairs(self, loop: ClusterLoop, intent: FindRepairs) -> RepairsAnswer:
        """Find the repairs of a pod on the committed state of a cluster's loop.

        Raises:
            Overloaded: too many plans are waiting, or the cluster was dropped from memory.
            NotFound, Denied: the pod or its profile does not exist.
        """
        bounds = PlanBounds(seconds=self._limits.repair_seconds_max)

        def decide(replica: Replica) -> Steps[RepairsAnswer]:
            return find_repairs(self._context(replica, bounds), intent)

        return await self._decided(loop, decide)

    async def capacity(self, loop: ClusterLoop, intent: FindCapacity) -> CapacityAnswer:
        """Count how many pods fit, on the committed state of a cluster's loop.

        Raises:
            Overloaded: too many plans are waiting, or the cluster was dropped from memory.
            InvalidManifest, PodDiffers: the pods cannot be placed as sent.
        """

        def decide(replica: Replica) -> Steps[CapacityAnswer]:
            return find_capacity(self._context(replica, PlanBounds()), intent)

        return await self._decided(loop, decide)

    async def try_out(
        self, loop: ClusterLoop, intent: PlacePods, deadline: float
    ) -> PlacementAnswer:
        """Decide a dry run on the committed state of a cluster's loop.

        Raises:
            Overloaded: too many plans are waiting, the cluster was dropped from memory, the time
                ran out, or the client has disconnected.
            MoorageError: the placement is refused.
        """
        client = CLIENT.get()

        def is_unwanted() -> bool:
            late = self._stopping or self._clock.monotonic() >= deadline
            return late or (client is not None and client.has_left())

        ids = RepeatableIds(self._ids)

        def decide(replica: Replica) -> Steps[PlacementAnswer]:
            return place_pods(self._context(replica, PlanBounds(), ids.again()), intent)

        return await self._decided(loop, decide, is_unwanted)

    async def explain(
        self, loop: ClusterLoop, past: PastExplanation, revision: int
    ) -> ExplanationAnswer:
        """Explain a pod on its cluster at an earlier revision.

        Raises:
            Overloaded: too many plans are waiting, or the cluster was dropped from memory.
            Compacted: the log no longer has the state at that revision.
            MoorageError: the pod cannot be explained.
        """

        async def explain() -> ExplanationAnswer:
            async with self._in_turn(loop) as replica:
                await past.find(revision)
                fork = Fork(self._context(replica, PlanBounds()))
                try:
                    async for rows in past.states():
                        await self._run(loop, go_back(fork, rows))
                    steps = explain_then(fork, past.pod, past.intent)
                    return await self._attempt(loop, replica, steps)
                finally:
                    await self._run(loop, fork.restore())

        return await self._until_answered(explain)

    @asynccontextmanager
    async def _in_turn(self, loop: ClusterLoop) -> AsyncIterator[Replica]:
        """Wait for one plan's turn, and yield the replica at the committed state."""
        if self._waiting >= self._limits.plans_waiting_max:
            raise Overloaded("Too many plans of this cluster are waiting.")
        self._waiting += 1
        try:
            async with self._turn:
                with no_collections():
                    replica = await self._caught_up(loop)
                    try:
                        yield replica
                    finally:
                        # A decision that failed or was canceled halfway leaves its changes behind.
                        if replica.revision != replica.committed_revision:
                            self.replica.drop()
                        else:
                            await self._run(loop, replica.cluster.forget_in_steps())
        finally:
            self._waiting -= 1
            self.last_used = self._clock.monotonic()

    @property
    def is_idle(self) -> bool:
        """Whether no plan is being made or waiting."""
        return not self._waiting

    async def _caught_up(self, loop: ClusterLoop) -> Replica:
        if self._stopping:
            raise Overloaded("The server is shutting down.")
        source = loop.follower.replica
        replica = None
        if source is not None:
            replica = await self._run(loop, self.replica.catching_up(source))
        if replica is None:
            raise Overloaded("The cluster is just being loaded.")
        return replica

    def _bounds(self, intent: MakePlan) -> PlanBounds:
        """Return the bounds of a plan; searches for repairs have their own default time limit."""
        if isinstance(intent.goal, Fit) and intent.bounds.seconds is None:
            return msgspec.structs.replace(intent.bounds, seconds=self._limits.repair_seconds_max)
        return intent.bounds

    def _context(
        self, replica: Replica, bounds: PlanBounds, ids: Ids | None = None
    ) -> DecisionContext:
        most = self._limits.plan_seconds_max
        end = self._clock.monotonic() + min(bounds.seconds or most, most)
        client = CLIENT.get()
        return DecisionContext(
            replica=replica,
            now=rfc3339(self._clock.now(), "seconds"),
            templates=self._templates,
            ids=ids or self._ids,
            limits=self._limits,
            attempts=1,
            hints={},
            is_late=lambda: (
                self._stopping
                or self._clock.monotonic() >= end
                or (client is not None and client.has_left())
            ),
        )

    async def _decided(
        self,
        loop: ClusterLoop,
        decide: Callable[[Replica], Steps[T]],
        is_unwanted: Callable[[], bool] = bool,
    ) -> T:
        """Run a decision when this plan's turn comes, then restore the replica."""

        async def attempt() -> T:
            async with self._in_turn(loop) as replica:
                start = replica.mark()
                try:
                    return await self._attempt(loop, replica, decide(replica), is_unwanted)
                finally:
                    await self._run(loop, replica.undoing(start))

        return await self._until_answered(attempt)

    async def _attempt(
        self,
        loop: ClusterLoop,
        replica: Replica,
        steps: Steps[T],
        is_unwanted: Callable[[], bool] = bool,
    ) -> T:
        """Run a decision once.

        Raises:
            Unanswered: the decision has to be repeated once its questions are answered.
            Overloaded: the decision is no longer wanted.
        """
        replica.questions.begin(are_deferred=self._expressions is not None)
        try:
            return await self._run(loop, until_unanswered(steps, replica.questions), is_unwanted)
        except Unanswered:
            raise Unanswered(replica.questions.take()) from None

    async def _until_answered(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Repeat an attempt until all its expressions are evaluated.

        Other plans take their turns in between.
        """
        end = self._clock.monotonic() + self._limits.request_seconds_max
        while True:
            try:
                return await attempt()
            except Unanswered as unanswered:
                assert self._expressions is not None
                await answer_until(end, self._clock, self._expressions, unanswered.questions)

    async def _run(
        self,
        loop: ClusterLoop,
        steps: Generator[None, None, T],
        is_unwanted: Callable[[], bool] = bool,
    ) -> T:
        """Run all steps in slices, with time for all other tasks in between.

        Raises:
            Overloaded: the steps are no longer wanted; their changes still have to be undone.
        """
        while True:
            end = self._clock.monotonic() + self._limits.plan_slice_seconds
            try:
                next(steps)  # However slow the machine is, each slice makes progress.
                while self._clock.monotonic() < end:
                    next(steps)
            except StopIteration as stop:
                value: T = stop.value
                return value
            await self._clock.sleep(_PAUSE_SECONDS)
            await self._give_way(loop)
            if is_unwanted():
                steps.close()
                raise Overloaded(TIME_IS_UP)

    async def _give_way(self, loop: ClusterLoop) -> None:
        """Let the loop answer its current requests first, within a time limit."""
        end = self._clock.monotonic() + self._limits.plan_patience_seconds
        while not loop.idle and self._clock.monotonic() < end:
            await self._clock.sleep(_PAUSE_SECONDS)


class Planners:
    """The planners of all clusters of this process, for callers.

    The planners answer read-only requests that must not delay placements. An empty plan, decided
    among placements, brings a cluster's replica to the head; the work is then done on a second
    replica.
    """

    def __init__(  # noqa: PLR0913 - all that they need of the world, by name
        self,
        clock: Clock,
        ids: Ids,
        limits: Limits,
        templates: TemplateCache,
        *,
        store: Store,
        submit: Callable[[str, MakePlan], Awaitable[Planned]],
        loop_of: Callable[[str], Awaitable[ClusterLoop]],
        keep: Callable[[asyncio.Task[Any]], None],
        expressions: ExpressionEvaluator | None = None,
    ) -> None:
        """Create planners; `submit` decides an intent, and `keep` holds a task to its end."""
        self._store = store
        self._expressions = expressions
        self._submit = submit
        self._loop_of = loop_of
        self._keep = keep
        self._clock = clock
        self._ids = ids
        self._limits = limits
        self._templates = templates
        self._by_cluster: dict[int, Planner] = {}

    async def plan(self, cluster: str, intent: MakePlan) -> Planned:
        """Plan the consequences of changes to a cluster, without making them.

        Small plans are decided among placements.

        Raises:
            NotFound: the cluster, or an object that the plan names, does not exist.
            Overloaded: too many plans of this cluster are waiting.
            MoorageError: the plan is refused.
        """
        if intent.is_small(self._limits.plan_small_pods_max):
            return await self._submit(cluster, intent)
        return await self._beside_placements(
            cluster, lambda planner, loop: planner.plan(loop, intent)
        )

    async def repairs(self, cluster: str, intent: FindRepairs) -> RepairsAnswer:
        """Find the smallest changes after which a stored pod fits.

        Raises:
            NotFound: the cluster or the pod does not exist.
            Denied: the pod's `schedulerName` is not a profile.
            Overloaded: too many plans of this cluster are waiting.
        """
        return await self._beside_placements(
            cluster, lambda planner, loop: planner.repairs(loop, intent)
        )

    async def capacity(self, cluster: str, intent: FindCapacity) -> CapacityAnswer:
        """Count how many pods fit.

        Raises:
            NotFound: the cluster does not exist.
            InvalidManifest, PodDiffers: the pods cannot be placed as sent.
            Overloaded: too many plans of this cluster are waiting.
        """
        return await self._beside_placements(
            cluster, lambda planner, loop: planner.capacity(loop, intent)
        )

    async def try_out(self, cluster: str, intent: PlacePods, deadline: float) -> PlacementAnswer:
        """Decide a long dry run in parallel with placements.

        Raises:
            NotFound: the cluster does not exist.
            Overloaded: too many plans of this cluster are waiting, the deadline (in the clock's
                monotonic seconds) has passed, or the client has disconnected.
            MoorageError: the placement is refused.
        """
        return await self._beside_placements(
            cluster, lambda planner, loop: planner.try_out(loop, intent, deadline)
        )

    async def explain_past(
        self, cluster: str, intent: ExplainPod, revision: int
    ) -> ExplanationAnswer:
        """Explain a pod at an earlier revision.

        Raises:
            NotFound: the cluster does not exist, or the pod did not.
            Compacted: the log no longer has the state at that revision.
            InvalidManifest: too many objects have changed since.
            Overloaded: too many plans of this cluster are waiting.
        """

        def explain(
            planner: Planner, loop: ClusterLoop
        ) -> Coroutine[None, None, ExplanationAnswer]:
            past = PastExplanation(self._store, self._limits, loop.cluster_id, intent)
            return planner.explain(loop, past, revision)

        return await self._beside_placements(cluster, explain)

    async def _beside_placements(
        self, cluster: str, work: Callable[[Planner, ClusterLoop], Coroutine[None, None, T]]
    ) -> T:
        """Work on the second replica, after bringing the first to the head by an empty plan."""
        await self._submit(cluster, MakePlan())
        loop = await self._loop_of(cluster)
        task = asyncio.create_task(work(self.of(loop.cluster_id), loop))
        self._keep(task)
        # Work of a canceled caller still ends cleanly; otherwise its replica would have to be
        # dropped.
        return await asyncio.shield(task)

    def of(self, cluster_id: int) -> Planner:
        """Return the planner of a cluster, creating it if need be."""
        planner = self._by_cluster.get(cluster_id)
        if planner is None:
            planner = Planner(
                self._clock, self._ids, self._limits, self._templates, self._expressions
            )
            self._by_cluster[cluster_id] = planner
        return planner

    def drop(self, cluster_id: int) -> None:
        self._by_cluster.pop(cluster_id, None)

    def stop(self) -> None:
        """End all plans soon."""
        for planner in self._by_cluster.values():
            planner.stop()

    def tick(self) -> None:
        """Drop replicas unused for long, and those over the limit."""
        planners = [planner for planner in self._by_cluster.values() if planner.replica.is_loaded]
        planners.sort(key=lambda planner: planner.last_used, reverse=True)
        unused = self._clock.monotonic() - self._limits.plan_fork_idle_seconds
        for rank, planner in enumerate(planners):
            too_many = rank >= self._limits.plan_forks_max
            if planner.is_idle and (too_many or planner.last_used < unused):
                planner.replica.drop()
