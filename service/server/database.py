"""The database of a server: an external one, or an embedded PostgreSQL."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from service.model.core.errors import StorageUnavailable
from service.server.failures import ConfigurationError, UnavailableError
from service.server.signals import run_until_stopped
from service.settings import Settings
from service.store.db.outages import reason_of
from service.store.embedded import EmbeddedPostgres, EmbeddedPostgresError
from service.store.schema.migrate import UnusableTables, newest, upgrade_async
from service.store.schema.serving_role import admit_servers

DATABASE_SECONDS_MAX = 60.0
DATABASE_POLL_SECONDS = 0.5

_log = logging.getLogger(__name__)


class DatabaseUrls(NamedTuple):
    """The URLs of a database: one for servers, and one for migrations, which may change tables."""

    serving: str
    migrating: str
    is_embedded: bool


def migrate(urls: DatabaseUrls) -> None:
    """Apply missing migrations; wait up to a minute for a database that is still starting.

    Raises:
        UnavailableError: the database was not reachable for a minute.
        ConfigurationError: its tables are of a newer version, or of one too old to be migrated.
    """
    begun = time.monotonic()
    is_waiting = False
    while True:
        try:
            before = run_until_stopped(upgrade_async(urls.migrating))
            if urls.is_embedded:
                run_until_stopped(admit_servers(urls.migrating))
        except UnusableTables as error:
            raise ConfigurationError(str(error)) from None
        except StorageUnavailable as error:
            if time.monotonic() > begun + DATABASE_SECONDS_MAX:
                raise UnavailableError(f"The database cannot be reached: {error}") from None
            if not is_waiting:
                _log.warning("The database is waited for.", extra={"reason": reason_of(error)})
            is_waiting = True
        else:
            seconds = round(time.monotonic() - begun, 3)
            fields = {"migration": newest(), "before": before or "none", "seconds": seconds}
            _log.info("The tables are up to date.", extra=fields)
            return
        time.sleep(DATABASE_POLL_SECONDS)


@contextmanager
def database(settings: Settings) -> Iterator[DatabaseUrls]:
    """Yield the URLs of the given database, or of an embedded one that runs during the context.

    Raises:
        UnavailableError: the embedded database failed, or cannot be started.
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
        raise UnavailableError(str(error)) from None
