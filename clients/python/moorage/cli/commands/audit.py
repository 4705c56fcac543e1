"""`moorage audit export` and `moorage audit verify`: export and check the audit log."""

from collections.abc import Iterator
from typing import Annotated

import msgspec
import typer

from moorage.audit import AuditRow, Verifier
from moorage.cli.exceptions import CliError, ExitCode
from moorage.cli.session.options import Session, connected

PATH = "/v1/audit"

audit = typer.Typer(
    help="Who wrote what, and who was refused.", no_args_is_help=True, add_completion=False
)

Since = Annotated[
    str | None, typer.Option("--since", help="Only from this time on, as 2026-05-04T08:00:00Z.")
]
Until = Annotated[str | None, typer.Option("--until", help="Only before this time.")]
OnlyCluster = Annotated[
    str | None, typer.Option("--of", metavar="CLUSTER", help="Only rows about this cluster.")
]


class AuditBroken(CliError):  # noqa: N818 - a verdict, not a fault
    """A row of the audit log was altered, or rows are missing."""

    exit_code = ExitCode.REFUSED


@connected
def export(
    session: Session, *, of: OnlyCluster = None, since: Since = None, until: Until = None
) -> None:
    """Write the rows to standard output, one JSON object per line."""
    for page in _pages(session, cluster=of, since=since, until=until):
        for row in page:
            session.output.line(msgspec.json.encode(row).decode())


@connected
def verify(session: Session) -> None:
    """Compute all hashes again, and name the first row that was altered or follows missing rows."""
    verifier = Verifier()
    for page in _pages(session):
        broken = verifier.follow(page)
        if broken is not None:
            where = f"Row {broken.number} of chain {broken.chain}"
            raise AuditBroken(f"{where} is not what was written: {broken.reason}.")
    session.output.prose(f"{verifier.rows} rows are what was written.")


def _pages(session: Session, **filters: str | None) -> Iterator[list[AuditRow]]:
    for page in session.client.pages(PATH, filters):
        yield msgspec.convert(page, list[AuditRow])


audit.command()(export)
audit.command()(verify)
