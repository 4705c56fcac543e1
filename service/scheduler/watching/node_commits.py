"""Recent commits by the nodes whose pods they concern, and the watches waiting for them.

With a watch for each node, every change concerns one or two of thousands of watches. So the feed
examines each change once, and wakes only the watches concerned. A waiting watch costs nothing while
other nodes' pods change.
"""

import asyncio
from collections import deque
from collections.abc import Collection
from itertools import chain
from typing import NamedTuple
from uuid import UUID

import msgspec

from service.model.log.commit import Change
from service.scheduler.watching.logged_commits import LoggedCommit
from service.scheduler.watching.page_room import first_commits
from service.scheduler.watching.watch_events import nodes_of


class Position(NamedTuple):
    """A position between two commits: the revision and id of the earlier one."""

    revision: int
    tip: UUID


class Waiter:
    """A watch of one node's pods that has received everything up to the newest commit."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.news = asyncio.Event()
        self.position: Position | None = None
        """The position just before the first later commit that concerns the node, or None."""

    def wake(self, position: Position | None) -> None:
        """Let the watch continue from a position, or from the newest commit if None."""
        self.position = position
        self.news.set()


_Numbered = tuple[int, LoggedCommit]


class NodeIndex:
    """An index of a ring's commits from number `begin`, by the nodes whose pods they change.

    Each node's commits contain only the changes that concern it. A commit with unknown nodes is
    indexed, as a whole, for all nodes.
    """

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self._of_node: dict[str, deque[_Numbered]] = {}
        self._of_all: deque[_Numbered] = deque()
        self._order: deque[tuple[int, Collection[str]]] = deque()
        """The nodes under which each commit is indexed."""
        self._waiting: dict[str, dict[Waiter, None]] = {}

    def add(self, number: int, commit: LoggedCommit) -> None:
        """Add the commit with the next number, and wake the watches concerned."""
        before = Position(commit.info.first - 1, commit.info.parent)
        concerned = _by_node(commit)
        if concerned is None:
            self._of_all.append((number, commit))
            self.wake_all(before)
            return
        for node, part in concerned.items():
            self._of_node.setdefault(node, deque()).append((number, part))
            for waiter in self._waiting.pop(node, ()):
                waiter.wake(before)
        self._order.append((number, concerned.keys()))

    def drop_before(self, number: int) -> None:
        """Drop the commits with smaller numbers, which the ring has dropped."""
        while self._of_all and self._of_all[0][0] < number:
            self._of_all.popleft()
        while self._order and self._order[0][0] < number:
            for node in self._order.popleft()[1]:
                commits = self._of_node[node]
                commits.popleft()
                if not commits:
                    del self._of_node[node]

    def after(self, node: str, number: int, limit: int, bytes_max: int) -> list[LoggedCommit]:
        """Return commits from `number` on that concern a node: about `limit` changes, or `bytes_max` bytes."""
        own = _since(self._of_node.get(node, deque()), number)
        commits = sorted(chain(own, _since(self._of_all, number)), key=lambda numbered: numbered[0])
        return first_commits((commit for _, commit in commits), limit, bytes_max)

    def wait(self, node: str) -> Waiter:
        """Return a waiter that is woken by the next commit that concerns a node."""
        waiter = Waiter(node)
        self._waiting.setdefault(node, {})[waiter] = None
        return waiter

    def stop_waiting(self, waiter: Waiter) -> None:
        """Remove a waiter, whether it was woken or not."""
        waiting = self._waiting.get(waiter.node, {})
        waiting.pop(waiter, None)
        if not waiting:
            self._waiting.pop(waiter.node, None)

    def wake_all(self, position: Position | None = None) -> None:
        """Wake all waiters."""
        waiting, self._waiting = self._waiting, {}
        for waiter in chain.from_iterable(waiting.values()):
            waiter.wake(position)


def _by_node(commit: LoggedCommit) -> dict[str, LoggedCommit] | None:
    """Return the part of a commit that concerns each node, or None if it may concern all nodes."""
    if len(commit.changes) == 1:  # most commits place a single pod
        nodes = nodes_of(commit.changes[0])
        return None if nodes is None else dict.fromkeys(nodes, commit)
    parts: dict[str, list[Change]] = {}
    for change in commit.changes:
        nodes = nodes_of(change)
        if nodes is None:
            return None
        for node in nodes:
            parts.setdefault(node, []).append(change)
    return {
        node: msgspec.structs.replace(commit, changes=changes) for node, changes in parts.items()
    }


def _since(commits: deque[_Numbered], number: int) -> list[_Numbered]:
    """Return the commits numbered `number` or higher, searching from the end."""
    recent: list[_Numbered] = []
    for numbered in reversed(commits):
        if numbered[0] < number:
            break
        recent.append(numbered)
    recent.reverse()
    return recent
