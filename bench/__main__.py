"""`python -m bench`: measures the workloads; `make bench` is the short form."""

import math
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench import (
    chart,
    commits,
    engine,
    growth,
    memory,
    over_http,
    planners,
    profiling,
    ratios,
    report,
    trace,
    two_clusters,
)
from bench.figures import Figures, append, table, write
from bench.pace import Gate
from bench.stack import NotDurableError, Postgres, postgres
from bench.workloads import Workload, find, workloads

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(width=200)
SHORT = ("SchedulingPodAffinity", "SchedulingPodAntiAffinity", "TopologySpreading")

Names = Annotated[list[str] | None, typer.Argument(help="Workloads; a short choice by default.")]
Size = Annotated[int, typer.Option(help="Nodes: 500 or 5000.")]
Runs = Annotated[int, typer.Option(min=1, help="Repetitions; the median is shown with the range.")]
Pods = Annotated[int | None, typer.Option(min=1, help="Pods to place, if not the workload's own.")]
Batch = Annotated[int, typer.Option(min=1, help="Pods a request.")]
Clients = Annotated[int, typer.Option(min=1, help="Concurrent clients.")]
Workers = Annotated[int, typer.Option(min=1, help="Server processes.")]
Lines = Annotated[Path | None, typer.Option("--json", "--out", help="Append JSON lines here.")]
Every = Annotated[bool, typer.Option("--all", help="Every workload.")]

Run = Callable[[Workload], Figures]


@app.command("engine")
def engine_alone(
    names: Names = None,
    *,
    size: Size = 5000,
    runs: Runs = 3,
    pods: Pods = None,
    lines: Lines = None,
    every: Every = False,
) -> None:
    """The engine alone: parsed pods in, decisions out."""
    chosen = _chosen(names, size, every=every)
    _show(_repeated(chosen, runs, lambda workload: engine.run(workload, pods), lines))


@app.command("commit")
def engine_and_commit(  # noqa: PLR0913 - one parameter an option
    names: Names = None,
    *,
    size: Size = 5000,
    runs: Runs = 3,
    batch: Batch = 100,
    clients: Clients = 8,
    pods: Pods = None,
    lines: Lines = None,
    every: Every = False,
) -> None:
    """Engine and durable commit: the scheduler on PostgreSQL, without HTTP."""
    chosen = _chosen(names, size, every=every)
    with _durable() as database:

        def run(workload: Workload) -> Figures:
            return commits.run(database, workload, batch=batch, clients=clients, pods=pods)

        _show(_repeated(chosen, runs, run, lines))


@app.command("http")
def whole_path(  # noqa: PLR0913 - one parameter an option
    names: Names = None,
    *,
    size: Size = 5000,
    runs: Runs = 3,
    batch: Batch = 100,
    clients: Clients = 8,
    pods: Pods = None,
    workers: Workers = 1,
    lines: Lines = None,
    every: Every = False,
) -> None:
    """The whole path: over HTTP, every answer durable. This runs if only a workload is named."""
    chosen = _chosen(names, size, every=every)
    with _durable() as database:

        def run(workload: Workload) -> Figures:
            return over_http.run(
                database, workload, batch=batch, clients=clients, pods=pods, workers=workers
            )

        _show(_repeated(chosen, runs, run, lines))


@app.command()
def short(*, size: Size = 5000, lines: Lines = None) -> None:
    """Three workloads on each layer, once. This runs if nothing is named."""
    for layer in (engine_alone, engine_and_commit, whole_path):
        console.print(layer.__doc__)
        layer(size=size, runs=1, lines=lines)


@app.command("growth")
def growing_worlds(
    dimensions: Annotated[
        list[str] | None,
        typer.Argument(help=f"Of {', '.join(growth.DIMENSIONS)}; all by default."),
    ] = None,
    *,
    lines: Lines = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the curves here, as SVG.")] = None,
) -> None:
    """The engine's cost of a pod as the world grows."""
    points = []
    for dimension in _known(dimensions, growth.DIMENSIONS):
        for point in growth.run(dimension):
            append(lines, growth.record(point))
            points.append(point)
    console.print(growth.table(points).rich())
    if picture is not None:
        picture.write_text(chart.svg(points))


