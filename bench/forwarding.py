"""Several workers on one cluster: the cost of forwarding requests, and of not forwarding them.

    python -m bench.forwarding --workers 2 --workers 4

Runs with forwarding and without it alternate, each on a server and a database of its own.
"""

import statistics
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bench import over_http
from bench.figures import Figures
from bench.stack import postgres
from bench.workloads import find

app = typer.Typer(add_completion=False)
console = Console(width=160)
OPTIONS = {False: "--no-forwarding", True: "--forwarding"}


@app.command()
def measure(
    *,
    name: Annotated[str, typer.Option("--workload")] = "SchedulingPodAntiAffinity",
    size: Annotated[int, typer.Option(help="Nodes: 500 or 5000.")] = 500,
    workers: Annotated[list[int], typer.Option(help="May be given several times.")] = [2],  # noqa: B006
    batch: Annotated[list[int], typer.Option(help="Pods a request; likewise.")] = [1, 50],  # noqa: B006
    clients: Annotated[int, typer.Option(help="Concurrent clients.")] = 16,
    pods: Annotated[int, typer.Option(help="Pods of a run.")] = 1000,
    runs: Annotated[int, typer.Option(help="Of each kind.")] = 3,
) -> None:
    """Print a table of medians with their ranges."""
    workload = find(name, size)
    columns = ("workers", "pods a request", "forwarded", "pods/s", "p50 ms", "p99 ms")
    table = Table(*columns, "server CPU µs/pod", "PostgreSQL CPU µs/pod", "races lost")
    with postgres() as database:
        for number in workers:
            for each in batch:
                found: dict[bool, list[Figures]] = {False: [], True: []}
                for _ in range(runs):
                    for on, figures in found.items():
                        run = over_http.run(
                            database,
                            workload,
                            batch=each,
                            clients=clients,
                            pods=pods,
                            workers=number,
                            options=[OPTIONS[on]],
                        )
                        figures.append(run)
                        console.print(f"{OPTIONS[on]}: {_told([run])}")
                for on, figures in found.items():
                    table.add_row(str(number), str(each), "yes" if on else "no", *_told(figures))
    console.print(table)


def _told(runs: Sequence[Figures]) -> list[str]:
    values = [
        [run.pods / run.seconds for run in runs],
        [run.p50_ms for run in runs],
        [run.p99_ms for run in runs],
        [run.cpu_seconds / run.pods * 1e6 for run in runs],
        [(run.postgres_cpu_seconds or 0) / run.pods * 1e6 for run in runs],
        [run.conflicts or 0 for run in runs],
    ]
    return [f"{statistics.median(v):,.0f} ({min(v):,.0f} to {max(v):,.0f})" for v in values]


if __name__ == "__main__":
    app()
