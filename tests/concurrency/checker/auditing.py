"""A19: each commit says once who asked for it, in rows that verify."""

from itertools import pairwise

from service.model.log.audit_chain import Verifier
from tests.concurrency.checker.claims import Claims
from tests.concurrency.checker.history import History, Violation

FIRST_REVISION = 1
"""Made with the cluster itself, which is the server's business."""


def check_audit(history: History, claims: Claims) -> list[Violation]:
    if history.audit is None:
        return []
    broken = Verifier().follow(history.audit)
    told = [] if broken is None else [f"the chain is broken: {broken}"]
    return [Violation("A19", each) for each in (*told, *_gaps(history), *_mixed(history, claims))]


def _ends(history: History) -> list[int]:
    """The last revision of each row's request, and of what made the cluster before them."""
    return [FIRST_REVISION, *history.ends_of_requests]


def _gaps(history: History) -> list[str]:
    ends = _ends(history)
    found = [f"{later} is told after {end}" for end, later in pairwise(ends) if later <= end]
    told = set(ends)
    found += [
        f"nobody is told to have asked for {commit}"
        for commit in history.commits
        if commit.last >= commit.first and commit.last not in told
    ]
    if ends[-1] > len(history.changes):
        found.append(f"revision {ends[-1]} is told of and was never committed")
    return found


def _mixed(history: History, claims: Claims) -> list[str]:
    """What is told as one request is not the doing of several."""
    found = []
    for end, later in pairwise(_ends(history)):
        asked = {claims[each].operation for each in range(end + 1, later + 1) if each in claims}
        if len(asked) > 1:
            found.append(f"revisions {end + 1} to {later} are one row, and of {sorted(asked)}")
    return found
