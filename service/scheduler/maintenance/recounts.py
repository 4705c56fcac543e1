"""Recounts idle replicas, and reloads replicas that turn out to be wrong.

A replica's derived state is updated change by change. A missed update would make decisions wrong
until the process ends, and only a recount can reveal it.
"""

import logging
import weakref
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from service.engine.integrity.recount import Mistake, Step, recount_in_steps
from service.model.pods.pod import Pod
from service.model.registry.manifests import PodManifest
from service.scheduler.commit.cluster_loop import ClusterLoop
from service.scheduler.protocol.ports import Clock
from service.scheduler.replica.replica import Replica
from service.scheduler.scheduler import Scheduler

SLICE_SECONDS = 0.001
"""How far into a slice steps may still begin; a step usually takes half as long."""
CLUSTERS_A_STEP = 500
"""How many clusters without a changed replica one step skips."""
BUSY_STEPS_MAX = 50
"""After this many consecutive busy steps (at least a second), a cluster yields to the others."""
OVERDUE_SECONDS = 1800.0
"""A recount that takes longer is logged; beyond this age, the metric also triggers an alert."""
PAUSE_SECONDS_MIN = 0.02
"""The minimum pause between two slices, since sleeping has a cost, too."""
REASON = "a recount found it wrong"
"""The logged reason for reloading a wrong replica."""
_log = logging.getLogger(__name__)


class Pace(NamedTuple):
    """How much time recounting may take."""

    seconds: float = 30.0
    """The time between the starts of two rounds over all replicas; 0 disables recounts."""
    percent: float = 10.0
    """The maximum share of one processor that a round takes, in percent."""


class RecountMeter(Protocol):
    """Receives counts of recounts. Its methods never raise and never block."""

    def recounted(self, seconds: float) -> None:
        """Count the seconds spent on recounting."""
        ...

    def round_ended(self) -> None:
        """Count a round in which all changed replicas were recounted."""
        ...

    def overdue(self, seconds: float) -> None:
        """Report how long the oldest unfinished recount has been due."""
        ...

    def mistaken(self, part: str) -> None:
        """Count a wrong part of a replica."""
        ...


class _Round(NamedTuple):
    """The recount of one replica."""

    name: str
    loop: ClusterLoop
    replica: Replica
    version: int
    """The version of the engine's cluster when the recount began."""
    steps: Iterator[Step]


