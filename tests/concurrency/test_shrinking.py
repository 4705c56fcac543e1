"""Failing schedules are made small before anybody has to read them."""

import json
import re

import pytest

from tests.concurrency.checker.history import Violation
from tests.concurrency.planted import BUGS
from tests.concurrency.simulation.account import account, size_of
from tests.concurrency.simulation.reproducer import Reproducer
from tests.concurrency.simulation.run import simulate
from tests.concurrency.simulation.shrinking import failed, failure_of, merged, reduce, shrink

CLIENTS_MAX = 10
"""A run has fewer clients."""

# A run is cut off at its end: what had been started for later never begins.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


@pytest.mark.parametrize("needed", [[], [0], [3, 7], [0, 1, 2], [0, 4, 5, 9], list(range(10))])
def test_exactly_what_is_needed_is_kept(needed):
    assert reduce(list(range(10)), lambda rest: set(needed) <= set(rest)) == needed


def test_what_can_be_left_out_only_after_something_later_is_left_out_too():
    # 1 is needed as long as 8 is there, and 0 as long as 1 is.
    def fails(rest):
        return 5 in rest and (8 not in rest or 1 in rest) and (1 not in rest or 0 in rest)

    assert reduce(list(range(10)), fails) == [5]


def test_few_of_many_are_found_in_few_attempts():
    attempts = []

    def fails(rest):
        attempts.append(rest)
        return {117, 800} <= set(rest)

    assert reduce(list(range(1_000)), fails) == [117, 800]
    assert len(attempts) < 60


@pytest.mark.parametrize("seed", [2, 11])
def test_the_whole_schedule_of_a_seed_is_its_run_again(seed):
    run = simulate(seed)

    again = simulate(seed, json.loads(json.dumps(run.schedule)))

    assert str(again) == str(run)
    assert again.schedule == json.loads(json.dumps(run.schedule))
    assert again.history.changes == run.history.changes
    assert [str(call) for call in again.history.calls] == [str(c) for c in run.history.calls]


def test_nothing_goes_on_in_an_empty_schedule():
    run = simulate(2, {"worker-5": True})

    assert failed(run) is None
    assert run.schedule == {"worker-5": True}
    assert run.history.calls == []
    assert not any((run.crashes, run.drains, run.jumps, run.conflicts, run.lost_answers))


def test_a_part_of_a_schedule_takes_only_decisions_of_that_part():
    schedule = simulate(2).schedule
    part = {name: each for name, each in schedule.items() if not name.startswith("client-1")}

    run = simulate(2, part)

    assert run.schedule == {name: part[name] for name in run.schedule}
    clients = {call.client for call in run.history.calls}
    assert "client-0" in clients
    assert "client-1" not in clients


def test_two_clients_become_one_that_asks_in_the_same_order():
    schedule = simulate(2).schedule
    others = tuple(f"client-{number}/" for number in range(2, CLIENTS_MAX))
    few = {
        name: each
        for name, each in schedule.items()
        if not name.startswith(others) and f"{name}/" not in others
    }
    run = simulate(2, few)

    again = simulate(2, merged(run, gone="client-1", into="client-0"))

    def first_asked(run):
        return list(dict.fromkeys(call.operation for call in run.history.calls))

    assert {call.client for call in again.history.calls} == {"setup", "client-0"}
    assert first_asked(again) == first_asked(run)


MISTAKE = BUGS["dry_runs_are_stored"]
SEED = 12


@pytest.fixture(scope="module")
def shrinking():
    with MISTAKE.planted():
        return shrink(failed(simulate(SEED)), runs_max=100, seconds_max=float("inf"))


def test_a_run_with_a_mistake_shrinks_to_what_shows_it(shrinking):
    before, after = size_of(shrinking.first.run), size_of(shrinking.now.run)

    assert before.requests >= 40
    assert before.deviations >= 100
    assert before.faults >= 10
    assert after.workers == 1
    assert (after.clients, after.requests) == (1, 1)
    assert after.setups <= 1
    assert (after.deviations, after.slow, after.faults) == (0, 0, 0)


def test_a_shrunk_schedule_breaks_the_same_invariant_when_it_is_replayed(shrinking, tmp_path):
    path = Reproducer.of(shrinking.now, MISTAKE.name).save(tmp_path)
    kept = Reproducer.load(path)

    with MISTAKE.planted():
        again = failed(kept.run())

    assert kept.planted == MISTAKE.name
    assert again.violations == shrinking.now.violations
    assert shrinking.target == failure_of(shrinking.first.violations[0])
    assert shrinking.target in again.failures
    assert failed(kept.run()) is None


def test_the_same_run_shrinks_to_the_same_schedule(shrinking):
    with MISTAKE.planted():
        again = shrink(shrinking.first, runs_max=100, seconds_max=float("inf"))

    assert again.runs == shrinking.runs
    assert again.schedule == shrinking.schedule


def test_shrinking_ends_after_as_many_runs_as_are_allowed(shrinking):
    with MISTAKE.planted():
        ended = shrink(shrinking.first, runs_max=3, seconds_max=float("inf"))

    assert (ended.runs, ended.is_complete, shrinking.is_complete) == (3, False, True)
    assert len(shrinking.schedule) < len(ended.schedule) < len(shrinking.first.run.schedule)
    assert ended.target in ended.now.failures


def test_the_account_tells_what_was_asked_what_went_on_and_what_is_wrong(shrinking):
    told = account(shrinking)

    assert f"seed {SEED} breaks {shrinking.target.invariant}" in told
    assert "asks worker-" in told
    assert re.search(r"commits \d+: Put Pod/", told)
    assert told.splitlines()[-1].strip()
    assert len(told.splitlines()) < 40


def test_a_failure_is_known_by_what_is_said_of_it_but_for_names_and_numbers():
    one = Violation("A14", "revision 7 evicts shop/a on n0 (Rule: x[0]), which is in no conflict")
    other = Violation("A14", "revision 9 evicts lab/b on n1 (Other), which is in no conflict")
    worse = Violation("A14", "revision 9 evicts lab/b on n1 (Other), though it is a daemon")

    assert failure_of(one) == failure_of(other)
    assert failure_of(one) != failure_of(worse)
