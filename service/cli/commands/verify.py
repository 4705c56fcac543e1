"""`moorage verify`: check the consistency of a live or restored database."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from moorage.cli.exceptions import ExitCode
from moorage.cli.render.output import Output
from service.cli.server_failures import as_command_errors
from service.cli.server_options import DatabaseUrl, DataDir, server_settings
from service.model.verification_findings import FINDINGS_MAX, Check, Finding

if TYPE_CHECKING:
    from service.server.verification import Report

Clusters = Annotated[
    list[str] | None,
    typer.Option("--cluster", "-c", help="Only this cluster; may be given several times."),
]
Checks = Annotated[
    list[Check] | None,
    typer.Option("--check", help="Only this check; may be given several times."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]


def verify(
    *,
    cluster: Clusters = None,
    check: Checks = None,
    json: AsJson = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Verify a database: that of running servers, or a backup that was restored.

    It only reads, each cluster as it is at one instant. Exit codes: 0 nothing is wrong; 1 something
    is, and the report names it; 2 the command line makes no sense, or the tables are not those of
    this version; 3 the database cannot be reached.
    """
    from service.server.verification import run_verification  # noqa: PLC0415 - clients start faster without

    settings = server_settings(data_dir=data_dir, database_url=database_url)
    with as_command_errors():
        report = run_verification(settings, cluster or [], check or [])
    _print_report(report, as_json=json)
    if not report.ok:
        raise typer.Exit(ExitCode.REFUSED)


def _print_report(report: "Report", *, as_json: bool) -> None:
    """Print a report for programs or for people."""
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n")
        return
    output = Output()
    rows = [
        (
            *(cluster.cluster, cluster.revision, cluster.changes),
            *(_or_dash(cluster.objects), _summary(cluster.findings)),
        )
        for cluster in report.clusters
    ]
    output.table(["cluster", "revision", "changes", "objects", "result"], rows)
    if Check.ACCESS in report.checks:
        output.line(f"Principals and audit: {_summary(report.access)}")
    for cluster in report.clusters:
        _print_findings(output, cluster.cluster, cluster.findings)
    _print_findings(output, "-", report.access)


def _print_findings(output: Output, cluster: str, findings: Sequence[Finding]) -> None:
    for finding in findings:
        output.line(f"{cluster}: {finding.check}: {finding.subject}: {finding.message}")


def _or_dash(count: int | None) -> int | str:
    return "-" if count is None else count


def _summary(findings: Sequence[Finding]) -> str:
    """Return the number of findings of each check, or `ok`."""
    counts = {check: sum(finding.check is check for finding in findings) for check in Check}
    summary = [f"{check} {_at_least(number)}" for check, number in counts.items() if number]
    return ", ".join(summary) or "ok"


def _at_least(number: int) -> str:
    return f"{FINDINGS_MAX} or more" if number >= FINDINGS_MAX else str(number)