class IdleRecounts:
    """Recounts one replica after another, each in slices of a few steps.

    A replica that has not changed since its last successful recount is skipped.
    """

    def __init__(
        self, scheduler: Scheduler, clock: Clock, meter: RecountMeter, pace: Pace | None = None
    ) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._meter = meter
        self._pace = pace or Pace()
        self._waiting: list[str] = []
        """The clusters still to recount in this round."""
        self._present: _Round | None = None
        self._in_vain = 0
        """How many consecutive steps were blocked by requests."""
        self._right: weakref.WeakKeyDictionary[Replica, int] = weakref.WeakKeyDictionary()
        """The version at which each replica's last successful recount began."""
        self._begun = clock.monotonic()
        """When all clusters were last queued for a recount."""
        self._unended: dict[str, float] = {}
        """When each cluster's unfinished recount began, including earlier starts."""
        self._logged_overdue: set[str] = set()
        """The clusters whose unfinished recounts have been logged."""

    async def run(self) -> None:
        """Recount forever, or return at once if the pace is zero."""
        while self._pace.seconds and self._pace.percent:
            begun = self._clock.monotonic()
            await self._one_round()
            seconds = begun + self._pace.seconds - self._clock.monotonic()
            await self._clock.sleep(max(seconds, PAUSE_SECONDS_MIN))

    async def _one_round(self) -> None:
        self.begin()
        is_over = False
        while not is_over:
            spent, is_over = self._slice()
            rest = spent * (100.0 / self._pace.percent - 1.0)
            await self._clock.sleep(max(rest, PAUSE_SECONDS_MIN))

    def _slice(self) -> tuple[float, bool]:
        """Make steps for a short time; return how long they took, and whether the round is over."""
        begun = self._clock.monotonic()
        try:
            is_over = self.step()
            while not is_over and self._is_free and self._clock.monotonic() < begun + SLICE_SECONDS:
                is_over = self.step()
        except Exception:  # noqa: BLE001 - a bug here must not end all recounts
            _log.exception("A recount failed; the next round goes on.")
            self._present, self._waiting, is_over = None, [], True
        spent = self._clock.monotonic() - begun
        self._meter.recounted(spent)
        self._meter.overdue(self._overdue())
        return spent, is_over

    def begin(self) -> None:
        """Begin a round over all clusters that this process has in memory."""
        self._wait_for_all()
        self._present = None

    def _wait_for_all(self) -> None:
        self._waiting = list(self._scheduler.loops)
        self._begun = self._clock.monotonic()

    def step(self) -> bool:
        """Make one step unless requests wait for the replica; return whether the round is over."""
        present = self._present = self._present or self._next()
        if present is None:
            if not self._waiting:
                self._meter.round_ended()
            return not self._waiting
        if present.loop.follower.replica is not present.replica:
            self._end()
        elif self._is_free:
            self._in_vain = 0
            self._go_on(present)
        else:
            self._pass_over(present)
        return False

    def _pass_over(self, present: _Round) -> None:
        """Move on to other clusters, if any, once one has been busy for too long."""
        self._in_vain += 1
        if self._in_vain < BUSY_STEPS_MAX:
            return
        self._log_overdue(present.name)
        if not self._waiting and self._clock.monotonic() >= self._begun + self._pace.seconds:
            self._wait_for_all()  # otherwise, an always busy cluster would hold up the others
        if self._waiting:
            self._waiting.insert(0, present.name)
            self._present, self._in_vain = None, 0

    @property
    def _is_free(self) -> bool:
        return self._present is None or self._present.loop.idle

    def _next(self) -> _Round | None:
        """Start recounting the next changed replica, or return None if no next one has changed."""
        for _ in range(min(len(self._waiting), CLUSTERS_A_STEP)):
            name = self._waiting.pop()
            loop = self._scheduler.loops.get(name)
            replica = None if loop is None else loop.follower.replica
            if loop is None or replica is None:
                continue
            version = replica.cluster.version
            if self._right.get(replica) != version:
                self._unended.setdefault(name, self._clock.monotonic())
                return _Round(name, loop, replica, version, _steps(replica))
        return None

    def _go_on(self, present: _Round) -> None:
        try:
            mistake = next(present.steps)
        except StopIteration:
            self._right[present.replica] = present.version
            self._end()
            return
        if mistake is not None:
            self._report_mistake(present, mistake)
            self._end()
            present.loop.reload(REASON)

    def _end(self) -> None:
        """End the current replica's recount, because it passed or the replica was replaced."""
        if self._present is not None:
            self._unended.pop(self._present.name, None)
            self._logged_overdue.discard(self._present.name)
        self._present = None

    def _overdue(self) -> float:
        """Return how many seconds the oldest recount has been unfinished."""
        for name in [name for name in self._unended if not self._is_loaded(name)]:
            del self._unended[name]
            self._logged_overdue.discard(name)
        since = min(self._unended.values(), default=None)
        return 0.0 if since is None else self._clock.monotonic() - since

    def _is_loaded(self, name: str) -> bool:
        loop = self._scheduler.loops.get(name)
        return loop is not None and loop.follower.replica is not None

    def _log_overdue(self, name: str) -> None:
        """Log once that a cluster is always busy."""
        seconds = self._clock.monotonic() - self._unended.get(name, self._clock.monotonic())
        if seconds >= OVERDUE_SECONDS and name not in self._logged_overdue:
            self._logged_overdue.add(name)
            context = {"cluster": name, "seconds": round(seconds)}
            _log.warning("The replica is not recounted, as it is always busy.", extra=context)

    def _report_mistake(self, present: _Round, mistake: Mistake) -> None:
        self._meter.mistaken(mistake.part)
        context = {
            "cluster": present.name,
            "revision": present.replica.revision,
            "part": mistake.part,
            "detail": mistake.detail,
        }
        _log.error("The replica is wrong, and is loaded again.", extra=context)


def _steps(replica: Replica) -> Iterator[Step]:
    def stored(namespace: str, name: str) -> Pod | None:
        manifest = replica.pod(namespace, name)
        return None if manifest is None else replica.counted(manifest)

    return recount_in_steps(replica.cluster, stored, lambda: replica.count(PodManifest.kind))
