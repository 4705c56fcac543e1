"""A replica that follows its cluster's log."""

import logging
from collections.abc import Sequence
from typing import Protocol

from service.model.log import Diverged, Head, LogPage
from service.model.manifest import TemplateCache
from service.scheduler.ports import Clock, Store
from service.scheduler.replica import Entry, Mark, Replica, loading

_log = logging.getLogger(__name__)


class Observer(Protocol):
    """Whoever wants to know what the replica holds for certain. It raises nothing."""

    def loaded(self, replica: Replica) -> None:
        """There is a new replica, of which nothing is tentative."""
        ...

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
        page_changes: int,
        observer: Observer,
    ) -> None:
        self._cluster_id = cluster_id
        self._store = store
        self._clock = clock
        self._templates = templates
        self._page_changes = page_changes
        self._observer = observer
        self.replica: Replica | None = None
        self.head: Head | None = None

    def drop(self) -> None:
        """Give the replica up; the next `catch_up` loads a new one."""
        self.replica = self.head = None

    def settle(self, end: Mark, head: Head) -> None:
        """The replica's changes up to `end` are committed, and made this head."""
        if self.replica is not None:
            assert head.revision == end.revision
            self.head = head
            self.replica.settle(end)

    async def catch_up(self) -> None:
        """Bring the replica to the log's end; load it if there is none or it has diverged.

        Raises:
            StorageUnavailable: nothing was read; the replica is as it was.
            NotFound: the cluster is gone.
            Exception: applying failed, and the replica was dropped.
        """
        more = True
        while more:
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
            self.drop()
            raise
        assert self.replica.revision == page.revision
        if page.tip is not None:
            self.head = Head(page.revision, page.tip, page.head.at)

    async def _load(self) -> None:
        snapshot = await self._store.load(self._cluster_id)
        replica = Replica(self._templates)
        for _ in loading(replica, snapshot):
            await self._clock.sleep(0)
        self.replica, self.head = replica, snapshot.head
        replica.on_settled = self._observer.settled
        self._observer.loaded(replica)

    async def _read_page(self) -> bool:
        """Apply the next page of the log; whether there is more to do."""
        assert self.head is not None
        after, tip = self.head.revision, self.head.tip
        page = await self._store.read_log(self._cluster_id, after, tip, self._page_changes)
        if isinstance(page, Diverged):
            _log.warning("Cluster %s: %s does not continue %s.", self._cluster_id, page, tip)
            self.drop()
            return True
        self.apply(page)
        return page.revision < page.head.revision
