"""One cluster's log as it grows, read once for all watches of it in this process."""

import asyncio
import logging
from collections.abc import Sequence
from uuid import UUID

from service.model.core.errors import Compacted, HistoryReplaced, MoorageError, StorageUnavailable
from service.model.log.commit import Diverged, Head
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock, Store
from service.scheduler.watching.logged_commits import LoggedCommit
from service.scheduler.watching.node_commits import NodeIndex
from service.scheduler.watching.recent_commits import RecentCommits

_log = logging.getLogger(__name__)


class Feed:
    """Keeps a ring of the newest commits, updated whenever it is woken.

    `watchers` counts the watches of the feed. A feed that has ended, by an error or by `end`, does
    not restart.
    """

    def __init__(
        self, cluster_id: int, head: Head, *, store: Store, clock: Clock, limits: Limits
    ) -> None:
        self.cluster_id = cluster_id
        self.watchers = 0
        self._node_watchers = 0
        self.ended = False
        self.news = asyncio.Event()
        """Set, and then replaced by a new event, whenever commits arrive or the feed ends."""
        self._store = store
        self._clock = clock
        self._limits = limits
        self.ring = RecentCommits(
            head, changes_max=limits.watch_ring_changes, bytes_max=limits.watch_ring_bytes
        )
        """The newest commits, for all watchers."""
        self._wake = asyncio.Event()
        self._error: Exception | None = None

    def wake(self) -> None:
        """Schedule a read of the log."""
        self._wake.set()

    def on_head(self, head: Head | None) -> None:
        """Schedule a read of the log if its head is new; a head of None means a deleted cluster."""
        if head is None or (head.revision, head.tip) != (self.ring.revision, self.ring.tip):
            self.wake()

    def end(self, error: Exception | None = None) -> None:
        """Stop accepting commits; after the last one in the ring, `after` raises `error`."""
        if not self.ended:
            self.ended, self._error = True, error
            self.wake()
            self._signal()

    def after(self, tip: UUID) -> Sequence[LoggedCommit] | None:
        """Return the commits after `tip` (none after the newest), or None if not in the ring.

        Raises:
            Exception: the error that ended the feed, once all earlier commits were returned.
        """
        limits = self._limits
        commits = self.ring.after(tip, limits.watch_page_changes, limits.watch_page_bytes)
        if not commits and self._error is not None:
            raise self._error
        return commits

    def after_on_node(self, tip: UUID, node: str) -> Sequence[LoggedCommit] | None:
        """Return the commits after `tip` that concern pods of a node, as far back as indexed.

        An empty result means that no commit up to the newest concerns the node. Before the index
        begins, the result is that of `after`.
        """
        nodes, number = self.ring.nodes, self.ring.number_after(tip)
        if nodes is None or number is None or number < nodes.begin:
            return self.after(tip)
        limits = self._limits
        commits = nodes.after(node, number, limits.watch_page_changes, limits.watch_page_bytes)
        return commits or self.after(self.ring.tip)

    def watch_nodes(self) -> None:
        """Start indexing commits by node; balance each call with one to `leave_nodes`."""
        self._node_watchers += 1
        if self.ring.nodes is None:
            self.ring.nodes = NodeIndex(self.ring.end)

    def leave_nodes(self) -> None:
        """Release one use of the node index."""
        self._node_watchers -= 1
        if self._node_watchers == 0:
            self.ring.nodes = None

    async def run(self) -> None:
        """Follow the log until the feed ends."""
        try:
            while not self.ended:
                await self._wake.wait()
                self._wake.clear()
                await self._catch_up()
                # All commits made during this pause are on the next page.
                await self._clock.sleep(self._limits.watch_pause_seconds)
        except MoorageError as error:
            self.end(error)
        except Exception as error:
            self.end(error)
            raise

    async def _catch_up(self) -> None:
        more = not self.ended
        while more:
            try:
                more = await self._read_page()
            except StorageUnavailable:
                # The next check of the heads will wake this feed again.
                _log.debug("Cluster %s: the log could not be read.", self.cluster_id)
                return

    async def _read_page(self) -> bool:
        ring = self.ring
        page = await self._store.log.read(
            self.cluster_id, ring.revision, ring.tip, self._limits.log_page_changes
        )
        if isinstance(page, Diverged):
            raise lost_history(page, ring.revision)
        if page.commits:
            ring.append(page)
            self._signal()
        return page.revision < page.head.revision

    def _signal(self) -> None:
        news, self.news = self.news, asyncio.Event()
        news.set()
        if self.ended and self.ring.nodes is not None:
            self.ring.nodes.wake_all()


def lost_history(diverged: Diverged, after: int) -> MoorageError:
    """Return the error for a log that cannot continue a revision: compacted or replaced (P3)."""
    if diverged.floor > after:
        return Compacted(
            f"The log reaches back to revision {diverged.floor} only; changes after {after} are gone."
        )
    return HistoryReplaced(f"The cluster's log does not continue what revision {after} was.")
