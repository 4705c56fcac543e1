"""The scheduler's ports: a store, a clock, and identifiers.

Everything that could differ between two runs enters through these ports, so a simulation with
several schedulers, one store, and one clock can be repeated exactly. The types of the values are in
`service.model.log.commit`.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from service.model.core.primitives import ObjectName
from service.model.log.audit_chain import AuditedCaller
from service.model.log.commit import (
    ALL_BODIES,
    BodySelection,
    CommitRequest,
    Diverged,
    Head,
    IdempotencyKey,
    IdempotencyRecord,
    LogPage,
    ObjectKey,
    ObjectRow,
)
from service.model.log.events import Event
from service.model.log.history import PastChanges, PastIndex, PastKey, PastSelection
from service.model.log.lease import HeldLeases, Lease, NodeLeases, NodeReports, ReplicaState
from service.model.log.pages import PAGE_BYTES_MAX, ClusterRow, ObjectPage, ObjectRead
from service.model.log.results import Behind, CommitResult, Committed, Lost

DecideLocked = Callable[[LogPage], CommitRequest | None]
"""Decides on the log's end while the head is locked, or returns None to commit nothing.

The function is called in the event loop, must not wait, and should take at most 50 ms (protocol
rule P6).
"""


class LogStore(Protocol):
    """Reads and extends the logs of clusters."""

    async def head(self, cluster_id: int) -> Head:
        """Return the end of a log, as of a time after this call began (protocol rule P8)."""
        ...

    async def heads(self, cluster_ids: Sequence[int]) -> dict[int, Head]:
        """Return the ends of several logs, omitting missing clusters."""
        ...

    async def read(
        self,
        cluster_id: int,
        after: int,
        tip: UUID | None,
        limit: int,
        *,
        bytes_max: int = PAGE_BYTES_MAX,
        bodies: BodySelection = ALL_BODIES,
    ) -> LogPage | Diverged:
        """Read whole commits after a revision whose last commit was `tip` (protocol rules P3 and P12).

        The page ends with the commit that reaches `limit` changes, or bodies of `bytes_max` bytes.
        """
        ...

    async def commit(self, cluster_id: int, request: CommitRequest) -> CommitResult:
        """Extend the log if it still ends where the request expects it to (protocol rule P1).

        No other holder can acquire the request's leases before the commit has ended.

        Raises:
            OutcomeUnknown: whether the log was extended is unknown; call `settle_unknown`.
            ReplicaMismatch: the stored objects differ from those that the request changes.
        """
        ...

    async def commit_locked(
        self, cluster_id: int, after: int, tip: UUID, decide: DecideLocked
    ) -> CommitResult | Behind | Diverged | None:
        """Lock the head, pass the log since (`after`, `tip`) to `decide`, and commit its result (protocol rule P6).

        Raises what `commit` raises.
        """
        ...

    async def settle_unknown(self, cluster_id: int, request: CommitRequest) -> Committed | Lost:
        """Determine whether an attempt was committed, and make the outcome final (protocol rule P4).

        Raises:
            OutcomeUnknown: it cannot be determined now, or ever.
        """
        ...

    async def record_answers(
        self, cluster_id: int, head: Head, records: Sequence[IdempotencyRecord]
    ) -> CommitResult:
        """Record answers that changed nothing, if the log still ends at `head` (rule P11)."""
        ...

    async def find_answers(
        self, cluster_id: int, keys: Sequence[IdempotencyKey]
    ) -> Sequence[IdempotencyRecord]:
        """Return the records of these keys, omitting keys without a record."""
        ...


class ObjectStore(Protocol):
    """Reads the objects of clusters."""

    async def read(self, cluster_id: int, after: ObjectKey | None, limit: int) -> ObjectPage:
        """Return up to `limit` objects of all kinds after the key `after`, ordered by their keys (protocol rule P13).

        The page's head is read at the same instant. If there are fewer than `limit` objects, these
        are the last ones.
        """
        ...

    async def get(self, cluster_id: int, kind: str, namespace: str, name: str) -> ObjectRead:
        """Return one object, with the head at the same instant."""
        ...

    async def list(
        self,
        cluster_id: int,
        kind: str,
        *,
        namespace: str | None = None,
        node_name: str | None = None,
        after: ObjectName | None = None,
        limit: int,
    ) -> ObjectPage:
        """Return up to `limit` objects of a kind after the key `after`, ordered by namespace and name."""
        ...


class HistoryStore(Protocol):
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
        """Return the objects of a kind that existed at a revision."""
        ...

    async def objects(
        self, cluster_id: int, kind: str, keys: Sequence[PastKey]
    ) -> list[ObjectRow] | None:
        """Return the past objects of the first keys, at least one, or None if one is compacted."""
        ...

    async def changes(
        self,
        cluster_id: int,
        revision: int,
        *,
        changes_max: int,
        limit: int,
        without: Sequence[str] = (),
    ) -> PastChanges:
        """Return objects that changed since a revision, except those of kinds in `without`."""
        ...

    async def bound_at(
        self, cluster_id: int, namespace: str, name: str, revision: int
    ) -> int | None:
        """Return the change that bound a pod in the commit of a revision, or None."""
        ...


class ClusterStore(Protocol):
    """Creates, reads, and deletes clusters."""

    async def get(self, name: str) -> ClusterRow:
        """Return the cluster that currently has this name."""
        ...

    async def find(self, name: str) -> int:
        """Return the id of the cluster that currently has this name."""
        ...

    async def ids(self) -> list[int]:
        """Return the ids of all clusters."""
        ...

    async def all(self) -> list[ClusterRow]:
        """Return all clusters, with counts of their objects."""
        ...

    async def create(self, name: str, config: bytes, caller: AuditedCaller) -> ClusterRow:
        """Create a cluster; raises Conflict if the name was taken in the meantime."""
        ...

    async def delete(
        self,
        cluster_id: int,
        caller: AuditedCaller,
        only_if: Callable[[int], None] | None = None,
        *,
        dry_run: bool = False,
    ) -> bool:
        """Delete a cluster with everything in it; return False if it does not exist.

        `only_if` is called with the revision of the configuration at that moment. If it raises,
        nothing is deleted.
        """
        ...


class LeaseStore(Protocol):
    """Stores the leases of clusters."""

    async def acquire(
        self, cluster_id: int, name: str, holder: str, seconds: float
    ) -> Lease | None:
        """Acquire or extend a lease; return None if it is held or the cluster is gone."""
        ...

    async def claim(self, cluster_id: int, name: str, holder: str, seconds: float) -> Lease | None:
        """Acquire or extend a lease, or return its current holder's; None without a cluster."""
        ...

    async def prolong(self, held: HeldLeases, seconds: float) -> bool:
        """Extend all of these leases, or none if any was lost; return whether it worked."""
        ...

    async def transfer(
        self, cluster_id: int, name: str, holder: str, to: str, seconds: float
    ) -> bool:
        """Transfer a lease to another holder; return False if `holder` no longer has it."""
        ...

    async def release(self, cluster_id: int, name: str, holder: str) -> None:
        """Release a lease, if the holder still has it."""
        ...

    async def expired(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """Return unreleased, expired leases with these names, each with its cluster's name."""
        ...

    async def unattended(self, name: str, mention: bytes, kind: str = "Pod") -> list[str]:
        """Return the clusters without a lease of this name that have an object with `mention` in its body."""
        ...


class WorkerStore(Protocol):
    """Stores which workers of all servers run."""

    async def register(self, servers: str, name: str, lease: str, seconds: float) -> dict[str, int]:
        """Register a worker as alive; return how many leases named `lease` each live worker holds."""
        ...

    async def deregister(self, servers: str, name: str) -> None:
        """Deregister a worker that is about to stop."""
        ...


class HeartbeatStore(Protocol):
    """Stores when nodes last reported."""

    async def record(self, cluster_id: int, names: Sequence[str]) -> NodeReports:
        """Record that nodes have reported now; names of unknown nodes are ignored."""
        ...

    async def check(self, cluster_id: int, grace_seconds: float) -> NodeLeases:
        """Find the nodes that have reported before, but not within `grace_seconds`."""
        ...

    async def forget(self, cluster_id: int, names: Sequence[str]) -> None:
        """Delete the heartbeats of deleted nodes."""
        ...

    async def unattended(self, name: str) -> list[str]:
        """Return the clusters without a lease of this name whose nodes need a controller."""
        ...


class EventStore(Protocol):
    """Stores the events of clusters."""

    async def add(self, cluster_id: int, events: Sequence[Event]) -> None:
        """Add events, or increment the count of equal ones; ignore clusters that do not exist."""
        ...

    async def sweep(self, cluster_id: int, *, keep_seconds: float, keep_rows: int) -> int:
        """Delete some old or excess events, and return how many. Repeat until 0."""
        ...


class AuditStore(Protocol):
    """The part of the audit store that the scheduler needs to limit its size."""

    async def sweep(self, *, keep_seconds: float) -> int:
        """Delete some rows older than `keep_seconds`; return how many. Repeat until 0."""
        ...


class HousekeepingStore(Protocol):
    """Limits the size of the logs and idempotency records of clusters."""

    async def compact(
        self, cluster_id: int, *, keep_changes: int, keep_seconds: float
    ) -> tuple[int, bool]:
        """Take one step of compaction (P12); return the log's floor, and whether it rose.

        Repeat while the floor rises.
        """
        ...

    async def sweep_answers(self, cluster_id: int, *, keep_seconds: float) -> int:
        """Delete some idempotency records older than `keep_seconds`; return how many. Repeat until 0 (protocol rule P11)."""
        ...


class RecoveryStore(Protocol):
    """Detects that a database was restored or a standby promoted."""

    async def continue_history(self, cluster_id: int, known: Head | None) -> bool:
        """Record the cluster's current history; lift its revisions if some may be lost (P3).

        `known` is the last head that the caller has seen; if the log has it, nothing was lost.
        Returns whether the revisions were lifted.
        """
        ...


class ReportStore(Protocol):
    """Stores processes' reports on their replicas."""

    async def report(self, process: str, states: Mapping[int, ReplicaState]) -> None:
        """Replace the report of a process; `states` maps cluster ids to the state of its replicas."""
        ...


class Store(Protocol):
    """The source of truth: each cluster's log of commits, and the resulting objects.

    All methods of the parts raise StorageUnavailable if the database cannot be reached (nothing was
    committed), and NotFound if the cluster does not exist.
    """

    @property
    def epoch(self) -> int:
        """A number that increases when the database may have another history (protocol rule P3)."""
        ...

    @property
    def log(self) -> LogStore: ...

    @property
    def objects(self) -> ObjectStore: ...

    @property
    def history(self) -> HistoryStore: ...

    @property
    def clusters(self) -> ClusterStore: ...

    @property
    def leases(self) -> LeaseStore: ...

    @property
    def workers(self) -> WorkerStore: ...

    @property
    def heartbeats(self) -> HeartbeatStore: ...

    @property
    def events(self) -> EventStore: ...

    @property
    def audit(self) -> AuditStore: ...

    @property
    def housekeeping(self) -> HousekeepingStore: ...

    @property
    def recovery(self) -> RecoveryStore: ...

    def notify(self, cluster_id: int) -> None:
        """Hint to other processes that a log has grown; hints may get lost (rule P14)."""
        ...

    def listen(self) -> AsyncGenerator[frozenset[int], None]:
        """Yield the clusters whose logs may have grown; an empty set stands for all.

        The iterator never ends and never raises.
        """
        ...


class Clock(Protocol):
    """The time, and the only way to wait."""

    def now(self) -> datetime:
        """The wall clock with a timezone, for timestamps that people read."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment, for time limits."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Sleep for `seconds`; 0 yields to other tasks once."""
        ...


class Ids(Protocol):
    """Generates identifiers."""

    def uid(self) -> str:
        """Return a new object's `metadata.uid`."""
        ...

    def suffix(self) -> str:
        """Return the suffix of a name made from a `generateName`, which may not be unique."""
        ...

    def commit_id(self) -> UUID:
        """Return the id of a new commit attempt."""
        ...
