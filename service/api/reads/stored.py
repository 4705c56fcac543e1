"""Reads a cluster and its objects from the store's tables; readers of a cluster that is being deleted get 404.

Every read shows all changes that any process acknowledged before the read arrived.
"""

import asyncio
import logging
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from datetime import datetime
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from service.api.http.problems import RevisionNotReached
from service.model.core.errors import MoorageError, NotFound, ObjectUnreadable
from service.model.core.manifest import METADATA
from service.model.core.primitives import CLUSTER_KIND, ObjectName
from service.model.log.audit_chain import AuditRow
from service.model.log.commit import Head, ObjectKey, ObjectRow
from service.model.log.history import PastIndex, PastKey, PastSelection, ReadableHistory
from service.model.log.lease import ReplicaReport
from service.model.log.pages import (
    ClusterCounts,
    ClusterRow,
    EventPage,
    ObjectPage,
    ObjectRead,
    Snapshot,
)
from service.model.selection.selectable_fields import Listed
from service.scheduler.replica.loading import LogSource, Rows, load

CLUSTERS_KNOWN_MAX = 10_000
BATCH_ROWS = 1_000
"""How many rows a list reads at once; each batch shows the state when it is read."""
ID_KNOWN_SECONDS = 1.0
"""How long a cluster's id is cached."""
_POLL_SECONDS = 0.05

_log = logging.getLogger(__name__)


class _KnownId(NamedTuple):
    """A cluster's cached id and its expiry."""

    cluster_id: int
    until: float


class HeadRead(NamedTuple):
    """A cluster's id and the head of its log."""

    cluster_id: int
    head: Head


