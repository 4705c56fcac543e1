"""PostgreSQL answers all that the databases of simulations were asked as the store in memory did."""

import asyncio
from collections import Counter

import pytest

from tests.concurrency.simulation.on_postgres import compare, recorded

# A run is cut off at its end: what had been started for later never begins.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
SEED = 2
"""One with commits, unknown outcomes, leases and compaction."""


def test_postgresql_answers_a_simulation_as_the_store_in_memory_does(database_url: str) -> None:
    calls = recorded(SEED)
    asked = Counter(call.name for call in calls)
    assert (
        min(
            asked[name]
            for name in (
                "log.commit",
                "log.settle_unknown",
                "leases.acquire",
                "housekeeping.compact",
            )
        )
        > 0
    )

    assert asyncio.run(compare(database_url, calls)) is None


def test_a_commit_that_only_one_of_them_knows_is_a_difference(database_url: str) -> None:
    calls = recorded(SEED)
    first = next(at for at, call in enumerate(calls) if call.name == "log.commit")
    del calls[first]

    found = asyncio.run(compare(database_url, calls))
    assert found is not None
    assert found.number >= first
    assert found.in_memory != found.on_postgres
