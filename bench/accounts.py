"""The cost of asking callers for tokens, and of keeping an audit.

    python -m bench.accounts --batch 1 --batch 100

Servers with and without a token take turns, each on its own database. The ratios of runs that
follow each other are shown.
"""

import secrets
import statistics
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bench import over_http
from bench.figures import Figures
from bench.stack import Postgres, postgres
from bench.workloads import Workload, find

app = typer.Typer(add_completion=False)
console = Console(width=160)


@app.command()
def measure(
    *,
    name: Annotated[str, typer.Option("--workload")] = "SchedulingBasic",
    size: Annotated[int, typer.Option(help="Nodes: 500 or 5000.")] = 500,
    batch: Annotated[list[int], typer.Option(help="Pods a request; several times.")] = [1, 100],  # noqa: B006
    clients: Annotated[int, typer.Option(help="Concurrent clients.")] = 8,
    rounds: Annotated[int, typer.Option(min=1, help="How often the two take turns.")] = 7,
    pods: Annotated[int | None, typer.Option(help="Pods of a run.")] = None,
) -> None:
    """Print a table with the medians and ranges of the rounds' ratios."""
    workload = find(name, size)
    table = Table("pods a request", "placements/s", "CPU µs/pod, all", "of PostgreSQL")
    with postgres() as database:
        for each in batch:
            pairs = [_pair(database, workload, each, clients, pods) for _ in range(rounds)]
            table.add_row(
                str(each),
                _told([kept.pods_per_second / open_.pods_per_second for open_, kept in pairs]),
                _told([_cpu(kept) / _cpu(open_) for open_, kept in pairs]),
                _told([_of_postgres(kept) / _of_postgres(open_) for open_, kept in pairs]),
            )
    console.print(table)


def _pair(
    database: Postgres, workload: Workload, batch: int, clients: int, pods: int | None
) -> tuple[Figures, Figures]:
    """Measure a run without a token, then one with a token."""
    without, with_it = (
        over_http.run(database, workload, batch=batch, clients=clients, pods=pods, token=token)
        for token in (None, secrets.token_urlsafe(32))
    )
    console.print(
        f"{batch}: {without.pods_per_second:,.0f} pods/s without, {with_it.pods_per_second:,.0f} with"
    )
    return without, with_it


def _cpu(run: Figures) -> float:
    return (run.cpu_seconds + _postgres_seconds(run)) / run.pods


def _of_postgres(run: Figures) -> float:
    return _postgres_seconds(run) / run.pods


def _postgres_seconds(run: Figures) -> float:
    assert run.postgres_cpu_seconds is not None
    return run.postgres_cpu_seconds


def _told(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


if __name__ == "__main__":
    app()
