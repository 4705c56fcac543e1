"""Loads all objects of a cluster in key ranges, each by a separate statement (protocol rule P13).

One long snapshot would keep PostgreSQL from removing old row versions, and all rows would be in
memory at once. Instead, each range is read together with the head at that instant. Before the range
is added, the log brings the earlier ranges to that head. So after each step, all objects up to the
last key read reflect a single revision; at the end, these are all objects.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from service.model.log.commit import Change, Diverged, Head, LogPage, ObjectKey, ObjectRow
from service.model.log.pages import ObjectPage, Snapshot
from service.scheduler.protocol.limits import Limits

_log = logging.getLogger(__name__)
_STEP_ROWS = 500
_LIMITS = Limits()


class ObjectSource(Protocol):
    """The part of the object store needed for loading."""

    async def read(self, cluster_id: int, after: ObjectKey | None, limit: int) -> ObjectPage:
        """Read at most `limit` objects of all kinds after the key `after`, in key order."""
        ...


class LogSource(Protocol):
    """The part of the log store needed for loading."""

    async def read(
        self, cluster_id: int, after: int, tip: UUID | None, limit: int
    ) -> LogPage | Diverged:
        """Read whole commits after a revision whose last commit was `tip` (protocol rules P3 and P12)."""
        ...


class Source(Protocol):
    """The part of `service.scheduler.protocol.ports.Store` that reads objects and their log."""

    @property
    def objects(self) -> ObjectSource: ...

    @property
    def log(self) -> LogSource: ...


class Target(Protocol):
    """The objects being loaded, initially none."""

    def load(self, rows: Sequence[ObjectRow]) -> None:
        """Add new objects."""
        ...

    def apply(self, change: Change) -> None:
        """Apply the log's next change."""
        ...

    def pass_over(self, change: Change) -> None:
        """Skip the log's next change, because its object will come with a later range."""
        ...

    def arrive(self, revision: int) -> None:
        """Record that all loaded objects reflect this revision."""
        ...


AnyTarget = TypeVar("AnyTarget", bound=Target)


class Loader(Generic[AnyTarget]):
    """Loads one cluster into a new target.

    If a read fails, `run` may be called again, and continues where it stopped. After any other
    failure, this object is unusable.
    """

    def __init__(
        self,
        cluster_id: int,
        *,
        source: Source,
        new_target: Callable[[], AnyTarget],
        limits: Limits,
    ) -> None:
        self._cluster_id = cluster_id
        self._source = source
        self._new_target = new_target
        self._rows = limits.load_rows
        self._page_changes = limits.log_page_changes
        self._begin()

    def _begin(self) -> None:
        self._target = self._new_target()
        self.head: Head | None = None
        """The head of the objects in the target, or None if nothing is loaded yet."""
        self._after: ObjectKey | None = None
        """The last key read; the target has all objects up to this key."""

    async def run(self) -> tuple[AnyTarget, Head]:
        """Load the whole cluster at one revision, and return it with the head at that revision.

        Raises:
            StorageUnavailable: the next range, or the log, could not be read now.
            NotFound: the cluster is gone.
        """
        while True:
            page = await self._source.objects.read(self._cluster_id, self._after, self._rows)
            if not await self.has_come_to(page.head):
                _log.info("Loading begins anew, as the log was cut meanwhile.")
                self._begin()
                continue
            await self._add(page)
            if page.is_last(self._rows):
                return self._target, page.head

    async def _add(self, page: ObjectPage) -> None:
        for start in range(0, len(page.rows), _STEP_ROWS):
            self._target.load(page.rows[start : start + _STEP_ROWS])
            await asyncio.sleep(0)
        if page.rows:
            self._after = page.rows[-1].key
        self.come_to(page.head)

    async def has_come_to(self, head: Head) -> bool:
        """Replay the log up to `head`; return False if the log does not reach it."""
        while self.head is not None and self.head.tip != head.tip:
            page = await self._source.log.read(
                self._cluster_id, self.head.revision, self.head.tip, self._page_changes
            )
            if isinstance(page, Diverged) or not page.commits:
                return False
            ends = [commit for commit in page.commits if commit.commit_id == head.tip]
            end = ends[0] if ends else page.commits[-1]
            if end.last > head.revision:
                return False
            self.follow(page.changes, end.last)
            self.come_to(Head(end.last, end.commit_id, end.at))
            await asyncio.sleep(0)
        return True

    def follow(self, changes: Sequence[Change], last: int) -> None:
        """Apply the log's changes up to the revision `last` to the objects loaded so far."""
        for change in changes:
            if change.revision > last:
                return
            if self.is_loaded(change.key):
                self._target.apply(change)
            else:
                self._target.pass_over(change)

    def is_loaded(self, key: ObjectKey) -> bool:
        """Return whether a key lies within the ranges read so far."""
        assert self._after is not None
        return key <= self._after

    def come_to(self, head: Head) -> None:
        """Record that all loaded objects now reflect this head."""
        self._target.arrive(head.revision)
        self.head = head


class Rows:
    """A target that holds the wanted stored rows by key.

    `room` is called with the total bytes of the rows, and may raise if there are too many.
    """

    def __init__(
        self,
        wants: Callable[[ObjectKey], bool] = lambda _: True,
        room: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.by_key: dict[ObjectKey, ObjectRow] = {}
        self._wants = wants
        self._room = room
        self._bytes = 0

    def load(self, rows: Sequence[ObjectRow]) -> None:
        """Add the rows of objects that are wanted."""
        for row in rows:
            if self._wants(row.key):
                self._put(row)
        self._room(self._bytes)

    def apply(self, change: Change) -> None:
        """Put or delete the row of one object."""
        if not self._wants(change.key):
            return
        self._drop(change.key)
        if change.verb == "Put":
            self._put(change.row())
            self._room(self._bytes)

    def _put(self, row: ObjectRow) -> None:
        self.by_key[row.key] = row
        self._bytes += len(row.body)

    def _drop(self, key: ObjectKey) -> None:
        if (known := self.by_key.pop(key, None)) is not None:
            self._bytes -= len(known.body)

    def pass_over(self, change: Change) -> None:
        """Do nothing, since the object will come with a later range."""

    def arrive(self, revision: int) -> None:
        """Do nothing, since `load` reads the revision from the head."""


async def load(
    source: Source,
    cluster_id: int,
    limits: Limits = _LIMITS,
    new_rows: Callable[[], Rows] = Rows,
) -> Snapshot:
    """Read all objects of a cluster at one revision, by kind, namespace, and name (protocol rule P13).

    `new_rows` creates the target of the load, which may exclude objects.

    Raises:
        StorageUnavailable: not all objects could be read.
        NotFound: the cluster is gone.
    """
    loading = Loader(cluster_id, source=source, new_target=new_rows, limits=limits)
    rows, head = await loading.run()
    return Snapshot(head, sorted(rows.by_key.values(), key=lambda row: row.key))
