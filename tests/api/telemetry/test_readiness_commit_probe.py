"""Readiness is proved by a commit, as often as it has to be and no more often."""

import asyncio

import pytest

from service.api.telemetry.readiness import FRESH_SECONDS, CommitProbe
from service.model.core.errors import OutcomeUnknown, StorageUnavailable


class Store:
    """A store whose next proof ends as a test wants it to."""

    outage: str | None = None

    def __init__(self) -> None:
        self.log = self
        self.proofs = 0
        self.error: Exception | None = None
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def check_writable(self) -> None:
        self.proofs += 1
        await self.may_end.wait()
        if self.error is not None:
            raise self.error


class Time:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
async def store() -> Store:
    return Store()


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def proof(store: Store, time: Time) -> CommitProbe:
    return CommitProbe(store, time)


async def test_everybody_who_asks_within_a_second_gets_the_same_answer(proof, store, time) -> None:
    store.may_end.clear()
    asked = [asyncio.create_task(proof.check()) for _ in range(100)]
    await asyncio.sleep(0)
    store.may_end.set()
    await asyncio.gather(*asked)
    await proof.check()
    assert store.proofs == 1
    time.seconds += FRESH_SECONDS
    await proof.check()
    assert store.proofs == 2


@pytest.mark.parametrize("error", [StorageUnavailable("full"), OutcomeUnknown("full")])
async def test_a_commit_that_fails_is_told_and_tried_again(proof, store, time, error) -> None:
    store.error = error
    for _ in range(2):
        with pytest.raises(StorageUnavailable, match="full"):
            await proof.check()
        time.seconds += FRESH_SECONDS
    store.error = None
    await proof.check()
    assert store.proofs == 3


async def test_an_answer_from_before_an_outage_is_not_given_again(proof, store) -> None:
    await proof.check()
    store.outage, store.error = "lost", StorageUnavailable("lost")
    with pytest.raises(StorageUnavailable):
        await proof.check()
    await asyncio.sleep(0)  # the proof begins
    assert store.proofs == 2


async def test_nobody_waits_for_a_database_that_is_known_to_be_lost(proof, store) -> None:
    store.outage = "lost"
    store.may_end.clear()
    for _ in range(3):
        with pytest.raises(StorageUnavailable, match="lost"):
            await proof.check()
    await asyncio.sleep(0)
    assert store.proofs == 1
    store.outage = None
    store.may_end.set()
    await proof.check()
    assert store.proofs == 1


async def test_a_caller_who_leaves_does_not_end_the_proof_of_others(proof, store) -> None:
    store.may_end.clear()
    leaving, staying = (asyncio.create_task(proof.check()) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait([leaving])
    store.may_end.set()
    await staying
    assert store.proofs == 1
