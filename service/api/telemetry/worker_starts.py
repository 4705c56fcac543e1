"""Count the starts of workers, in the process that starts them.

Workers cannot count their own deaths, and the age of the oldest worker says nothing about the
others. So the supervisor counts starts in a file next to those of the workers, and every scrape
sums them.
"""

from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, values
from prometheus_client.values import MultiProcessValue

StartReason = Literal["server", "renewal", "death"]
"""Why a worker is started: the server starts, its certificate was renewed, or a worker ended."""

_SUPERVISOR = "supervisor"


class WorkerStarts:
    """The starts of workers, by reason."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._starts = Counter(
            "moorage_worker_starts_total",
            "Workers that were started, by why.",
            ("reason",),
            registry=registry,
        )
        for reason in get_args(StartReason):
            self._starts.labels(reason)

        self._set_aside = Counter(
            "moorage_pods_set_aside_total",
            "Pods that were set aside, since workers ended while they were deciding them.",
            registry=registry,
        )

    def set_aside(self) -> None:
        """Count a pod that is no longer tried."""
        self._set_aside.inc()

    def started(self, reason: StartReason) -> None:
        """Count the start of a worker, by its reason."""
        self._starts.labels(reason).inc()


def starts_told_by_supervisor() -> WorkerStarts:
    """Return a counter in the folder that the workers share (`PROMETHEUS_MULTIPROC_DIR`).

    Call this only in the supervisor, which has no other metrics.
    """
    values.ValueClass = MultiProcessValue(lambda: _SUPERVISOR)  # type: ignore[no-untyped-call]
    return WorkerStarts(CollectorRegistry())
