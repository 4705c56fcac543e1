"""Which recent commits concern the pods of which node, and which watches wait for them.

With a watch for each node, every change concerns one or two of thousands of watches. So a change is
looked at once, by the feed, and only the watches that it concerns are woken. A watch that waits
costs nothing, however much happens elsewhere.
"""

import asyncio
from collections import deque
from collections.abc import Collection
from itertools import chain
from typing import NamedTuple
from uuid import UUID

import msgspec

from service.model.log.commit_log import Change
from service.scheduler.watching.logged_commits import LoggedCommit
from service.scheduler.watching.page_room import first_commits
from service.scheduler.watching.watch_events import nodes_of


class Position(NamedTuple):
    """Between two commits: the revision and id of the one before."""

    revision: int
    tip: UUID


class Waiter:
    """A watch of one node's pods that has everything up to the newest commit."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.news = asyncio.Event()
        self.position: Position | None = None
        """Just before the first commit since then that concerns the node; None if there is none."""

    def wake(self, position: Position | None) -> None:
        """Have the watch go on from a position; None: from the newest commit."""
        self.position = position
        self.news.set()


_Numbered = tuple[int, LoggedCommit]


class NodeIndex:
    """The commits of a ring from the number `begin` on, by the nodes whose pods they concern.

    A commit has only the changes that concern the node. One of which it is not known whom it concerns
    concerns all nodes as a whole.
    """

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self._of_node: dict[str, deque[_Numbered]] = {}
        self._of_all: deque[_Numbered] = deque()
        self._order: deque[tuple[int, Collection[str]]] = deque()
        """For each commit the nodes under which it stands."""
        self._waiting: dict[str, dict[Waiter, None]] = {}

    def add(self, number: int, commit: LoggedCommit) -> None:
        """Add the commit that has the next number, and wake those whom it concerns."""
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
        """Forget the commits whose numbers are smaller, as the ring has dropped them."""
        while self._of_all and self._of_all[0][0] < number:
            self._of_all.popleft()
        while self._order and self._order[0][0] < number:
            for node in self._order.popleft()[1]:
                commits = self._of_node[node]
                commits.popleft()
                if not commits:
                    del self._of_node[node]

    def after(self, node: str, number: int, limit: int, bytes_max: int) -> list[LoggedCommit]:
        """Return the commits from a number on that concern a node, about `limit` changes or `bytes_max` bytes."""
        own = _since(self._of_node.get(node, deque()), number)
        found = sorted(chain(own, _since(self._of_all, number)), key=lambda each: each[0])
        return first_commits((commit for _, commit in found), limit, bytes_max)

    def wait(self, node: str) -> Waiter:
        """Return a waiter that is woken by the next commit that concerns a node."""
        waiter = Waiter(node)
        self._waiting.setdefault(node, {})[waiter] = None
        return waiter

    def stop_waiting(self, waiter: Waiter) -> None:
        """Forget a waiter, whether it was woken or not."""
        waiting = self._waiting.get(waiter.node, {})
        waiting.pop(waiter, None)
        if not waiting:
            self._waiting.pop(waiter.node, None)

    def wake_all(self, position: Position | None = None) -> None:
        """Wake all who wait."""
        waiting, self._waiting = self._waiting, {}
        for waiter in chain.from_iterable(waiting.values()):
            waiter.wake(position)


def _by_node(commit: LoggedCommit) -> dict[str, LoggedCommit] | None:
    """Return the part of a commit that concerns each node; None if it may concern all nodes."""
    if len(commit.changes) == 1:  # most commits, where one pod after the other is placed
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
    """Return the commits from a number on; most often they are few, at the end."""
    found: list[_Numbered] = []
    for each in reversed(commits):
        if each[0] < number:
            break
        found.append(each)
    found.reverse()
    return found
