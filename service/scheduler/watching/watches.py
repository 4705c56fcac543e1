"""Watches: positions in logs, and the feeds that they share."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from typing_extensions import override

from service.model.errors import Denied, NotFound, Overloaded, StorageUnavailable
from service.model.log.commit_log import ALL_BODIES, BodySelection, Diverged, Head, LogPage
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock, Store
from service.scheduler.watching.feed import Feed, lost_history
from service.scheduler.watching.logged_commits import LoggedCommit, commits_of
from service.scheduler.watching.node_commits import Position, Waiter
from service.scheduler.watching.page_room import PageRoom, UnlimitedRoom, held_bytes, page_bytes

_UNLIMITED = UnlimitedRoom()

Spawn = Callable[[Coroutine[Any, Any, None]], None]
"""A function that runs a coroutine in the background, and keeps its task from being collected."""


class Watching:
    """All watches of this process, and one feed for each cluster that is watched."""

    def __init__(self, store: Store, clock: Clock, limits: Limits, spawn: Spawn) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._spawn = spawn
        self.feeds: dict[int, Feed] = {}
        """The feed that the watches of a cluster share, for each cluster that is watched."""
        self._seats: Counter[str | None] = Counter()
        """How many watches each caller has. A watch is counted before anything is awaited, so that
        calls at the same time cannot exceed the limit together."""
        self._page_readers = asyncio.Semaphore(limits.watch_page_readers_max)
        self._closed = False

    @property
    def watchers(self) -> int:
        """How many watches are open."""
        return self._seats.total()

    @property
    def cluster_ids(self) -> set[int]:
        """The clusters that are watched."""
        return set(self.feeds)

    def hear(self, heads: dict[int, Head], asked: set[int]) -> None:
        """Take in the heads of the clusters `asked`; a cluster that is gone has none."""
        for cluster_id, feed in list(self.feeds.items()):
            if cluster_id in asked:
                feed.hear(heads.get(cluster_id))

    def close(self) -> None:
        """End all watches, and take no new ones."""
        self._closed = True
        self.end_feeds()

    def end_feeds(self) -> None:
        """End all feeds, and so all watches that take commits from them."""
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
        """Open a watch of all changes after the revision `since`; after the present head if it is None.

        Until it is closed, it counts toward the limit of all watches and that of its `caller`; None
        is a caller who has no limit. With a `node`, which is "" for pods without one, it may leave
        out changes that concern no pod of this node. Changes without `bodies` may come without
        them. What the watch holds of the log is held in its `room`.

        Raises:
            NotFound: there is no such cluster.
            Compacted: the log no longer reaches back to that revision.
            HistoryReplaced: the log never had that revision.
            Overloaded: there are too many watches, or the server is shutting down.
            Denied: the caller has too many watches.
        """
        stand_up = self._take_seat(caller)
        try:
            begin = await self._begin(cluster, since, bodies, room)
        except BaseException:
            room.settle(0)
            stand_up()
            raise
        if node is None:
            return Watch(self, begin, stand_up)
        return NodeWatch(self, begin, stand_up, node)

    def _take_seat(self, caller: str | None) -> Callable[[], None]:
        """Count one more watch, and return the function that ends this; it works only once."""
        limits = self._limits
        if self._closed:
            raise Overloaded("The server is shutting down.")
        if self.watchers >= self._limits.watchers_max:
            raise Overloaded("There are too many watches on this server.")
        if caller is not None and self._seats[caller] >= limits.watchers_of_one_max:
            raise Denied(
                "TooManyWatches",
                f"{caller} has {limits.watchers_of_one_max} watches on this server (principal_watchers_max).",
            )
        self._seats[caller] += 1
        taken = [caller]

        def stand_up() -> None:
            if taken:
                self._seats[taken.pop()] -= 1
                self._seats = +self._seats

        return stand_up

    async def _begin(
        self, cluster: str, since: int | None, bodies: BodySelection, room: PageRoom
    ) -> "WatchBegin":
        cluster_id = await self._store.clusters.find(cluster)
        try:
            if since is not None:
                return await self.begin_at(cluster_id, since, bodies, room)
            head = await self._store.log.head(cluster_id)
        except NotFound:  # It was deleted since it was found; the store knows it by its id alone.
            raise NotFound(f"There is no cluster {cluster!r}.") from None
        return WatchBegin(cluster_id, head, head.revision, head.tip, (), bodies, room)

    async def begin_at(
        self, cluster_id: int, since: int, bodies: BodySelection, room: PageRoom
    ) -> "WatchBegin":
        """Begin with a page that is read without a tip, as the revision may be within a commit."""
        page = await self._read(cluster_id, since, None, bodies, room)
        if isinstance(page, Diverged):
            raise lost_history(page, since)
        tip, first = page.tip or page.head.tip, list(commits_of(page))
        return WatchBegin(cluster_id, page.head, since, tip, first, bodies, room)

    @property
    def _unknown_page_bytes(self) -> int:
        """How much room a watch needs before it reads a page whose size it does not know yet."""
        return 2 * self._limits.watch_page_bytes

    async def _read(
        self, cluster_id: int, after: int, tip: UUID | None, bodies: BodySelection, room: PageRoom
    ) -> LogPage | Diverged:
        """Read a page once there is room for it; one that is larger than expected is read again later."""
        limits, wanted = self._limits, self._unknown_page_bytes
        while True:
            await room.reserve(wanted)
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
            wanted = size

    async def read_page(
        self, cluster_id: int, revision: int, tip: UUID, bodies: BodySelection, room: PageRoom
    ) -> list[LoggedCommit]:
        """Read the commits that follow a position, for a watch behind the ring; none at the head.

        While the database cannot be reached, this waits, unless all watches are to end.

        Raises:
            NotFound: the cluster is gone.
            Compacted, HistoryReplaced: the log does not go on from there.
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
        """Use the feed of a cluster, begun at `head` if there is none; call `leave` when done."""
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
        """Stop using a feed; the last watch ends it."""
        feed.watchers -= 1
        if feed.watchers == 0:
            feed.end()
            if self.feeds.get(feed.cluster_id) is feed:
                del self.feeds[feed.cluster_id]


