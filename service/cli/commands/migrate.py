"""`moorage migrate`: migrate the database's tables to this version."""

from typing import Annotated

import typer

from moorage.cli.render.output import Output
from service.cli.server_failures import as_command_errors
from service.cli.server_options import (
    DatabaseUrl,
    DataDir,
    server_settings,
)

SHARDS = 32
SHARDS_MAX = 1024


def migrate(
    *,
    distributed: Annotated[
        bool,
        typer.Option(
            "--distributed", help="Also distribute the tables over the servers that Citus knows."
        ),
    ] = False,
    shards: Annotated[
        int,
        typer.Option(
            "--shards",
            min=1,
            max=SHARDS_MAX,
            help="With --distributed: into how many parts the rows are divided. It stays as it is first.",
        ),
    ] = SHARDS,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Bring the database's tables to the state that this version needs.

    With `--distributed` the tables are divided among several PostgreSQL servers by Citus, with all
    that they hold; nobody can write meanwhile. What is distributed already stays as it is, so the
    command can be repeated. Afterwards, new tables are distributed whenever the database is migrated.
    """
    from service.server.maintenance import run_migration  # noqa: PLC0415 - clients start faster without

    settings = server_settings(data_dir=data_dir, database_url=database_url)
    with as_command_errors():
        new = run_migration(settings, shards if distributed else None)
    Output().line("The database is up to date.")
    if distributed:
        Output().line(
            f"Distributed now: {', '.join(new)}." if new else "All tables were distributed already."
        )
