"""One PostgreSQL for a whole test run, and a fresh migrated database for each test that asks.

All xdist workers of a run share one server: the first starts it, the last stops it, and if the run
is killed it ends by itself within seconds. Its data is worth nothing, so it never waits for a disk.

`TEST_DATABASE_URL` names another server to use, as a user that may make databases: one run
at a time.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import hypothesis
import pytest
from sqlalchemy.engine import make_url
from xdist.remote import Producer

from service.api.http import streaming
from service.runtime import compiled_engine
from service.server.local_server import temporary_folder
from service.store.coordination import replica_reports
from service.store.db import connector as connections, pool
from service.store.db.connector import data_source_name
from service.store.embedded import EmbeddedPostgres
from service.store.embedded.locks import FileLock
from service.store.log import commits
from service.store.schema.migrate import upgrade
from tests.databases import Databases
from tests.dealing import DealtScheduling
from tests.seeds import EXPLORING, examples
from tests.skipping import Skips
from tests.support.memory_store import housekeeping
from tests.waiting import WAIT_SECONDS

# A test must not fail because the machine is busy, or because an earlier run found an example.
hypothesis.settings.register_profile("gate", deadline=None, database=None, derandomize=True)
hypothesis.settings.register_profile(
    "exploration", deadline=None, database=None, print_blob=True, max_examples=examples(100)
)
hypothesis.settings.load_profile("exploration" if EXPLORING else "gate")
# A planted mistake must be found each time; its example is not shrunk, since nobody reads it.
hypothesis.settings.register_profile(
    "mutants",
    deadline=None,
    derandomize=True,
    database=None,
    phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
)

UNSAFE_BUT_QUICK = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_connections": "300",
    "io_method": "sync",
    "autovacuum": "off",
}
PATIENCE = (
    (commits, "LOCK_WAIT_SECONDS"),
    (commits, "LOCK_IDLE_SECONDS"),
    (connections, "CONNECT_SECONDS"),
    (pool, "POOL_WAIT_SECONDS"),
    (housekeeping, "REPORT_SECONDS_MAX"),
    (replica_reports, "REPORT_SECONDS_MAX"),
    (streaming, "READER_SECONDS_MAX"),
)
TEMPLATE = "moorage_template"
OTHER_SERVER = "TEST_DATABASE_URL"
_PREFIX = f"moorage-tests-{os.geteuid()}"


def pytest_report_header() -> str:
    return f"engine: {'compiled' if compiled_engine.is_in_use() else 'interpreted'}"


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Skips())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> DealtScheduling:
    return DealtScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that need sources if the engine is compiled: its code cannot be counted or replaced."""
    if compiled_engine.is_in_use():
        needs_sources = pytest.mark.skip(reason="MOORAGE_ENGINE=interpreted runs this")
        for item in items:
            if item.get_closest_marker("interpreted"):
                item.add_marker(needs_sources)


@pytest.fixture(scope="session", autouse=True)
def patience() -> Iterator[None]:
    """Raise time limits, so that nothing in this process is given up because the machine was slow.

    A test of one of these limits sets it itself, so short that only the tested case can reach it.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module, name in PATIENCE:
            patch.setattr(module, name, WAIT_SECONDS)
        yield


@pytest.fixture(scope="session")
def postgres_url(testrun_uid: str) -> Iterator[str]:
    """The URL of the server's own database, for tests without tables, and for making databases."""
    other = os.environ.get(OTHER_SERVER)  # noqa: TID251 - of tests alone
    if other:
        url = make_url(other).set(drivername="postgresql+asyncpg")
        yield url.render_as_string(hide_password=False)
        return
    folder = Path(tempfile.gettempdir()) / f"{_PREFIX}-{testrun_uid}"
    with _one_at_a_time():
        _remove_abandoned()
        server = EmbeddedPostgres(folder, settings=UNSAFE_BUT_QUICK)
        url = server.start()
    yield url
    with _one_at_a_time():
        server.stop()
        _remove_if_unused(server.data_folder)


@pytest.fixture(scope="session")
def databases(postgres_url: str, testrun_uid: str) -> Iterator[Databases]:
    """Makes the databases of `database_url`; the first worker also makes the template."""
    made = Databases(postgres_url, f"{TEMPLATE}_{testrun_uid}")
    with _one_at_a_time():
        if not made.exists(made.template):
            _make_template(made)
    yield made
    made.close()


@pytest.fixture
def database_url(databases: Databases) -> Iterator[str]:
    """The URL of a fresh database with all migrations applied, for this test alone."""
    with databases.fresh() as url:
        yield url


@pytest.fixture(scope="module")
def module_database_url(databases: Databases) -> Iterator[str]:
    """The URL of a fresh migrated database for all tests of a module, so that they can share a server."""
    with databases.fresh() as url:
        yield url


@pytest.fixture
def empty_database_url(databases: Databases) -> Iterator[str]:
    """A database that no migration has seen."""
    with databases.empty() as url:
        yield url


@pytest.fixture(scope="session")
def ready_made() -> Iterator[Path]:
    """A data folder with all tables, which tests copy, as making one takes long.

    Tests kill processes but not the machine, so written data need not reach the disk.
    """
    with temporary_folder() as folder:
        with EmbeddedPostgres(folder / "data") as postgres:
            upgrade(postgres.url)
            asyncio.run(_execute(postgres.url, "ALTER SYSTEM SET fsync = off"))
        yield folder / "data"


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(data_source_name(url))
    await connection.execute(statement)
    await connection.close()


def _make_template(databases: Databases) -> None:
    for name in databases.named(TEMPLATE):  # of earlier runs on this server
        databases.execute(f"DROP DATABASE {name} WITH (FORCE)")
    draft = f"{TEMPLATE}_draft"
    databases.execute(f"CREATE DATABASE {draft}")
    upgrade(databases.url(draft))
    databases.execute(f"ALTER DATABASE {draft} RENAME TO {databases.template}")


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Hold a lock among all test processes of this user, as folders of other runs are removed as well."""
    path = Path(tempfile.gettempdir()) / f"{_PREFIX}.lock"
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_abandoned() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}-*"):
        _remove_if_unused(folder)


def _remove_if_unused(folder: Path) -> None:
    if not (folder / "users.lock").exists():
        return
    locks = [FileLock(folder / name) for name in ("users.lock", "server.lock")]
    if all(lock.try_exclusive() for lock in locks):
        shutil.rmtree(folder, ignore_errors=True)
    for lock in locks:
        lock.release()


@pytest.fixture(autouse=True)
def logs_are_as_before() -> Iterator[None]:
    """A server that a test ran in this process leaves no configuration of logs to later tests."""
    yield
    root = logging.getLogger()
    left = [each for each in root.handlers if type(each) is logging.StreamHandler]
    for handler in left:
        root.removeHandler(handler)
    if left:
        root.setLevel(logging.WARNING)
        logging.getLogger("service").setLevel(logging.NOTSET)
        logging.captureWarnings(capture=False)
