"""The figures of one run, and several runs as a table."""

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.table import Table as RichTable

from bench.workloads import yardstick


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The figures of one run of one workload on one layer; None for what a layer does not have."""

    layer: str
    workload: str
    nodes: int
    pods: int
    unplaced: int
    violations: int
    """How many stored placements break a rule, are not where they were acknowledged, or are
    missing."""
    seconds: float
    cpu_seconds: float
    """User and system time of the processes that decide; for the whole path, of the server."""
    p50_ms: float
    """The latency of a request; for the engine alone, of a pod."""
    p99_ms: float
    megabytes: float
    """The greatest resident size, up to the last placement, of the largest process that decides."""
    batch: int = 1
    clients: int = 1
    workers: int = 1
    conflicts: int = 0
    """How many commits lost the race for the next revision."""
    postgres_cpu_seconds: float | None = None
    postgres_megabytes: float | None = None
    """The sum of the proportional set sizes of PostgreSQL's processes after the last placement."""
    load_objects_per_second: float | None = None
    durability: dict[str, str] = field(default_factory=dict)
    """`fsync`, `synchronous_commit` and `full_page_writes`, as PostgreSQL reports them."""

    @property
    def pods_per_second(self) -> float:
        return self.pods / self.seconds

    @property
    def cpu_micros(self) -> float:
        """The CPU time per pod, in microseconds."""
        return self.cpu_seconds / self.pods * 1e6


@dataclass(frozen=True)
class Table:
    """A heading, and rows with as many cells; the first column is text, the others are numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def rich(self) -> RichTable:
        table = RichTable()
        for number, name in enumerate(self.columns):
            table.add_column(name, justify="right" if number else "left")
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        rules = ["---", *["--:" for _ in self.columns[1:]]]
        return "\n".join(f"| {' | '.join(row)} |" for row in (self.columns, rules, *self.rows))


def spread(values: Sequence[float]) -> str:
    """Write the median, and the range if there are several values."""
    middle = f"{statistics.median(values):,.0f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):,.0f} to {max(values):,.0f})"


def verdict(*, is_reached: bool) -> str:
    """Return what a table says beside a goal."""
    return "reached" if is_reached else "not yet"


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of sorted values lies."""
    return values[min(len(values) - 1, int(len(values) * share))]


def append(path: Path | None, record: dict[str, object]) -> None:
    """Append a JSON line to a file, if there is one."""
    if path is not None:
        with path.open("a") as lines:
            lines.write(json.dumps(record) + "\n")


def write(path: Path | None, runs: Sequence[Figures]) -> None:
    """Append each run to a file as a JSON line, if there is one."""
    for run in runs:
        append(path, asdict(run) | {"pods_per_second": round(run.pods_per_second, 1)})


ENGINE_TIMES, HTTP_TIMES = 100, 50
ENGINE_PODS_PER_SECOND, HTTP_PODS_PER_SECOND = 30_000, 8_000
SINGLE_PODS_PER_SECOND, SINGLE_CLIENTS = 2_500, 64
WITHOUT_RULES = (
    "SchedulingBasic",
    "SchedulingDaemonset",
    "SchedulingDaemonsetPerNode",
    "Unschedulable",
)


def goal(layer: str, workload: str, nodes: int) -> float | None:
    """Return the pods per second to be reached with 5,000 nodes; None if there is no such goal.

    For workloads with rules between pods or nodes, the engine alone has to reach a hundred times
    kube-scheduler's own rate or 30,000 pods per second, whichever is less. The whole path in
    batches has to reach fifty times that rate or 8,000. Without such rules, the goal is 8,000.
    """
    base = yardstick(workload, nodes)
    if base is None or nodes != 5000 or layer not in {"engine", "http"}:
        return None
    if workload in WITHOUT_RULES:
        return HTTP_PODS_PER_SECOND
    if layer == "engine":
        return min(ENGINE_TIMES * base, ENGINE_PODS_PER_SECOND)
    return min(HTTP_TIMES * base, HTTP_PODS_PER_SECOND)


Cell = Callable[[Sequence[Figures]], str]


def _middle(of: Callable[[Figures], float | None], digits: int = 1) -> Cell:
    def cell(runs: Sequence[Figures]) -> str:
        values = [value for run in runs if (value := of(run)) is not None]
        return f"{statistics.median(values):,.{digits}f}" if values else ""

    return cell


def _against_kube_scheduler(runs: Sequence[Figures]) -> tuple[str, str]:
    base = yardstick(runs[0].workload, runs[0].nodes)
    if base is None:
        return "", ""
    times = statistics.median(run.pods_per_second for run in runs) / base
    return f"{base:,.0f}", f"{times:,.0f}" if times >= 1 else f"{times:.1f}"


def _goal(runs: Sequence[Figures]) -> tuple[str, str]:
    run = runs[0]
    wanted: float | None
    if run.layer == "http" and run.batch == 1:
        wanted = SINGLE_PODS_PER_SECOND if run.clients == SINGLE_CLIENTS else None
    else:
        wanted = goal(run.layer, run.workload, run.nodes)
    if wanted is None:
        return "", ""
    reached = statistics.median(run.pods_per_second for run in runs) >= wanted
    return f"{wanted:,.0f}", verdict(is_reached=reached)


_COLUMNS: dict[str, Cell] = {
    "workload": lambda runs: runs[0].workload,
    "nodes": lambda runs: f"{runs[0].nodes:,}",
    "pods/s": lambda runs: spread([run.pods_per_second for run in runs]),
    "p50 ms": _middle(lambda run: run.p50_ms, 2),
    "p99 ms": _middle(lambda run: run.p99_ms, 2),
    "µs CPU a pod": _middle(lambda run: run.cpu_micros, 0),
    "CPU s": _middle(lambda run: run.cpu_seconds, 2),
    "PostgreSQL CPU s": _middle(lambda run: run.postgres_cpu_seconds, 2),
    "MB": _middle(lambda run: run.megabytes, 0),
    "PostgreSQL MB": _middle(lambda run: run.postgres_megabytes, 0),
    "conflicts": lambda runs: f"{sum(run.conflicts for run in runs):,}",
    "unplaced": lambda runs: f"{runs[0].unplaced:,}",
    "violations": lambda runs: f"{sum(run.violations for run in runs):,}",
    "kube-scheduler": lambda runs: _against_kube_scheduler(runs)[0],
    "times": lambda runs: _against_kube_scheduler(runs)[1],
    "goal": lambda runs: _goal(runs)[0],
    "": lambda runs: _goal(runs)[1],
}
_ENGINE_LACKS = {"CPU s", "PostgreSQL CPU s", "PostgreSQL MB", "conflicts"}


def table(of_workloads: Sequence[Sequence[Figures]]) -> Table:
    """Make a row for each workload's runs, which are all of one layer."""
    layer = of_workloads[0][0].layer
    lacking = _ENGINE_LACKS if layer == "engine" else {"µs CPU a pod"}
    lacking = lacking | (
        {"goal", ""} if all(_goal(runs)[0] == "" for runs in of_workloads) else set()
    )
    names = [name for name in _COLUMNS if name not in lacking]
    return Table(names, [[_COLUMNS[name](runs) for name in names] for runs in of_workloads])
