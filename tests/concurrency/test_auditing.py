"""The checker sees what is wrong with who is told to have asked (A19)."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from service.model.log.commit_log import CommitInfo
from tests.concurrency.checker import check
from tests.concurrency.checker.auditing import check_audit
from tests.concurrency.checker.claims import attribute
from tests.concurrency.checker.history import Call, History
from tests.concurrency.simulation.run import simulate
from tests.store.history import create

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


def placement_without_an_answer(number: int, *names: str) -> Call:
    return Call(
        number=number,
        client=f"client-{number}",
        operation=number,
        action="place",
        asked={
            "pods": [("Pod", "default", name) for name in names],
            "group": None,
            "dry_run": False,
        },
        called=float(number),
        returned=9.0,
        outcome="unknown",
        status="Reset",
        manifests=[{"metadata": {"name": name}} for name in names],
    )


def test_what_the_audit_tells_as_one_request_is_that_of_who_asked_for_all_of_it():
    """Another one wanted one of its pods, and not one of those wanted fits nowhere."""
    both: Any = [SimpleNamespace(revision=3)]
    calls = [placement_without_an_answer(1, "a", "b", "c"), placement_without_an_answer(2, "a")]
    changes = [
        replace(create(name), revision=revision, node_name="n1")
        for revision, name in ((1, "config"), (2, "a"), (3, "b"))
    ]
    ids = {"commit_id": UUID(int=1), "parent": UUID(int=0), "planned_at": 1, "kind": "Place"}
    commit = CommitInfo(first=2, last=3, at=datetime(2026, 1, 1, tzinfo=UTC), **ids)
    history = History(calls=calls, commits=[commit], changes=changes, audit=both)
    assert {revision: call.number for revision, call in attribute(history)[0].items()} == {
        2: 1,
        3: 1,
    }
