"""The latest commits of a log, within bounds, for all watches that keep up."""

from collections import deque
from collections.abc import Sequence
from itertools import islice
from uuid import UUID

from service.model.log.commit import Head, LogPage
from service.scheduler.watching.logged_commits import LoggedCommit, commits_of
from service.scheduler.watching.node_commits import NodeIndex
from service.scheduler.watching.page_room import body_bytes, first_commits


class RecentCommits:
    """Recent commits, each following the one before.

    Old commits are dropped once changes or bytes exceed a bound; the newest is kept regardless of
    its size. Readers track their position by the id of the last commit they have (protocol rule
    P3).
    """

    def __init__(self, head: Head, *, changes_max: int, bytes_max: int) -> None:
        self.revision = head.revision
        self.tip = head.tip
        self._changes_max = changes_max
        self._bytes_max = bytes_max
        self._commits: deque[LoggedCommit] = deque()
        self._numbers: dict[UUID, int] = {}
        """The number of the commit after each commit, counted from the ring's first ever."""
        self._dropped = 0
        self._changes = self._bytes = 0
        self.nodes: NodeIndex | None = None
        """The commits by the nodes whose pods they concern, while any watch needs the index."""

    def append(self, page: LogPage) -> None:
        """Add the commits that follow `tip` in the log."""
        for commit in commits_of(page):
            assert commit.info.parent == self.tip
            number = self._numbers[self.tip] = self.end
            self._commits.append(commit)
            if self.nodes is not None:
                self.nodes.add(number, commit)
            self._changes += len(commit.changes)
            self._bytes += body_bytes(commit)
            self.tip = commit.info.commit_id
        self.revision = page.revision
        while len(self._commits) > 1 and self._is_over:
            self._drop_oldest()
        if self.nodes is not None:
            self.nodes.drop_before(self._dropped)

    def number_after(self, tip: UUID) -> int | None:
        """Return the number of the commit after `tip`, or None if dropped."""
        return self.end if tip == self.tip else self._numbers.get(tip)

    @property
    def end(self) -> int:
        """The number of the next commit."""
        return self._dropped + len(self._commits)

    def after(self, tip: UUID, limit: int, bytes_max: int) -> Sequence[LoggedCommit] | None:
        """Return commits after `tip`, about `limit` changes or `bytes_max` bytes, or None if dropped."""
        if tip == self.tip:
            return ()
        number = self._numbers.get(tip)
        if number is None:
            return None
        return first_commits(islice(self._commits, number - self._dropped, None), limit, bytes_max)

    @property
    def _is_over(self) -> bool:
        # Fences have no changes, but take up room, too.
        entries = max(self._changes, len(self._commits))
        return entries > self._changes_max or self._bytes > self._bytes_max

    def _drop_oldest(self) -> None:
        commit = self._commits.popleft()
        del self._numbers[commit.info.parent]
        self._dropped += 1
        self._changes -= len(commit.changes)
        self._bytes -= body_bytes(commit)
