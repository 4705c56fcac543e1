"""The memory that a watch may use for the log: its page and the encoded answer."""

from collections.abc import Iterable
from typing import Protocol

from service.model.log.commit import LogPage
from service.scheduler.watching.logged_commits import LoggedCommit


class PageRoom(Protocol):
    """Limits the bytes held by one watch, and by all watches together."""

    def fits(self, count: int) -> bool:
        """Return whether the watch may hold `count` bytes in total now."""
        ...

    async def reserve(self, count: int) -> None:
        """Reserve `count` bytes in total, waiting until there is room."""
        ...

    def settle(self, count: int) -> None:
        """Reserve exactly `count` bytes, whether or not there is room."""
        ...


class UnlimitedRoom:
    """Unlimited room, for watches within this process."""

    def fits(self, count: int) -> bool:  # noqa: ARG002
        return True

    async def reserve(self, count: int) -> None:
        """Do nothing."""

    def settle(self, count: int) -> None:
        """Do nothing."""


def body_bytes(commit: LoggedCommit) -> int:
    """Return the total size of a commit's bodies, in bytes."""
    return sum(len(change.body) for change in commit.changes)


def first_commits(
    commits: Iterable[LoggedCommit], changes_max: int, bytes_max: int
) -> list[LoggedCommit]:
    """Return the first commits, up to the one that reaches either limit."""
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
    """Return how many bytes a watch holds for a page, consistent with `held_bytes`."""
    return 2 * sum(len(change.body) for change in page.changes)


def held_bytes(commits: Iterable[LoggedCommit]) -> int:
    """Return how many bytes a watch holds for commits: twice their bodies, for the encoded answer."""
    return 2 * sum(map(body_bytes, commits))
