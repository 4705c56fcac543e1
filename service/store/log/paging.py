"""Builds a page of the log, and checks that it continues what the reader has."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from service.model.log.commit import (
    Change,
    CommitInfo,
    Diverged,
    Head,
    LogPage,
    ReplicaMismatch,
)


class LogRows(msgspec.Struct, frozen=True):
    """Rows of the log, as of one instant and in any order.

    They are all commits that end at `after` or later, and their changes after `after`, up to the
    first commit that ends at or beyond `after + limit`, or whose bodies make the total reach
    `bytes_max`.
    """

    floor: int
    head: Head
    commits: Sequence[CommitInfo]
    changes: Sequence[Change]


def build_page(
    extract: LogRows, after: int, tip: UUID | None, limit: int, bytes_max: int
) -> LogPage | Diverged:
    """Return the commits that follow (`after`, `tip`), or any after `after` if `tip` is None.

    Raises:
        ReplicaMismatch: a change is missing between two others (protocol rule P12).
    """
    head, floor = extract.head, extract.floor
    if after < floor or after > head.revision:
        return Diverged(head, floor)
    commits = _in_order(extract.commits, after) if tip is None else _chain(extract.commits, tip)
    if tip is not None and not _leads_from(commits, after, tip, head):
        return Diverged(head, floor)
    if tip is not None and not _is_whole(extract, commits, after + limit, bytes_max):
        return Diverged(head, floor)
    revision = commits[-1].last if commits else after
    end = commits[-1].commit_id if commits else tip
    changes = tuple(sorted(extract.changes, key=_revision))
    _check_dense(changes, after, revision)
    return LogPage(
        floor=floor, head=head, commits=tuple(commits), changes=changes, revision=revision, tip=end
    )


def _revision(change: Change) -> int:
    return change.revision


def _in_order(commits: Sequence[CommitInfo], after: int) -> list[CommitInfo]:
    """Return the commits that end after a revision, for a reader without a tip."""
    return sorted(
        (commit for commit in commits if commit.last > after),
        key=lambda commit: (commit.last, commit.first, commit.at),
    )


def _chain(commits: Sequence[CommitInfo], tip: UUID) -> list[CommitInfo]:
    """Return the chain of commits that follows a tip (protocol rule P3)."""
    child = {commit.parent: commit for commit in commits}
    chain: list[CommitInfo] = []
    while (commit := child.get(tip)) is not None:
        chain.append(commit)
        tip = commit.commit_id
    return chain


def _leads_from(commits: Sequence[CommitInfo], after: int, tip: UUID, head: Head) -> bool:
    """Return whether a chain begins at the reader's position."""
    if not commits:
        return (after, tip) == (head.revision, head.tip)
    return commits[0].first == after + 1


def _is_whole(extract: LogRows, commits: Sequence[CommitInfo], limit: int, bytes_max: int) -> bool:
    """Return whether a chain ends at the head, or where a limit ends the page."""
    if not commits:
        return True
    end = commits[-1]
    if (end.last, end.commit_id) == (extract.head.revision, extract.head.tip) or end.last >= limit:
        return True
    is_full = sum(len(change.body) for change in extract.changes) >= bytes_max
    return is_full and end.last == max(commit.last for commit in extract.commits)


def _check_dense(changes: Sequence[Change], after: int, revision: int) -> None:
    """Raise ReplicaMismatch if the changes have a gap, which would go unnoticed once applied."""
    expected = range(after + 1, revision + 1)
    if len(changes) != len(expected) or any(
        change.revision != number for change, number in zip(changes, expected, strict=True)
    ):
        raise ReplicaMismatch(f"The log has a gap between revisions {after} and {revision}.")
