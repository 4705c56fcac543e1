"""The checker is worth something: it finds every mistake that was planted in the service."""

import pytest

from tests.concurrency.checker import check
from tests.concurrency.planted import BUGS
from tests.concurrency.planted.hunt import hunt, known_seeds
from tests.concurrency.simulation.run import simulate
from tests.concurrency.test_simulation import SEEDS
from tests.seeds import EXPLORING

# A run is cut off at its end: what had been started for later never begins, and what a bug left
# behind may still want the loop when it is collected.
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SEEDS_MAX = 300
SHARE = 3
"""The gate plants one in so many bugs, exploration all of them."""


@pytest.mark.interpreted
@pytest.mark.parametrize("name", [*BUGS][:: 1 if EXPLORING else SHARE])
def test_a_planted_bug_is_found(name):
    known = known_seeds().get(name, 0)
    found = hunt(BUGS[name], (known, *range(SEEDS_MAX)))

    assert found.seeds > 0
    if found.seed >= SEEDS:  # the others are known to break nothing by themselves
        assert not check(simulate(found.seed).history), "the seed fails without the bug, too"


def test_enough_bugs_are_planted_in_the_service_itself():
    in_the_store = ("MemoryStore", "ClusterState")
    inside = [bug for bug in BUGS.values() if not bug.where.startswith(in_the_store)]

    assert len(BUGS) >= 30
    assert len(inside) >= 20
