"""`moorage lift-revision`: begin a new history after a restore from a backup."""

from typing import Annotated

import typer

from moorage.cli.render.output import Output
from service.cli.server_failures import as_command_errors
from service.cli.server_options import (
    DatabaseUrl,
    DataDir,
    server_settings,
)


def lift_revision(
    clusters: Annotated[
        list[str] | None, typer.Argument(metavar="[CLUSTER]...", help="All, if none is named.")
    ] = None,
    *,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """After a restore from a backup: begin a new history with higher revisions.

    Changes made after the backup are lost, but clients, watches and other processes may have seen
    them. This raises the revision of each cluster by 1,000,000,000 and empties its log, so that no
    revision is used twice: watches are told to list again, and replicas are loaded again.
    """
    from service.server.maintenance import run_lift  # noqa: PLC0415 - clients start faster without

    settings = server_settings(data_dir=data_dir, database_url=database_url)
    with as_command_errors():
        lifted = run_lift(settings, clusters or [])
    Output().table(["cluster", "revision"], lifted.items())
