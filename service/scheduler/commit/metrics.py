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
"""The number of pods tried, by profile and result."""

SAMPLE_SECONDS = 1.0
"""The minimum time between two pods whose plugins are timed."""
SAMPLE_SHARE = 0.002
"""The maximum share of process time spent on timing plugins."""


class ProcessState(msgspec.Struct, frozen=True, kw_only=True):
    """The current gauge values of one process."""

    inbox: int
    """The number of requests waiting for a decision."""
    pending: Mapping[str, int]
    """The pending pods that this process has to place, counted by what they wait for."""
    watches: int
    """The number of open watches."""
    lag_revisions: int
    """How many revisions the furthest-behind replica lags its log."""
    lag_seconds: float
    """How many seconds the furthest-behind replica lags its log."""
    log_changes: int
    """The number of changes kept in the logs that this process compacts."""
    objects: int
    """The number of objects in the largest cluster that this process has in memory."""


class Meter(Protocol):
    """Receives counts of the scheduler's work. Its methods never raise and never block."""

    def attempted(self, attempts: Attempts) -> None:
        """Count tried pods, once the outcome is durable."""
        ...

    def scheduled(self, pods: int, seconds: float) -> None:
        """Count durably placed pods, and their seconds since the request."""
        ...

    def committed(self, kind: str, changes: int, seconds: float) -> None:
        """Count a commit that extended the log; `kind` is the name of its intent."""
        ...

    def lost(self) -> None:
        """Count a commit that lost its race because another worker extended the log first."""
        ...

    def decided_again(self, hints: int, kept: int) -> None:
        """Count a repeated decision: of `hints` nodes chosen before, `kept` were chosen again."""
        ...

    def missed_wakeups(self, pods: int) -> None:
        """Count pods that were placed though no change had woken them, only the passing of time."""
        ...

    def executed(self, executions: Sequence[Execution]) -> None:
        """Record the plugins' execution times for one pod."""
        ...

    def evicted(self, rule: str) -> None:
        """Count an evicted pod; `rule` names the kind of rule broken, or that a client asked."""
        ...

    def events_dropped(self, events: int) -> None:
        """Count events that were lost because there were too many or storing them failed."""
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

    def missed_wakeups(self, pods: int) -> None:
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
"""The name prefixes of intents that never change anything."""


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
"""The result counted for each outcome of a tried pod; AlreadyPlaced pods are not tried."""

UNKNOWN_PROFILE = ""


def measure(meter: Meter, batch: Batch, replica: Replica | None, now: float) -> None:
    """Count the pods that a batch tried, now that the batch is durable."""
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
    """Merge scheduler names without a profile into one label, since clients may send any name."""
    known: dict[tuple[str, Result], int] = {}
    for (name, result), pods in attempts.items():
        is_known = replica is not None and name in replica.cluster.profiles
        attempt = name if is_known else UNKNOWN_PROFILE, result
        known[attempt] = known.get(attempt, 0) + pods
    return known


def failed_attempts(intent: Intent[Any]) -> Attempts:
    """Return the pods of a request that failed because of overload, storage errors, or a bug."""
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
    """Times the plugins for an occasional pod, at negligible cost."""

    def __init__(self, meter: Meter, clock: Clock) -> None:
        self._meter = meter
        self._clock = clock
        self.due = clock.monotonic()
        """When to time the next pod."""

    def sample(self, replica: Replica, outcome: AnswerOrError) -> None:
        """Time the plugins for an answer's first placed pod; call this once a sample is due."""
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
