"""Prometheus metrics of a server; a scrape returns the sum over its worker processes.

Metrics that Kubernetes also has keep their names; the names of all others begin with `moorage_`.
Label values are fixed words and the names of at most `PROFILES_MAX` profiles, so no client can
create an unlimited number of series.
"""

import asyncio
from bisect import bisect_left
from collections import Counter as Tally, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from msgspec import UnsetType
from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.registry import CollectorRegistry

from service.api.telemetry.exposition import exposition, registry_of
from service.api.telemetry.process_metrics import ProcessMetrics
from service.api.telemetry.worker_starts import WorkerStarts
from service.engine import Execution
from service.engine.integrity.recount import PARTS
from service.model.core.field_warnings import WARNINGS, FieldWarning
from service.model.pods.pod import DEFAULT_SCHEDULER
from service.scheduler.commit.metrics import Attempts, ProcessState, Result, commit_kinds
from service.scheduler.decide.status.pod_conditions import Rule
from service.settings import Limit

PROFILES_MAX = 50
"""How many names of profiles become labels; pods of other profiles are counted as `other`."""

Forwarding = Literal["answered", "passed", "unreachable", "lost"]
"""The outcome of a request that was forwarded to another worker."""
STATUS_CLASSES = ("2xx", "3xx", "4xx", "5xx")
"""The classes of HTTP statuses, by first digit."""
QUEUES = ("active", "backoff", "unschedulable", "gated")


def _doubling(start: float, count: int) -> tuple[float, ...]:
    return tuple(start * 2**i for i in range(count))


_PLACEMENT_SECONDS = _doubling(0.0005, 18)
_REQUEST_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_PLUGIN_SECONDS = _doubling(0.0000005, 18)
"""At 5,000 nodes, half of the plugins take less than 5 µs; at 50,000 nodes, some take 300 µs."""


