"""Metrics of the scheduler's own work, for operators; no decision depends on them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from service.engine import Execution, time_plugins
from service.model.core.primitives import ObjectName
from service.model.pods.pod import Pod
from service.scheduler.commit.request_batches import MANY_KINDS, AnswerOrError, Batch
from service.scheduler.protocol.answers import PendingAnswer
from service.scheduler.protocol.intents import Intent, PlacePending, PlacePods
from service.scheduler.protocol.placements import PlacementAnswer
from service.scheduler.protocol.ports import Clock
from service.scheduler.replica.replica import Replica

Result = Literal["scheduled", "unschedulable", "error"]
Attempts = Mapping[tuple[str, Result], int]
"""How many pods were tried, by profile and result."""

SAMPLE_SECONDS = 1.0
"""The least time between two pods for which the plugins are timed."""
SAMPLE_SHARE = 0.002
"""The greatest share of the time spent on timing plugins."""


class ProcessState(msgspec.Struct, frozen=True, kw_only=True):
    """The gauges of one process."""

    inbox: int
    """How many requests wait for a decision."""
    pending: Mapping[str, int]
    """How many pending pods this process has to place, by what they wait for."""
    watches: int
    """How many watches are under way."""
    lag_revisions: int
    """How many revisions the replica that is furthest behind lacks of its log."""
    lag_seconds: float
    """For how many seconds the log has had what the replica lacks that is furthest behind."""
    log_changes: int
    """How many changes are kept in the logs that this process compacts."""
    objects: int
    """How many objects the largest cluster has of those that this process keeps in memory."""


class Meter(Protocol):
    """Counts what happens. Its methods raise nothing, and return at once."""

    def attempted(self, attempts: Attempts) -> None:
        """Count pods that were tried, once the outcome is durable."""
        ...

    def scheduled(self, pods: int, seconds: float) -> None:
        """Count pods placed for certain, and how many seconds after their request."""
        ...

    def committed(self, kind: str, changes: int, seconds: float) -> None:
        """Count a commit that extended the log; `kind` is the name of its intent."""
        ...

    def lost(self) -> None:
        """Count a commit that lost its race: another worker extended the log first."""
        ...

    def decided_again(self, hints: int, kept: int) -> None:
        """Count a repeated decision: of `hints` nodes chosen before, `kept` were chosen again."""
        ...

    def executed(self, executions: Sequence[Execution]) -> None:
        """Record the plugins' times for one pod."""
        ...

    def evicted(self, rule: str) -> None:
        """Count an evicted pod; `rule` is the kind of rule that it broke, or says that a client asked."""
        ...

    def events_dropped(self, events: int) -> None:
        """Count events that will never be stored, as they were too many or storing them failed."""
        ...

    def gauges(self, gauges: ProcessState) -> None:
        """Update the process gauges; called periodically."""
        ...


class NoMeter:
    """A meter that counts nothing."""

    def attempted(self, attempts: Attempts) -> None:
        pass

    def scheduled(self, pods: int, seconds: float) -> None:
        pass

    def committed(self, kind: str, changes: int, seconds: float) -> None:
        pass

    def lost(self) -> None:
        pass

    def decided_again(self, hints: int, kept: int) -> None:
        pass

    def executed(self, executions: Sequence[Execution]) -> None:
        pass

    def evicted(self, rule: str) -> None:
        pass

    def events_dropped(self, events: int) -> None:
        pass

    def gauges(self, gauges: ProcessState) -> None:
        pass


_READING = ("Explain", "Read")
"""How the names of intents that never change anything begin."""


def commit_kinds() -> list[str]:
    """Return all kinds of commits: the names of intents that write, and `Batch`."""
    names = [intent.__name__ for intent in Intent.__subclasses__()]
    return [*(name for name in names if not name.startswith(_READING)), MANY_KINDS]


_RESULTS: Mapping[str, Result] = {
    "Placed": "scheduled",
    "Queued": "unschedulable",
    "Unschedulable": "unschedulable",
    "Denied": "unschedulable",
    "GroupRefused": "unschedulable",
}
"""The outcomes for which a pod was tried; one that is AlreadyPlaced was not."""