class WatchBegin(NamedTuple):
    """Where a watch begins: after the revision `since`, with commits that end with the id `tip`."""

    cluster_id: int
    head: Head
    since: int
    tip: UUID
    first: Sequence[LoggedCommit]
    bodies: BodySelection
    room: PageRoom


class Watch:
    """One watcher's position in a log. It always has to be closed, even if `next` was never called.

    The watcher has got all changes up to `revision`, which is the end of a commit, unless it is still
    where the watch began. `head` is where the log ended when the watch was opened.
    """

    def __init__(self, watching: Watching, begin: WatchBegin, at_end: Callable[[], None]) -> None:
        self._at_end = at_end
        self.revision = begin.since
        self.head = begin.head
        self._watching = watching
        self._cluster_id = begin.cluster_id
        self._first = begin.first
        self._bodies = begin.bodies
        self._room = begin.room
        """It holds the last commits taken, until the next ones are asked for."""
        self._tip = begin.tip
        """The id of the commit after which the watch goes on, once `_first` is taken."""
        self.feed: Feed | None = None
        """The feed, from the first call of `next` until the watch is closed."""
        self._asked: asyncio.Task[Sequence[LoggedCommit] | None] | None = None
        """It waits for the next commits when `next_within` has returned without them."""

    async def next(self) -> Sequence[LoggedCommit] | None:
        """Wait for the next commits and return them; None when the server ends all watches.

        The commits taken before are no longer held then. If there is no room for the next ones,
        this waits, and takes them later. If the call is cancelled, no commit is lost.

        Raises:
            NotFound: the cluster is gone.
            Compacted: changes that the watcher has not got yet were removed from the log.
            HistoryReplaced: the log is another one now (P3).
        """
        return self._take(await self._coming(self._use_feed()))

    async def next_within(self, seconds: float) -> Sequence[LoggedCommit] | None:
        """Return what `next` does, or nothing if it does not come within so many seconds.

        The watch goes on to wait for it, so it keeps its place among those who wait for room.

        Raises:
            NotFound, Compacted, HistoryReplaced: as `next`.
        """
        if self._asked is None:
            self._asked = asyncio.create_task(self._coming(self._use_feed()))
        await asyncio.wait((self._asked,), timeout=max(0.0, seconds))
        if not self._asked.done():
            return ()
        asked, self._asked = self._asked, None
        return self._take(asked.result())

    async def _coming(self, feed: Feed) -> Sequence[LoggedCommit] | None:
        """Wait for the next commits, which the watcher has not got yet then."""
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
        """Move `revision` on past commits that `next_within`, while it waits, has found to be left out."""

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
        """Return what follows in the ring, once there is room for it; None if the watch is not in it."""
        while True:
            commits = self._in_ring(feed)
            size = held_bytes(commits or ())
            if self._room.fits(size):
                self._room.settle(size)
                return commits
            del commits  # They may leave the ring meanwhile.
            self._room.settle(0)  # Who waits holds nothing, so nobody waits for ever.
            await self._room.reserve(size)

    async def _read_page(self) -> list[LoggedCommit]:
        return await self._watching.read_page(
            self._cluster_id, self.revision, self._tip, self._bodies, self._room
        )

    def _in_ring(self, feed: Feed) -> Sequence[LoggedCommit] | None:
        """Return what follows in the ring; None if the watch is not in it."""
        return feed.after(self._tip)

    async def _sleep(self, feed: Feed) -> object:
        """Wait until there may be more, after everything in the ring was taken."""
        return await feed.news.wait()

    def close(self) -> None:
        """End the watch; a second call does nothing."""
        self._at_end()
        if self._asked is not None:
            self._asked.cancel()
            self._asked.add_done_callback(_ignore)
        self._room.settle(0)
        if self.feed is not None:
            self._watching.leave(self.feed)
            self.feed = None


def _ignore(asked: asyncio.Task[Sequence[LoggedCommit] | None]) -> None:
    """Take note of an error that nobody waits for any more, so that asyncio does not log it."""
    if not asked.cancelled():
        asked.exception()


class NodeWatch(Watch):
    """A watch of the pods of one node: it may leave out all that does not concern them.

    It sleeps while other things change, and then knows that it has got everything up to the newest
    commit.
    """

    def __init__(
        self, watching: Watching, begin: WatchBegin, at_end: Callable[[], None], node: str
    ) -> None:
        super().__init__(watching, begin, at_end)
        self._node = node
        self._waiter: Waiter | None = None
        """What wakes the watch while it sleeps."""

    @override
    def advance(self) -> None:
        """Move `revision` on past commits that `next_within`, while it waits, has found to be left out."""
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
        """Wait for a commit that concerns the node, and stand just before it; or else after all commits."""
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
        """End the watch; a second call does nothing."""
        if self.feed is not None:
            self.feed.leave_nodes()
        super().close()
