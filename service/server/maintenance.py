"""Maintenance of a database without serving: its tables, and revisions after a restore."""

from collections.abc import Sequence

from service.api.telemetry.logs import configure_logs
from service.model.core.errors import NotFound, StorageUnavailable
from service.server.database import database, migrate
from service.server.failures import ConfigurationError, StoppedError, UnavailableError
from service.server.signals import (
    StopSignal,
    raised_stop_signals,
    run_until_stopped,
)
from service.settings import Settings
from service.store.db.outages import reason_of
from service.store.postgres import PostgresStore
from service.store.schema.citus_sharding import ServersMissing, distribute


def run_migration(settings: Settings, shards: int | None = None) -> list[str]:
    """Migrate the given or the embedded database to this version.

    With `shards`, also distribute the tables; return the names of those that were not distributed
    before.

    Raises:
        UnavailableError: the database cannot be reached.
        ConfigurationError: the database cannot be distributed.
        StoppedError: a stop signal arrived. The tables are unchanged, or those of this version.
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
        raise StoppedError(
            stopped.number,
            "Stopped: the database may not be up to date. Nothing is done by halves; start it again.",
        ) from None
    except ServersMissing as error:
        raise ConfigurationError(str(error)) from None
    except StorageUnavailable as error:
        raise UnavailableError(
            f"The tables could not be distributed: {reason_of(error.__cause__ or error)}"
        ) from None


def run_lift(settings: Settings, clusters: Sequence[str]) -> dict[str, int]:
    """Raise the revisions of the named clusters, or of all; return the new revisions by cluster.

    Servers may keep running: each of their commits is ordered before or after the change.

    Raises:
        ConfigurationError: there is no such cluster; no revision was changed.
        UnavailableError: the database cannot be reached.
        StoppedError: a stop signal arrived. Some revisions may be raised; repeating this is
            harmless.
    """
    configure_logs(settings)
    try:
        with raised_stop_signals() as stop_request, database(settings) as urls:
            migrate(urls)
            stop_request.raise_if_made()
            return run_until_stopped(_lift(urls.serving, clusters))
    except StopSignal as stopped:
        raise StoppedError(stopped.number, "Stopped before all were lifted.") from None
    except NotFound as error:
        raise ConfigurationError(str(error)) from None
    except StorageUnavailable as error:
        raise UnavailableError(f"The database cannot be reached: {error}") from None


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
