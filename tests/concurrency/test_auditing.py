"""The checker sees what is wrong with who is told to have asked (A19)."""

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import msgspec
import pytest
from msgspec.structs import replace

from service.model.log.commit import Change, CommitInfo
from tests.concurrency.checker import check
from tests.concurrency.checker.auditing import check_audit
from tests.concurrency.checker.claims import attribute
from tests.concurrency.checker.history import Call, History
from tests.concurrency.simulation.run import simulate
from tests.store.history import create, delete, put

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


def commit_of(number: int, changes: Sequence[Change]) -> CommitInfo:
    first, last = changes[0].revision, changes[-1].revision
    ids = {"commit_id": UUID(int=number), "parent": UUID(int=0), "planned_at": 1, "kind": "Batch"}
    return CommitInfo(first=first, last=last, at=datetime(2026, 1, 1, tzinfo=UTC), **ids)


def history_of(calls: list[Call], *commits: Sequence[Change], ends: Sequence[int] = ()) -> History:
    """A new cluster and these commits, from revision 2 on; `ends` has the last one of each row."""
    revisions = count(2)
    numbered = [[replace(each, revision=next(revisions)) for each in commit] for commit in commits]
    audit: Any = [SimpleNamespace(revision=each, operation="") for each in ends]
    return History(
        calls=calls,
        commits=[commit_of(number, each) for number, each in enumerate(numbered, 1)],
        changes=[
            replace(create("config"), revision=1),
            *(each for commit in numbered for each in commit),
        ],
        audit=audit,
    )


def test_what_the_audit_tells_as_one_request_is_that_of_who_asked_for_all_of_it():
    """Another one wanted one of its pods, and not one of those wanted fits nowhere."""
    calls = [placement_without_an_answer(1, "a", "b", "c"), placement_without_an_answer(2, "a")]
    both = [create(name, node_name="n1") for name in ("a", "b")]
    history = history_of(calls, both, ends=[3])
    assert {revision: call.number for revision, call in attribute(history)[0].items()} == {
        2: 1,
        3: 1,
    }


def note_of(*names: str, **fields: Any) -> Change:
    """Notes that these pods wait together."""
    members = [["default", name] for name in names]
    body = msgspec.json.encode({"name": "together", "members": members})
    return put("together", kind="WaitingGroup", namespace="", body=body, **fields)


def deletion_of(namespace: str, revision: int) -> Call:
    return dataclasses.replace(
        placement_without_an_answer(2),
        action="delete",
        asked={"object": ("Namespace", "", namespace)},
        outcome="ok",
        revision=revision,
    )


def test_a_deleted_namespace_leaves_the_note_of_those_who_come_to_wait_in_the_same_commit():
    asked = placement_without_an_answer(1, "a", "b")
    waiting = [*map(waiting_pod, "ab"), note_of("a", "b", created=True)]
    gone = [delete("c", namespace="lab"), delete("lab", kind="Namespace", namespace="")]
    history = history_of([asked, deletion_of("lab", 6)], [*waiting, *gone], ends=[4, 6])
    claims, found = attribute(history)
    assert found == []
    assert {revision: call.number for revision, call in claims.items()} == {2: 1, 3: 1, 5: 2, 6: 2}


def waiting_pod(name: str, **fields: Any) -> Change:
    body = msgspec.json.encode({"metadata": {"name": name}, "spec": {}})
    return create(name, body=body, **fields)


@pytest.mark.parametrize("is_waiting", [False, True])
def test_a_note_goes_with_any_commit_if_nobody_waits_that_it_is_about(is_waiting):
    calls = [placement_without_an_answer(1, "a", "b"), placement_without_an_answer(2, "c", "d")]
    first = [*map(waiting_pod, "ab"), note_of("a", "b", created=True)]
    placed = [
        replace(waiting_pod(name), created=False, node_name="n1")
        for name in ("a" if is_waiting else "ab")
    ]
    old = replace(note_of("a", "b"), verb="Delete")
    second = [*map(waiting_pod, "cd"), old, note_of("c", "d", created=True)]
    _, found = attribute(history_of(calls, first, placed, second))
    told = [each for each in found if "WaitingGroup" in each.message]
    assert [each.invariant for each in told] == ["A7"] * is_waiting


def test_the_deletion_of_a_namespace_does_not_take_the_notes_of_others_with_it():
    asked = placement_without_an_answer(1, "a", "b")
    waiting = [*map(waiting_pod, "ab"), note_of("a", "b", created=True)]
    gone = [
        replace(note_of("a", "b"), verb="Delete"),
        delete("lab", kind="Namespace", namespace=""),
    ]
    _, found = attribute(history_of([asked, deletion_of("lab", 6)], waiting, gone, ends=[4, 6]))
    assert ["WaitingGroup" in each.message for each in found] == [True]


def test_a_pending_pod_that_is_placed_with_a_new_one_is_of_who_asked_for_both():
    """The queue would have placed it alone, and that is what another row would tell."""
    calls = [placement_without_an_answer(1, "a", "b")]
    waiting = [waiting_pod("b")]
    placed = [
        replace(waiting_pod("a"), node_name="n1"),
        replace(waiting_pod("b"), created=False, node_name="n1"),
    ]
    history = history_of(calls, waiting, placed, ends=[2, 4])
    history.granted = 2
    claims, _ = attribute(history)
    assert {revision: call.number for revision, call in claims.items()} == {3: 1, 4: 1}


def test_a_pod_that_goes_in_the_row_of_its_namespace_goes_with_that():
    """Another one wanted the pod deleted, and neither was answered."""
    lab = dataclasses.replace(deletion_of("lab", 0), outcome="unknown", revision=None)
    pod = dataclasses.replace(
        placement_without_an_answer(3), action="delete", asked={"object": ("Pod", "lab", "p")}
    )
    gone = [delete("p", namespace="lab"), delete("lab", kind="Namespace", namespace="")]
    claims, _ = attribute(history_of([lab, pod], gone, ends=[3]))
    assert {revision: call.number for revision, call in claims.items()} == {2: 2, 3: 2}
