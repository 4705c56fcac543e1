"""A whole server: PostgreSQL, its tables, then the workers; stopped in the opposite order."""

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
from typing import NamedTuple

import msgspec

from service.api.telemetry.exposition_summed_over_workers import DIRECTORY_VARIABLE
from service.api.telemetry.log_lines import configure_logs, logging_of
from service.api.telemetry.worker_starts import starts_told_by_supervisor
from service.api.worker_forwarding.server_connections import servers_of
from service.cli.errors import ExitCode, Stopped, Unavailable, WrongUsage
from service.cli.server.exposure_checks import asks_who_calls, refuse_open_door, with_audit
from service.cli.server.health_listener import health_listener
from service.cli.server.limits_on_open_and_unread_connections import (
    accepted_connections_max,
    connection_limits,
    raise_file_limit,
)
from service.cli.server.local_server import NOTIFY_VARIABLE, READY, is_ready
from service.cli.server.port_claims import claimed_port
from service.cli.server.stop_signals_without_workers import (
    StopSignal,
    ignore_stop_signals,
    raised_stop_signals,
    run_until_stopped,
)
from service.cli.server.tls import certificate_of
from service.cli.server.worker_processes import run_workers, told_of
from service.compiled_engine import engine_kind
from service.model.errors import NotFound, StorageUnavailable
from service.settings import FILE_SUFFIX, PREFIX, SECRETS, InvalidSettings, Settings
from service.store.connecting.outage_log import reason_of
from service.store.embedded import EmbeddedPostgres, EmbeddedPostgresError
from service.store.postgres import PostgresStore
from service.store.schema.citus_sharding import ServersMissing, distribute
from service.store.schema.migrate import NewerTables, newest, upgrade_async
from service.store.schema.serving_role import admit_servers
from service.suspects import DeathCounts

_log = logging.getLogger(__name__)

WORKER = "service.cli.server.worker:create_app"
DATABASE_SECONDS_MAX = 60.0
DATABASE_POLL_SECONDS = 0.5
READY_SECONDS_MAX = 120.0
READY_POLL_SECONDS = 0.1

ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - to compare with
"""The address at which a client on the same machine finds a server that listens on all
addresses."""