@app.command("ratios")
def ratios_of_cost(
    comparisons: Annotated[
        list[str] | None,
        typer.Argument(help=f"Of {', '.join(ratios.COMPARISONS)}; all by default."),
    ] = None,
    *,
    rounds: Annotated[int, typer.Option(min=4, help="How often the two take turns.")] = 41,
    lines: Lines = None,
) -> None:
    """Ratios of CPU time per pod, measured alternately in one run: medians and quartiles."""
    found = []
    for comparison in _known(comparisons, ratios.COMPARISONS):
        for ratio in ratios.run(comparison, rounds):
            append(lines, ratios.record(ratio))
            found.append(ratio)
    console.print(ratios.table(found).rich())


@app.command("memory")
def memory_of_a_worker(
    *,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes.")] = 5_000,
    pods: Annotated[int, typer.Option(min=1, help="Placed pods.")] = 50_000,
    lines: Lines = None,
) -> None:
    """A worker's memory, the rate of `apply`, and the time of a start, for any size of cluster."""
    with _durable() as database:
        figures = memory.run(database, nodes, pods)
    append(lines, memory.record(figures))
    console.print(memory.table([figures]).rich())


@app.command("trace")
def production_trace(
    folder: Annotated[Path, typer.Argument(help="With nodes.json and pods.jsonl.gz.")],
    *,
    batch: Batch = 200,
    clients: Clients = 1,
    runs: Runs = 3,
    lines: Lines = None,
) -> None:
    """A production trace with arrivals and departures, over HTTP; its violations are counted."""
    found = []
    with _durable() as database:
        for _ in range(runs):
            found.append(trace.run(database, folder, batch=batch, clients=clients))
            append(lines, trace.record(found[-1]))
    console.print(trace.table([found]).rich())
    if any(run.violations for run in found):
        raise typer.Exit(1)


@app.command("profile")
def where_the_time_goes(
    name: Annotated[str, typer.Argument(help="The workload.")],
    *,
    layer: Annotated[str, typer.Option(help="engine or http.")] = "engine",
    size: Size = 5000,
    batch: Batch = 100,
    clients: Clients = 8,
    pods: Annotated[int, typer.Option(min=1, help="Pods to place.")] = 20_000,
    picture: Annotated[Path | None, typer.Option(help="The flame graph, as SVG.")] = None,
) -> None:
    """A profile by py-spy: the most expensive functions, and a flame graph."""
    (workload,) = _chosen([name], size, every=False)
    if layer == "engine":
        stacks = profiling.of_engine(workload, pods)
    else:
        with _durable() as database:
            stacks = profiling.of_server(
                database, workload, batch=batch, clients=clients, pods=pods
            )
    console.print(profiling.table(stacks).rich())
    if picture is not None:
        picture.write_text(profiling.flame_graph(f"{name}, {layer}", stacks))


@app.command("report")
def all_figures(
    sections: Annotated[
        list[str] | None, typer.Argument(help=f"Of {', '.join(report.SECTIONS)}; all by default.")
    ] = None,
    *,
    folder: Annotated[
        Path | None, typer.Option("--trace", help="A production trace; left out without.")
    ] = None,
    pace_max: Annotated[
        float,
        typer.Option(help="Repeat runs at which the machine was slower, ms (see bench/pace.py)."),
    ] = math.inf,
    patience: Annotated[
        float, typer.Option(help="… for at most so many seconds a section.")
    ] = 600.0,
    lines: Lines = None,
) -> None:
    """Measure what bench/RESULTS.md shows, and write it there; this takes about 15 minutes."""
    names = _known(sections, report.SECTIONS)
    if folder is None:
        names = [name for name in names if name != "trace"]
    gate = Gate(pace_max, patience)
    with _durable() as database:
        for name, seconds in report.run(names, report.Means(database, lines, folder, gate)):
            console.print(f"{name}: {seconds:.0f} s")


