"""Reads of clusters by name, while clusters are deleted and made beside them."""

import asyncio
from typing import Any

import httpx
import pytest

from service.api.reads.stored import ID_KNOWN_SECONDS, ClusterReads
from service.model.core.errors import NotFound, StorageUnavailable
from service.model.log.commit import Head
from service.runtime.clock import SystemClock
from service.runtime.ids import RandomIds
from tests.api.conftest import MakeHarness
from tests.api.harness import CLUSTER, Harness, HurriedClock, problem
from tests.support.memory_store.clusters import MemoryClusters
from tests.support.memory_store.log import MemoryLog
from tests.support.memory_store.store import MemoryStore

READERS = 4


class Gathering(MemoryStore):
    """A store that answers reads of heads, once `gathers` is set, only when all readers have asked."""

    gathers = False

    def __init__(self) -> None:
        super().__init__(SystemClock().now, RandomIds().commit_id)
        self.log = _GatheringLog(self)
        self.clusters = _GatheringClusters(self)


class _GatheringLog(MemoryLog):
    def __init__(self, store: Gathering) -> None:
        super().__init__(store.state)
        self._store = store
        self._barrier = asyncio.Barrier(READERS)

    async def head(self, cluster_id: int) -> Head:
        if self._store.gathers:
            await self._barrier.wait()
        return await super().head(cluster_id)


class _GatheringClusters(MemoryClusters):
    def __init__(self, store: Gathering) -> None:
        super().__init__(store.state)
        self._store = store

    async def find(self, name: str) -> int:
        found = await super().find(name)
        if self._store.gathers:
            self._store.gathers = False  # Whoever reads from now on waits for nobody.
        return found


async def test_readers_of_a_deleted_cluster_all_hear_that_it_is_gone():
    store = Gathering()
    reads = ClusterReads(store, 1)
    await reads.head("default")
    await store.clusters.delete(1)
    store.gathers = True
    answers = await asyncio.gather(
        *(reads.head("default") for _ in range(READERS)), return_exceptions=True
    )
    assert [type(each) for each in answers] == [NotFound] * READERS


async def test_readers_beside_whoever_deletes_a_cluster_get_no_fault(make_harness: MakeHarness):
    store = Gathering()
    harness = await make_harness(store)
    await harness.client.get(f"{CLUSTER}/nodes")
    await store.clusters.delete(1)
    store.gathers = True

    def read() -> Any:
        return harness.client.get(f"{CLUSTER}/watch?sinceRevision=0&timeoutSeconds=1")

    for answer in await asyncio.gather(*(read() for _ in range(READERS))):
        assert problem(answer, 404) == "NotFound"
        assert answer.headers["x-request-id"] == answer.json()["requestId"]


async def test_the_id_of_a_cluster_is_looked_up_again_after_a_moment():
    clock, store = HurriedClock(), MemoryStore(SystemClock().now, RandomIds().commit_id)
    reads = ClusterReads(store, 1, clock.monotonic)
    other = await store.clusters.create("other", b"{}")
    assert (await reads.position("default")).cluster_id == 1
    # A restored database may give the ids to other names.
    store.states[1].name, store.states[other.cluster_id].name = "other", "default"
    clock.advance(ID_KNOWN_SECONDS)
    assert (await reads.position("default")).cluster_id == other.cluster_id


class BrokenLog(MemoryLog):
    """A log that fails at reads of heads in a way that nobody expects."""

    fails = False

    async def head(self, cluster_id: int) -> Head:
        if self.fails:
            raise KeyError(cluster_id)
        return await super().head(cluster_id)


async def test_an_answer_whose_revision_cannot_be_read_is_sent_without_it(
    make_harness: MakeHarness,
):
    store = MemoryStore(SystemClock().now, RandomIds().commit_id)
    store.log = broken = BrokenLog(store.state)
    harness = await make_harness(store)
    broken.fails = True
    answer = await harness.client.get(f"{CLUSTER}/nothing")
    assert problem(answer, 404) == "NoSuchPath"


async def test_what_fails_before_an_answer_begins_is_a_problem_with_the_id_of_the_request(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
):
    async def fail(*_: Any) -> None:
        raise KeyError("default")

    monkeypatch.setattr("service.api.middleware.edge.ResponseCompression.__call__", fail)
    headers = {"x-request-id": "mine", "accept-encoding": "gzip"}
    answer: httpx.Response = await harness.client.get(CLUSTER, headers=headers)
    assert problem(answer, 500) == "Internal"
    assert answer.headers["x-request-id"] == answer.json()["requestId"] == "mine"


@pytest.mark.parametrize("raised_in", ["the stream", "a group of tasks"])
async def test_a_stream_that_fails_before_its_first_byte_is_answered_with_what_failed(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, raised_in: str
):
    def items(*_: Any) -> bytes:
        error = StorageUnavailable("The database cannot be reached.", retry_after=7)
        raise error if raised_in == "the stream" else ExceptionGroup("a task failed", [error])

    monkeypatch.setattr("service.api.resources.objects.routes.items", items)
    await harness.put_node("n1")
    answer = await harness.client.get(f"{CLUSTER}/nodes")
    assert problem(answer, 503) == "StorageUnavailable"
    assert answer.json()["detail"] == "The database cannot be reached."
    assert answer.headers["retry-after"] == "7"


class Vanishing(MemoryClusters):
    """Clusters that are deleted by somebody else as soon as they have been found."""

    vanishes = False

    async def find(self, name: str) -> int:
        found = await super().find(name)
        if self.vanishes:
            self.vanishes = False
            await self.delete(found)
        return found


@pytest.mark.parametrize("path", ["nodes", "watch?sinceRevision=1", "watch"])
async def test_a_cluster_that_is_deleted_while_it_is_read_is_named(
    make_harness: MakeHarness, path: str
):
    store = MemoryStore(SystemClock().now, RandomIds().commit_id)
    store.clusters = clusters = Vanishing(store.state)
    harness = await make_harness(store)
    clusters.vanishes = True
    answer = await harness.client.get(f"{CLUSTER}/{path}")
    assert problem(answer, 404) == "NotFound"
    assert answer.json()["detail"] == "There is no cluster 'default'."
