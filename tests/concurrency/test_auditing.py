"""The checker sees what is wrong with who is told to have asked (A19)."""

import pytest

from tests.concurrency.checker import check
from tests.concurrency.checker.auditing import check_audit
from tests.concurrency.checker.claims import attribute
from tests.concurrency.simulation.run import simulate

# A run is cut off at its end: what had been started for later never begins.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


@pytest.fixture(scope="module")
def history():
    found = simulate(5).history
    assert check(found) == []
    return found


def wrong(history, audit) -> str:
    """What is told if this was the audit."""
    kept, history.audit = history.audit, audit
    found = check_audit(history, attribute(history)[0])
    history.audit = kept
    assert {each.invariant for each in found} <= {"A19"}
    return "; ".join(map(str, found))


def test_a_write_that_nobody_asked_for_is_found(history):
    assert "nobody is told to have asked for" in wrong(history, history.audit[:-1])


def test_a_row_that_is_missing_is_found(history):
    assert "the chain is broken" in wrong(history, [*history.audit[:4], *history.audit[5:]])


def test_a_row_that_is_told_twice_is_found(history):
    assert "is told after" in wrong(history, [*history.audit, history.audit[-1]])


def test_rows_of_several_that_are_one_are_found(history):
    claims, _ = attribute(history)
    places = [
        number
        for number, row in enumerate(history.audit[:-1])
        if row.revision in claims and row.revision + 1 in claims
        if claims[row.revision].operation != claims[row.revision + 1].operation
    ]
    without = [row for number, row in enumerate(history.audit) if number != places[0]]
    assert "are one row, and of" in wrong(history, without)
