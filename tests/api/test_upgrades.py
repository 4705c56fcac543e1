"""The API over a database that an older version made: what users had is shown, and they go on from there."""

from collections.abc import AsyncIterator

import pytest

from service.store.postgres import PostgresStore
from service.store.schema.migrate import upgrade_async
from tests.api.harness import CLUSTER, Harness, node, pod
from tests.store.releases import DUMPS, restore

PODS = f"{CLUSTER}/namespaces/shop/pods"
DUMP = DUMPS[0].read_text()
TOKEN = "of-the-operator"


@pytest.fixture
async def store(empty_database_url: str) -> AsyncIterator[PostgresStore]:
    await restore(empty_database_url, DUMP)
    await upgrade_async(empty_database_url)
    opened = PostgresStore(empty_database_url)
    yield opened
    await opened.close()


@pytest.fixture
async def harness(store: PostgresStore, make_harness) -> Harness:
    harness = await make_harness(store, token=TOKEN)
    harness.client.headers["Authorization"] = f"Bearer {TOKEN}"
    return harness


async def pods(harness: Harness) -> set[str]:
    answer = await harness.client.get(PODS)
    return {item["metadata"]["name"] for item in answer.json()["items"]}


async def test_a_database_of_the_first_version_is_shown_and_changed(harness: Harness):
    assert await pods(harness) == {"web-0", "web-2", "too-big"}
    await harness.put("nodes/node-d", node("node-d"))
    request = {"pods": [pod("new")]}
    placed = (await harness.client.post(f"{CLUSTER}/placements", json=request)).json()
    assert [result["outcome"] for result in placed["results"]] == ["Placed"]
    assert (await harness.client.delete(f"{PODS}/too-big")).is_success
    assert await pods(harness) == {"web-0", "web-2", "new"}