UNKNOWN_PROFILE = ""


def measure(meter: Meter, batch: Batch, replica: Replica | None, now: float) -> None:
    """Count the pods that a batch tried, now that its answers are durable."""
    attempts: dict[tuple[str, Result], int] = {}
    scheduled: list[tuple[int, float]] = []
    for ticket, outcome in batch.decided:
        intent = ticket.intent
        tried: Iterable[tuple[str, Result]] = ()
        if isinstance(intent, PlacePods) and isinstance(outcome, PlacementAnswer):
            if not intent.dry_run:
                tried = _attempts_of_request(intent, outcome, replica)
                placed = sum(result.outcome == "Placed" for result in outcome.results)
                scheduled.append((placed, now - ticket.arrived))
        elif isinstance(intent, PlacePending) and isinstance(outcome, PendingAnswer):
            tried = _attempts_of_queue(outcome, replica)
        for attempt in tried:
            attempts[attempt] = attempts.get(attempt, 0) + 1
    known = _of_known_profiles(attempts, replica)
    for pods, seconds in scheduled:
        meter.scheduled(pods, seconds)
    if known:
        meter.attempted(known)


def _of_known_profiles(attempts: Attempts, replica: Replica | None) -> Attempts:
    """Replace scheduler names that are not profiles of the cluster: clients may send any name."""
    known: dict[tuple[str, Result], int] = {}
    for (name, result), pods in attempts.items():
        is_known = replica is not None and name in replica.cluster.profiles
        attempt = name if is_known else UNKNOWN_PROFILE, result
        known[attempt] = known.get(attempt, 0) + pods
    return known


def failed_attempts(intent: Intent[Any]) -> Attempts:
    """Return the pods of a request that failed: overload, trouble with storage, or a bug."""
    if not isinstance(intent, PlacePods) or intent.dry_run:
        return {}
    sent = Counter(pod.pod.spec.scheduler_name for pod in intent.pods)
    sent[UNKNOWN_PROFILE] += len(intent.pod_refs)
    return {(profile, "error"): pods for profile, pods in sent.items() if pods}


def _attempts_of_request(
    intent: PlacePods, answer: PlacementAnswer, replica: Replica | None
) -> list[tuple[str, Result]]:
    if intent.pods:
        profiles = [manifest.pod.spec.scheduler_name for manifest in intent.pods]
    else:
        profiles = [_profile(replica, (ref.namespace, ref.name)) for ref in intent.pod_refs]
    return [
        (profile, _RESULTS[result.outcome])
        for profile, result in zip(profiles, answer.results, strict=False)
        if result.outcome in _RESULTS
    ]


def _attempts_of_queue(answer: PendingAnswer, replica: Replica | None) -> list[tuple[str, Result]]:
    placed: list[tuple[str, Result]] = [
        (_profile(replica, key), "scheduled") for key in answer.placed
    ]
    return placed + [(_profile(replica, key), "unschedulable") for key in answer.refused]


def _profile(replica: Replica | None, key: ObjectName) -> str:
    manifest = replica.pod(*key) if replica else None
    return manifest.pod.spec.scheduler_name if manifest else UNKNOWN_PROFILE


class PluginTimer:
    """Times the plugins for a pod now and then, at negligible cost."""

    def __init__(self, meter: Meter, clock: Clock) -> None:
        self._meter = meter
        self._clock = clock
        self.due = clock.monotonic()
        """When to time a pod again."""

    def sample(self, replica: Replica, outcome: AnswerOrError) -> None:
        """Time the plugins for the first pod that an answer has placed; call this once it is due."""
        if not isinstance(outcome, PlacementAnswer):
            return
        started = self._clock.monotonic()
        for result in outcome.results:
            manifest = replica.pod(result.namespace, result.name)
            if result.outcome == "Placed" and manifest is not None:
                self._time(replica, manifest.pod, started)
                return

    def _time(self, replica: Replica, pod: Pod, started: float) -> None:
        now = self._clock.monotonic
        self._meter.executed(time_plugins(replica.cluster, pod, now))
        self.due = started + max(SAMPLE_SECONDS, (now() - started) / SAMPLE_SHARE)
