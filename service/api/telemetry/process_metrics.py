"""Gauges of a server's processes, their database connections, and their versions.

The client library's process metrics cover one process only, so they are copied from its collector
and summed over the workers like all other metrics.
"""

import platform
from collections.abc import Mapping
from typing import Any

from prometheus_client import Counter, Gauge, ProcessCollector
from prometheus_client.registry import CollectorRegistry

LOOKS = 10
"""The calls between two updates of the process gauges, since counting open files takes a while."""

_DATABASE_POOLS = ("commits", "reads")
_POOL_STATES = ("idle", "borrowed")
_INCIDENTS = {
    "outages": ("moorage_database_outages_total", "How often a worker lost its database."),
    "takeovers": (
        "moorage_database_takeovers_total",
        "How often a worker saw that another PostgreSQL accepts writes.",
    ),
    "lifts": (
        "moorage_history_lifts_total",
        "Clusters of which revisions were lifted, as changes may be lost.",
    ),
}
"""The kinds of database incidents, each with the name and description of its counter."""


class ProcessMetrics:
    """The gauges of this process."""

    def __init__(self, registry: CollectorRegistry, *, version: str, engine: str) -> None:
        def gauge(name: str, description: str, mode: Any, *labels: str) -> Gauge:
            return Gauge(name, description, labels, multiprocess_mode=mode, registry=registry)

        self._collector = ProcessCollector(registry=None)
        self._build = gauge(
            "moorage_build_info",
            "1, labelled by what runs.",
            "livemax",
            *("version", "python", "engine"),
        )
        self._build.labels(version, platform.python_version(), engine).set(1)
        self._workers = gauge("moorage_worker_processes", "Worker processes that run.", "livesum")
        self._workers.set(1)
        self._up = gauge(
            "moorage_database_up", "Whether all workers can use their database.", "livemin"
        )
        self._up.set(1)
        self._connections = gauge(
            "moorage_database_connections",
            "Open connections to the database, by pool.",
            "livesum",
            *("pool", "state"),
        )
        self._sizes = gauge(
            "moorage_database_connections_max",
            "How many connections a pool may borrow.",
            "livesum",
            "pool",
        )
        for pool in _DATABASE_POOLS:
            self._sizes.labels(pool).set(0)
            for state in _POOL_STATES:
                self._connections.labels(pool, state).set(0)
        self._incidents = {
            kind: Counter(name, description, registry=registry)
            for kind, (name, description) in _INCIDENTS.items()
        }
        self._incidents_told = dict.fromkeys(_INCIDENTS, 0)
        self._cpu = Counter(
            "process_cpu_seconds_total", "CPU time of the workers.", registry=registry
        )
        self._gauges = {
            "process_resident_memory_bytes": gauge(
                "process_resident_memory_bytes", "Memory of the workers.", "livesum"
            ),
            "process_open_fds": gauge("process_open_fds", "Open files of the workers.", "livesum"),
            "process_max_fds": gauge(
                "process_max_fds", "How many files a worker may open.", "livemin"
            ),
            "process_start_time_seconds": gauge(
                "process_start_time_seconds", "When the oldest worker began.", "livemin"
            ),
        }
        self._cpu_told = 0.0
        self._calls = 0
        self._look()

    def database(
        self,
        *,
        is_up: bool,
        pools: Mapping[str, Mapping[str, int]],
        incidents: Mapping[str, int],
    ) -> None:
        """Set the gauges of the database; `pools` has the connections of each pool, by state.

        `incidents` counts incidents since this process began, by kind.
        """
        self._up.set(is_up)
        for kind, count in incidents.items():
            self._incidents[kind].inc(count - self._incidents_told[kind])
            self._incidents_told[kind] = count
        for pool, use in pools.items():
            self._sizes.labels(pool).set(use["size"])
            for state in _POOL_STATES:
                self._connections.labels(pool, state).set(use[state])
        self._calls += 1
        if self._calls % LOOKS == 0:
            self._look()

    def _look(self) -> None:
        """Copy process statistics from the kernel; do nothing where it provides none."""
        values = {
            sample.name: sample.value
            for metric in self._collector.collect()
            for sample in metric.samples
        }
        for name, gauge in self._gauges.items():
            if name in values:
                gauge.set(values[name])
        cpu = values.get("process_cpu_seconds_total", self._cpu_told)
        self._cpu.inc(max(0.0, cpu - self._cpu_told))
        self._cpu_told = cpu
