"""Reads of the committed truth: straight from the store's tables, never from a replica.

So every read shows all changes acknowledged by any process before it arrived.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Protocol, TypeVar

import msgspec
from typing_extensions import override

from service.api.problems import RevisionNotReached
from service.model.audit import AuditRow
from service.model.errors import MoorageError, NotFound
from service.model.log import (
    ClusterRow,
    Counts,
    EventPage,
    Head,
    ObjectKey,
    ObjectPage,
    ObjectRead,
    ReplicaReport,
    Snapshot,
)
from service.scheduler.replica.loading import Rows, Source, load

DEFAULT_CLUSTER = "default"
"""The cluster that is there from the start."""
CLUSTERS_KNOWN_MAX = 10_000
BATCH_ROWS = 1_000
"""Rows that a list reads at once; pages show the present, so each batch may be a newer one."""
_POLL_SECONDS = 0.05

T = TypeVar("T")
Answer = TypeVar("Answer", ObjectRead, ObjectPage, EventPage)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which objects of a kind a list is of, and how it is read."""

    namespace: str | None = None
    """None: of all namespaces."""
    after: tuple[str, str] | None = None
    """Namespace and name; those up to these are left out."""
    rows: int = BATCH_ROWS
    """So many are read at once."""
    node_name: str | None = None
    """Only pods on this node."""
    at_least: int = 0
    """The revision that the cluster has to have reached."""
    hold: Callable[[int], None] = lambda _: None
    """Told how many bytes are in memory beside the batches; it may raise TooManyBytes."""


class Reads(Source, Protocol):
    """What the API asks of the store. Each answer is from one instant, with its head.

    Raises (from every method):
        NotFound: there is no such cluster.
        StorageUnavailable: the database cannot be reached.
    """

    async def list_clusters(self) -> list[ClusterRow]:
        """All clusters, by name."""
        ...

    async def get_cluster(self, name: str) -> ClusterRow:
        """One cluster with its configuration and counts."""
        ...

    async def count_pods(self, of: Mapping[int, Iterable[str]]) -> dict[int, Counts]:
        """How many pods there are in some namespaces of each of several clusters; nodes are not counted."""
        ...

    async def find_cluster(self, name: str) -> int:
        """The id of the cluster that has this name now."""
        ...

    async def head(self, cluster_id: int) -> Head:
        """Where the log ends."""
        ...

    async def get_object(self, cluster_id: int, kind: str, namespace: str, name: str) -> ObjectRead:
        """One object, or None in its place."""
        ...

    @override
    async def read_objects(
        self,
        cluster_id: int,
        after: ObjectKey | None,
        limit: int,
        namespaces: Collection[str] | None = None,
    ) -> ObjectPage:
        """Up to `limit` objects of all kinds by their keys, from after a key on.

        With `namespaces` these, what is in them, and what else is in no namespace.
        """
        ...

    async def list_objects(
        self,
        cluster_id: int,
        kind: str,
        *,
        namespace: str | None = None,
        after: tuple[str, str] | None = None,
        limit: int,
        node_name: str | None = None,
    ) -> ObjectPage:
        """Up to `limit` objects of a kind, by namespace and name, from after a key on."""
        ...

    async def list_events(
        self,
        cluster_id: int,
        *,
        namespace: str | None = None,
        after: tuple[str, str] | None = None,
        limit: int,
    ) -> EventPage:
        """Up to `limit` events, by namespace and name, from after a key on."""
        ...

    async def list_audit(
        self,
        *,
        after: tuple[int, int] | None = None,
        cluster: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int,
    ) -> list[AuditRow]:
        """Up to `limit` rows of the audit by chain and number, from after a key on."""
        ...

    async def replica_reports(self) -> list[ReplicaReport]:
        """What the living processes said of their replicas."""
        ...


