"""The vectors over HTTP, as a client lives through them: simulations, stored clusters, traces."""

from collections.abc import Iterator, Sequence
from random import Random

import pytest

from moorage.cli.session.client import Client
from tests.api.live import live_server
from tests.conformance import vectors
from tests.seeds import EXPLORING
from tools.conformance.comparison import check_case, check_stored_case, replay_trace

PARTS = 4
SIMULATED_SHARE = 12
PREEMPTION_SHARE = 6
STORED_SHARE = 80
TRACE_SHARE = 4
"""The gate asks for one in so many; the engine answers all of them without HTTP, and `make conformance` asks for all."""
SEED = 20


def share_of(cases: Sequence[vectors.Case], share: int) -> Sequence[vectors.Case]:
    """Each of so many cases in the gate, all of them in exploration."""
    return cases[:: 1 if EXPLORING else share]


@pytest.fixture(scope="module")
def client(module_database_url: str) -> Iterator[Client]:
    with live_server(module_database_url) as url, Client(url) as connected:
        yield connected


@pytest.mark.parametrize("part", range(PARTS))
def test_cases_are_answered_alike_through_simulations(client, part):
    chosen = share_of(vectors.cases(), SIMULATED_SHARE)
    checks = [check_case(client, case) for case in chosen[part::PARTS]]
    assert checks
    assert [check.name for check in checks if check.differences] == []


@pytest.mark.parametrize("part", range(PARTS))
def test_preemptions_are_proposed_alike_through_simulations(client, part):
    chosen = share_of(vectors.preemptions(), PREEMPTION_SHARE)
    checks = [check_case(client, case) for case in chosen[part::PARTS]]
    assert checks
    assert [(c.name, c.differences) for c in checks if c.differences] == []


@pytest.mark.parametrize("part", range(PARTS))
def test_some_of_the_cases_are_answered_alike_on_a_stored_cluster(client, part):
    """`make conformance` does all of them; the seed says which these are."""
    chosen = Random(SEED).sample(vectors.cases(), len(vectors.cases()) // STORED_SHARE)
    checks = [check_stored_case(client, case) for case in chosen[part::PARTS]]
    assert checks
    assert [(c.name, c.differences) for c in checks if c.differences] == []


@pytest.mark.parametrize("version", vectors.versions())
def test_cases_of_each_version_are_answered_alike_through_simulations(client, version):
    checks = [
        check_case(client, case)
        for case in share_of(vectors.of_version(version), 2 * SIMULATED_SHARE)
    ]
    assert [(c.name, c.differences) for c in checks if c.differences] == []


@pytest.mark.parametrize("part", range(PARTS))
def test_every_step_of_a_trace_is_answered_alike(client, part):
    for trace in share_of(vectors.traces(), TRACE_SHARE)[part::PARTS]:
        checks = list(replay_trace(client, trace))
        assert checks
        assert [(c.name, c.differences) for c in checks if c.differences] == []
