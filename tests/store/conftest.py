"""One suite over every store: `store` is each of them, `postgres` only the real one."""

from collections.abc import AsyncIterator

import pytest

from service.store.postgres import PostgresStore
from tests.store.history import AnyStore, new_id, ticking_clock
from tests.support.memory_store.store import MemoryStore


@pytest.fixture
async def postgres(database_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(database_url)
    yield store
    await store.close()


@pytest.fixture(params=["memory", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str | None:
    """Where the store is; None: in memory."""
    return None if request.param == "memory" else request.getfixturevalue("database_url")


@pytest.fixture
async def store(store_url: str | None) -> AsyncIterator[AnyStore]:
    opened = PostgresStore(store_url) if store_url else MemoryStore(ticking_clock(), new_id)
    yield opened
    await opened.close()


@pytest.fixture
async def cluster_id(store: AnyStore) -> int:
    return await store.clusters.find("default")