def run_server(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        WrongUsage: the port is taken.
        Unavailable: the workers ended although nobody asked for it.
    """
    certificate = certificate_of(settings)
    _refuse_unusable_peers(settings)
    raise_file_limit()
    configure_logs(settings)
    told = {
        "version": metadata.version("moorage"),
        "workers": settings.workers,
        "engine": engine_kind(),
    }
    _log.info("Moorage starts.", extra=told)
    with (
        claimed_port(settings.host, settings.port) as port,
        suppress(StopSignal),
        raised_stop_signals() as stop_request,
        database(settings) as urls,
        ExitStack() as folders,
    ):
        migrate(urls)
        if run_until_stopped(asks_who_calls(settings, urls.serving)):
            settings = with_audit(settings)
        else:
            refuse_open_door(settings)
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
        secrets = _hand_down(settings)
        threading.Thread(target=_announce, args=(settings,), daemon=True).start()
        code = run_workers(
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
        )
        ignore_stop_signals()
        if code is not ExitCode.OK:
            raise Unavailable("The server's processes ended by themselves.")
    _log.info("Moorage has stopped.")


def _refuse_unusable_peers(settings: Settings) -> None:
    """Look whether workers will be able to listen to other servers, and have certificates for it.

    Raises:
        WrongUsage: they will not.
    """
    try:
        servers = servers_of(settings, "")
    except InvalidSettings as error:
        raise WrongUsage(str(error)) from None
    if servers is not None:
        servers.stop_listening()


def _suspects_folder(settings: Settings, until: ExitStack) -> Path:
    """Return where it is noted of which pods workers die, so that a restart forgets none if possible."""
    if settings.suspects_dir is not None:
        return Path(settings.suspects_dir)
    if settings.database_url is None:
        return Path(settings.data_dir) / "suspects"
    return Path(until.enter_context(private_folder("suspects")))


def _deaths_before(settings: Settings) -> DeathCounts:
    """Return what counts the deaths of workers, with those who died together with their server."""
    assert settings.suspects_dir is not None
    deaths = DeathCounts(Path(settings.suspects_dir))
    for suspect in deaths.count_left(time.time()):  # noqa: TID251 - compared with an earlier one
        _log.warning("A worker of the last server was deciding a pod.", extra=told_of(suspect))
    return deaths


def _with_health(settings: Settings, until: ExitStack) -> Settings:
    """Start the health listener if the settings ask for one, and add its socket to the settings."""
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


def run_migration(settings: Settings, shards: int | None = None) -> list[str]:
    """Bring the tables of the given or the embedded database up to date.

    With `shards` the tables are distributed; the names of those are returned that were not before.

    Raises:
        Unavailable: the database cannot be reached.
        WrongUsage: the database cannot be distributed.
        Stopped: a signal came. The tables are as they were, or as this version needs them.
    """
    configure_logs(settings)
    try:
        with raised_stop_signals() as stop_request, database(settings) as urls:
            migrate(urls)
            stop_request.raise_if_made()
            if shards is None:
                return []
            return run_until_stopped(distribute(urls.migrating, shards))
    except StopSignal as stopped:
        raise Stopped(
            stopped.number,
            "Stopped: the database may not be up to date. Nothing is done by halves; start it again.",
        ) from None
    except ServersMissing as error:
        raise WrongUsage(str(error)) from None
    except StorageUnavailable as error:
        raise Unavailable(
            f"The tables could not be distributed: {reason_of(error.__cause__ or error)}"
        ) from None


def run_lift(settings: Settings, clusters: Sequence[str]) -> dict[str, int]:
    """Raise the revisions of the named clusters (all if none is named); return them by name.

    Servers may run meanwhile: each of their commits comes before or after this.

    Raises:
        WrongUsage: there is no such cluster; no revision was changed.
        Unavailable: the database cannot be reached.
        Stopped: a signal came. Some revisions may be raised; to raise them again does no harm.
    """
    configure_logs(settings)
    try:
        with raised_stop_signals() as stop_request, database(settings) as urls:
            migrate(urls)
            stop_request.raise_if_made()
            return run_until_stopped(_lift(urls.serving, clusters))
    except StopSignal as stopped:
        raise Stopped(stopped.number, "Stopped before all were lifted.") from None
    except NotFound as error:
        raise WrongUsage(str(error)) from None
    except StorageUnavailable as error:
        raise Unavailable(f"The database cannot be reached: {error}") from None


async def _lift(url: str, clusters: Sequence[str]) -> dict[str, int]:
    store = PostgresStore(url, connections=1)
    try:
        names = clusters or [row.name for row in await store.clusters.all()]
        numbers = {name: await store.clusters.find(name) for name in names}
        for cluster_id in numbers.values():
            await store.recovery.lift_revision(cluster_id)
        heads = await store.log.heads(list(numbers.values()))
    finally:
        await store.close()
    return {name: heads[cluster_id].revision for name, cluster_id in numbers.items()}


class DatabaseUrls(NamedTuple):
    """The URLs of a database: `serving` for servers, `migrating` for whoever may change tables."""

    serving: str
    migrating: str
    is_embedded: bool


def migrate(urls: DatabaseUrls) -> None:
    """Apply the migrations that a database lacks; wait for a database that is still starting.

    Raises:
        Unavailable: the database could not be reached for a minute.
        WrongUsage: a newer version has migrated it.
    """
    begun = time.monotonic()
    waits = False
    while True:
        try:
            before = run_until_stopped(upgrade_async(urls.migrating))
            if urls.is_embedded:
                run_until_stopped(admit_servers(urls.migrating))
        except NewerTables as error:
            raise WrongUsage(str(error)) from None
        except StorageUnavailable as error:
            if time.monotonic() > begun + DATABASE_SECONDS_MAX:
                raise Unavailable(f"The database cannot be reached: {error}") from None
            if not waits:
                _log.warning("The database is waited for.", extra={"reason": reason_of(error)})
            waits = True
        else:
            seconds = round(time.monotonic() - begun, 3)
            told = {"migration": newest(), "before": before or "none", "seconds": seconds}
            _log.info("The tables are up to date.", extra=told)
            return
        time.sleep(DATABASE_POLL_SECONDS)


@contextmanager
def database(settings: Settings) -> Iterator[DatabaseUrls]:
    """Yield the URLs of the given database, or of an embedded one that runs until the context ends.

    Raises:
        Unavailable: the embedded database cannot be started, or fails.
    """
    url = settings.database_url
    if url:
        yield DatabaseUrls(url, settings.migration_url or url, is_embedded=False)
        return
    try:
        embedded = EmbeddedPostgres(Path(settings.data_dir))
        try:
            owner = embedded.start()
            yield DatabaseUrls(embedded.serving_url, owner, is_embedded=True)
        finally:
            embedded.stop()
    except EmbeddedPostgresError as error:
        raise Unavailable(str(error)) from None


@contextmanager
def private_folder(purpose: str) -> Iterator[str]:
    """Make a folder that only this user can open, and remove it afterwards."""
    with TemporaryDirectory(prefix=f"moorage-{purpose}-", ignore_cleanup_errors=True) as folder:
        yield folder


def _hand_down(settings: Settings) -> Mapping[str, str]:
    """Put the settings into the environment, where the workers read them, but return the secrets.

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


def _announce(settings: Settings) -> None:
    """Tell people when the server answers, and where."""
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
    """Tell whoever started this server that it is ready, as systemd's `Type=notify` services do."""
    address = environment.get(NOTIFY_VARIABLE)
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told, suppress(OSError):
        told.connect("\0" + address[1:] if address.startswith("@") else address)
        told.send(READY)


def base_url(settings: Settings) -> str:
    """Return the URL at which a client on this machine finds the server."""
    host = ANY_ADDRESS.get(settings.host, settings.host)
    scheme = "https" if settings.tls_certificate else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{settings.port}"
