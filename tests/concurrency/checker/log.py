"""A3: one dense log, one chain of commits, and the tables are what it adds up to."""

from itertools import pairwise

from tests.concurrency.checker.history import History, Key, Violation


def check_log(history: History) -> list[Violation]:
    found = [Violation("A3", each) for each in (*_gaps(history), *_breaks(history))]
    return found or [Violation("A3", each) for each in _table_differences(history)]


def _gaps(history: History) -> list[str]:
    revisions = [change.revision for change in history.changes]
    if revisions != list(range(1, len(revisions) + 1)):
        return [f"the log's revisions are not 1 … {len(revisions)}: {_first_odd(revisions)}"]
    if history.head is not None and history.head[0] != len(revisions):
        return [f"the head is {history.head[0]}, the log ends at {len(revisions)}"]
    return []


def _first_odd(revisions: list[int]) -> str:
    for expected, revision in enumerate(revisions, start=1):
        if revision != expected:
            return f"{revision} in place of {expected}"
    return "none"


def _breaks(history: History) -> list[str]:
    """Each commit stands on the one before, and begins where that ended."""
    found = []
    for before, after in pairwise(history.commits):
        if after.parent != before.commit_id or after.first != before.last + 1:
            found.append(f"commit {after} does not continue {before}")
        if after.at < before.at:
            found.append(f"commit {after} is older than {before}")
    ids = [commit.commit_id for commit in history.commits]
    if len(set(ids)) != len(ids):
        found.append("a commit id was used twice")
    return found + [
        f"commit {commit} was planned after it was committed"
        for commit in history.commits
        if commit.planned_at >= commit.first
    ]


def _table_differences(history: History) -> list[str]:
    folded: dict[Key, tuple[int, bytes]] = {}
    for change in history.changes:
        key = tuple(change.key)
        if change.verb == "Put":
            folded[key] = (change.revision, change.body)
        else:
            folded.pop(key, None)
    return [
        f"{key} is {history.rows.get(key)} in the table and {folded.get(key)} in the log"
        for key in sorted(folded.keys() | history.rows.keys())
        if folded.get(key) != history.rows.get(key)
    ]
