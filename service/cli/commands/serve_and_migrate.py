"""`moorage serve`, `migrate` and `lift-revision`: from options and environment to settings."""

import os
from typing import Annotated

import msgspec
import typer

from service.cli.errors import WrongUsage
from service.cli.printing.output import Output
from service.cli.server_failures import as_command_errors
from service.model.validation.wording import worded
from service.settings import InvalidSettings, Settings, settings_of_this_process

CLIENT_VARIABLES = ("MOORAGE_URL", "MOORAGE_CLUSTER", "MOORAGE_CONTEXT", "MOORAGE_CONTEXTS")
"""These variables are for client commands; they may be set where a server is started, too."""

SHARDS = 32
SHARDS_MAX = 1024

Host = Annotated[
    str | None, typer.Option("--host", help="Address to listen on. [env: MOORAGE_HOST]")
]
Port = Annotated[int | None, typer.Option("--port", help="0 for any free one. [env: MOORAGE_PORT]")]
DataDir = Annotated[
    str | None,
    typer.Option("--data-dir", help="Data of the embedded PostgreSQL. [env: MOORAGE_DATA_DIR]"),
]
WorkerCount = Annotated[
    int | None, typer.Option("--workers", help="Server processes. [env: MOORAGE_WORKERS]")
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        help="A PostgreSQL of yours in place of the embedded one. [env: MOORAGE_DATABASE_URL]",
    ),
]
Forwarding = Annotated[
    bool | None,
    typer.Option(
        "--forwarding/--no-forwarding",
        help="Let one worker decide all requests of a cluster, and the others forward to it. [env: MOORAGE_FORWARDING]",
    ),
]
Certificate = Annotated[
    str | None,
    typer.Option(
        "--tls-certificate",
        help="PEM file of the certificate, and those that vouch for it. [env: MOORAGE_TLS_CERTIFICATE]",
    ),
]
CertificateKey = Annotated[
    str | None, typer.Option("--tls-key", help="PEM file of its key. [env: MOORAGE_TLS_KEY]")
]
Debug = Annotated[
    bool | None, typer.Option("--debug", help="Serve /debug/replicas. [env: MOORAGE_DEBUG]")
]

LogFormat = Annotated[
    str | None,
    typer.Option(
        "--log-format", help="How the log is written: text or json. [env: MOORAGE_LOG_FORMAT]"
    ),
]
LogLevel = Annotated[
    str | None,
    typer.Option(
        "--log-level",
        help="The least level that is logged: debug, info, warning or error. [env: MOORAGE_LOG_LEVEL]",
    ),
]
AccessLog = Annotated[
    bool | None,
    typer.Option(
        "--access-log/--no-access-log", help="Log each request. [env: MOORAGE_ACCESS_LOG]"
    ),
]


def serve(
    *,
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    workers: WorkerCount = None,
    database_url: DatabaseUrl = None,
    forwarding: Forwarding = None,
    tls_certificate: Certificate = None,
    tls_key: CertificateKey = None,
    debug: Debug = None,
    log_format: LogFormat = None,
    log_level: LogLevel = None,
    access_log: AccessLog = None,
) -> None:
    """Run the server until SIGTERM or Ctrl-C.

    Without --database-url it runs a PostgreSQL of its own in the data folder. A token that clients
    must present can be set only in MOORAGE_TOKEN (or in a file, with MOORAGE_TOKEN_FILE), since
    every user of a machine can see its command lines.
    """
    from service.api.telemetry.spans import require_packages  # noqa: PLC0415
    from service.server.lifecycle import run_server  # noqa: PLC0415
    from service.server.listen_policy import require_tls  # noqa: PLC0415 - clients start faster without

    settings = server_settings(
        host=host,
        port=port,
        data_dir=data_dir,
        workers=workers,
        database_url=database_url,
        forwarding=forwarding,
        tls_certificate=tls_certificate,
        tls_key=tls_key,
        debug=debug,
        log_format=log_format,
        log_level=log_level,
        access_log=access_log,
    )
    with as_command_errors():
        require_tls(settings)
        try:
            require_packages(settings.tracing)
        except InvalidSettings as error:
            raise WrongUsage(str(error)) from None
        run_server(settings, preload=["service.cli.main"])


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


def server_settings(**given: object) -> Settings:
    """Read the environment's settings; options given on the command line take their place.

    Raises:
        WrongUsage: one of them is unknown or has a bad value.
    """
    for name in CLIENT_VARIABLES:
        os.environ.pop(name, None)  # noqa: TID251 - not settings of a server
    try:
        settings = settings_of_this_process()
        chosen = {name: value for name, value in given.items() if value is not None}
        return msgspec.convert({**msgspec.structs.asdict(settings), **chosen}, Settings)
    except InvalidSettings as error:
        raise WrongUsage(str(error)) from None
    except msgspec.ValidationError as error:
        wrong = worded(str(error))
        raise WrongUsage(f"--{wrong.field.replace('_', '-')}: {wrong.message}.") from None
