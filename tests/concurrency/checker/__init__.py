"""Checks a history against the invariants of the service, in one pass over its log.

It shares nothing with the service but the shapes of the log: what a rule means is asked of the
slow reference implementation. What it finds names the invariant:

- A1 capacity, A2 no placement breaks a rule, A3 the log is dense and adds up to the tables
- A4 real-time order, A5 once per idempotency key, A6 what was acknowledged is there,
  A7 nothing else is there, A8 decided on the state that was extended, A9 groups whole or absent
- A10 watches, A11 lists, A12 reads, A13 replicas, A15 the same plan for the same state,
  A16 healing, A17 clusters apart, A18 no secrets, A19 who asked,
  A20 pods of deleted nodes end, and no others
"""

from tests.concurrency.checker.auditing import check_audit
from tests.concurrency.checker.claims import attribute
from tests.concurrency.checker.history import History, Violation
from tests.concurrency.checker.log import check_log
from tests.concurrency.checker.order import check_order
from tests.concurrency.checker.reading import check_readers, check_replicas
from tests.concurrency.checker.replay import Replay

__all__ = ["check"]


def check(history: History, *, placements_every: int = 1) -> list[Violation]:
    """All violations that can be told apart; empty if every invariant held.

    In a long history one placement of every so many is worked out again, since that takes longer
    the more pods there are; everything else is checked whole.
    """
    found = [Violation("alarm", each) for each in history.alarms]
    found += [Violation("A16", each) for each in history.healed]
    broken = check_log(history)
    if broken:
        return found + broken
    claims, unclaimed = attribute(history)
    replay = Replay(history, claims, placements_every=placements_every)
    found += [*unclaimed, *check_order(history), *replay.run(), *check_audit(history, claims)]
    return found + check_readers(history) + check_replicas(history, replay.state)
