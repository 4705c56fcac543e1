"""Watches: positions in logs, with feeds shared between them."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from typing_extensions import override

from service.model.core.errors import Denied, NotFound, Overloaded, StorageUnavailable
from service.model.log.commit import ALL_BODIES, BodySelection, Diverged, Head, LogPage
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock, Store
from service.scheduler.watching.feed import Feed, lost_history
from service.scheduler.watching.logged_commits import LoggedCommit, commits_of
from service.scheduler.watching.node_commits import Position, Waiter
from service.scheduler.watching.page_room import PageRoom, UnlimitedRoom, held_bytes, page_bytes

_UNLIMITED = UnlimitedRoom()

Spawn = Callable[[Coroutine[Any, Any, None]], None]
"""Runs a coroutine in the background, keeping its task from being garbage-collected."""


class Watches:
    """All watches of this process, with one feed for each watched cluster."""

    def __init__(self, store: Store, clock: Clock, limits: Limits, spawn: Spawn) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._spawn = spawn
        self.feeds: dict[int, Feed] = {}
        """The shared feed of each watched cluster."""
        self._slots: Counter[str | None] = Counter()
        """The number of watches of each caller. A watch is counted before any await, so that
        concurrent calls cannot exceed the limit together."""
        self._page_readers = asyncio.Semaphore(limits.watch_page_readers_max)
        self._closed = False

    @property
    def watchers(self) -> int:
        """How many watches are open."""
        return self._slots.total()

    @property
    def cluster_ids(self) -> set[int]:
        """The watched clusters."""
        return set(self.feeds)

    def on_head(self, heads: dict[int, Head], asked: set[int]) -> None:
        """Process the heads of the clusters `asked`; a missing head means a deleted cluster."""
        for cluster_id, feed in list(self.feeds.items()):
            if cluster_id in asked:
                feed.on_head(heads.get(cluster_id))

    def close(self) -> None:
        """End all watches, and refuse new ones."""
        self._closed = True
        self.end_feeds()

    def end_feeds(self) -> None:
        """End all feeds, and therefore all watches that read from them."""
        for feed in self.feeds.values():
            feed.end()
        self.feeds.clear()

    async def open(
        self,
        cluster: str,
        since: int | None,
        caller: str | None = None,
        node: str | None = None,
        *,
        bodies: BodySelection = ALL_BODIES,
        room: PageRoom = _UNLIMITED,
    ) -> "Watch":
        """Open a watch of all changes after `since`, or after the current head if None.

        Until closed, the watch counts toward the limit of all watches and that of its `caller`;
        None is a caller without a limit. With a `node` ("" for pods without one), the watch may
        omit changes that concern no pod of the node. Changes outside `bodies` may lack their
        bodies. The memory that the watch uses for the log is reserved in its `room`.

        Raises:
            NotFound: the cluster does not exist.
            Compacted: the log no longer reaches back to that revision.
            HistoryReplaced: the log never had that revision.
            Overloaded: there are too many watches, or the server is shutting down.
            Denied: the caller has too many watches.
        """
        release_slot = self._acquire_slot(caller)
        try:
            begin = await self._begin(cluster, since, bodies, room)
        except BaseException:
            room.settle(0)
            release_slot()
            raise
        if node is None:
            return Watch(self, begin, release_slot)
        return NodeWatch(self, begin, release_slot, node)

    def _acquire_slot(self, caller: str | None) -> Callable[[], None]:
        """Count one more watch; return a function that releases it, once."""
        limits = self._limits
        if self._closed:
            raise Overloaded("The server is shutting down.")
        if self.watchers >= self._limits.watchers_max:
            raise Overloaded("There are too many watches on this server.")
        if caller is not None and self._slots[caller] >= limits.watchers_of_one_max:
            raise Denied(
                "TooManyWatches",
                f"{caller} has {limits.watchers_of_one_max} watches on this server (principal_watchers_max).",
            )
        self._slots[caller] += 1
        taken = [caller]

        def release_slot() -> None:
            if taken:
                self._slots[taken.pop()] -= 1
                self._slots = +self._slots

        return release_slot

    async def _begin(
        self, cluster: str, since: int | None, bodies: BodySelection, room: PageRoom
    ) -> "WatchBegin":
        cluster_id = await self._store.clusters.find(cluster)
        try:
            if since is not None:
                return await self.begin_at(cluster_id, since, bodies, room)
            head = await self._store.log.head(cluster_id)
        except NotFound:  # The cluster was deleted in the meantime; the store only knows its id.
            raise NotFound(f"There is no cluster {cluster!r}.") from None
        return WatchBegin(cluster_id, head, head.revision, head.tip, (), bodies, room)

    async def begin_at(
        self, cluster_id: int, since: int, bodies: BodySelection, room: PageRoom
    ) -> "WatchBegin":
        """Begin with a page read without a tip, since the revision may lie within a commit."""
        page = await self._read(cluster_id, since, None, bodies, room)
        if isinstance(page, Diverged):
            raise lost_history(page, since)
        tip, first = page.tip or page.head.tip, list(commits_of(page))
        return WatchBegin(cluster_id, page.head, since, tip, first, bodies, room)

    @property
    def _unknown_page_bytes(self) -> int:
        """How many bytes a watch reserves before it reads a page of unknown size."""
        return 2 * self._limits.watch_page_bytes

    async def _read(
        self, cluster_id: int, after: int, tip: UUID | None, bodies: BodySelection, room: PageRoom
    ) -> LogPage | Diverged:
        """Read a page once there is room; if it is larger than expected, read it again later."""
        limits, size_needed = self._limits, self._unknown_page_bytes
        while True:
            await room.reserve(size_needed)
            async with self._page_readers:
                page = await self._store.log.read(
                    *(cluster_id, after, tip, limits.watch_page_changes),
                    bytes_max=limits.watch_page_bytes,
                    bodies=bodies,
                )
                size = 0 if isinstance(page, Diverged) else page_bytes(page)
                if room.fits(size):
                    room.settle(size)
                    return page
                del page
            room.settle(0)
            size_needed = size

    async def read_page(
        self, cluster_id: int, revision: int, tip: UUID, bodies: BodySelection, room: PageRoom
    ) -> list[LoggedCommit]:
        """Read the commits after a position, for a watch behind the ring; none at the head.

        While the database cannot be reached, this waits, unless all watches are ending.

        Raises:
            NotFound: the cluster is gone.
            Compacted, HistoryReplaced: the log does not continue from there.
        """
        while True:
            try:
                page = await self._read(cluster_id, revision, tip, bodies, room)
            except StorageUnavailable:
                if self._closed:
                    return []
                await self._clock.sleep(self._limits.poll_seconds)
                continue
            if isinstance(page, Diverged):
                raise lost_history(page, revision)
            return list(commits_of(page))

    def join(self, cluster_id: int, head: Head) -> Feed:
        """Use a cluster's feed, started at `head` if there is none; balance with `leave`."""
        feed = self.feeds.get(cluster_id)
        if feed is None or feed.ended:
            feed = Feed(cluster_id, head, store=self._store, clock=self._clock, limits=self._limits)
            if self._closed:
                feed.end()
            else:
                self.feeds[cluster_id] = feed
                self._spawn(feed.run())
        feed.watchers += 1
        feed.wake()
        return feed

    def leave(self, feed: Feed) -> None:
        """Stop using a feed, which ends with its last watch."""
        feed.watchers -= 1
        if feed.watchers == 0:
            feed.end()
            if self.feeds.get(feed.cluster_id) is feed:
                del self.feeds[feed.cluster_id]


