"""`moorage serve`: run a server until it is stopped."""

from service.cli.server_failures import as_command_errors
from service.cli.server_options import (
    AccessLog,
    Certificate,
    CertificateKey,
    DatabaseUrl,
    DataDir,
    Debug,
    Forwarding,
    Host,
    LogFormat,
    LogLevel,
    Port,
    WorkerCount,
    server_settings,
)


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
    from service.api.telemetry.traces import require_packages  # noqa: PLC0415
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
        require_packages(settings.tracing)
        run_server(settings, preload=["moorage.cli"])
