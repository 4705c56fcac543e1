"""Watches: positions in logs, and the feeds that they share."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any
from uuid import UUID

from service.model.errors import Denied, Overloaded, StorageUnavailable
from service.model.log import Diverged, Head
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock, Store
from service.scheduler.watching.feed import Feed, lost_history
from service.scheduler.watching.ring import LoggedCommit, commits_of

Spawn = Callable[[Coroutine[Any, Any, None]], None]
"""Runs something in the background, and holds on to it."""


class Watching:
    """All watches of this process, and one feed for each cluster that is watched."""

    def __init__(self, store: Store, clock: Clock, limits: Limits, spawn: Spawn) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._spawn = spawn
        self._feeds: dict[int, Feed] = {}
        self._seats: Counter[str | None] = Counter()
        """Watches that are open, by who has them; taken before anything is waited for, so that none is given twice."""
        self._page_readers = asyncio.Semaphore(limits.watch_page_readers_max)
        self._closed = False

    @property
    def watchers(self) -> int:
        """How many watches are open."""
        return self._seats.total()

    @property
    def cluster_ids(self) -> set[int]:
        """The clusters that are watched."""
        return set(self._feeds)

    def feed_of(self, cluster_id: int) -> Feed:
        """What the watches of a cluster share; KeyError if there are none."""
        return self._feeds[cluster_id]

    def wake(self, cluster_id: int) -> None:
        """A cluster's log has grown: have its watchers told."""
        if feed := self._feeds.get(cluster_id):
            feed.wake()

    def hear(self, heads: dict[int, Head], asked: set[int]) -> None:
        """Where the logs of these clusters end; those that are gone are absent."""
        for cluster_id, feed in list(self._feeds.items()):
            if cluster_id in asked:
                feed.hear(heads.get(cluster_id))

    def close(self) -> None:
        """End all watches, and take no new ones."""
        self._closed = True
        self.end_feeds()

    def end_feeds(self) -> None:
        """End what all watches that are open take commits from, and so these."""
        for feed in self._feeds.values():
            feed.end()
        self._feeds.clear()

    async def open(self, cluster: str, since: int | None, caller: str | None = None) -> "Watch":
        """A watch from after revision `since` on, from the present head on if that is None.

        It counts until it is closed, for everybody and for its `caller`; None: for somebody who is not counted.

        Raises:
            NotFound: there is no such cluster.
            Compacted: the log no longer reaches back to that revision.
            HistoryReplaced: the log never had it.
            Overloaded: there are too many watches, or the server is shutting down.
            Denied: the caller has too many.
        """
        stand_up = self._take_seat(caller)
        try:
            return await self._opened(cluster, since, stand_up)
        except BaseException:
            stand_up()
            raise

    def _take_seat(self, caller: str | None) -> Callable[[], None]:
        """Count one watch more; what is given counts it less, once."""
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

    async def _opened(self, cluster: str, since: int | None, at_end: Callable[[], None]) -> "Watch":
        cluster_id = await self._store.find_cluster(cluster)
        if since is not None:
            return await self.open_at(cluster_id, since, at_end)
        head = await self._store.head(cluster_id)
        return Watch(
            self, cluster_id, head, since=head.revision, position=head, first=[], at_end=at_end
        )

    async def open_at(self, cluster_id: int, since: int, at_end: Callable[[], None]) -> "Watch":
        """Begin with a page that needs no tip: the revision may lie within a commit."""
        async with self._page_readers:
            page = await self._store.read_log(
                cluster_id, since, None, self._limits.watch_page_changes
            )
        if isinstance(page, Diverged):
            raise lost_history(page, since)
        position = Head(page.revision, page.tip or page.head.tip, page.head.at)
        first = list(commits_of(page))
        return Watch(
            self,
            cluster_id,
            page.head,
            since=since,
            position=position,
            first=first,
            at_end=at_end,
        )

    async def read_page(self, cluster_id: int, revision: int, tip: UUID) -> list[LoggedCommit]:
        """What follows a position, for one who is behind the ring; empty at the head.

        While the database cannot be reached, this waits, unless all watches are to end.

        Raises:
            NotFound: the cluster is gone.
            Compacted, HistoryReplaced: the log does not lead on from there.
        """
        limit = self._limits.watch_page_changes
        while True:
            try:
                async with self._page_readers:
                    page = await self._store.read_log(cluster_id, revision, tip, limit)
            except StorageUnavailable:
                if self._closed:
                    return []
                await self._clock.sleep(self._limits.poll_seconds)
                continue
            if isinstance(page, Diverged):
                raise lost_history(page, revision)
            return list(commits_of(page))

    def join(self, cluster_id: int, head: Head) -> Feed:
        """The feed of a cluster, begun at `head` if there is none; `leave` it when done."""
        feed = self._feeds.get(cluster_id)
        if feed is None or feed.ended:
            feed = Feed(cluster_id, head, store=self._store, clock=self._clock, limits=self._limits)
            if self._closed:
                feed.end()
            else:
                self._feeds[cluster_id] = feed
                self._spawn(feed.run())
        feed.watchers += 1
        feed.wake()
        return feed

    def leave(self, feed: Feed) -> None:
        """One watcher less; the last one ends the feed."""
        feed.watchers -= 1
        if feed.watchers == 0:
            feed.end()
            if self._feeds.get(feed.cluster_id) is feed:
                del self._feeds[feed.cluster_id]


class Watch:
    """One watcher's position in a log. It costs nothing but its place before the first `next`; `close` it in any case.

    `revision` is what the watcher has been given all changes up to: the end of a commit, unless it
    is still where the watch began; `head` is where the log ended when it was opened.
    """

    def __init__(
        self,
        watching: Watching,
        cluster_id: int,
        head: Head,
        *,
        since: int,
        position: Head,
        first: Sequence[LoggedCommit],
        at_end: Callable[[], None],
    ) -> None:
        self._at_end = at_end
        self.revision = since
        self.head = head
        self._watching = watching
        self._cluster_id = cluster_id
        self._first = first
        self._tip = position.tip
        """Of the commit after which the watch goes on, once `_first` is taken."""
        self.feed: Feed | None = None
        """What it takes commits from, once `next` was called and until it is closed."""

    async def next(self) -> Sequence[LoggedCommit] | None:
        """The next commits, once there are any; None when the server ends all watches.

        A call that is cancelled takes nothing.

        Raises:
            NotFound: the cluster is gone.
            Compacted: the log was compacted beyond what the watcher has been given.
            HistoryReplaced: the log is another one now (P3).
        """
        if self.feed is None:
            self.feed = self._watching.join(self._cluster_id, self.head)
        commits = self._first or await self._more(self.feed)
        self._first = ()
        if commits:
            self.revision, self._tip = commits[-1].info.last, commits[-1].info.commit_id
        return commits

    async def _more(self, feed: Feed) -> Sequence[LoggedCommit] | None:
        while True:
            news = feed.news
            commits = feed.after(self._tip)
            if commits is None and not feed.ended:
                commits = await self._watching.read_page(self._cluster_id, self.revision, self._tip)
            if commits or feed.ended:
                return commits or None
            await news.wait()

    def close(self) -> None:
        """Watch no more; may be said again."""
        self._at_end()
        if self.feed is not None:
            self._watching.leave(self.feed)
            self.feed = None