T = TypeVar("T")
Answer = TypeVar("Answer", ObjectRead, ObjectPage, EventPage, HeadRead)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The selected objects of a kind, and how to read them."""

    namespace: str | None = None
    """The namespace of the objects, or None for all."""
    after: ObjectName | None = None
    """A namespace and name; only objects after this one are read."""
    rows: int = BATCH_ROWS
    """How many rows are read at once."""
    node_name: str | None = None
    """If given, only pods on this node are read."""
    at_least: int = 0
    """The minimum revision of the cluster."""
    hold: Callable[[int], None] = lambda _: None
    """Called with the bytes held in addition to the batches; may raise TooManyBytes."""
    leave_out: Callable[[ObjectRow], None] = lambda _: None
    """Called with each unreadable object, which the list omits."""

    def readable(self, rows: list[ObjectRow]) -> list[ObjectRow]:
        """Return the readable rows; report the others to `leave_out`."""
        kept = [row for row in rows if is_readable(row)]
        if len(kept) < len(rows):
            for row in rows:
                if not is_readable(row):
                    self.leave_out(row)
        return kept


_read_listed = msgspec.json.Decoder(Listed).decode


def require_readable(rows: Iterable[ObjectRow]) -> None:
    """Raise ObjectUnreadable if a row cannot be read."""
    for row in rows:
        if not is_readable(row):
            raise ObjectUnreadable(row.kind, row.namespace, row.name)


def is_readable(row: ObjectRow) -> bool:
    """Return whether a row's body is JSON with the fields that lists and answers need."""
    try:
        _read_listed(row.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return row.kind == CLUSTER_KIND or METADATA in row.body


class ClusterReader(Protocol):
    """Looks up clusters, and counts their pods."""

    async def all(self) -> list[ClusterRow]:
        """Return all clusters, ordered by name."""
        ...

    async def get(self, name: str) -> ClusterRow:
        """Return a cluster with its configuration and counts."""
        ...

    async def find(self, name: str) -> int:
        """Return the id of the cluster that currently has this name."""
        ...

    async def count_pods(self, of: Mapping[int, Iterable[str]]) -> dict[int, ClusterCounts]:
        """Count the pods in some namespaces of each of several clusters; nodes are not counted."""
        ...


class LogReader(LogSource, Protocol):
    """Reads the logs of clusters."""

    async def head(self, cluster_id: int) -> Head:
        """Return the head of the log."""
        ...


class ObjectReader(Protocol):
    """Reads objects of clusters."""

    async def get(self, cluster_id: int, kind: str, namespace: str, name: str) -> ObjectRead:
        """Return one object; its row is None if it does not exist."""
        ...

    async def read(
        self,
        cluster_id: int,
        after: ObjectKey | None,
        limit: int,
        namespaces: Collection[str] | None = None,
    ) -> ObjectPage:
        """Return up to `limit` objects of all kinds after a key, ordered by key.

        With `namespaces`, return only these namespaces, the objects in them, and cluster-scoped
        objects other than namespaces.
        """
        ...

    async def list(
        self,
        cluster_id: int,
        kind: str,
        *,
        namespace: str | None = None,
        after: ObjectName | None = None,
        limit: int,
        node_name: str | None = None,
    ) -> ObjectPage:
        """Return up to `limit` objects of a kind after a key, ordered by namespace and name."""
        ...


class HistoryReader(Protocol):
    """Reads earlier revisions of clusters."""

    async def index(
        self,
        cluster_id: int,
        selection: PastSelection,
        revision: int,
        *,
        changes_max: int,
        after: ObjectName | None = None,
        node_name: str | None = None,
        limit: int,
    ) -> PastIndex:
        """Return up to `limit` keys of objects of a kind at a revision, beginning after `after`.

        At most the last `changes_max` changes of the log are searched.
        """
        ...

    async def objects(
        self, cluster_id: int, kind: str, keys: Sequence[PastKey]
    ) -> list[ObjectRow] | None:
        """Return the past objects of the first keys, at least one, or None if one is compacted."""
        ...

    async def readable(
        self, cluster_id: int, selection: PastSelection, *, changes_max: int
    ) -> ReadableHistory:
        """Return how far back the objects of a selection can be read."""
        ...

    async def committed_at(self, cluster_id: int, revision: int) -> datetime | None:
        """Return when a revision was committed, or None if the log does not contain it."""
        ...


class HeartbeatReader(Protocol):
    """Reads heartbeats of nodes."""

    async def last(self, cluster_id: int, name: str) -> datetime | None:
        """Return when a node last reported, or None if unknown."""
        ...


class EventReader(Protocol):
    """Reads events of clusters."""

    async def list(
        self,
        cluster_id: int,
        *,
        namespace: str | None = None,
        after: ObjectName | None = None,
        limit: int,
    ) -> EventPage:
        """Return up to `limit` events after a key, ordered by namespace and name."""
        ...


class AuditReader(Protocol):
    """Reads the audit log."""

    async def list(
        self,
        *,
        after: tuple[int, int] | None = None,
        cluster: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int,
    ) -> Sequence[AuditRow]:
        """Return up to `limit` rows of the audit log after a key, ordered by chain and number."""
        ...


class ReportReader(Protocol):
    """Reads the reports of processes on their replicas."""

    async def latest(self) -> list[ReplicaReport]:
        """Return the latest reports of running processes on their replicas."""
        ...


class Reads(Protocol):
    """The parts of the store that the API reads; each answer shows one instant, with its head.

    Raises (from every method):
        NotFound: there is no such cluster.
        StorageUnavailable: the database cannot be reached.
    """

    @property
    def clusters(self) -> ClusterReader: ...

    @property
    def log(self) -> LogReader: ...

    @property
    def objects(self) -> ObjectReader: ...

    @property
    def history(self) -> HistoryReader: ...

    @property
    def heartbeats(self) -> HeartbeatReader: ...

    @property
    def events(self) -> EventReader: ...

    @property
    def audit(self) -> AuditReader: ...

    @property
    def replica_reports(self) -> ReportReader: ...


class _ObjectsWithin:
    """The objects of some namespaces, or of all if `namespaces` is None."""

    def __init__(self, objects: ObjectReader, namespaces: Collection[str] | None) -> None:
        self._objects = objects
        self._namespaces = namespaces

    async def read(self, cluster_id: int, after: ObjectKey | None, limit: int) -> ObjectPage:
        """Read as `ObjectReader.read` does, in these namespaces only."""
        return await self._objects.read(cluster_id, after, limit, self._namespaces)


class _Within:
    """A snapshot source with the objects of some namespaces only, but with the whole log."""

    def __init__(self, store: Reads, namespaces: Collection[str] | None) -> None:
        self.log = store.log
        self.objects = _ObjectsWithin(store.objects, namespaces)


class ClusterReads:
    """Reads clusters by name from the store.

    Cluster ids are cached by name for `ID_KNOWN_SECONDS`. Ids are never reused, so an outdated id
    finds nothing, and the name is looked up again. Only a restored database may assign an id to
    another cluster, but restoring it and creating that cluster takes longer than the cache lasts.
    """

    def __init__(
        self,
        store: Reads,
        revision_wait_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store
        self._wait_seconds = revision_wait_seconds
        self._monotonic = monotonic
        self._ids: dict[str, _KnownId] = {}

    async def get_object(
        self, cluster: str, kind: str, namespace: str, name: str, *, at_least: int = 0
    ) -> ObjectRead:
        """Return one object at revision `at_least` or later."""
        read = await self._reading(
            cluster, lambda i: self.store.objects.get(i, kind, namespace, name), at_least
        )
        require_readable(() if read.row is None else (read.row,))
        return read

    async def batches(self, cluster: str, kind: str, wanted: Wanted) -> AsyncIterator[ObjectPage]:
        """Yield the objects of a kind in batches, which are bounded in rows and in bytes."""
        after = wanted.after
        while True:
            page = await self._list(cluster, kind, wanted, after)
            yield ObjectPage(page.head, wanted.readable(page.rows))
            if page.is_last(wanted.rows):
                return
            after = (page.rows[-1].namespace, page.rows[-1].name)

    async def list_events(
        self, cluster: str, wanted: Wanted, after: ObjectName | None
    ) -> EventPage:
        """Return up to `wanted.rows` events after the key `after`."""

        def read(cluster_id: int) -> Awaitable[EventPage]:
            return self.store.events.list(
                cluster_id, namespace=wanted.namespace, after=after, limit=wanted.rows
            )

        return await self._reading(cluster, read, wanted.at_least)

    async def position(self, cluster: str, *, at_least: int = 0) -> HeadRead:
        """Return a cluster's id, and its head at revision `at_least` or later."""

        async def read(cluster_id: int) -> HeadRead:
            return HeadRead(cluster_id, await self.store.log.head(cluster_id))

        return await self._reading(cluster, read, at_least)

    async def head(self, cluster: str) -> Head:
        """Return the head of a cluster's log."""
        return await self._by_id(cluster, self.store.log.head)

    async def head_or_none(self, cluster: str) -> int | None:
        """Return the revision of a cluster's head, or None if it cannot be read."""
        try:
            return (await self.head(cluster)).revision
        except MoorageError:
            return None
        except Exception:  # noqa: BLE001 - a missing header must not fail the answer
            _log.exception("The head of a cluster could not be read.")
            return None

    async def load(
        self,
        cluster: str,
        namespaces: Collection[str] | None,
        new_rows: Callable[[], Rows],
    ) -> Snapshot:
        """Read a cluster's objects at one revision, or only those of `namespaces`.

        `service.scheduler.replica.loading.load` describes how they are read in ranges.
        """
        source = _Within(self.store, namespaces)
        return await self._by_id(cluster, partial(load, source, new_rows=new_rows))

    async def _list(
        self, cluster: str, kind: str, wanted: Wanted, after: ObjectName | None
    ) -> ObjectPage:
        def read(cluster_id: int) -> Awaitable[ObjectPage]:
            return self.store.objects.list(
                cluster_id,
                kind,
                namespace=wanted.namespace,
                after=after,
                limit=wanted.rows,
                node_name=wanted.node_name,
            )

        return await self._reading(cluster, read, wanted.at_least)

    async def _reading(
        self, cluster: str, read: Callable[[int], Awaitable[Answer]], at_least: int
    ) -> Answer:
        """Read repeatedly until the head has reached a revision, a limited number of times."""
        for _ in range(max(1, round(self._wait_seconds / _POLL_SECONDS))):
            answer = await self._by_id(cluster, read)
            if answer.head.revision >= at_least:
                return answer
            await asyncio.sleep(_POLL_SECONDS)
        raise RevisionNotReached(f"The cluster has not reached revision {at_least}.")

    async def _by_id(self, cluster: str, read: Callable[[int], Awaitable[T]]) -> T:
        known = self._ids.get(cluster)
        if known is not None and self._monotonic() < known.until:
            try:
                return await read(known.cluster_id)
            except NotFound:
                self._ids.pop(cluster, None)  # Another read may have removed it.
        cluster_id = await self.store.clusters.find(cluster)
        if len(self._ids) >= CLUSTERS_KNOWN_MAX:
            self._ids.clear()
        self._ids[cluster] = _KnownId(cluster_id, self._monotonic() + ID_KNOWN_SECONDS)
        try:
            return await read(cluster_id)
        except NotFound:  # It was just deleted; the store's error names only its id.
            raise NotFound(f"There is no cluster {cluster!r}.") from None