class Metrics:
    """The metrics of one process; also the scheduler's `Meter`."""

    def __init__(
        self,
        directory: str | None = None,
        *,
        version: str = "",
        engine: str = "",
        limits: Iterable[Limit] = (),
    ) -> None:
        """Create the metrics; the server's processes share `directory`, or it is None for just one.

        `version` is Moorage's, `engine` says whether its engine is compiled, and `limits` are the
        configured limits.
        """
        self._directory = directory
        self._registry = registry = registry_of(directory)
        self._requests = BulkHistogram(
            "moorage_http_request_duration_seconds",
            "Time from request to answer, by operation and status.",
            ("operation", "status"),
            buckets=_REQUEST_SECONDS,
            registry=registry,
        )
        self._statuses = Counter(
            "moorage_http_requests_total",
            "Requests that were answered, by the class of the status.",
            ("class",),
            registry=registry,
        )
        self._answered: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
        """Seconds of requests that are not in the histogram yet, by operation and status."""
        self._placed: Tally[float] = Tally()
        """Numbers of placed pods that are not in the histogram yet, by seconds."""
        self._is_telling = False
        self._profiles: set[str] = set()
        self._placing(registry)
        self._committing(registry)
        self._gauges(registry)
        self._recounting(registry)
        WorkerStarts(registry)
        self._process = ProcessMetrics(registry, version=version, engine=engine)
        self._begin_series()
        for limit in limits:
            self._limits.labels(limit.setting, limit.scope).set(limit.value)

    def _begin_series(self) -> None:
        """Start all counter series at 0: a series that starts with its first event has no rate."""
        for result in get_args(Result):
            self._attempts.labels(result, self._profile_label(DEFAULT_SCHEDULER))
        for kind in commit_kinds():
            self._commits.labels(kind)
        for rule in get_args(Rule):
            self._evictions.labels(rule)
        for code in WARNINGS:
            self._warnings.labels(code)
        for outcome in get_args(Forwarding):
            self._forwarded.labels(outcome)
        for queue in QUEUES:
            self._pending.labels(queue)
        for status_class in STATUS_CLASSES:
            self._statuses.labels(status_class)
        for part in PARTS:
            self._mistakes.labels(part)

    def _placing(self, registry: CollectorRegistry) -> None:
        self._attempts = Counter(
            "scheduler_schedule_attempts_total",
            "Pods tried, by result: scheduled, unschedulable or error.",
            ("result", "profile"),
            registry=registry,
        )
        self._placements = BulkHistogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Time from request to committed placement, of pods that a request placed.",
            buckets=_PLACEMENT_SECONDS,
            registry=registry,
        )
        self._plugins = Histogram(
            "scheduler_plugin_execution_duration_seconds",
            "Time that a plugin takes for one pod and all nodes, nothing cached; sampled.",
            ("plugin", "extension_point", "status"),
            buckets=_PLUGIN_SECONDS,
            registry=registry,
        )
        counters = {
            "moorage_redecisions_total": "Requests decided again after a lost race.",
            "moorage_revalidations_total": "Placements checked again after a lost race.",
            "moorage_replans_total": "Those of them that got another node, or none.",
        }
        self._decided_again, self._revalidations, self._replans = (
            Counter(name, description, registry=registry) for name, description in counters.items()
        )
        self._missed_wakeups = Counter(
            "moorage_missed_wakeups_total",
            "Pending pods that were placed only because nobody had tried them for long.",
            registry=registry,
        )
        self._evictions = Counter(
            "moorage_evictions_total",
            "Pods marked as to be stopped, by the kind of rule that does not hold.",
            ("rule",),
            registry=registry,
        )
        self._warnings = Counter(
            "moorage_manifest_warnings_total",
            "Warnings that answers have, by code.",
            ("code",),
            registry=registry,
        )
        self._events_dropped = Counter(
            "moorage_events_dropped_total",
            "Events that were not stored: too many, or no database for long.",
            registry=registry,
        )

    def _recounting(self, registry: CollectorRegistry) -> None:
        self._recount_seconds = Counter(
            "moorage_recount_seconds_total",
            "Time that recounting replicas took.",
            registry=registry,
        )
        self._recounts = Counter(
            "moorage_recount_rounds_total",
            "Rounds in which all replicas that had changed were recounted.",
            registry=registry,
        )
        self._recount_overdue = Gauge(
            "moorage_recount_overdue_seconds",
            "How long the replica has waited that has waited longest for the end of its recount.",
            multiprocess_mode="livemax",
            registry=registry,
        )
        self._mistakes = Counter(
            "moorage_replica_mistakes_total",
            "Replicas that a recount found wrong, by the part that was.",
            ("part",),
            registry=registry,
        )

        self._webhook_messages = Counter(
            "moorage_webhook_messages_total",
            "Messages of records that were sent to webhooks, by what came of them.",
            ("result",),
            registry=registry,
        )
        for result in ("acknowledged", "failed"):
            self._webhook_messages.labels(result)
        self._webhook_lag = Histogram(
            "moorage_webhook_lag_seconds",
            "Time from a commit until the receiver acknowledged the message that ends with it.",
            buckets=_PLACEMENT_SECONDS,
            registry=registry,
        )

    def webhook_sent(self, result: Literal["acknowledged", "failed"]) -> None:
        """Count a message that was sent to a webhook."""
        self._webhook_messages.labels(result).inc()

    def webhook_lag(self, seconds: float) -> None:
        """Observe how old the last record of a message was when the receiver acknowledged it."""
        self._webhook_lag.observe(seconds)

    def _committing(self, registry: CollectorRegistry) -> None:
        self._commits = Counter(
            "moorage_commits_total", "Commits, by what they were for.", ("kind",), registry=registry
        )
        self._changes = Counter(
            "moorage_commit_changes_total", "Changes committed.", registry=registry
        )
        self._commit_seconds = Histogram(
            "moorage_commit_duration_seconds",
            "Time that a commit took, unknown outcomes settled.",
            buckets=_REQUEST_SECONDS,
            registry=registry,
        )
        self._conflicts = Counter(
            "moorage_commit_conflicts_total",
            "Commits that lost the race for the next revision.",
            registry=registry,
        )

    def _gauges(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, description: str, mode: Any, *labels: str) -> Gauge:
            return Gauge(name, description, labels, multiprocess_mode=mode, registry=registry)

        self._pending = gauge(
            "scheduler_pending_pods", "Pods that wait, by queue.", "livesum", "queue"
        )
        self._inbox = gauge("moorage_inbox_requests", "Requests that wait.", "livesum")
        self._watches = gauge("moorage_watch_streams", "Watches under way.", "livesum")
        self._lag_revisions = gauge(
            "moorage_replica_lag_revisions", "How far the last replica is behind.", "livemax"
        )
        self._lag_seconds = gauge(
            "moorage_replica_lag_seconds", "For how long the last replica has been.", "livemax"
        )
        self._log = gauge("moorage_log_changes", "Changes kept in the logs.", "livesum")
        self._objects = gauge(
            "moorage_cluster_objects", "Objects of the largest cluster that is kept.", "livemax"
        )
        self._bytes_in_flight = gauge(
            "moorage_bytes_in_flight",
            "Bytes held of received bodies and unsent answers.",
            "livesum",
        )
        self._limits = gauge(
            "moorage_configured_limit",
            "Limits as they are set, by the name of the setting and by what each of them is for.",
            "livemin",
            *("setting", "scope"),
        )

        self._forwarded = Counter(
            "moorage_forwarded_total",
            "Requests forwarded to the worker that decides their cluster, by what came of it.",
            ("outcome",),
            registry=registry,
        )

    # Requests

    def forwarded(self, outcome: Forwarding) -> None:
        self._forwarded.labels(outcome).inc()

    def request(self, operation: str, status: int, seconds: float) -> None:
        """Count an answered request; `operation` is its operation's id."""
        self._answered[operation, status].append(seconds)
        self._tell_soon()

    # The scheduler's meter

    def attempted(self, attempts: Attempts) -> None:
        """Count pods whose placement was attempted, once the outcome is certain."""
        for (profile, result), pods in attempts.items():
            self._attempts.labels(result, self._profile_label(profile)).inc(pods)

    def scheduled(self, pods: int, seconds: float) -> None:
        """Count placed pods, with the seconds since they were requested."""
        if pods:
            self._placed[seconds] += pods
            self._tell_soon()

    def committed(self, kind: str, changes: int, seconds: float) -> None:
        """Count a commit that extended the log."""
        self._commits.labels(kind).inc()
        self._changes.inc(changes)
        self._commit_seconds.observe(seconds)

    def recounted(self, seconds: float) -> None:
        """Count the time spent recounting replicas."""
        self._recount_seconds.inc(seconds)

    def round_ended(self) -> None:
        """Count a round in which all changed replicas were recounted."""
        self._recounts.inc()

    def overdue(self, seconds: float) -> None:
        """Set the longest time that a replica has been waiting for its recount."""
        self._recount_overdue.set(seconds)

    def mistaken(self, part: str) -> None:
        """Count a replica in which a recount found `part` to be wrong."""
        self._mistakes.labels(part).inc()

    def lost(self) -> None:
        """Count a commit that failed because another one extended the log first."""
        self._conflicts.inc()

    def decided_again(self, hints: int, kept: int) -> None:
        """Count a request that was decided again, with its hints and how many of them were kept."""
        self._decided_again.inc()
        self._revalidations.inc(hints)
        self._replans.inc(hints - kept)

    def missed_wakeups(self, pods: int) -> None:
        """Count pods that no change woke, though they fit."""
        self._missed_wakeups.inc(pods)

    def executed(self, executions: Sequence[Execution]) -> None:
        """Observe the times that plugins took for one pod."""
        for execution in executions:
            series = self._plugins.labels(
                execution.plugin, execution.extension_point, execution.status
            )
            series.observe(execution.seconds)

    def warned(self, warnings: Sequence[FieldWarning] | UnsetType) -> None:
        for warning in warnings or ():
            self._warnings.labels(warning.code).inc()

    def evicted(self, rule: str) -> None:
        """Count a pod that was marked for eviction."""
        self._evictions.labels(rule).inc()

    def events_dropped(self, events: int) -> None:
        """Count events that will never be stored."""
        self._events_dropped.inc(events)

    def gauges(self, gauges: ProcessState) -> None:
        """Set the gauges to the present state of this process."""
        for queue in QUEUES:
            self._pending.labels(queue).set(gauges.pending.get(queue, 0))
        self._inbox.set(gauges.inbox)
        self._watches.set(gauges.watches)
        self._lag_revisions.set(gauges.lag_revisions)
        self._lag_seconds.set(gauges.lag_seconds)
        self._log.set(gauges.log_changes)
        self._objects.set(gauges.objects)

    def bytes_in_flight(self, count: int) -> None:
        """Set how many bytes of received bodies and unsent answers this process holds."""
        self._bytes_in_flight.set(count)

    def database(
        self,
        *,
        is_up: bool,
        pools: Mapping[str, Mapping[str, int]],
        incidents: Mapping[str, int],
    ) -> None:
        """Set the gauges of the database, and once every few calls those of this process.

        `incidents` counts outages, takeovers, and lifts since this process began.
        """
        self._process.database(is_up=is_up, pools=pools, incidents=incidents)

    # Scrapes

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        self._tell()
        return exposition(self._registry, self._directory)

    def _tell_soon(self) -> None:
        """Schedule an update of the histograms, at most one per iteration of the event loop.

        Observing each value individually would cost two writes to a file that other processes read.
        """
        if self._is_telling:
            return
        try:
            asyncio.get_running_loop().call_soon(self._tell)
        except RuntimeError:  # there is no event loop, so nothing is gathered
            self._tell()
        else:
            self._is_telling = True

    def _tell(self) -> None:
        self._is_telling = False
        answered, placed = self._answered, self._placed
        self._answered, self._placed = defaultdict(list), Tally()
        for (operation, status), seconds in answered.items():
            self._requests.labels(operation, str(status)).observe_all(Tally(seconds))
            self._statuses.labels(f"{status // 100}xx").inc(len(seconds))
        if placed:
            self._placements.observe_all(placed)

    def _profile_label(self, profile: str) -> str:
        if profile not in self._profiles:
            if len(self._profiles) >= PROFILES_MAX:
                return "other"
            self._profiles.add(profile)
        return profile


class BulkHistogram(Histogram):
    """A histogram that records many observations with one write per bucket."""

    def observe_all(self, amounts: Tally[float]) -> None:
        """Observe each amount as often as the tally counts it."""
        buckets: Tally[int] = Tally()
        for amount, count in amounts.items():
            buckets[bisect_left(self._upper_bounds, amount)] += count
        self._sum.inc(sum(amount * count for amount, count in amounts.items()))
        for bucket, count in buckets.items():
            self._buckets[bucket].inc(count)
