"""Connects the queue of pending pods with the lease and the cluster's loop."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from typing_extensions import override

from service.model.cluster.cluster_config import stored_config
from service.model.core.errors import MoorageError, NotFound, ObjectUnreadable
from service.model.core.primitives import ObjectName
from service.model.log.pages import ClusterRow
from service.model.registry.manifests import PodManifest
from service.scheduler.commit.metrics import Meter, NoMeter
from service.scheduler.controllers.controller import PAUSE_SECONDS, Controller, Controllers, Spawn
from service.scheduler.controllers.leases import HeldLease
from service.scheduler.pending.queue import PendingQueue
from service.scheduler.pending.queueing_hints import NO_NODES
from service.scheduler.protocol.answers import Answer, PendingAnswer
from service.scheduler.protocol.intents import NO_VERDICTS, PlacePending, PlacePods
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.pending_attempts import Attempts, Refused
from service.scheduler.protocol.placements import PlacementAnswer, PodRef
from service.scheduler.protocol.ports import Clock
from service.scheduler.protocol.suspects import SET_ASIDE_DEATHS, NoSuspects, SuspectRegistry
from service.scheduler.replica.replica import Entry, Replica

SWEEP_SECONDS = 10.0
"""How often to look for pods that have not been tried for very long."""

Place = Callable[[str, PlacePods], Awaitable[PlacementAnswer]]
"""Places pods of the named cluster, querying extenders."""

_log = logging.getLogger(__name__)


class PendingPodController(Controller):
    """Has one cluster's pending pods placed while this process holds the lease.

    The queue follows the log at all times. Attempts are made only while the lease is held, one
    request at a time, alongside those of clients; compare-and-swap commits keep them safe. A new
    lease holder tries every pod once, since the earlier attempts are unknown.
    """

    def __init__(
        self,
        *,
        lease: HeldLease,
        clock: Clock,
        limits: Limits,
        spawn: Spawn,
        suspects: SuspectRegistry | None = None,
        meter: Meter | None = None,
    ) -> None:
        super().__init__(lease=lease, clock=clock, limits=limits, spawn=spawn)
        self._suspects = suspects or NoSuspects()
        self._meter = meter or NoMeter()
        self._known = self._suspects.refresh()
        """The version of the suspects when the queue was last sorted."""
        self.queue = PendingQueue(limits, self._is_suspect)
        self.place: Place | None = None
        """Places a stored pod, querying extenders."""
        self._attempts: Attempts | None = None
        """The attempts that the loop is currently deciding."""
        self._not_before = self._swept = clock.monotonic()

    def _is_suspect(self, pod: PodManifest) -> bool:
        """Return whether one worker died deciding this pod; after two, it is refused."""
        spec = pod.template.spec_json
        deaths = self._suspects.deaths(self.lease.cluster_id, pod.namespace, spec)
        return 0 < deaths < SET_ASIDE_DEATHS

    def counts(self) -> dict[str, int]:
        """Count the pods by their state: active, backoff, unschedulable, or gated."""
        return self.queue.counts()

    # Changes of the replica

    def on_loaded(self, replica: Replica) -> None:
        """Start from a newly loaded replica, which has no tentative changes yet."""
        self.queue.reset(
            replica.pending_pods(),
            replica.config,
            replica.groups.all_waiting(),
            replica.reservations,
        )
        self.wants_new_pods = len(self.queue) > 0
        self._advance()

    def on_committed(self, entries: Sequence[Entry]) -> None:
        """Process committed changes of the replica."""
        try:
            self.queue.observe(entries)
        except Exception:  # noqa: BLE001 - answers to what was committed must go out all the same
            _log.exception("The pending queue is of no use until the replica is loaded anew.")
            self._closed = True
        self._report_missed()
        self.wants_new_pods = len(self.queue) > 0  # without waiting pods, no change can help any
        self._advance()

    def _report_missed(self) -> None:
        """Count and log the pods that no event had woken, though they fit."""
        missed = self.queue.take_missed()
        for (namespace, name), plugins in missed:
            context = {
                "cluster": self.lease.cluster,
                "namespace": namespace,
                "pod": name,
                "plugins": ", ".join(plugins),
            }
            _log.warning("A pending pod fit, and no change had woken it.", extra=context)
        if missed:
            self._meter.missed_wakeups(len(missed))

    # Time

    @override
    def tick(self) -> None:
        now = self._clock.monotonic()
        known = self._suspects.refresh()
        if known != self._known:
            self._known = known
            self.queue.sort_anew()
            self.queue.retry_all()
        if now >= self._swept + SWEEP_SECONDS:
            self._swept = now
            self.queue.sweep(now)
        super().tick()

    # Attempts

    @property
    @override
    def _is_to_be_done(self) -> bool:
        return len(self.queue) > 0 and self.queue.places

    @override
    def _begin_anew(self) -> None:
        self.queue.retry_all()

    @override
    def _advance(self) -> None:
        """Make the next attempts, if any are due and this process holds the lease."""
        now = self._clock.monotonic()
        if self._closed or self._attempts is not None or now < self._not_before:
            return
        if self.queue.has_work(now) and self._may():
            self._try_next(now)

    def _try_next(self, now: float) -> None:
        attempts = self.queue.take(self._limits.pending_attempts_max, now)
        if attempts.tries or attempts.condition_updates:
            self._attempts = attempts
            intent = PlacePending(attempts=attempts, clock=self.lease.database_time)
            self._submit(intent, self._conclude)

    def _conclude(self, future: asyncio.Future[Answer]) -> None:
        attempts, now = self._attempts, self._clock.monotonic()
        assert attempts is not None
        self._attempts = None
        error = future.exception()
        if error is None:
            answer = future.result()
            assert isinstance(answer, PendingAnswer)
            if answer.asking and self.place is not None:
                self._attempts = attempts
                self._spawn(self._ask_extenders(attempts, answer, self.place))
                return
            self.queue.conclude(attempts, answer.refused, now)
        else:
            self.queue.give_back(attempts, now)
            self._not_before = now + PAUSE_SECONDS
        self._advance()

    async def _ask_extenders(self, attempts: Attempts, answer: PendingAnswer, place: Place) -> None:
        """Place pods that need extenders; other pods are tried only afterwards."""
        refused = dict(answer.refused)
        try:
            asking = [self._place_asking(key, answer.revision, place) for key in answer.asking]
            refusals = await asyncio.gather(*asking)
            refused |= {
                key: refused_pod
                for key, refused_pod in zip(answer.asking, refusals, strict=True)
                if refused_pod
            }
        finally:
            self._attempts = None
            self.queue.conclude(attempts, refused, self._clock.monotonic())
        self._advance()

    async def _place_asking(self, key: ObjectName, revision: int, place: Place) -> Refused | None:
        """Place one pod by extender verdicts; return why it still waits, or None."""
        ref = PodRef(namespace=key[0], name=key[1])
        intent = PlacePods(
            pod_refs=(ref,), path="podRefs", queue=True, extender_verdicts=NO_VERDICTS
        )
        try:
            (result,) = (await place(self.lease.cluster, intent)).results
        except NotFound:
            return None
        except MoorageError as error:
            message = error.detail
        else:
            if result.node_name is not None:
                return None
            message = result.message or ""
        again_after = self._limits.extended_retry_seconds
        return Refused(revision, {NO_NODES: ()}, message, again_after=again_after)


class PendingPodControllers(Controllers[PendingPodController]):
    """The pending pod controllers of all clusters that this process has in memory."""

    name = "pending"
    meter: Meter | None = None
    """Counts the pods that no event had woken."""
    suspects: SuspectRegistry | None = None
    """The pods whose decisions killed workers."""
    place: Place | None = None
    """Places stored pods, querying extenders; if None, pods that need extenders keep waiting."""

    def counts(self, cluster_id: int) -> dict[str, int] | None:
        """Count a cluster's pods by state, or return None if another process places them."""
        pending = self._by_cluster.get(cluster_id)
        return pending.counts() if pending is not None and pending.is_needed else None

    @property
    @override
    def lease_seconds(self) -> float:
        return self._limits.pending_lease_seconds

    @override
    def _controller(self, lease: HeldLease) -> PendingPodController:
        made = PendingPodController(
            lease=lease,
            clock=self._clock,
            limits=self._limits,
            spawn=self._spawn,
            suspects=self.suspects,
            meter=self.meter,
        )
        made.place = self.place
        return made

    @override
    async def unattended(self) -> list[str]:
        return [
            row.name
            for row in await self._store.clusters.all()
            if row.counts.pending and _places_pending_pods(row)
        ]


def _places_pending_pods(row: ClusterRow) -> bool:
    """Return whether the cluster places pending pods; False if its configuration is unreadable."""
    try:
        return stored_config(row.config).place_pending_pods
    except ObjectUnreadable:
        return False
