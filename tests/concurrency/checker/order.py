"""A4, A12 and what an answer's revision promises: order in real time, and no answer from nowhere."""

from collections.abc import Iterator

from tests.concurrency.checker.history import Call, History, Violation

WRITES = ("place", "put", "apply", "delete", "evict", "config")


def check_order(history: History) -> list[Violation]:
    return [*_real_time(history), *_windows(history), *_failures(history)]


def _real_time(history: History) -> Iterator[Violation]:
    """One sweep: a call that began after another had returned is not told an older state."""
    answered = [
        call
        for call in history.calls
        if call.revision is not None and not _may_be_old(history, call)
    ]
    returns = sorted(answered, key=lambda call: call.returned)
    newest: Call | None = None
    position = 0
    for call in sorted(answered, key=lambda call: call.called):
        while position < len(returns) and returns[position].returned < call.called:
            before = returns[position]
            if newest is None or _revision(before) > _revision(newest):
                newest = before
            position += 1
        if newest is None:
            continue
        if _revision(call) < _revision(newest):
            invariant = "A12" if call.client == newest.client else "A4"
            yield Violation(invariant, f"{call} came after {newest}")
        elif _revision(call) == _revision(newest) and _wrote(call) and not call.recorded:
            yield Violation("A4", f"{call} wrote what {newest} had seen before")


def _revision(call: Call) -> int:
    assert call.revision is not None
    return call.revision


def _wrote(call: Call) -> bool:
    """Whether the answer's revision is for certain the call's own."""
    match call.action:
        case "place":
            return bool(call.body["committed"])
        case "delete":
            return True
        case "apply":
            return bool(call.body["created"] + call.body["changed"] + call.body["deleted"])
    return False


def _windows(history: History) -> Iterator[Violation]:
    """An answer rests on a head that was there between call and return."""
    for call in history.calls:
        if call.revision is None or call.head_called is None or call.head_returned is None:
            continue
        if call.revision > call.head_returned:
            yield Violation("A6", f"{call} rests on what was not committed: {call.head_returned}")
        if call.revision < call.head_called and not _may_be_old(history, call):
            yield Violation(
                "A12", f"{call} is older than the head at its beginning: {call.head_called}"
            )


def _may_be_old(history: History, call: Call) -> bool:
    """Without the database, what only tells is told from the replica as it is."""
    advisory = call.action == "topology" or call.asked.get("dry_run", False)
    return history.storage_fails and advisory


def _failures(history: History) -> Iterator[Violation]:
    for call in history.calls:
        if call.status.startswith("InternalError"):
            yield Violation("500", f"{call}")
