"""Some seeds of the protocol's simulation, and the promises of the simulation itself."""

from collections.abc import Sequence

import pytest

from service.scheduler.decide.disruption_budgets import BudgetsByNamespace
from service.scheduler.decide.placing import pod_placement as one_pod
from service.scheduler.decide.placing.preempting import make_room
from service.scheduler.decide.writing import bindings as pod_binding_and_eviction
from tests import seeds
from tests.concurrency.checker import check
from tests.concurrency.checker.evicting import is_preemption
from tests.concurrency.planted import BUGS
from tests.concurrency.simulation.account import account
from tests.concurrency.simulation.campaign import Result, run_seed
from tests.concurrency.simulation.run import simulate
from tests.concurrency.simulation.shrinking import failed, shrink

# A run is cut off at its end: what had been started for later never begins.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
SEEDS, CHUNK = 10, 5


@pytest.mark.parametrize("first", range(seeds.NUMBER, seeds.NUMBER + SEEDS, CHUNK))
def test_every_invariant_holds_whatever_happens(first):
    results = [run_seed(seed) for seed in range(first, first + CHUNK)]

    for result in results:
        print(result.told)
    failing = [each for each in results if each.violations]
    assert not failing, what_is_wrong(failing)
    # Seeds in which nobody is in anybody's way would prove little.
    conflicts = sorted(each.conflicts for each in results)
    assert conflicts[len(conflicts) // 2] >= 5


def what_is_wrong(failing: Sequence[Result], seconds_max: float = 45) -> str:
    """All seeds that fail, and the first of them as small as it gets in so much time."""
    again = "python -m tests.concurrency.simulation --seeds 1 --first"
    told = [f"{again} {each.seed}: {each.violations}" for each in failing]
    found = failed(simulate(failing[0].seed)) if failing else None
    if found is not None:
        told.append(account(shrink(found, seconds_max=seconds_max)))
    return "\n".join(told)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_seed_is_the_same_run_every_time(seed):
    first, second = simulate(seed), simulate(seed)

    assert str(first) == str(second)
    assert first.points == second.points
    assert first.history.changes == second.history.changes
    assert [str(call) for call in first.history.calls] == [str(c) for c in second.history.calls]
    assert check(first.history) == []


def test_a_seed_that_fails_is_told_as_small_as_it_gets():
    with BUGS["dry_runs_are_stored"].planted():
        told = what_is_wrong([run_seed(8)], seconds_max=float("inf"))

    assert "--first 8: " in told
    assert "to   1 workers, 1 clients, 1 requests" in told


PREEMPTING = (0, 3)
"""Seeds in which pods are evicted for others of higher priority."""


def test_nobody_is_evicted_for_another_pod_but_in_the_commit_that_nominates_the_node():
    for seed in PREEMPTING:
        run = simulate(seed, preempting=True)
        assert check(run.history) == []
        assert any(each.verb == "Put" and is_preemption(each) for each in run.history.changes)


PROTECTING = (6, 14)
"""Seeds in which a disruption budget holds back an eviction."""


def test_disruption_budgets_hold_back_evictions_whatever_happens():
    for seed in PROTECTING:
        run = simulate(seed, protecting=True)
        assert check(run.history) == []
        assert any(b'"blocked":[{' in each.body for each in run.history.changes)


def test_evictions_against_a_budget_are_found(monkeypatch):
    monkeypatch.setattr(BudgetsByNamespace, "blocking", lambda self, pod: None)
    found = check(simulate(PROTECTING[0], protecting=True).history)
    assert any("though the disruption budget kept does not allow it" in str(e) for e in found)


ASKED_FOR = 6
"""A seed in which a client asks for an eviction that a disruption budget does not allow."""


def test_an_eviction_on_request_that_a_budget_does_not_allow_is_found(monkeypatch):
    assert check(simulate(ASKED_FOR, protecting=True).history) == []
    monkeypatch.setattr(pod_binding_and_eviction, "exhausted_budgets", lambda *_: iter(()))
    found = check(simulate(ASKED_FOR, protecting=True).history)
    assert any("as was asked for, though the disruption budget kept" in str(e) for e in found)


BY_DOMAINS = (12, 14)
"""Seeds in which pods are evicted that keep another one from a node on which they are not."""


def test_a_pod_is_evicted_from_another_node_only_if_it_keeps_the_pod_from_the_nominated_one():
    for seed in BY_DOMAINS:
        history = simulate(seed, preempting=True, by_domains=True).history
        assert check(history) == []
        for call in history.calls:
            call.asked.pop("scope", None)
        found = check(history)
        assert any("its commit has none for which" in str(each) for each in found)


def test_evictions_without_a_nomination_are_found(monkeypatch):
    def without_nomination(context, manifest, found):
        make_room(context, manifest, found)
        return manifest

    monkeypatch.setattr(one_pod, "make_room", without_nomination)
    found = check(simulate(PREEMPTING[0], preempting=True).history)
    assert any("its commit has none for which" in str(each) for each in found)
