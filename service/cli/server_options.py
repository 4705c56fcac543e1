"""Settings of a server, read from command-line options and the environment."""

import os
from typing import Annotated

import msgspec
import typer

from moorage.cli.exceptions import WrongUsage
from service.model.core.messages import reword
from service.settings import InvalidSettings, Settings, settings_of_this_process

CLIENT_VARIABLES = ("MOORAGE_URL", "MOORAGE_CLUSTER", "MOORAGE_CONTEXT", "MOORAGE_CONTEXTS")
"""These variables are for client commands; they may be set where a server is started, too."""


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


def server_settings(**given: object) -> Settings:
    """Read the settings from the environment, overridden by options of the command line.

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
        wrong = reword(str(error))
        raise WrongUsage(f"--{wrong.field.replace('_', '-')}: {wrong.message}.") from None
