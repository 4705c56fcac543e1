"""Keeps the log and the objects of each cluster in memory, and commits, as `service.store.log.commits` does."""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from msgspec.structs import replace

from service.model.core.errors import NotFound, OutcomeUnknown
from service.model.core.primitives import CLUSTER_KIND, CLUSTER_NAME, ObjectName
from service.model.log.commit import (
    ALL_BODIES,
    LOCKED_LAG_CHANGES_MAX,
    BodySelection,
    Change,
    CommitInfo,
    CommitRequest,
    Diverged,
    Effect,
    Head,
    IdempotencyKey,
    IdempotencyRecord,
    LogPage,
    ObjectKey,
    ObjectRow,
    ReplicaMismatch,
    effects,
)
from service.model.log.events import Event, merged, rows_of
from service.model.log.lease import LEASE_SECONDS_MAX, HeldLeases, Lease
from service.model.log.pages import PAGE_BYTES_MAX, ClusterCounts, ClusterRow
from service.model.log.results import (
    Behind,
    CommitResult,
    Committed,
    DuplicateKey,
    LeasesEnded,
    Lost,
    NotYet,
)
from service.store.log.log_page_building import Extract, build_page
from service.store.memory.memory_audit import AuditLog
from service.store.whether_audit_is_kept import Keeping

ROOT = UUID(int=0)
"""The tip that the first commit of a cluster follows."""


@dataclass(kw_only=True)
class ClusterState:
    """The state of one cluster; `changes[i]` has the revision `floor + 1 + i`."""

    cluster_id: int
    name: str
    head: Head
    floor: int = 0
    commits: list[CommitInfo] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    objects: dict[ObjectKey, ObjectRow] = field(default_factory=dict)
    answers: dict[IdempotencyKey, tuple[datetime, IdempotencyRecord]] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    node_leases: dict[str, datetime] = field(default_factory=dict)
    """When each node last reported."""
    events: dict[ObjectName, Event] = field(default_factory=dict)
    """The events by namespace and name."""

    def append(self, request: CommitRequest, acting: Sequence[Effect], at: datetime) -> None:
        """Extend the log; `acting` is what `effects` says of the request's changes."""
        self._check(request.changes, acting)
        self.changes.extend(request.changes)
        for change, effect in zip(request.changes, acting, strict=True):
            if effect == "Delete":
                del self.objects[change.key]
            elif effect != "None":
                self.objects[change.key] = change.row()
        last = request.last_revision
        self.extend(request.commit_id, last, at, request.kind, request.planned_at)
        self.record(request.idempotency, at)
        if request.events:
            self.add_events(request.events)

    def add_events(self, events: Sequence[Event]) -> None:
        for row in rows_of(events):
            key = (row.event.namespace, row.name)
            known = self.events.get(key)
            self.events[key] = merged(known, row.event) if known else row.event

    def _check(self, changes: Sequence[Change], acting: Sequence[str]) -> None:
        for change, effect in zip(changes, acting, strict=True):
            if effect != "None" and (change.key in self.objects) == (effect == "Create"):
                raise ReplicaMismatch(f"{change.key} at revision {change.revision}")

    def extend(self, commit_id: UUID, last: int, at: datetime, kind: str, planned_at: int) -> None:
        """Move the head, and add the commit to the log of commits."""
        info = CommitInfo(
            commit_id=commit_id,
            parent=self.head.tip,
            first=self.head.revision + 1,
            last=last,
            planned_at=planned_at,
            kind=kind,
            at=at,
        )
        self.commits.append(info)
        self.head = Head(last, commit_id, at)

    def record(self, records: Iterable[IdempotencyRecord], at: datetime) -> None:
        self.answers |= {record.id: (at, record) for record in records}

    def find(self, keys: Iterable[IdempotencyKey]) -> tuple[IdempotencyRecord, ...]:
        return tuple(self.answers[key][1] for key in dict.fromkeys(keys) if key in self.answers)

    def page(
        self,
        after: int,
        tip: UUID | None,
        limit: int,
        bytes_max: int = PAGE_BYTES_MAX,
        bodies: BodySelection = ALL_BODIES,
    ) -> LogPage | Diverged:
        ends = [commit.last for commit in self.commits]
        first = bisect_left(ends, after)
        place = bisect_left(ends, after + limit)
        last = ends[place] if place < len(ends) else self.head.revision
        begin = max(0, after - self.floor)
        changes = self.changes[begin : max(begin, last - self.floor)]
        changes = [each if bodies.has(each) else replace(each, body=b"") for each in changes]
        if (full := _full_at(changes, bytes_max)) is not None:
            last = ends[bisect_left(ends, full)]
            changes = [each for each in changes if each.revision <= last]
        commits = self.commits[first : bisect_right(ends, last)]
        extract = Extract(self.floor, self.head, commits, changes)
        return build_page(extract, after, tip, limit, bytes_max)

    def row(self) -> ClusterRow:
        nodes = sum(key.kind == "Node" for key in self.objects)
        pods = [row for key, row in self.objects.items() if key.kind == "Pod"]
        pending = sum(row.node_name is None for row in pods)
        return ClusterRow(
            cluster_id=self.cluster_id,
            name=self.name,
            head=self.head,
            config=self.objects[ObjectKey(CLUSTER_KIND, "", CLUSTER_NAME)].body,
            counts=ClusterCounts(nodes=nodes, pods=len(pods), pending=pending),
        )


