"""What the servers of these tests begin with."""

import pytest

from service.cli.local import temporary_folder
from service.store.embedded import EmbeddedPostgres
from service.store.migrate import upgrade
from tests.store.embedded.conftest import query


@pytest.fixture(scope="session")
def ready_made():
    """A data folder with all tables: to make one takes long, a copy does not.

    Processes are killed here, the machine is not: what was written need not reach the disk.
    """
    with temporary_folder() as folder:
        with EmbeddedPostgres(folder / "data") as postgres:
            upgrade(postgres.url)
            query(postgres.url, "ALTER SYSTEM SET fsync = off", "SELECT 1")
        yield folder / "data"