class WatchBegin(NamedTuple):
    """The start of a watch: after the revision `since`, with commits that end with the id `tip`."""

    cluster_id: int
    head: Head
    since: int
    tip: UUID
    first: Sequence[LoggedCommit]
    bodies: BodySelection
    room: PageRoom


class Watch:
    """One watcher's position in a log. It must be closed, even if `next` was never called.

    The watcher has received all changes up to `revision`, which is the end of a commit, unless it
    is still where the watch began. `head` is where the log ended when the watch was opened.
    """

    def __init__(self, watching: Watches, begin: WatchBegin, at_end: Callable[[], None]) -> None:
        self._at_end = at_end
        self.revision = begin.since
        self.head = begin.head
        self._watching = watching
        self._cluster_id = begin.cluster_id
        self._first = begin.first
        self._bodies = begin.bodies
        self._room = begin.room
        """Reserves memory for the last commits returned, until the next ones are requested."""
        self._tip = begin.tip
        """The id of the commit after which the watch continues, once `_first` is returned."""
        self.feed: Feed | None = None
        """The feed, from the first call of `next` until the watch is closed."""
        self._asked: asyncio.Task[Sequence[LoggedCommit] | None] | None = None
        """Waits for the next commits after `next_within` returned without any."""

    async def next(self) -> Sequence[LoggedCommit] | None:
        """Wait for the next commits and return them, or None when the server ends all watches.

        The commits returned before are released. If there is no room for the next ones, the call
        waits. If the call is canceled, no commit is lost.

        Raises:
            NotFound: the cluster is gone.
            Compacted: changes that the watcher has not received were removed from the log.
            HistoryReplaced: the log was replaced by another one (protocol rule P3).
        """
        return self._take(await self._coming(self._use_feed()))

    async def next_within(self, seconds: float) -> Sequence[LoggedCommit] | None:
        """Return the result of `next`, or no commits if none arrive within `seconds`.

        The watch continues waiting in the background, and so keeps its place in the queue for room.

        Raises:
            NotFound, Compacted, HistoryReplaced: as `next`.
        """
        if self._asked is None:
            self._asked = asyncio.create_task(self._coming(self._use_feed()))
        await asyncio.wait((self._asked,), timeout=max(0.0, seconds))
        if not self._asked.done():
            return ()
        task, self._asked = self._asked, None
        return self._take(task.result())

    async def _coming(self, feed: Feed) -> Sequence[LoggedCommit] | None:
        """Wait for the next commits, without counting them as received."""
        return self._first or await self._more(feed)

    def _use_feed(self) -> Feed:
        if self.feed is None:
            self.feed = self._join()
        return self.feed

    def _take(self, commits: Sequence[LoggedCommit] | None) -> Sequence[LoggedCommit] | None:
        self._first = ()
        if commits:
            self.revision, self._tip = commits[-1].info.last, commits[-1].info.commit_id
        return commits

    def advance(self) -> None:
        """Advance `revision` past irrelevant commits skipped while `next_within` was waiting."""

    def _join(self) -> Feed:
        return self._watching.join(self._cluster_id, self.head)

    async def _more(self, feed: Feed) -> Sequence[LoggedCommit] | None:
        self._room.settle(0)
        while True:
            news = feed.news
            commits = await self._taken(feed)
            is_behind = commits is None
            if is_behind and not feed.ended:
                commits = await self._read_page()
            if commits or feed.ended:
                return commits or None
            self._room.settle(0)
            await (news.wait() if is_behind else self._sleep(feed))

    async def _taken(self, feed: Feed) -> Sequence[LoggedCommit] | None:
        """Return the ring's next commits, once they fit, or None if outside the ring."""
        while True:
            commits = self._in_ring(feed)
            size = held_bytes(commits or ())
            if self._room.fits(size):
                self._room.settle(size)
                return commits
            del commits  # The commits may be dropped from the ring in the meantime.
            self._room.settle(0)  # A waiting watch holds nothing, so none waits forever.
            await self._room.reserve(size)

    async def _read_page(self) -> list[LoggedCommit]:
        return await self._watching.read_page(
            self._cluster_id, self.revision, self._tip, self._bodies, self._room
        )

    def _in_ring(self, feed: Feed) -> Sequence[LoggedCommit] | None:
        """Return the commits after the watch's position, or None if outside the ring."""
        return feed.after(self._tip)

    async def _sleep(self, feed: Feed) -> object:
        """Wait for new commits, after returning all those in the ring."""
        return await feed.news.wait()

    def close(self) -> None:
        """End the watch. Further calls do nothing."""
        self._at_end()
        if self._asked is not None:
            self._asked.cancel()
            self._asked.add_done_callback(_ignore)
        self._room.settle(0)
        if self.feed is not None:
            self._watching.leave(self.feed)
            self.feed = None