@app.command("planners")
def planners_together(  # noqa: PLR0913 - one parameter an option
    numbers: Annotated[list[int] | None, typer.Argument(help="1, 2, 4 and 8 by default.")] = None,
    *,
    clusters: Annotated[list[int] | None, typer.Option(help="1 and 8 by default.")] = None,
    name: Annotated[str, typer.Option("--workload")] = "SchedulingPodAntiAffinity",
    size: Size = 500,
    runs: Runs = 3,
    batch: Batch = 20,
    clients: Clients = 16,
    pods: Annotated[int, typer.Option(min=1, help="Of a run, all clusters together.")] = 4000,
) -> None:
    """Several server processes on one PostgreSQL, with one cluster and with eight."""
    workload, found = _chosen([name], size, every=False)[0], []
    with _durable() as database:
        for planning in numbers or [1, 2, 4, 8]:
            with planners.running(database, planning) as servers:
                for count in clusters or [1, 8]:
                    kind = [
                        planners.run(
                            servers,
                            workload,
                            clusters=count,
                            pods=pods,
                            batch=batch,
                            clients=max(clients, planning),
                        )
                        for _ in range(runs)
                    ]
                    found.append(kind)
                    console.print(planners.table([kind]).rich())
    found.sort(key=lambda kind: kind[0].clusters)
    console.print(planners.table(found).markdown(), soft_wrap=True)
    if any(each.violations for kind in found for each in kind):
        raise typer.Exit(1)


@app.command("two-clusters")
def two_busy_clusters(
    *,
    name: Annotated[str, typer.Option("--workload")] = "SchedulingBasic",
    size: Size = 5000,
    rounds: Annotated[int, typer.Option(min=1, help="Of each kind; they take turns.")] = 9,
    batch: Batch = 100,
    clients: Clients = 8,
    pods: Annotated[int, typer.Option(min=1, help="Of a round and cluster.")] = 4000,
) -> None:
    """Two busy clusters on two workers: with a worker each, and both with one, in turn."""
    workload, found = _chosen([name], size, every=False)[0], []
    with _durable() as database:
        for each in two_clusters.run(
            database, workload, rounds=rounds, pods=pods, batch=batch, clients=clients
        ):
            found.append(each)
            console.print(f"{each.placement}: {each.pods_per_second:,.0f} pods/s")
    console.print(two_clusters.table(found).markdown(), soft_wrap=True)


@contextmanager
def _durable() -> Iterator[Postgres]:
    """Yield a PostgreSQL that syncs; end with exit code 1 if it does not."""
    try:
        with postgres() as database:
            console.print(", ".join(f"{name} {on}" for name, on in database.durability.items()))
            yield database
    except NotDurableError as error:
        console.print(error)
        raise typer.Exit(1) from None


def _known(names: list[str] | None, known: Collection[str]) -> list[str]:
    """Return the given names, or all known ones if none is given."""
    if unknown := set(names or ()) - set(known):
        raise typer.BadParameter(f"no {', '.join(unknown)}; there are {', '.join(known)}")
    return names or [*known]


def _chosen(names: list[str] | None, size: int, *, every: bool) -> list[Workload]:
    if every:
        return workloads(size)
    try:
        return [find(name, size) for name in names or SHORT]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _repeated(
    chosen: Sequence[Workload], runs: int, run: Run, lines: Path | None
) -> Iterator[list[Figures]]:
    for workload in chosen:
        figures = [run(workload) for _ in range(runs)]
        write(lines, figures)
        yield figures


def _show(results: Iterator[list[Figures]]) -> None:
    """Print the table of all runs; end with exit code 1 if a placement breaks a rule."""
    found = list(results)
    console.print(table(found).rich())
    violations = sum(run.violations for runs in found for run in runs)
    console.print(f"{violations} violations in {sum(map(len, found))} runs.")
    if violations:
        raise typer.Exit(1)


def main(arguments: list[str]) -> None:
    """Run a command; a workload's name in place of a command measures its whole path."""
    commands = {command.name or command.callback.__name__ for command in app.registered_commands}
    if not arguments:
        arguments = ["short"]
    elif arguments[0] not in {*commands, "--help"}:
        arguments = ["http", *arguments]
    app(arguments, prog_name="moorage bench")


if __name__ == "__main__":
    main(sys.argv[1:])
