"""The next wave of a rollout in progress.

A wave begins when all new pods of the earlier waves are reported as ready, so the state alone shows
which wave is next, and none is taken twice. Lost pods count as not yet created.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from service.model.plans.plan import DEADLINE_SECONDS, KeptGoal, PlanProgress, ProtectedPods
from service.model.registry.manifests import PodManifest
from service.scheduler.decide.context import DecisionContext, Steps
from service.scheduler.decide.node_lifecycle.taints import parse_time
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.replace.rollout import (
    OldPodSelection,
    PodReadiness,
    Rollout,
    observe,
    place_new,
)
from service.scheduler.plans.replace.wave_size import group_too_large, new_pods_of_wave
from service.scheduler.plans.waves import EVICTIONS_OVER, Blocked
from service.scheduler.protocol.intents import PlacePods
from service.scheduler.protocol.plans import Replace

EXCEEDED = "ProgressDeadlineExceeded"
"""The reason in a Deployment's condition."""
_DIFFERS = Blocked("PodDiffers", "It has the name of a new pod, and is another one.")
_NOT_READY = Blocked("NotReady", "It is not reported as ready, and the next wave waits for it.")
_PLACING = PlacePods()
_READINESS = PodReadiness()

Waiting = tuple[PodManifest, Blocked]
"""A pod that currently cannot leave or be placed, and why."""


class Wave(NamedTuple):
    """The pods of a rollout, and what its next wave changed."""

    rollout: Rollout
    """The pods before the wave."""
    evicted: Sequence[PodManifest] = ()
    """The old pods that were evicted."""
    placed: Sequence[PodManifest] = ()
    """The new pods that were placed."""
    waiting: Sequence[Waiting] = ()


def observe_only(context: DecisionContext, goal: Replace) -> Steps[Wave]:
    """Return the pods of a rollout without changing anything."""
    return Wave((yield from observe(context, goal)))


class WaveLimits(NamedTuple):
    """The limits on one wave."""

    most: int
    """The maximum number of evictions, and of placements, in the wave."""
    evictions_left: int | None = None
    """How many more pods may be evicted for the plan, or None for any number."""
    protect: ProtectedPods | None = None

    @property
    def evictions(self) -> int:
        """The maximum number of pods that the wave evicts."""
        return self.most if self.evictions_left is None else min(self.most, self.evictions_left)


def take_wave(
    context: DecisionContext,
    goal: Replace,
    evict: Callable[[PodManifest], None],
    limits: WaveLimits,
) -> Steps[Wave]:
    """Take the next wave if due: evict old pods, and place new ones."""
    rollout = yield from observe(context, goal)
    if rollout.differing is not None:
        return Wave(rollout, waiting=[(rollout.differing, _DIFFERS)])
    unready = [pod for pod in rollout.new if not _READINESS.of(pod)]
    if unready:
        return Wave(rollout, waiting=[(pod, _NOT_READY) for pod in unready])
    too_large = group_too_large(context, rollout, goal)
    if too_large is not None:
        return Wave(rollout, waiting=[too_large])
    fork = Fork(context.speculative())
    selection = OldPodSelection(fork, goal, _READINESS, limits.protect)
    leaving, blocked = yield from selection.choose(rollout, limits.evictions)
    yield from fork.restore()
    for pod in leaving:
        evict(pod)
    if limits.evictions_left == 0 and rollout.old:
        blocked = [*blocked, (rollout.old[0], EVICTIONS_OVER)]
    pods, held = new_pods_of_wave(context, rollout, goal, len(leaving), limits.most)
    placed, refused = yield from place_new(context, _PLACING, pods)
    return Wave(rollout, leaving, placed, [*blocked, *held, *refused])


def progress_after(wave: Wave, status: PlanProgress, at: str, *, resumed: bool) -> PlanProgress:
    """Return the updated progress of a plan, given its rollout at the time `at`."""
    rollout = wave.rollout
    now = replace(
        status,
        waves=status.waves + bool(wave.evicted or wave.placed),
        placed=status.placed + len(wave.placed),
        updated=len(rollout.new) + len(wave.placed),
        ready=sum(map(_READINESS.of, rollout.new)),
        evicted=status.evicted + len(wave.evicted),
        leaving=len(rollout.leaving) + sum(pod.pod.node_name is not None for pod in wave.evicted),
        waiting=len(rollout.old) - len(wave.evicted),
    )
    if now != status or resumed:
        return replace(now, progressed_at=at, reason=None)
    return now


def is_done(status: PlanProgress, goal: Replace) -> bool:
    """Return whether all new pods are ready and no old pod is left."""
    there = status.updated >= goal.replicas and status.ready == status.updated
    return there and not status.leaving and not status.waiting


def deadline_of(status: PlanProgress, goal: KeptGoal) -> datetime:
    """Return the time by which the plan has to make progress."""
    seconds = goal.progress_deadline_seconds or DEADLINE_SECONDS
    return parse_time(status.progressed_at) + timedelta(seconds=seconds)
