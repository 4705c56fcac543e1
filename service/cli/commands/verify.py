"""`moorage verify`: whether a database is what it should be, while servers run or after a restore."""

from typing import Annotated

import typer

from service.cli.errors import ExitCode
from service.cli.server_options import DatabaseUrl, DataDir, server_settings
from service.model.verification_findings import Check

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
    from service.cli.verification import print_report, run_verification  # noqa: PLC0415 - clients start faster without

    settings = server_settings(data_dir=data_dir, database_url=database_url)
    report = run_verification(settings, cluster or [], check or [])
    print_report(report, as_json=json)
    if not report.ok:
        raise typer.Exit(ExitCode.REFUSED)
