"""`python -m bench engine` and `python -m bench http`: the workloads, measured; `make bench`."""

import asyncio
import json
import statistics
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bench import engine, over_http
from bench.workloads import Workload, find, workloads, yardstick

app = typer.Typer(no_args_is_help=False, add_completion=False)
console = Console(width=160)
SHORT = ("SchedulingPodAffinity", "SchedulingPodAntiAffinity", "TopologySpreading")

Names = Annotated[list[str] | None, typer.Argument(help="Workloads; a short choice by default.")]
Size = Annotated[int, typer.Option(help="Nodes: 500 or 5000.")]
Runs = Annotated[int, typer.Option(help="Repetitions; the median is shown with the range.")]
Out = Annotated[Path | None, typer.Option(help="Append JSON lines here.")]
Every = Annotated[bool, typer.Option("--all", help="Every workload.")]


def _chosen(names: list[str] | None, size: int, *, every: bool) -> list[Workload]:
    if every:
        return workloads(size)
    return [find(name, size) for name in names or SHORT]


def _spread(values: list[float]) -> str:
    middle = statistics.median(values)
    return f"{middle:,.0f} ({min(values):,.0f} to {max(values):,.0f})"


def _record(out: Path | None, line: dict[str, object]) -> None:
    if out is not None:
        with out.open("a") as lines:
            lines.write(json.dumps(line) + "\n")


@app.command("engine")
def engine_alone(
    names: Names = None,
    *,
    size: Size = 5000,
    runs: Runs = 3,
    out: Out = None,
    every: Every = False,
) -> None:
    """Pods per second of the engine alone, beside kube-scheduler's."""
    table = Table(
        "workload", "nodes", "pods/s", "µs CPU/pod", "unplaced", "kube-scheduler", "ratio"
    )
    for workload in _chosen(names, size, every=every):
        figures = [engine.run(workload) for _ in range(runs)]
        for each in figures:
            _record(
                out, {"layer": "engine", "workload": workload.name, "nodes": size, **asdict(each)}
            )
        rates = [each.pods_per_second for each in figures]
        cpu = statistics.median(each.cpu_seconds / each.pods for each in figures) * 1e6
        base = yardstick(workload.name, size)
        ratio = f"{statistics.median(rates) / base:,.0f} times" if base else ""
        table.add_row(
            workload.name,
            str(size),
            _spread(rates),
            f"{cpu:.1f}",
            str(figures[0].unschedulable),
            f"{base:,.0f}" if base else "",
            ratio,
        )
    console.print(table)


@app.command("http")
def whole_path(  # noqa: PLR0913 - one parameter an option
    names: Names = None,
    *,
    size: Size = 5000,
    runs: Runs = 3,
    batch: Annotated[int, typer.Option(help="Pods a request.")] = 100,
    clients: Annotated[int, typer.Option(help="Concurrent clients.")] = 8,
    pods: Annotated[int | None, typer.Option(help="Measured pods, if not the workload's.")] = None,
    out: Out = None,
    every: Every = False,
) -> None:
    """Pods per second over HTTP, every answer durable, all rules checked afterwards."""
    table = Table(
        "workload",
        "nodes",
        "pods/s",
        "p50 ms",
        "p99 ms",
        "server CPU s",
        "PostgreSQL CPU s",
        "server MB",
        "unplaced",
        "kube-scheduler",
        "ratio",
    )
    for workload in _chosen(names, size, every=every):
        figures = [
            asyncio.run(over_http.run(workload, batch=batch, clients=clients, pods=pods))
            for _ in range(runs)
        ]
        for each in figures:
            _record(
                out, {"layer": "http", "workload": workload.name, "nodes": size, **asdict(each)}
            )
        rates = [each.pods_per_second for each in figures]
        base = yardstick(workload.name, size)
        middle = sorted(figures, key=lambda each: each.pods_per_second)[len(figures) // 2]
        table.add_row(
            workload.name,
            str(size),
            _spread(rates),
            f"{middle.p50_ms:.1f}",
            f"{middle.p99_ms:.1f}",
            f"{middle.server_cpu_seconds:.1f}",
            f"{middle.postgres_cpu_seconds:.1f}",
            f"{middle.server_megabytes:.0f}",
            str(middle.unplaced),
            f"{base:,.0f}" if base else "",
            f"{statistics.median(rates) / base:,.0f} times" if base else "",
        )
    console.print(table)


if __name__ == "__main__":
    app()
