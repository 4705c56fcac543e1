"""What a store in memory keeps: the log and the objects of each cluster, and the audit."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from msgspec.structs import replace

from service.model.core.errors import NotFound
from service.model.core.primitives import CLUSTER_KIND, CLUSTER_NAME, ObjectName
from service.model.log.audit_chain import SERVER_CHAIN, AuditEntry
from service.model.log.commit import (
    ALL_BODIES,
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
)
from service.model.log.events import Event, merged, rows_of
from service.model.log.lease import LEASE_SECONDS_MAX, HeldLeases, Lease
from service.model.log.pages import PAGE_BYTES_MAX, ClusterCounts, ClusterRow
from service.store.audit import AuditPolicy
from service.store.log.paging import LogRows, build_page
from tests.support.memory_store.chains import AuditChains

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
        extract = LogRows(self.floor, self.head, commits, changes)
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


def lasts(lease: Lease, now: datetime) -> bool:
    """Whether somebody holds a lease at a time."""
    return now < lease.until <= now + timedelta(seconds=LEASE_SECONDS_MAX)


class MemoryState:
    """What the parts of one store share."""

    def __init__(
        self, clock: Callable[[], datetime], new_id: Callable[[], UUID], policy: AuditPolicy
    ) -> None:
        """`clock` is the database's, and `new_id` makes the ids that PostgreSQL would make."""
        self.clock = clock
        self.new_id = new_id
        self.policy = policy
        self.chains = AuditChains()
        self.states: dict[int, ClusterState] = {}
        """All that each cluster has, by the cluster's number."""

    def of(self, cluster_id: int) -> ClusterState:
        """All that a cluster has; raises NotFound if there is no such cluster."""
        if cluster_id not in self.states:
            raise NotFound("The cluster has been deleted.")
        return self.states[cluster_id]

    def ended(self, leases: Sequence[HeldLeases]) -> frozenset[str]:
        """The holders that no longer have all of their leases."""
        now = self.clock()

        def is_held(holder: str, cluster_id: int, name: str) -> bool:
            own = self.states.get(cluster_id)
            lease = own.leases.get(name) if own else None
            return lease is not None and lease.holder == holder and lasts(lease, now)

        return frozenset(
            each.holder
            for each in leases
            if not all(is_held(each.holder, *named) for named in each.names)
        )

    def note(self, entry: AuditEntry, cluster_id: int | None = None) -> None:
        """Add an entry to the chain of the server, if the audit is kept for its caller."""
        if self.policy.applies_to([entry.caller]):
            self.chains.add(SERVER_CHAIN, cluster_id, "", self.clock(), [entry])
