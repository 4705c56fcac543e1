"""Divides pages of the log into commits with their changes, the units of watches."""

from collections.abc import Iterator, Sequence

import msgspec

from service.model.log.commit import Change, CommitInfo, LogPage


class LoggedCommit(msgspec.Struct, frozen=True):
    """A commit with its changes; a reader that started within it gets only the remaining ones."""

    info: CommitInfo
    changes: Sequence[Change]


def commits_of(page: LogPage) -> Iterator[LoggedCommit]:
    """Divide a page of the log into its commits."""
    start = page.revision - len(page.changes) + 1
    for info in page.commits:
        # A fence changes nothing: it ends before it begins (protocol rule P4).
        first, end = max(info.first - start, 0), info.last + 1 - start
        yield LoggedCommit(info, page.changes[first : max(end, first)])
