"""A replica that follows its cluster's log."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from service.model.core.errors import StorageUnavailable
from service.model.log.commit import Diverged, Head, LogPage
from service.model.registry.manifests import PodManifest, TemplateCache
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock, Store
from service.scheduler.replica.committed_view import CommittedObjects
from service.scheduler.replica.loading import Loader
from service.scheduler.replica.replica import Entry, Mark, Replica

_log = logging.getLogger(__name__)


class LoadObserver(Protocol):
    """Receives each newly loaded replica of a cluster. Its methods never raise."""

    def on_loaded(self, replica: Replica) -> None:
        """Process a newly loaded replica, which has no tentative changes yet."""
        ...


class Observer(LoadObserver, Protocol):
    """Receives the committed changes of a replica. Its methods never raise."""

    wants_new_pods: bool
    """Whether commits that only add placed pods have to be reported.

    Most commits do only that. While this is false, they are not reported, unless the cluster has
    rules that are required during execution: a new pod may break these.
    """

    def on_committed(self, entries: Sequence[Entry]) -> None:
        """Process committed changes of the replica."""
        ...


class Follower:
    """The replica of one cluster, and the committed head on which it is based.

    Both are None while no replica is loaded. Tentative changes of the replica are its owner's
    responsibility: they must be undone before the log is read (protocol rule P7).
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
        """Create a follower; observers in `at_load` receive only new replicas."""
        self._cluster_id = cluster_id
        self._store = store
        self._clock = clock
        self._templates = templates
        self._limits = limits
        self._reason = "the cluster is used"
        """The logged reason for loading the next replica."""
        self._loading: Loader[Replica] | None = None
        """A load interrupted by an unreachable database, to be continued, or None."""
        self.committed = CommittedObjects()
        """Pods and nodes at `head`, without tentative changes."""
        self._observers: Sequence[Observer] = (self.committed, *observers)
        self._at_load = at_load
        self._news: asyncio.Event | None = None
        """Set at the next change or load; None while no task is waiting for one."""
        self.replica: Replica | None = None
        self.head: Head | None = None
        self._known: Head | None = None
        """The last head of a dropped replica, or None."""
        self._epoch: int | None = None
        """The store's epoch when the cluster's history was last checked."""

    @property
    def is_of_another_history(self) -> bool:
        """Whether the database may show another history since the last check (protocol rule P3)."""
        return self._epoch != self._store.epoch

    def drop(self, reason: str) -> None:
        """Drop the replica; the next `catch_up` loads a new one and logs this reason."""
        self._known = self.head or self._known
        self.replica = self.head = self._loading = None
        self.committed.drop()
        self._reason = reason

    def settle(self, end: Mark, head: Head) -> None:
        """Record that the replica's changes up to `end` are committed, with `head` as the new head."""
        if self.replica is not None:
            assert head.revision == end.revision
            self.head = head
            self.replica.settle(end)

    async def reach(self, revision: int, seconds: float) -> bool:
        """Wait up to `seconds` for a revision of the log; return whether it was reached."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.has_reached(revision):
                    self._news = self._news or asyncio.Event()
                    await self._news.wait()
        return self.has_reached(revision)

    def has_reached(self, revision: int) -> bool:
        """Return whether the replica includes everything in the log up to a revision."""
        return self.replica is not None and self.replica.committed_revision >= revision

    async def catch_up(self) -> None:
        """Bring the replica to the log's end, loading it if there is none or it has diverged.

        Raises:
            StorageUnavailable: nothing was read; the replica is unchanged.
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
        """Apply whole commits that continue the log from the replica's revision (protocol rule P12)."""
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
        """Skip revisions if changes that a client has seen may be lost.

        Until then, no commit can succeed wrongly: each names the head on which it was decided, and
        fails unless the log ends there.
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
        replica.on_committed = self._on_committed
        self._signal_news()
        for observer in (*self._observers, self._at_load):
            observer.on_loaded(replica)
        context = {
            "reason": self._reason,
            "revision": head.revision,
            "objects": replica.object_count,
            "seconds": round(self._clock.monotonic() - begun, 3),
        }
        _log.info("The replica is loaded.", extra=context)

    def _on_committed(self, entries: Sequence[Entry]) -> None:
        assert self.replica is not None
        self._signal_news()
        concerns_all = self.replica.cluster.has_execution_rules or not _are_arrivals(entries)
        for observer in self._observers:
            if concerns_all or observer.wants_new_pods:
                observer.on_committed(entries)

    def _signal_news(self) -> None:
        if self._news is not None:
            self._news.set()
            self._news = None

    def _new_loading(self) -> Loader[Replica]:
        return Loader(
            self._cluster_id,
            source=self._store,
            new_target=partial(Replica, self._templates),
            limits=self._limits,
        )

    async def _read_page(self) -> bool:
        """Apply the log's next page, and return whether more has to be read or loaded."""
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
    """Return whether each change adds a new pod that has a node."""
    for entry in entries:
        if entry.before is not None or entry.after is None:
            return False
        manifest = entry.after.manifest
        if not isinstance(manifest, PodManifest) or manifest.pod.node_name is None:
            return False
    return True