def _ignore(task: asyncio.Task[Sequence[LoggedCommit] | None]) -> None:
    """Retrieve the error of an abandoned task, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()


class NodeWatch(Watch):
    """A watch of one node's pods, which may omit all other changes.

    The watch sleeps while other objects change, and on waking has everything up to the newest
    commit.
    """

    def __init__(
        self, watching: Watches, begin: WatchBegin, at_end: Callable[[], None], node: str
    ) -> None:
        super().__init__(watching, begin, at_end)
        self._node = node
        self._waiter: Waiter | None = None
        """Wakes the watch while it sleeps."""

    @override
    def advance(self) -> None:
        """Advance `revision` past irrelevant commits skipped while `next_within` was waiting."""
        if self.feed is not None and self._waiter is not None:
            newest = Position(self.feed.ring.revision, self.feed.ring.tip)
            self.revision, self._tip = self._waiter.position or newest

    @override
    def _join(self) -> Feed:
        feed = super()._join()
        feed.watch_nodes()
        return feed

    @override
    def _in_ring(self, feed: Feed) -> Sequence[LoggedCommit] | None:
        return feed.after_on_node(self._tip, self._node)

    @override
    async def _sleep(self, feed: Feed) -> None:
        """Wait for a commit that concerns the node; move just before it, or after all commits."""
        nodes = feed.ring.nodes
        assert nodes is not None
        waiter = self._waiter = nodes.wait(self._node)
        try:
            await waiter.news.wait()
        finally:
            nodes.stop_waiting(waiter)
            self.advance()
            self._waiter = None

    @override
    def close(self) -> None:
        """End the watch. Further calls do nothing."""
        if self.feed is not None:
            self.feed.leave_nodes()
        super().close()