def _full_at(changes: Sequence[Change], bytes_max: int) -> int | None:
    """Return the revision with which the bodies reach so many bytes, if they do."""
    size = 0
    for change in changes:
        size += len(change.body)
        if size >= bytes_max:
            return change.revision
    return None


class MemoryCommits:
    """The part of the store in memory that extends the logs of clusters, and tells that they have grown."""

    def __init__(
        self, clock: Callable[[], datetime], new_id: Callable[[], UUID], keeping: Keeping
    ) -> None:
        """`new_id` makes the ids of fences."""
        self._commit_clock = clock
        self._new_commit_id = new_id
        self.keeping = keeping
        """Whether the audit is kept, as far as this process knows."""
        self.audit = AuditLog()
        """The chains of the audit."""
        self.clusters: dict[int, ClusterState] = {}
        """All that each cluster has, by the cluster's number; simulations look at it directly."""
        self._listeners: list[_Listener] = []

    def state_of(self, cluster_id: int) -> ClusterState:
        """All that a cluster has; raises NotFound if there is no such cluster."""
        if cluster_id not in self.clusters:
            raise NotFound(f"There is no cluster {cluster_id}.")
        return self.clusters[cluster_id]

    async def commit(self, cluster_id: int, request: CommitRequest) -> CommitResult:
        """Extend the log if it still ends where the request expects it to (P1)."""
        return self.commit_to(self.state_of(cluster_id), request)

    def commit_to(self, own: ClusterState, request: CommitRequest) -> CommitResult:
        """Compare and swap the head, as `commit` and `commit_locked` do."""
        # This raises if the changes contradict one another, wherever the head is.
        acting = effects(request.changes)
        expected = (request.expected_revision, request.expected_tip)
        if (own.head.revision, own.head.tip) != expected:
            return Lost(own.head)
        at = max(self._commit_clock(), own.head.at)
        if request.not_before is not None and at < request.not_before:
            return NotYet(own.head)
        if request.leases and (ended := self._ended(request.leases)):
            return LeasesEnded(ended)
        if request.idempotency:
            known = own.find([record.id for record in request.idempotency])
            if known:
                return DuplicateKey(known)
        own.append(request, acting, at)
        audit = () if self.keeping.never else request.audit
        if audit and self.keeping.of([entry.caller for entry in audit]):
            self.audit.add(own.cluster_id, own.cluster_id, own.name, at, audit)
        return Committed(own.head)

    def _ended(self, leases: Sequence[HeldLeases]) -> frozenset[str]:
        """The holders that no longer have all of their leases."""
        now = self._commit_clock()

        def is_held(holder: str, cluster_id: int, name: str) -> bool:
            own = self.clusters.get(cluster_id)
            lease = own.leases.get(name) if own else None
            return lease is not None and lease.holder == holder and lasts(lease, now)

        return frozenset(
            each.holder
            for each in leases
            if not all(is_held(each.holder, *named) for named in each.names)
        )

    async def settle_unknown(self, cluster_id: int, request: CommitRequest) -> Committed | Lost:
        """Find out what became of an attempt, and make sure that it stays so (P4)."""
        own = self.state_of(cluster_id)
        expected = (request.expected_revision, request.expected_tip)
        if (own.head.revision, own.head.tip) == expected:
            at = max(self._commit_clock(), own.head.at)
            own.extend(self._new_commit_id(), own.head.revision, at, "Fence", own.head.revision)
            return Lost(own.head)
        for commit in own.commits:
            if commit.commit_id == request.commit_id:
                return Committed(Head(commit.last, commit.commit_id, commit.at))
        if own.floor > request.expected_revision:
            raise OutcomeUnknown("Whether the change was committed can no longer be found out.")
        return Lost(own.head)

    async def commit_locked(
        self,
        cluster_id: int,
        after: int,
        tip: UUID,
        decide: Callable[[LogPage], CommitRequest | None],
    ) -> CommitResult | Behind | Diverged | None:
        """Hand the log since (`after`, `tip`) to `decide` and commit its answer at once (P6)."""
        own = self.state_of(cluster_id)
        if own.head.revision - after > LOCKED_LAG_CHANGES_MAX:
            return Behind(own.head)
        page = own.page(after, tip, LOCKED_LAG_CHANGES_MAX, PAGE_BYTES_MAX)
        if isinstance(page, Diverged):
            return page
        if page.revision < own.head.revision:
            return Behind(own.head)
        request = decide(page)
        return None if request is None else self.commit_to(own, request)

    async def record_answers(
        self, cluster_id: int, head: Head, records: Sequence[IdempotencyRecord]
    ) -> CommitResult:
        """Record answers that changed nothing, if the log still ends at this head (P11)."""
        own = self.state_of(cluster_id)
        if (own.head.revision, own.head.tip) != (head.revision, head.tip):
            return Lost(own.head)
        known = own.find(record.id for record in records)
        if known:
            return DuplicateKey(known)
        own.record(records, self._commit_clock())
        return Committed(own.head)

    async def find_answers(
        self, cluster_id: int, keys: Sequence[IdempotencyKey]
    ) -> tuple[IdempotencyRecord, ...]:
        """The recorded answers of these keys; none if the cluster is gone."""
        own = self.clusters.get(cluster_id)
        return () if own is None else own.find(keys)

    def notify(self, cluster_id: int) -> None:
        """Let listeners know that a cluster's log has grown (P14)."""
        for listener in self._listeners:
            listener.hear(cluster_id)

    async def listen(self) -> AsyncGenerator[frozenset[int], None]:
        """Yield clusters whose logs have grown; first an empty set, as earlier hints may have been missed."""
        listener = _Listener()
        self._listeners.append(listener)
        try:
            yield frozenset()
            while True:
                yield await listener.take()
        finally:
            self._listeners.remove(listener)


class _Listener:
    """The hints that one listener has been sent and has not taken yet."""

    def __init__(self) -> None:
        self._heard: set[int] = set()
        self._news = asyncio.Event()

    def hear(self, cluster_id: int) -> None:
        self._heard.add(cluster_id)
        self._news.set()

    async def take(self) -> frozenset[int]:
        await self._news.wait()
        self._news.clear()
        heard = frozenset(self._heard)
        self._heard.clear()
        return heard


def lasts(lease: Lease, now: datetime) -> bool:
    """Whether somebody holds a lease at a time."""
    return now < lease.until <= now + timedelta(seconds=LEASE_SECONDS_MAX)
