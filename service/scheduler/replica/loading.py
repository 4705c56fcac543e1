"""Reading all objects of a cluster in ranges of their keys, each in a statement of its own (P13).

One long snapshot would keep PostgreSQL from clearing what commits leave behind, and hold all rows
at once. Here each range comes with the head of its instant, and before it is added, what was read
before is brought to that head by the log. So at each step there is the cluster as it was at one
revision, as far as the last key read; at the end it is all of it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from service.model.log import (
    Change,
    Diverged,
    Head,
    LogPage,
    ObjectKey,
    ObjectPage,
    ObjectRow,
    Snapshot,
)
from service.scheduler.protocol.limits import Limits

_log = logging.getLogger(__name__)
_STEP_ROWS = 500
_LIMITS = Limits()


class Source(Protocol):
    """Where objects and their log are read: see `service.scheduler.protocol.ports.Store`."""

    async def read_objects(
        self, cluster_id: int, after: ObjectKey | None, limit: int
    ) -> ObjectPage:
        """At most `limit` objects of all kinds by their keys, those beyond the key `after`."""
        ...

    async def read_log(
        self, cluster_id: int, after: int, tip: UUID | None, limit: int
    ) -> LogPage | Diverged:
        """Whole commits after a revision whose last commit was `tip` (P3, P12)."""
        ...


class Target(Protocol):
    """What is filled, empty at first."""

    def load(self, rows: Sequence[ObjectRow]) -> None:
        """Take over objects that it does not have."""
        ...

    def apply(self, change: Change) -> None:
        """Make the log's next change."""
        ...

    def pass_over(self, change: Change) -> None:
        """Leave out the log's next change: its object will come with a later range."""
        ...

    def arrive(self, revision: int) -> None:
        """All that it has is as it was at this revision."""
        ...


AnyTarget = TypeVar("AnyTarget", bound=Target)


class Loading(Generic[AnyTarget]):
    """One cluster on its way into a target of its own.

    A read that fails leaves it as it was, so `run` may be called again and goes on from there.
    After any other failure it is worth nothing any more.
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
        """As of when the target has what was loaded; None: nothing was."""
        self._after: ObjectKey | None = None
        """The target has the cluster at its head, up to this key."""

    async def run(self) -> tuple[AnyTarget, Head]:
        """The whole cluster at one revision, and the head that it has then.

        Raises:
            StorageUnavailable: nothing more could be read now.
            NotFound: the cluster is gone.
        """
        while True:
            page = await self._source.read_objects(self._cluster_id, self._after, self._rows)
            if not await self.has_come_to(page.head):
                _log.warning("Cluster %s: the log was cut; loading anew.", self._cluster_id)
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
        """Bring what was read before to a later head; False: the log does not lead there."""
        while self.head is not None and self.head.tip != head.tip:
            page = await self._source.read_log(
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
        """Make the log's changes up to a revision, of what was loaded before."""
        for change in changes:
            if change.revision > last:
                return
            if self.is_loaded(change.key):
                self._target.apply(change)
            else:
                self._target.pass_over(change)

    def is_loaded(self, key: ObjectKey) -> bool:
        """Whether the object of this key would have come with the ranges that were read before."""
        assert self._after is not None
        return key <= self._after

    def come_to(self, head: Head) -> None:
        """All that was loaded is now as it was at this head."""
        self._target.arrive(head.revision)
        self.head = head


class Rows:
    """Objects as they are stored, by their keys: those that are wanted.

    `room` is told how many bytes they have in all, and may raise where that is too many.
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
        """Take over objects."""
        for row in rows:
            if self._wants(row.key):
                self._put(row)
        self._room(self._bytes)

    def apply(self, change: Change) -> None:
        """Put or delete one."""
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
        """It will come with a later range."""

    def arrive(self, revision: int) -> None:
        """The head tells."""


async def load(
    source: Source,
    cluster_id: int,
    limits: Limits = _LIMITS,
    new_rows: Callable[[], Rows] = Rows,
) -> Snapshot:
    """All objects of a cluster at one revision, ordered by kind, namespace and name (P13).

    `new_rows` makes what they are read into, which need not want all of them.

    Raises:
        StorageUnavailable: not all could be read.
        NotFound: the cluster is gone.
    """
    loading = Loading(cluster_id, source=source, new_target=new_rows, limits=limits)
    rows, head = await loading.run()
    return Snapshot(head, sorted(rows.by_key.values(), key=lambda row: row.key))
