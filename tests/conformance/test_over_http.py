"""The vectors over HTTP, as a client lives through them: simulations, stored clusters, traces."""

from collections.abc import Iterator
from random import Random

import pytest

from service.cli.client import Client
from service.cli.conformance import check_case, check_stored_case, replay_trace
from tests.api.live import live_server
from tests.conformance import vectors
from tests.seeds import EXPLORING

PARTS = 4
SIMULATED_SHARE = 3
STORED_SHARE = 40
SEED = 20


@pytest.fixture(scope="module")
def client(module_database_url: str) -> Iterator[Client]:
    with live_server(module_database_url) as url, Client(url) as connected:
        yield connected


@pytest.mark.parametrize("part", range(PARTS))
def test_a_third_of_the_cases_is_answered_alike_through_simulations(client, part):
    """The engine answers all of them without HTTP, and `make conformance` asks for all over HTTP."""
    chosen = vectors.cases()[:: 1 if EXPLORING else SIMULATED_SHARE]
    checks = [check_case(client, case) for case in chosen[part::PARTS]]
    assert checks
    assert [check.name for check in checks if check.differences] == []


@pytest.mark.parametrize("part", range(PARTS))
def test_every_preemption_is_proposed_alike_through_simulations(client, part):
    checks = [check_case(client, case) for case in vectors.preemptions()[part::PARTS]]
    assert checks
    assert [(c.name, c.differences) for c in checks if c.differences] == []


@pytest.mark.parametrize("part", range(PARTS))
def test_some_of_the_cases_are_answered_alike_on_a_stored_cluster(client, part):
    """`make conformance` does all of them; the seed says which these are."""
    chosen = Random(SEED).sample(vectors.cases(), len(vectors.cases()) // STORED_SHARE)
    checks = [check_stored_case(client, case) for case in chosen[part::PARTS]]
    assert checks
    assert [(c.name, c.differences) for c in checks if c.differences] == []


@pytest.mark.parametrize("part", range(PARTS))
def test_every_step_of_every_trace_is_answered_alike(client, part):
    for trace in vectors.traces()[part::PARTS]:
        checks = list(replay_trace(client, trace))
        assert checks
        assert [(c.name, c.differences) for c in checks if c.differences] == []
