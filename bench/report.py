"""All figures of RESULTS.md; each section is written between its marks once it is measured."""

import platform
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import psutil

from bench import chart, commits, engine, growth, memory, over_http, profiling, ratios, trace
from bench.figures import Figures, Table, append, table, write
from bench.pace import Gate
from bench.stack import Postgres
from bench.workloads import Workload, find, workloads
from service.runtime import compiled_engine
from tools.marked_page_parts import between

CHECKOUT = Path(__file__).resolve().parents[1]
RESULTS = CHECKOUT / "bench" / "RESULTS.md"
CURVES = CHECKOUT / "docs" / "growth.svg"
FLAMES = CHECKOUT / "docs" / "flame-{layer}.svg"

COLUMNS = 100
"""The width of the page's prose."""
RUNS = 3
BATCH, CLIENTS, PODS = 100, 8, 4_000
TRACE_BATCH, TRACE_CLIENTS = 200, (1, 2)
PROFILED, PROFILED_PODS = "SchedulingPodAffinity", 20_000
LAYERS = ("SchedulingPodAffinity", "SchedulingPodAntiAffinity", "TopologySpreading")
FULL = {"SchedulingRequiredPodAntiAffinityWithNSSelector"}
"""Workloads in which more pods than their own would leave no node free."""


@dataclass(frozen=True)
class Means:
    """The means with which sections measure, and the place where their runs are noted."""

    postgres: Postgres
    lines: Path | None
    trace: Path | None = None
    """The folder of a production trace."""
    gate: Gate = field(default_factory=Gate)


def conditions(means: Means) -> str:
    memory_gb = psutil.virtual_memory().total / 1e9
    settings = ", ".join(f"`{name}` {value}" for name, value in means.postgres.durability.items())
    form = "compiled" if compiled_engine.is_in_use() else "interpreted"
    load = psutil.getloadavg()[1] / (psutil.cpu_count() or 1)
    told = (
        f"{psutil.cpu_count()} shared cores, {memory_gb:.0f} GB; CPython {platform.python_version()}, "
        f"NumPy {np.__version__}, engine {form}; PostgreSQL: {settings}. Load of each core in the "
        f"five minutes before: {load:.1f}."
    )
    return textwrap.fill(told, COLUMNS, break_long_words=False, break_on_hyphens=False)


def engine_alone(means: Means) -> str:
    return "\n\n".join(
        _runs(means, workloads(size), RUNS, engine.run).markdown() for size in (5000, 500)
    )


def engine_and_commit(means: Means) -> str:
    chosen = [find(name, 5000) for name in LAYERS]

    def run(workload: Workload) -> Figures:
        return commits.run(
            means.postgres, workload, batch=BATCH, clients=CLIENTS, pods=_pods(workload)
        )

    return _runs(means, chosen, RUNS, run).markdown()


def whole_path(means: Means) -> str:
    def run(workload: Workload) -> Figures:
        return over_http.run(
            means.postgres, workload, batch=BATCH, clients=CLIENTS, pods=_pods(workload)
        )

    large = _runs(means, workloads(5000), RUNS, run)
    small = _runs(means, workloads(500), 1, run)
    return f"{large.markdown()}\n\n{small.markdown()}"


def single_pods(means: Means) -> str:
    parts = []
    for clients, pods, runs in ((64, PODS, RUNS), (1, 1_000, RUNS)):

        def run(workload: Workload, clients: int = clients, pods: int = pods) -> Figures:
            return over_http.run(means.postgres, workload, batch=1, clients=clients, pods=pods)

        shown = _runs(means, [find(PROFILED, 5000)], runs, run)
        who = "one client" if clients == 1 else f"{clients} clients"
        parts.append(f"From {who}:\n\n{shown.markdown()}")
    return "\n\n".join(parts)


def ratios_of_cost(means: Means) -> str:
    found = []
    for comparison in ratios.COMPARISONS:
        for ratio in ratios.run(comparison):
            append(means.lines, ratios.record(ratio))
            found.append(ratio)
    return ratios.table(found).markdown()


def growing_worlds(means: Means) -> str:
    points = []
    for dimension in growth.DIMENSIONS:
        for point in growth.run(dimension):
            append(means.lines, growth.record(point))
            points.append(point)
    CURVES.write_text(chart.svg(points))
    return growth.table(points).markdown()


def memory_of_a_worker(means: Means) -> str:
    found = []
    for nodes, pods in memory.SIZES:
        figures = means.gate.measured(partial(memory.run, means.postgres, nodes, pods))
        append(means.lines, memory.record(figures))
        found.append(figures)
    return memory.table(found).markdown()


def production_trace(means: Means) -> str:
    if means.trace is None:
        raise ValueError("the trace section needs the folder of a trace")
    found: list[list[trace.TraceFigures]] = []
    for clients in TRACE_CLIENTS:
        replay = partial(trace.run, means.postgres, means.trace, batch=TRACE_BATCH, clients=clients)
        found.append([means.gate.measured(replay) for _ in range(RUNS)])
        for figures in found[-1]:
            append(means.lines, trace.record(figures))
    return trace.table(found).markdown()


def profiles(means: Means) -> str:
    workload = find(PROFILED, 5000)
    stacks = {
        "engine": profiling.of_engine(workload, PROFILED_PODS),
        "http": profiling.of_server(
            means.postgres, workload, batch=BATCH, clients=CLIENTS, pods=PROFILED_PODS
        ),
    }
    parts = []
    for layer, found in stacks.items():
        picture = Path(str(FLAMES).format(layer=layer))
        picture.write_text(profiling.flame_graph(f"{PROFILED}, {layer}", found))
        shown = profiling.table(found).markdown()
        parts.append(f"{PROFILED}, {layer} ([flame graph](../docs/{picture.name})):\n\n{shown}")
    return "\n\n".join(parts)


SECTIONS: dict[str, Callable[[Means], str]] = {
    "conditions": conditions,
    "engine": engine_alone,
    "commit": engine_and_commit,
    "http": whole_path,
    "single": single_pods,
    "ratios": ratios_of_cost,
    "growth": growing_worlds,
    "memory": memory_of_a_worker,
    "trace": production_trace,
    "profiles": profiles,
}


def run(names: Sequence[str], means: Means, results: Path = RESULTS) -> Iterator[tuple[str, float]]:
    """Measure sections and write them; yield the name of each, and how many seconds it took."""
    for name in names:
        began = time.perf_counter()
        means.gate.open()
        text = f"{SECTIONS[name](means)}\n\n{means.gate.told()}"
        results.write_text(between(results.read_text(), name, text))
        yield name, time.perf_counter() - began


def _runs(
    means: Means, chosen: Sequence[Workload], runs: int, run: Callable[[Workload], Figures]
) -> Table:
    found = []
    for workload in chosen:
        figures = [means.gate.measured(partial(run, workload)) for _ in range(runs)]
        write(means.lines, figures)
        found.append(figures)
    return table(found)


def _pods(workload: Workload) -> int | None:
    """Return how many pods to place, if not the workload's own number.

    With 5,000 nodes the workloads' own thousand pods would be placed too soon to measure that.
    """
    return None if workload.size < 5000 or workload.name in FULL else PODS