class _Within:
    """The objects of some namespaces, and the log of all."""

    def __init__(self, store: Reads, namespaces: Collection[str] | None) -> None:
        self.read_log = store.read_log
        self._store = store
        self._namespaces = namespaces

    async def read_objects(
        self, cluster_id: int, after: ObjectKey | None, limit: int
    ) -> ObjectPage:
        """See `Reads.read_objects`."""
        return await self._store.read_objects(cluster_id, after, limit, self._namespaces)


class ClusterReads:
    """The store's reads by a cluster's name.

    Names are turned into ids from memory. An id is never used again, so one that is out of date
    finds nothing, and is then looked up anew.
    """

    def __init__(self, store: Reads, revision_wait_seconds: float) -> None:
        self.store = store
        self._wait_seconds = revision_wait_seconds
        self._ids: dict[str, int] = {}

    async def get_object(
        self, cluster: str, kind: str, namespace: str, name: str, *, at_least: int = 0
    ) -> ObjectRead:
        """One object at revision `at_least` or later."""
        return await self._reading(
            cluster, lambda i: self.store.get_object(i, kind, namespace, name), at_least
        )

    async def batches(self, cluster: str, kind: str, wanted: Wanted) -> AsyncIterator[ObjectPage]:
        """The objects of a kind in batches, which are bounded in rows and in bytes."""
        after = wanted.after
        while True:
            page = await self._list(cluster, kind, wanted, after)
            yield page
            if page.is_last(wanted.rows):
                return
            after = (page.rows[-1].namespace, page.rows[-1].name)

    async def list_events(
        self, cluster: str, wanted: Wanted, after: tuple[str, str] | None
    ) -> EventPage:
        """Up to `wanted.rows` events beyond the key `after`."""

        def read(cluster_id: int) -> Awaitable[EventPage]:
            return self.store.list_events(
                cluster_id, namespace=wanted.namespace, after=after, limit=wanted.rows
            )

        return await self._reading(cluster, read, wanted.at_least)

    async def head(self, cluster: str) -> Head:
        """Where the log of a cluster ends."""
        return await self._by_id(cluster, self.store.head)

    async def head_or_none(self, cluster: str) -> int | None:
        """The revision of a cluster's head; None where it cannot be had."""
        try:
            return (await self.head(cluster)).revision
        except MoorageError:
            return None

    async def ping(self) -> None:
        """Ask the database for something; StorageUnavailable if it does not answer."""
        with suppress(NotFound):
            await self._by_id(DEFAULT_CLUSTER, self.store.head)

    async def load(
        self,
        cluster: str,
        namespaces: Collection[str] | None,
        new_rows: Callable[[], Rows],
    ) -> Snapshot:
        """The objects of a cluster at one revision: see `Reads.read_objects` and `service.scheduler.replica.loading.load`."""
        source = _Within(self.store, namespaces)
        return await self._by_id(cluster, partial(load, source, new_rows=new_rows))

    async def _list(
        self, cluster: str, kind: str, wanted: Wanted, after: tuple[str, str] | None
    ) -> ObjectPage:
        def read(cluster_id: int) -> Awaitable[ObjectPage]:
            return self.store.list_objects(
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
        """Read until the head has reached a revision, a limited number of times."""
        for _ in range(max(1, round(self._wait_seconds / _POLL_SECONDS))):
            answer = await self._by_id(cluster, read)
            if answer.head.revision >= at_least:
                return answer
            await asyncio.sleep(_POLL_SECONDS)
        raise RevisionNotReached(f"The cluster has not reached revision {at_least}.")

    async def _by_id(self, cluster: str, read: Callable[[int], Awaitable[T]]) -> T:
        known = self._ids.get(cluster)
        if known is not None:
            try:
                return await read(known)
            except NotFound:
                del self._ids[cluster]
        if len(self._ids) >= CLUSTERS_KNOWN_MAX:
            self._ids.clear()
        self._ids[cluster] = await self.store.find_cluster(cluster)
        return await read(self._ids[cluster])
