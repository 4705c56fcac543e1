"""The lifecycle of a server: start the database, tables, and workers, and stop them in reverse."""

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import metadata
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

import msgspec

from service.api.forwarding.peer_connections import servers_of
from service.api.telemetry.exposition import DIRECTORY_VARIABLE
from service.api.telemetry.logs import configure_logs, logging_of
from service.api.telemetry.worker_starts import starts_told_by_supervisor
from service.runtime.compiled_engine import engine_kind
from service.runtime.worker_deaths import DeathCounts
from service.server.connection_reaper import (
    accepted_connections_max,
    connection_limits,
    raise_file_limit,
)
from service.server.database import database, migrate
from service.server.failures import ConfigurationError, UnavailableError
from service.server.health import health_listener
from service.server.listen_policy import authenticates_callers, require_tokens, with_audit
from service.server.local_server import NOTIFY_VARIABLE, READY, is_ready
from service.server.signals import (
    StopSignal,
    ignore_stop_signals,
    raised_stop_signals,
    run_until_stopped,
)
from service.server.supervisor import log_fields, run_workers
from service.server.tcp_ports import claimed_port
from service.server.tls import certificate_of
from service.settings import FILE_SUFFIX, PREFIX, SECRETS, InvalidSettings, Settings

_log = logging.getLogger(__name__)

WORKER = "service.server.worker:create_app"
READY_SECONDS_MAX = 120.0
READY_POLL_SECONDS = 0.1

ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - to compare with
"""The address of a server that listens on all addresses, for clients on the same machine."""


def run_server(settings: Settings, *, preload: Sequence[str] = ()) -> None:
    """Serve until SIGTERM or SIGINT.

    `preload` names modules that workers would import anyway; they are imported once, before the
    workers are forked.

    Raises:
        ConfigurationError: a setting cannot be used, or the port is taken.
        UnavailableError: the database cannot be reached, or the workers ended by themselves.
    """
    certificate = certificate_of(settings)
    _require_usable_peers(settings)
    raise_file_limit()
    configure_logs(settings)
    fields = {
        "version": metadata.version("moorage-server"),
        "workers": settings.workers,
        "engine": engine_kind(),
    }
    _log.info("Moorage starts.", extra=fields)
    with (
        claimed_port(settings.host, settings.port) as port,
        suppress(StopSignal),
        raised_stop_signals() as stop_request,
        database(settings) as urls,
        ExitStack() as folders,
    ):
        migrate(urls)
        if run_until_stopped(authenticates_callers(settings, urls.serving)):
            settings = with_audit(settings)
        else:
            require_tokens(settings)
        settings = msgspec.structs.replace(
            settings,
            port=port,
            database_url=urls.serving,
            migration_url=None,  # Workers must not change tables.
            metrics_dir=folders.enter_context(private_folder("metrics")),
            forwarding_dir=folders.enter_context(private_folder("workers")),
            suspects_dir=str(_suspects_folder(settings, folders)),
            server_id=token_hex(16),
        )
        settings = _with_health(settings, folders)
        secrets = _export(settings)
        threading.Thread(target=_announce_ready, args=(settings,), daemon=True).start()
        was_asked = run_workers(
            WORKER,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            header_timeout_seconds=settings.header_timeout_seconds,
            certificate=certificate,
            connections_max=accepted_connections_max(connection_limits(settings).total),
            secrets=secrets,
            stop_request=stop_request,
            logging_config=logging_of(settings),
            starts=starts_told_by_supervisor(),
            deaths=_deaths_before(settings),
            preload=preload,
        )
        ignore_stop_signals()
        if not was_asked:
            raise UnavailableError("The server's processes ended by themselves.")
    _log.info("Moorage has stopped.")


def _require_usable_peers(settings: Settings) -> None:
    """Check that workers can listen to other servers, and can read the certificates for it.

    Raises:
        ConfigurationError: an address or a certificate cannot be used.
    """
    try:
        servers = servers_of(settings, "")
    except InvalidSettings as error:
        raise ConfigurationError(str(error)) from None
    if servers is not None:
        servers.stop_listening()


def _suspects_folder(settings: Settings, until: ExitStack) -> Path:
    """Return the folder that records deaths of workers; it outlives this server if possible."""
    if settings.suspects_dir is not None:
        return Path(settings.suspects_dir)
    if settings.database_url is None:
        return Path(settings.data_dir) / "suspects"
    return Path(until.enter_context(private_folder("suspects")))


def _deaths_before(settings: Settings) -> DeathCounts:
    """Return the counts of workers' deaths, including those that died with the previous server."""
    assert settings.suspects_dir is not None
    deaths = DeathCounts(Path(settings.suspects_dir))
    for suspect in deaths.count_left(time.time()):  # noqa: TID251 - compared with an earlier one
        _log.warning("A worker of the last server was deciding a pod.", extra=log_fields(suspect))
    return deaths


def _with_health(settings: Settings, until: ExitStack) -> Settings:
    """Start the health listener if it is configured, and return settings with its socket."""
    if settings.health_port is None:
        return settings
    listener = health_listener(
        settings.health_host,
        settings.health_port,
        folder=until.enter_context(private_folder("health")),
        metrics_dir=str(settings.metrics_dir),
        silence_seconds_max=settings.ready_lag_seconds_max,
    )
    return msgspec.structs.replace(settings, health_socket=str(until.enter_context(listener)))


@contextmanager
def private_folder(purpose: str) -> Iterator[str]:
    """Create a folder that only this user can open, and remove it afterwards."""
    with TemporaryDirectory(prefix=f"moorage-{purpose}-", ignore_cleanup_errors=True) as folder:
        yield folder


def _export(settings: Settings) -> Mapping[str, str]:
    """Export the settings to the environment, where workers read them; return the secrets instead.

    `ps` shows the environment with which a process was started, so no secret may be in it.
    """
    environment = os.environ  # noqa: TID251 - the workers'
    values = {
        name: value for name, value in msgspec.structs.asdict(settings).items() if value is not None
    }
    given = {PREFIX + name.upper(): _as_variable(value) for name, value in values.items()}
    secrets = {PREFIX + name.upper() for name in SECRETS}
    for name in secrets:
        environment.pop(name, None)
        environment.pop(name + FILE_SUFFIX.upper(), None)
    environment.update({name: value for name, value in given.items() if name not in secrets})
    environment[DIRECTORY_VARIABLE] = str(settings.metrics_dir)
    return {name: value for name, value in given.items() if name in secrets}


def _as_variable(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _announce_ready(settings: Settings) -> None:
    """Log and report that the server is ready, as soon as it is."""
    url = base_url(settings)
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not is_ready(url):
        if time.monotonic() > deadline:
            _log.error("Moorage is not ready yet.", extra={"see": f"{url}/readyz"})
            return
        time.sleep(READY_POLL_SECONDS)
    notify_ready(os.environ)  # noqa: TID251 - the service manager's, not a setting
    _log.info("Moorage is ready.", extra={"url": url, "docs": f"{url}/docs"})


def notify_ready(environment: Mapping[str, str]) -> None:
    """Notify the service manager that this server is ready (systemd's `Type=notify`)."""
    address = environment.get(NOTIFY_VARIABLE)
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, suppress(OSError):
        manager.connect("\0" + address[1:] if address.startswith("@") else address)
        manager.send(READY)


def base_url(settings: Settings) -> str:
    """Return the URL of the server for clients on this machine."""
    host = ANY_ADDRESS.get(settings.host, settings.host)
    scheme = "https" if settings.tls_certificate else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{settings.port}"
