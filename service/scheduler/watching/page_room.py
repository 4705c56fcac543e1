"""The bytes that a watch may hold of the log: its page, and the answer that is encoded from it."""

from collections.abc import Iterable
from typing import Protocol

from service.model.log.commit_log import LogPage
from service.scheduler.watching.logged_commits import LoggedCommit


class PageRoom(Protocol):
    """Bounds what one watch holds in memory, together with all others."""

    def fits(self, count: int) -> bool:
        """Whether the watch may hold `count` bytes in all now."""
        ...

    async def reserve(self, count: int) -> None:
        """Hold `count` bytes in all, as soon as there is room for them."""
        ...

    def settle(self, count: int) -> None:
        """Hold exactly `count` bytes, whether there is room for them or not."""
        ...


class UnlimitedRoom:
    """Room for everything, for watches in this process whose commits nobody has to wait for."""

    def fits(self, count: int) -> bool:  # noqa: ARG002
        """Return True."""
        return True

    async def reserve(self, count: int) -> None:
        """Do nothing."""

    def settle(self, count: int) -> None:
        """Do nothing."""


def body_bytes(commit: LoggedCommit) -> int:
    """Count the bytes of the bodies that a commit has."""
    return sum(len(change.body) for change in commit.changes)


def first_commits(
    commits: Iterable[LoggedCommit], changes_max: int, bytes_max: int
) -> list[LoggedCommit]:
    """Return the first commits, up to the one that reaches the most changes or bytes."""
    taken: list[LoggedCommit] = []
    changes = size = 0
    for commit in commits:
        taken.append(commit)
        changes += len(commit.changes)
        size += body_bytes(commit)
        if changes >= changes_max or size >= bytes_max:
            break
    return taken


def page_bytes(page: LogPage) -> int:
    """Count what a watch holds with a page, as `held_bytes` does."""
    return 2 * sum(len(change.body) for change in page.changes)


def held_bytes(commits: Iterable[LoggedCommit]) -> int:
    """Count what a watch holds with these commits: their bodies, and about as much once they are encoded."""
    return 2 * sum(map(body_bytes, commits))
