"""A replica that follows its cluster's log."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from service.model.errors import StorageUnavailable
from service.model.log.commit_log import Diverged, Head, LogPage
from service.model.manifests.manifest import PodManifest, TemplateCache
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock, Store
from service.scheduler.replica.committed_view import CommittedObjects
from service.scheduler.replica.loading import Loading
from service.scheduler.replica.replica import Entry, Mark, Replica

_log = logging.getLogger(__name__)


class LoadObserver(Protocol):
    """Is told which replica a cluster has now. Its methods raise nothing."""

    def loaded(self, replica: Replica) -> None:
        """There is a new replica, of which nothing is tentative."""
        ...


class Observer(LoadObserver, Protocol):
    """Is told what the replica holds for certain. Its methods raise nothing."""

    heeds_arrivals: bool
    """Whether it has to hear of commits that did nothing but bring new pods, each with its node.

    Most commits are such ones. While this is false, they are not told, unless the cluster has rules
    that are required during execution: a pod that comes may break these.
    """

    def settled(self, entries: Sequence[Entry]) -> None:
        """These changes of the replica are in the log."""
        ...


class Follower:
    """The replica of one cluster and the committed head that it stands on.

    Both are None while there is no replica. Tentative changes of the replica are its owner's
    business; it must have undone them before the log is read (P7).
    """

    def __init__(
        self,
        cluster_id: int,
        *,
        store: Store,
        clock: Clock,
        templates: TemplateCache,
        limits: Limits,
        observers: Sequence[Observer],
        at_load: LoadObserver,
    ) -> None:
        """`at_load` hears of new replicas alone."""
        self._cluster_id = cluster_id
        self._store = store
        self._clock = clock
        self._templates = templates
        self._limits = limits
        self._reason = "the cluster is used"
        """Why the next replica is loaded."""
        self._loading: Loading[Replica] | None = None
        """A load that stopped because the database could not be reached, and will go on later."""
        self.committed = CommittedObjects()
        """Pods and nodes at `head`, without tentative changes."""
        self._observers: Sequence[Observer] = (self.committed, *observers)
        self._at_load = at_load
        self._news: asyncio.Event | None = None
        """Set at the next change or load; None while nobody waits for one."""
        self.replica: Replica | None = None
        self.head: Head | None = None
        self._known: Head | None = None
        """The last head that a replica stood on which was given up."""
        self._epoch: int | None = None
        """The store's epoch in which the cluster's history was last looked at."""

    @property
    def is_of_another_history(self) -> bool:
        """Whether the database may tell another history since it was last looked at (P3)."""
        return self._epoch != self._store.epoch

    def drop(self, reason: str) -> None:
        """Give the replica up; the next `catch_up` loads a new one, and logs this reason."""
        self._known = self.head or self._known
        self.replica = self.head = self._loading = None
        self.committed.drop()
        self._reason = reason

    def settle(self, end: Mark, head: Head) -> None:
        """Note that the replica's changes up to `end` are committed, and that `head` is theirs."""
        if self.replica is not None:
            assert head.revision == end.revision
            self.head = head
            self.replica.settle(end)

    async def reach(self, revision: int, seconds: float) -> bool:
        """Wait a limited time for the replica to reach a revision of the log, and return whether it has."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.has_reached(revision):
                    self._news = self._news or asyncio.Event()
                    await self._news.wait()
        return self.has_reached(revision)

    def has_reached(self, revision: int) -> bool:
        """Whether there is a replica that has all that is in the log up to a revision."""
        return self.replica is not None and self.replica.committed_revision >= revision

    async def catch_up(self) -> None:
        """Bring the replica to the log's end; load it if there is none or it has diverged.

        Raises:
            StorageUnavailable: nothing was read; the replica is as it was.
            NotFound: the cluster is gone.
            Exception: applying failed, and the replica was dropped.
        """
        more = True
        while more:
            if self.is_of_another_history or (self.replica is None and self._loading is None):
                await self._continue_history()
            if self.replica is None:
                await self._load()
            more = await self._read_page()
            await self._clock.sleep(0)

    def apply(self, page: LogPage) -> None:
        """Apply whole commits that continue the log where the replica stands (P12)."""
        assert self.replica is not None
        try:
            for change in page.changes:
                self.replica.apply(change)
            self.replica.settle_all()
        except Exception:
            self.drop("a change of the log could not be applied")
            raise
        assert self.replica.revision == page.revision
        if page.tip is not None:
            self.head = Head(page.revision, page.tip, page.head.at)

    async def _continue_history(self) -> None:
        """Have the revisions lifted if changes may be lost that somebody has seen.

        Until then nothing is committed in vain that the log could not carry: a commit names the
        head that it was decided on, and fails if that is not the log's.
        """
        known = self.head or self._known
        await self._store.recovery.continue_history(self._cluster_id, known)
        self._epoch = self._store.epoch

    async def _load(self) -> None:
        loading, begun = self._loading or self._new_loading(), self._clock.monotonic()
        self._loading = None
        try:
            replica, head = await loading.run()
        except StorageUnavailable:
            self._loading = loading
            raise
        self.replica, self.head = replica, head
        replica.on_settled = self._settled
        self._tell_news()
        for each in (*self._observers, self._at_load):
            each.loaded(replica)
        told = {
            "reason": self._reason,
            "revision": head.revision,
            "objects": replica.object_count,
            "seconds": round(self._clock.monotonic() - begun, 3),
        }
        _log.info("The replica is loaded.", extra=told)

    def _settled(self, entries: Sequence[Entry]) -> None:
        assert self.replica is not None
        self._tell_news()
        concerns_all = self.replica.cluster.endures or not _are_arrivals(entries)
        for each in self._observers:
            if concerns_all or each.heeds_arrivals:
                each.settled(entries)

    def _tell_news(self) -> None:
        if self._news is not None:
            self._news.set()
            self._news = None

    def _new_loading(self) -> Loading[Replica]:
        return Loading(
            self._cluster_id,
            source=self._store,
            new_target=partial(Replica, self._templates),
            limits=self._limits,
        )

    async def _read_page(self) -> bool:
        """Apply the next page of the log, and return whether there is more to read or load."""
        assert self.head is not None
        after, tip = self.head.revision, self.head.tip
        page = await self._store.log.read(
            self._cluster_id, after, tip, self._limits.log_page_changes
        )
        if isinstance(page, Diverged):
            self.drop("the log does not continue the replica")
            return True
        self.apply(page)
        return page.revision < page.head.revision


def _are_arrivals(entries: Sequence[Entry]) -> bool:
    """Whether each change is a new pod that came with its node."""
    for entry in entries:
        if entry.before is not None or entry.after is None:
            return False
        manifest = entry.after.manifest
        if not isinstance(manifest, PodManifest) or manifest.pod.node_name is None:
            return False
    return True
